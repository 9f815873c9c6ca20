"""Byte-level BPE in Hugging Face's files: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.added_tokens import check_marks, read_mask, with_added_tokens
from keras_transformer.pretrained.pieces import pieces_of_ids
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import ByteBPETokenizer
from keras_transformer.text.word_patterns import PATTERNS

VOCABULARY, OPTIONS = "tokenizer.json", "tokenizer_config.json"
IDS, MERGES = "vocab.json", "merges.txt"
MASK = "<mask>"
VERSION = "#version"  # begins the first line of `merges.txt`
# Options of the model that change its tokens, with the values of GPT-2's and RoBERTa's. An option
# that is missing has the first of them.
EXPRESSIBLE = {
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False,),
    "ignore_merges": (False, True),
}
OFFICIAL = (
    "The file may be the published one: the tokenizer of this package needs this rule to return "
    "the same tokens. Another revision of the checkpoint, or the tokenizer.json that a new version "
    "of transformers saves, may follow it."
)
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
CAPITALS = r"\p{Lu}"  # capital letters, in a pattern
DIGITS = {"type": "Digits", "individual_digits": True}


def read_byte_bpe(
    folder,
    settings,
    special,
    starts_with_bos,
    padding=None,
    beyond=(),
    pattern="gpt2",
    normalization=None,
    marks=None,
    no_text=None,
    notes=None,
) -> ByteBPETokenizer:
    """Returns the `ByteBPETokenizer` of a checkpoint, with as many entries as its model has.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens, or a function from
            the list of the vocabulary's tokens to it. `"mask"`: the mask token, unless
            `tokenizer_config.json` names another; without it, `<mask>`.
        starts_with_bos: See `ByteBPETokenizer`.
        padding: Function from the list of the vocabulary's tokens to the padding token, which is
            appended to the vocabulary if it is missing. `None`: the token in `special`.
        beyond: Tokens that are left out if their ids are not in the vocabulary of the model.
        pattern, normalization: See `ByteBPETokenizer`. They only apply without `tokenizer.json`,
            which names them.
        marks: Function from the dictionary of special tokens to a list of pairs: the tokens that
            `tokenizer.json` may put before and after a text. `None` in a pair means no token.
            `marks=None`: `bos` and `eos` if `starts_with_bos`, otherwise no token. `()`: any tokens
            may be there.
        no_text: Function from the list of the vocabulary's tokens to those that are no part of a
            text, such as timestamps: they are not found in texts, and decoded to nothing.
            `None`: only special tokens are no part of a text.
        notes: List to which a note is appended if the first merge is missing, which is then put
            back: see `lost_first_merge`. `None`: the merges are those of the file.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or holds another
            tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    # As in `transformers`, the options determine the space, not `tokenizer.json`.
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    prefix_space = bool(options.flag("add_prefix_space", None))
    path = folder.path / (IDS if content is None else VOCABULARY)
    if content is None:
        ids, merges = folder.require_json(IDS), _merges_of_lines(folder.text(MERGES))
        how = {"pattern": pattern, "normalization": normalization}
    else:
        ids, merges, how = _from_json(content, path)
    if prefix_space and how.get("pattern", "gpt2") != "gpt2":
        raise options.wrong("add_prefix_space", "false for texts that are split at this pattern")
    if notes is not None:
        lost, merges = lost_first_merge(ids, merges), [*merges]
        if lost is not None:
            merges.insert(0, lost)
            notes.append(
                f"{path}: the first merge, {' '.join(lost)!r}, is missing and was put back"
            )
    found = []
    ids = with_added_tokens(ids, folder, content, path, found)
    if how["normalization"] is not None and content is not None:
        _check_found(content, path)
    if how.get("whole_words"):  # added tokens are not in the words of texts
        added = {token["content"] for token in (content or {}).get("added_tokens") or []}
        how["whole_words"] = [piece for piece in list(how["whole_words"]) if piece not in added]
    ids = {p: n for p, n in ids.items() if not (p in beyond and is_integer(n) and n >= size)}
    ids.pop("", None)  # the last one of GPT-2's pieces in Whisper's vocabulary
    pieces = pieces_of_ids(ids, size, path)
    if callable(special):
        special = special(pieces)
    if padding is not None:
        special = {**special, "pad": padding(pieces)}
        pieces += [special["pad"]] * (special["pad"] not in pieces)
    default, special = special.get("mask", MASK), {r: special[r] for r in special if r != "mask"}
    mask, strips = read_mask(ids, folder, content, default)
    special |= {} if mask is None else {"mask": mask}
    silent = [] if no_text is None else no_text(pieces)
    texts = {*pieces} - {*silent}
    found = [piece for piece in found if piece in texts]
    how |= {"mask_strips": strips, "found": found, "no_text": silent}
    try:
        tokenizer = ByteBPETokenizer(pieces, merges, special, starts_with_bos, prefix_space, **how)
    except ValueError as error:
        rule = str(error).replace("`pieces`", "`vocab`")
        raise ValueError(f"{path}: {rule} {OFFICIAL}") from error
    if content is not None and marks != ():
        own = (special["bos"], special["eos"]) if starts_with_bos else (None, None)
        check_marks(content, path, ids, [own] if marks is None else marks(special))
    return tokenizer


