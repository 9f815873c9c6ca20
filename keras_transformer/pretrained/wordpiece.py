"""WordPiece vocabularies in Hugging Face's files: `tokenizer.json`, or `vocab.txt` with options."""

from keras_transformer.pretrained.added_tokens import (
    check_marks,
    read_mask,
    token_name,
    with_added_tokens,
)
from keras_transformer.pretrained.pieces import check_ids
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.tokenizers import WordPieceTokenizer
from keras_transformer.text.tokenizers.wordpiece import CONTINUATION, SPECIAL

VOCABULARY, LINES, OPTIONS = "tokenizer.json", "vocab.txt", "tokenizer_config.json"
MASK = "[MASK]"
KEYS = {"pad": "pad_token", "unk": "unk_token", "bos": "cls_token", "eos": "sep_token"}
KINDS = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}


def read_wordpiece(
    folder, settings, special=SPECIAL, pad=0, mask=MASK, markers=()
) -> WordPieceTokenizer:
    """Returns the `WordPieceTokenizer` of a checkpoint, padded to the model's vocabulary size.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens, for a folder that
            does not name them.
        pad: Id of padding if the settings name none.
        mask: The mask token, for a folder that does not name it.
        markers: Tokens that a model inserts, which need not be special in the files.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or contains another
            kind of tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    path = folder.path / (LINES if content is None else VOCABULARY)
    if content is None:
        ids, normalizer, longest = _from_lines(folder.text(LINES), options)
    else:
        ids, normalizer, longest = _from_json(content, path, options)
    found: list | None = [] if markers else None
    ids = with_added_tokens(ids, folder, content, path, found)
    for name in {*(found or ())} - {*markers}:
        raise ValueError(f"{path}: added tokens must be special or markers. Received: {name!r}.")
    check_ids(ids, size, path)
    names = {number: piece for piece, number in ids.items()}
    pieces = [names.get(number, f"<unused {number}>") for number in range(size)]
    own = {r: token_name(options.get(KEYS[r])) for r in special}
    if own["pad"] == (token_name(options.get("mask_token")) or mask):
        own["pad"] = None  # PyLate saves the token that extends queries
    special = {r: own[r] or name for r, name in special.items()}
    mask, _ = read_mask(ids, folder, content, mask)  # splitting at white space strips every word
    special |= {} if mask is None else {"mask": mask}
    try:
        tokenizer = WordPieceTokenizer(pieces, normalizer, special, longest)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if content is not None:
        check_marks(content, path, ids, [(special["bos"], special["eos"])])
    if settings.token("pad_token_id", size, default=pad) != tokenizer.pad_id:
        rule = f"{tokenizer.pad_id}, the id of {special['pad']} in {path.name}"
        raise settings.wrong("pad_token_id", rule)
    return tokenizer


def _from_lines(text, options):
    """Returns the ids in a `vocab.txt`, which are the line numbers, and the tokenizer's options."""
    lines = enumerate(text.split("\n"))
    ids = {line.rstrip("\r"): number for number, line in lines if line.strip()}
    normalizer = BertNormalizer(
        handle_chinese_chars=options.flag("tokenize_chinese_chars", True),
        strip_accents=options.flag("strip_accents", None),
        lowercase=options.flag("do_lower_case", True),
    )
    return ids, normalizer, 100


def _from_json(content, path, options):
    """Returns the ids in a `tokenizer.json`, and the tokenizer's options.

    As in `transformers`, options in `tokenizer_config.json` override those of the normaliser.
    """
    whole = CheckpointSettings(content, path)
    settings = {name: whole.section(name, kind) for name, kind in KINDS.items()}
    model, normalizer = settings["model"], settings["normalizer"]
    model.check({"continuing_subword_prefix": (CONTINUATION,)})
    ids = model.get("vocab")
    if not isinstance(ids, dict):
        raise model.wrong("vocab", "a dictionary from tokens to their ids")
    values = BertNormalizer(
        clean_text=normalizer.flag("clean_text", True),
        handle_chinese_chars=options.flag(
            "tokenize_chinese_chars", normalizer.flag("handle_chinese_chars", True)
        ),
        strip_accents=options.flag("strip_accents", normalizer.flag("strip_accents", None)),
        lowercase=options.flag("do_lower_case", normalizer.flag("lowercase", True)),
    )
    return ids, values, model.count("max_input_chars_per_word", 100)
