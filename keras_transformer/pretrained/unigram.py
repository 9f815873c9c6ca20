"""Unigram vocabularies of SentencePiece: `tokenizer.json`, or the model's own file."""

import base64
import binascii
import typing
from collections.abc import Callable
from typing import Any

from keras_transformer.checks import is_finite
from keras_transformer.pretrained.added_tokens import check_marks, read_mask, with_added_tokens
from keras_transformer.pretrained.pieces import check_ids
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import messages, read_model, type_of
from keras_transformer.text.tokenizers import SentencePieceTokenizer

VOCABULARY = "tokenizer.json"
# Names that a vocabulary has for its own reasons; no text has them.
UNUSED_END = "NOTUSED"
SPACE, BLANKS = "▁", "WhitespaceSplit"
ONE_SPACE = {"Regex": " {2,}"}, " "  # runs of spaces become one, as in SentencePiece
# Patterns of replacements and their contents, and the names of their `TextSteps`.
REPLACEMENTS = {
    "backquotes": ({"String": "``"}, '"'),
    "apostrophes": ({"String": "''"}, '"'),
    "spaces": ({"Regex": r"\s{2,}|[\n\r\t]"}, " "),
}
KINDS = {
    "NFKD": "decompose",
    "NFC": "compose",
    "StripAccents": "strip_accents",
    "Lowercase": "lowercase",
}


class UnigramFormat(typing.NamedTuple):
    """The vocabulary of a family: its files, and the tokens with a meaning of their own.

    Attributes:
        model: Name of the file of the SentencePiece model.
        special: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to tokens. Texts begin with
            `bos` and end in `eos`.
        mask: The token that masks others; it follows the pieces of a model that does not have it.
        first: The first tokens of the vocabulary, which replace those of the SentencePiece model.
        skip: Number of pieces of the SentencePiece model that they replace.
        steps: Names of the `TextSteps` for a folder without `tokenizer.json`.
        score: Function from a piece and its score in the SentencePiece model to its score. `None`:
            the same.
    """

    model: str = "sentencepiece.bpe.model"
    special: dict = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}  # noqa: RUF012
    mask: str = "<mask>"
    first: tuple = ()
    skip: int = 0
    steps: tuple = ()
    score: Callable | None = None


