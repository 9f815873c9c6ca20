"""Byte-level BPE in Hugging Face's files: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.added_tokens import read_mask, with_added_tokens
from keras_transformer.pretrained.pieces import check_ids
from keras_transformer.pretrained.post_processor import check_marks
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import ByteBPETokenizer

VOCABULARY, OPTIONS = "tokenizer.json", "tokenizer_config.json"
IDS, MERGES = "vocab.json", "merges.txt"
MASK = "<mask>"
VERSION = "#version"  # begins the first line of `merges.txt`
# Options of the model that change its tokens, with the values of GPT-2's and RoBERTa's. An option
# that is missing has the first of them.
EXPRESSIBLE = {
    "type": ("BPE",),
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False,),
    "ignore_merges": (False,),
}


def read_byte_bpe(
    folder, settings, special, starts_with_bos, padding=None, beyond=()
) -> ByteBPETokenizer:
    """Returns the `ByteBPETokenizer` of a checkpoint, with as many entries as its model has.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens.
        starts_with_bos: See `ByteBPETokenizer`.
        padding: Function from the list of the vocabulary's tokens to the token that pads, which
            is appended to them if they do not have it. `None`: the token in `special`.
        beyond: Tokens that are left out if their ids are not in the vocabulary of the model.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or holds another
            tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    # As in `transformers`, the options determine the space, not `tokenizer.json`.
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    prefix_space = options.flag("add_prefix_space", False)
    path = folder.path / (IDS if content is None else VOCABULARY)
    if content is None:
        ids, merges = folder.require_json(IDS), _merges_of_lines(folder.text(MERGES))
    else:
        ids, merges = _from_json(content, path)
    composes, found = (content or {}).get("normalizer") is not None, []
    ids = with_added_tokens(ids, folder, content, path, found)
    ids = {p: n for p, n in ids.items() if not (p in beyond and is_integer(n) and n >= size)}
    check_ids(ids, size, path)
    names = {number: piece for piece, number in ids.items()}
    pieces = [names.get(number, f"<unused {number}>") for number in range(size)]
    if padding is not None:
        special = {**special, "pad": padding(pieces)}
        pieces += [special["pad"]] * (special["pad"] not in pieces)
    mask, strips = read_mask(ids, folder, content, MASK)
    special = special if mask is None else {**special, "mask": mask}
    found = [piece for piece in found if piece in pieces]
    rules = {"steps": ("compose",) if composes else (), "found": found}
    try:
        tokenizer = ByteBPETokenizer(
            pieces, merges, special, starts_with_bos, prefix_space, strips, **rules
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if content is not None:
        marks = (special["bos"], special["eos"]) if starts_with_bos else (None, None)
        check_marks(content, path, ids, *marks)
    return tokenizer


def _merges_of_lines(text):
    """Returns the pairs in a `merges.txt`, one from each line."""
    lines = text.split("\n")
    begin = int(lines[0].startswith(VERSION))
    return [tuple(line.rstrip("\r").split(" ")) for line in lines[begin:] if line.strip()]


def _from_json(content, path):
    """Returns the ids and the pairs in a `tokenizer.json`."""
    whole = CheckpointSettings(content, path)
    parts = {}
    for part, kind in {"model": "BPE", "pre_tokenizer": "ByteLevel"}.items():
        value = content.get(part)
        if not isinstance(value, dict) or value.get("type", kind) != kind:
            raise whole.wrong(part, f"of the type {kind}")
        parts[part] = CheckpointSettings(value, path)
    whole.check({"normalizer": (None, {"type": "NFC"})})
    model, splitter = parts["model"], parts["pre_tokenizer"]
    model.check(EXPRESSIBLE)
    splitter.check({"use_regex": (True,)})
    ids, merges = model.get("vocab"), model.get("merges")
    if not isinstance(ids, dict):
        raise model.wrong("vocab", "ids by piece")
    if not isinstance(merges, list):
        raise model.wrong("merges", "a list of pairs")
    merges = [tuple(pair.split(" ")) if isinstance(pair, str) else pair for pair in merges]
    if not all(
        isinstance(pair, (list, tuple)) and [*map(type, pair)] == [str] * 2 for pair in merges
    ):
        raise model.wrong("merges", "a list of pairs")
    return ids, merges
