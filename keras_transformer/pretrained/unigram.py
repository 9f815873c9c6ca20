"""SentencePiece vocabularies with the ids of fairseq: `tokenizer.json`, or the model's own file."""

import base64
import binascii
import math

from keras_transformer.pretrained.added_tokens import with_added_tokens
from keras_transformer.pretrained.pieces import check_ids
from keras_transformer.pretrained.post_processor import check_marks
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import messages, pieces_with_scores
from keras_transformer.text.tokenizers import SentencePieceTokenizer

VOCABULARY, MODEL = "tokenizer.json", "sentencepiece.bpe.model"
SPECIAL = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
MASK = "<mask>"
# Names that a vocabulary has for its own reasons; no text has them.
UNUSED_END = "NOTUSED"
SPACE = "▁"
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}}  # runs of spaces become one


def read_unigram(folder, settings, first, skip) -> SentencePieceTokenizer:
    """Returns the `SentencePieceTokenizer` of a checkpoint, with as many entries as its model has.

    Texts begin with `<s>` and end in `</s>`.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        first: The first tokens of the vocabulary, which replace those of the SentencePiece model.
        skip: Number of pieces of the SentencePiece model that they replace.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or holds another kind
            of tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    path = folder.path / (MODEL if content is None else VOCABULARY)
    if content is None:
        scored, spec = _from_model(folder.require(MODEL), first, skip)
    else:
        scored, spec = _from_json(content, path)
    names = [name for name, _ in scored]
    ids = {name: number for number, name in enumerate(names)}
    if len(ids) < len(names):
        twice = next(name for number, name in enumerate(names) if ids[name] != number)
        raise ValueError(f"{path}: tokens must differ. Received twice: {twice!r}.")
    if content is None:
        ids.setdefault(MASK, len(ids))
    ids = with_added_tokens(ids, folder, content, path)
    check_ids(ids, size, path)
    for name in SPECIAL.values():
        if name not in ids:
            raise ValueError(f"{path}: the token {name!r} is missing.")
    if content is not None:
        check_marks(content, path, ids, [(SPECIAL["bos"], SPECIAL["eos"])])
    try:
        return _tokenizer(ids, dict(scored), spec, size)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _tokenizer(ids, scores, spec, size):
    """Returns the tokenizer whose SentencePiece model has the checkpoint's ids.

    Args:
        ids: Dictionary from tokens to ids.
        scores: Dictionary from the pieces to their scores.
        spec: The `NormalizerSpec` of the model.
        size: Size of the vocabulary.
    """
    kinds, proto = messages.ModelProto.SentencePiece, messages.ModelProto()
    proto.normalizer_spec.CopyFrom(spec)
    proto.trainer_spec.model_type = messages.TrainerSpec.UNIGRAM
    proto.trainer_spec.vocab_size = size
    for role, name in SPECIAL.items():
        setattr(proto.trainer_spec, f"{role}_id", ids[name])
        setattr(proto.trainer_spec, f"{role}_piece", name)
    names = {number: name for name, number in ids.items()}
    for number in range(size):
        name = names.get(number, f"<unused {number}>")
        is_text = name in scores and name not in SPECIAL.values() and not name.endswith(UNUSED_END)
        kind = kinds.NORMAL if is_text and name != MASK else kinds.CONTROL
        kind = kinds.UNKNOWN if name == SPECIAL["unk"] else kind
        proto.pieces.add(piece=name, score=scores.get(name, 0.0), type=kind)
    special = {f"{role}_id": ids[name] for role, name in SPECIAL.items()}
    table = PieceTable(range(size), size, starts_with_bos=True, **special)
    return SentencePieceTokenizer(proto.SerializeToString(), table)


def _from_model(path, first, skip):
    """Returns the pieces of a SentencePiece model with their scores, and its normalisation."""
    try:
        pieces, spec, kind = pieces_with_scores(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from error
    if kind != "unigram":
        raise ValueError(f"{path} must be a Unigram model. Received: {kind}.")
    return [*((name, 0.0) for name in first), *pieces[skip:]], spec


def _from_json(content, path):
    """Returns the pieces in a `tokenizer.json` with their scores, and its normalisation."""
    whole = CheckpointSettings(content, path)
    value = content.get("model")
    if not isinstance(value, dict) or value.get("type", "Unigram") != "Unigram":
        raise whole.wrong("model", "of the type Unigram")
    model = CheckpointSettings(value, path)
    model.check({"byte_fallback": (False, None)})
    pairs = model.get("vocab")
    if not isinstance(pairs, list) or not all(map(_is_scored, pairs)):
        raise model.wrong("vocab", "a list of pairs of token and score")
    number = model.count("unk_id", least=0)
    if number >= len(pairs) or pairs[number][0] != SPECIAL["unk"]:
        raise model.wrong("unk_id", f"the id of {SPECIAL['unk']}")
    if not _splits_at_spaces(content.get("pre_tokenizer")):
        raise whole.wrong("pre_tokenizer", f"one that puts {SPACE} in front of each word")
    spec = messages.NormalizerSpec(name="user_defined", precompiled_charsmap=_charsmap(whole))
    return [(name, float(score)) for name, score in pairs], spec


def _is_scored(pair):
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
        return False
    number = pair[1]
    return (
        isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)
    )


def _splits_at_spaces(value):
    """Returns whether a `pre_tokenizer` splits words at spaces as SentencePiece does."""
    if not isinstance(value, dict):
        return False
    steps = value.get("pretokenizers") if value.get("type") == "Sequence" else [value]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return False
    if [step.get("type") for step in steps] not in (
        ["Metaspace"],
        ["WhitespaceSplit", "Metaspace"],
    ):
        return False
    last = steps[-1]
    prepends = last.get(
        "prepend_scheme", "always" if last.get("add_prefix_space", True) else "never"
    )
    fits = last.get("replacement") == SPACE and last.get("split", True) is True
    return fits and (prepends == "always" or (prepends == "first" and len(steps) == 1))


def _charsmap(whole):
    """Returns the rules of normalisation, bytes; empty if there are none."""
    value = whole.get("normalizer")
    steps = [value]
    if isinstance(value, dict) and value.get("type") == "Sequence":
        steps = value.get("normalizers")
        steps = steps if isinstance(steps, list) else [steps]
    rules = b""
    for step in steps:
        kind = step.get("type") if isinstance(step, dict) else step
        if kind == "Precompiled" and not rules:
            try:
                rules = base64.b64decode(step.get("precompiled_charsmap") or "", validate=True)
            except (TypeError, ValueError, binascii.Error) as error:
                raise whole.wrong("normalizer", "rules in base64") from error
        elif kind is not None and not (
            kind == "Replace"
            and step.get("pattern") == SPACES["pattern"]
            and step.get("content") == " "
        ):
            raise whole.wrong("normalizer", "the rules of SentencePiece, of the type Precompiled")
    return rules