def lost_first_merge(ids, merges) -> tuple[str, str] | None:
    """Returns the merge that was lost in front of a list of merges, or `None` if none was.

    The first `merges.txt` of Whisper's multilingual checkpoints has no line with a version, and its
    readers skipped the first merge instead. The token that this merge makes remains in the
    vocabulary: it is the only token of two bytes that no merge makes, and its id is the one before
    that of the token of the first merge.

    Args:
        ids: Dictionary from tokens to ids.
        merges: Pairs of tokens.
    """
    made = {"".join(pair) for pair in merges}
    letters = {*CHARACTERS} & {*ids}
    unmade = [piece for piece in ids if len(piece) == 2 and {*piece} <= letters]
    unmade = [piece for piece in unmade if piece not in made]
    if len(unmade) != 1 or not merges:
        return None
    first, next_one = ids[unmade[0]], ids.get("".join(merges[0]))
    if not is_integer(first) or next_one != first + 1:
        return None
    return unmade[0][0], unmade[0][1]


def _check_found(content, path):
    """Refuses tokens that Hugging Face finds after a normalisation that may change them.

    Here tokens are found before it. The same tokens are found if they are ASCII and do not end in
    a letter, with which an accent after it would compose. A solidus (U+0338) after `<`, `=` or `>`
    remains, which no real text has.
    """
    for token in content.get("added_tokens") or []:
        name = token["content"]
        if token.get("special") or not token.get("normalized"):
            continue
        if not name.isascii() or name[-1:].isalpha():
            raise ValueError(
                f"{path}: `added_tokens` must be without `normalized`, unless they are ASCII and "
                f"do not end in a letter. Received: {name!r}."
            )


def _merges_of_lines(text):
    """Returns the pairs in a `merges.txt`, one from each line."""
    lines = text.split("\n")
    begin = int(lines[0].startswith(VERSION))
    return [tuple(line.rstrip("\r").split(" ")) for line in lines[begin:] if line.strip()]


def _from_json(content, path):
    """Returns the ids and the pairs in a `tokenizer.json`, and options of `ByteBPETokenizer`."""
    model, ids, merges = bpe_of_json(content, path, EXPRESSIBLE)
    whole = CheckpointSettings(content, path)
    how = {"pattern": _pattern(whole), "normalization": _normalization(whole)}
    return ids, merges, {**how, "whole_words": tuple(ids) if model.get("ignore_merges") else ()}


def bpe_of_json(content, path, expressible) -> tuple[CheckpointSettings, dict, list]:
    """Returns the settings of the model in a `tokenizer.json`, its ids and its pairs.

    Args:
        content: Content of the file.
        path: Path of the file, for messages.
        expressible: See `CheckpointSettings.check`.

    Raises:
        ValueError: If the model is not BPE, or an option of it is not expressible.
    """
    model = CheckpointSettings(content, path).section("model", "BPE")
    model.check(expressible)
    ids, merges = model.get("vocab"), model.get("merges")
    if not isinstance(ids, dict):
        raise model.wrong("vocab", "a dictionary from tokens to their ids")
    if not isinstance(merges, list):
        raise model.wrong("merges", "a list of pairs")
    merges = [tuple(pair.split(" ")) if isinstance(pair, str) else pair for pair in merges]
    if not all(
        isinstance(pair, (list, tuple)) and [*map(type, pair)] == [str] * 2 for pair in merges
    ):
        raise model.wrong("merges", "a list of pairs")
    return model, ids, merges


def _pattern(whole):
    """Returns the name of the pattern that a `pre_tokenizer` splits texts with."""
    value = whole.get("pre_tokenizer")
    steps = [value]
    if isinstance(value, dict) and value.get("type") == "Sequence":
        steps = value.get("pretokenizers")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        steps = []
    *before, last = steps or [{}]
    step = before[0] if len(before) == 1 else {}
    uses_regex = last.get("use_regex", True)
    name = regex = None
    if not before or DIGITS.items() <= step.items():
        name = "gpt2_digits" if before else "gpt2"
    elif SPLIT.items() <= step.items() and uses_regex is False:
        regex = step.get("pattern")
        regex = regex.get("Regex") if isinstance(regex, dict) else None
        name, uses_regex = next((n for n, p in PATTERNS.items() if p.regex == regex), None), True
    spaced = before and last.get("add_prefix_space", True) is not False
    if last.get("type") != "ByteLevel" or uses_regex is not True or name is None or spaced:
        rule = "of the type ByteLevel with the pattern of GPT-2, Llama 3, Qwen2, SmolLM or Tekken"
        if isinstance(regex, str) and CAPITALS in regex:
            rule += (
                " (Mistral Nemo). Other patterns that split words before capital letters are not "
                f"supported; this one contains {CAPITALS}"
            )
        raise whole.wrong("pre_tokenizer", rule)
    return name


def _normalization(whole):
    """Returns the name of the normalisation that a `normalizer` computes, or `None`."""
    value = whole.get("normalizer")
    if value is None:
        return None
    if isinstance(value, dict) and value.get("type") == "NFC":
        return "nfc"
    raise whole.wrong("normalizer", "of the type NFC, or null")