def read_unigram(folder, settings, kind) -> SentencePieceTokenizer:
    """Returns the `SentencePieceTokenizer` of a checkpoint, with as many entries as its model has.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        kind: The `UnigramFormat`.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or holds another kind
            of tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    path = folder.path / (kind.model if content is None else VOCABULARY)
    if content is None:
        (scored, spec), steps = _from_model(folder.require(kind.model), kind), kind.steps
    else:
        scored, spec, steps = unigram_of_json(content, path, kind.special["unk"])
    names = [name for name, _ in scored]
    ids = {name: number for number, name in enumerate(names)}
    if len(ids) < len(names):
        twice = next(name for number, name in enumerate(names) if ids[name] != number)
        raise ValueError(f"{path}: tokens must differ. Received twice: {twice!r}.")
    if content is None:
        ids.setdefault(kind.mask, len(ids))
    ids = with_added_tokens(ids, folder, content, path)
    check_ids(ids, size, path)
    for name in kind.special.values():
        if name not in ids:
            raise ValueError(f"{path}: the token {name!r} is missing.")
    if content is not None:
        check_marks(content, path, ids, [(kind.special["bos"], kind.special["eos"])])
    # Splitting at white space strips every word.
    mask, _ = read_mask(ids, folder, content, kind.mask)
    if content is not None and _prepends_once(content["pre_tokenizer"]):
        mask = None  # the text after a mask would get a space in front, as every text does here
    try:
        return _tokenizer(ids, dict(scored), spec, size, kind, steps, mask)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _tokenizer(ids, scores, spec, size, kind, steps, mask):
    """Returns the tokenizer whose SentencePiece model has the checkpoint's ids.

    Args:
        ids: Dictionary from tokens to ids.
        scores: Dictionary from the pieces to their scores.
        spec: The `NormalizerSpec` of the model.
        size: Size of the vocabulary.
        kind: The `UnigramFormat`.
        steps: Names of the `TextSteps`.
        mask: The mask token, or `None`.
    """
    kinds, proto = messages.ModelProto.SentencePiece, messages.ModelProto()
    proto.normalizer_spec.CopyFrom(spec)
    proto.trainer_spec.model_type = messages.TrainerSpec.UNIGRAM
    proto.trainer_spec.vocab_size = size
    for role, name in kind.special.items():
        setattr(proto.trainer_spec, f"{role}_id", ids[name])
        setattr(proto.trainer_spec, f"{role}_piece", name)
    names, no_text = {n: name for name, n in ids.items()}, {*kind.special.values(), kind.mask, mask}
    for number in range(size):
        name = names.get(number, f"<unused {number}>")
        is_text = name in scores and name not in no_text and not name.endswith(UNUSED_END)
        role = kinds.NORMAL if is_text else kinds.CONTROL
        role = kinds.UNKNOWN if name == kind.special["unk"] else role
        proto.pieces.add(piece=name, score=scores.get(name, 0.0), type=role)
    special = {f"{role}_id": ids[name] for role, name in kind.special.items()}
    rules = {"steps": steps, "mask_id": ids.get(mask)}
    table = PieceTable(range(size), size, starts_with_bos=True, **rules, **special)
    return SentencePieceTokenizer(proto.SerializeToString(), table)


def _from_model(path, form):
    """Returns the pieces of a SentencePiece model with their scores, and its normalisation."""
    try:
        proto = read_model(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from error
    if type_of(proto) != "unigram":
        raise ValueError(f"{path} must be a Unigram model. Received: {type_of(proto)}.")
    pieces = [(piece.piece, piece.score) for piece in proto.pieces[form.skip :]]
    if form.score is not None:
        pieces = [(piece, form.score(piece, score)) for piece, score in pieces]
    return [*((name, 0.0) for name in form.first), *pieces], proto.normalizer_spec


def unigram_of_json(content, path, unknown) -> tuple[list, Any, tuple]:
    """Returns the pieces in a `tokenizer.json` with their scores, and its normalisation.

    Args:
        content: Content of the file.
        path: Path of the file, for messages.
        unknown: The token for unknown text.

    Returns:
        A list of pairs of token and score in the order of their ids, and the results of
        `normalization_of`.

    Raises:
        ValueError: If the model is not Unigram, or contains a step that is not supported.
    """
    whole = CheckpointSettings(content, path)
    model = whole.section("model", "Unigram")
    model.check({"byte_fallback": (False, None)})
    pairs = model.get("vocab")
    if not isinstance(pairs, list) or not all(map(_is_scored, pairs)):
        raise model.wrong("vocab", "a list of pairs of token and score")
    number = model.count("unk_id", least=0)
    if number >= len(pairs) or pairs[number][0] != unknown:
        raise model.wrong("unk_id", f"the id of {unknown}")
    spec, steps = normalization_of(whole)
    return [(name, float(score)) for name, score in pairs], spec, steps


def normalization_of(whole) -> tuple[Any, tuple]:
    """Returns the `NormalizerSpec` of a `tokenizer.json`, and the names of the `TextSteps` before.

    Args:
        whole: The `CheckpointSettings` of the file.

    Raises:
        ValueError: If a step is not supported.
    """
    kinds = _splits_at_spaces(whole.get("pre_tokenizer"))
    if kinds is None:
        raise whole.wrong("pre_tokenizer", f"one that puts {SPACE} in front of each word")
    rules, steps = _normalization(whole)
    if kinds[0] == BLANKS:  # of which the rules leave U+0085
        steps += ("next_line" if rules else "blanks",)
    spec = messages.NormalizerSpec(name="user_defined", precompiled_charsmap=rules)
    return spec, steps


def _is_scored(pair):
    is_pair = isinstance(pair, list) and len(pair) == 2
    return is_pair and isinstance(pair[0], str) and is_finite(pair[1])


def _splits_at_spaces(value):
    """Returns the types of the steps of a `pre_tokenizer` that splits words as SentencePiece does.

    Returns `None` for any other.
    """
    if not isinstance(value, dict):
        return None
    steps = value.get("pretokenizers") if value.get("type") == "Sequence" else [value]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return None
    kinds = [step.get("type") for step in steps]
    if kinds not in (["Metaspace"], [BLANKS, "Metaspace"]):
        return None
    last = steps[-1]
    prepends = last.get(
        "prepend_scheme", "always" if last.get("add_prefix_space", True) else "never"
    )
    fits = last.get("replacement") == SPACE and last.get("split", True) is True
    fits = fits and (prepends == "always" or (prepends == "first" and len(steps) == 1))
    return kinds if fits else None


def _prepends_once(value):
    """Tells whether a `pre_tokenizer` puts a space in front of a text, but not after a mask."""
    return value.get("prepend_scheme") == "first"


def _normalization(whole):
    """Returns the rules of SentencePiece, bytes, empty if there are none; and the steps before."""
    value = whole.get("normalizer")
    parts = [value]
    if isinstance(value, dict) and value.get("type") == "Sequence":
        parts = value.get("normalizers")
        parts = parts if isinstance(parts, list) else [parts]
    rules, steps = None, []
    for part in filter(None, parts):
        kind = part.get("type") if isinstance(part, dict) else part
        if kind == "Precompiled" and rules is None:
            try:
                rules = base64.b64decode(part.get("precompiled_charsmap") or "", validate=True)
            except (TypeError, ValueError, binascii.Error) as error:
                raise whole.wrong("normalizer", "rules in base64") from error
            continue
        step = _step(part) if isinstance(part, dict) else None
        if step is None or (step and rules is not None):
            rule = "the rules of SentencePiece, of the type Precompiled, after known steps"
            raise whole.wrong("normalizer", rule)
        steps += filter(None, [step])
    return rules or b"", tuple(steps)


def _step(part):
    """Returns the name of a step; `""` for one that SentencePiece does, `None` for an unknown one.

    Args:
        part: One of the normalizers in a `tokenizer.json`, a dictionary.
    """
    kind = part.get("type")
    if kind == "Replace":
        replacement = part.get("pattern"), part.get("content")
        known = [name for name, value in REPLACEMENTS.items() if value == replacement]
        return "" if replacement == ONE_SPACE else next(iter(known), None)
    if kind == "Strip":
        ends = part.get("strip_left"), part.get("strip_right")
        return {(True, True): "strip", (False, True): "strip_end"}.get(ends)
    return KINDS.get(kind) if isinstance(kind, str) else None
