"""BPE vocabularies of SentencePiece with tokens of bytes: `tokenizer.json`, or the model's file."""

from keras_transformer.pretrained.added_tokens import check_marks, with_added_tokens
from keras_transformer.pretrained.byte_bpe import EXPRESSIBLE, OPTIONS, VOCABULARY, bpe_of_json
from keras_transformer.pretrained.chat import chat_text, writes
from keras_transformer.pretrained.pieces import pieces_of_ids
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.byte_pairs import NO_UTF_8, check_merges, merge_ranks, merged
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import messages, processor_of, type_of
from keras_transformer.text.smaller_model import PLACEHOLDER
from keras_transformer.text.tokenizers import SentencePieceTokenizer

MODEL = "tokenizer.model"
KINDS = messages.ModelProto.SentencePiece
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
FALLBACK = {**EXPRESSIBLE, "byte_fallback": (True,), "ignore_merges": (False,)}
# Names of `TextSteps` that put a space in front of a text. SentencePiece can put it there, but the
# version in TensorFlow Text removes further spaces with it when it decodes.
NOTHING, SPACE, ONE_SPACE = (), ("prefix_space",), ("one_prefix_space",)
MARK = "▁"  # as SentencePiece writes a space
PREPEND = {"type": "Prepend", "prepend": MARK}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
METASPACE = {"type": "Metaspace", "replacement": MARK, "split": False}
NOT_TEXT = "special tokens must not be text, as characters, bytes and results of merges are."
SCHEMES = {"always": ONE_SPACE, "first": ONE_SPACE, "never": NOTHING}


def has_sentencepiece_bpe(folder) -> bool:
    """Returns true if a `CheckpointFolder` has such a vocabulary."""
    content = folder.json(VOCABULARY)
    if content is None:
        return folder.file(MODEL) is not None
    model = content.get("model")
    return isinstance(model, dict) and model.get("byte_fallback") is True


def read_sentencepiece_bpe(folder, settings, special, padding, marks) -> SentencePieceTokenizer:
    """Returns the `SentencePieceTokenizer` of a checkpoint.

    Args:
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings` of the model.
        special: Function from the list of the vocabulary's tokens to a dictionary from `"bos"` and
            `"eos"` to tokens.
        padding: Function from the list of the vocabulary's tokens and the unknown token to the
            padding token, which is appended to the vocabulary if it is missing.
        marks: Function from the dictionary of special tokens to a list of pairs: the tokens that
            `tokenizer.json` may put before and after a text. `None` in a pair means no token.

    Raises:
        ValueError: If a file is missing or damaged, does not fit the model, or holds another kind
            of tokenizer.
    """
    size, content = settings.count("vocab_size"), folder.json(VOCABULARY)
    if content is None:
        path = folder.require(MODEL)
        proto, unknown = _model_of_file(path)
        own = {piece.piece: number for number, piece in enumerate(proto.pieces)}
        prefix = _moved_prefix(proto)
    else:
        path = folder.path / VOCABULARY
        model, own, merges = bpe_of_json(content, path, FALLBACK)
        unknown, prefix = _unknown(model, own), _prefix(CheckpointSettings(content, path))
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    is_bare = options.flag("add_prefix_space", None) is False
    found: list[str] = []
    ids = with_added_tokens(own, folder, content, path, found)
    _check_found(found, folder, path)
    pieces = pieces_of_ids(ids, size, path)
    roles = {**special(pieces), "unk": unknown, "pad": padding(pieces, unknown)}
    pieces += [roles["pad"]] * (roles["pad"] not in ids)
    try:
        if content is None:
            for piece in pieces[len(own) :]:
                proto.pieces.add(piece=piece, type=KINDS.CONTROL)
            if is_bare:
                proto.normalizer_spec.add_dummy_prefix = False
        else:
            check_marks(content, path, ids, marks(roles))
            added = {token["content"] for token in content.get("added_tokens") or []}
            added |= {*ids} - {*own}
            proto = _model_of_merges(pieces, merges, {*roles.values(), *added}, unknown)
        return _tokenizer(proto, len(pieces), roles, NOTHING if is_bare else prefix)
    except ValueError as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error


def _check_found(found, folder, path):
    """Refuses tokens that are found in texts, except for those that a chat template writes.

    Checkpoints add the marks of turns, such as `<|im_start|>`, without calling them special.
    """
    template = chat_text(folder) or ""
    others = [name for name in found if not writes(template, name)]
    if others:
        raise ValueError(
            f"{path}: added tokens must be special tokens, or be written by the chat template. "
            f"Received: {others[0]!r}, which is found in texts."
        )


def _model_of_file(path):
    """Returns the model in a file, and its unknown piece."""
    content = path.read_bytes()
    try:
        processor = processor_of(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    proto = messages.ModelProto.FromString(content)
    if proto.trainer_spec.model_type != messages.TrainerSpec.BPE:
        raise ValueError(f"{path} must be a BPE model. Received: {type_of(proto)}.")
    return proto, processor.id_to_piece(processor.unk_id())


def _moved_prefix(proto):
    """Moves the dummy prefix of a model to a step, which it returns, if that is the same.

    A model that normalises texts, or counts a space to the word before it, keeps its own.
    """
    spec = proto.normalizer_spec
    normalizes = spec.precompiled_charsmap or spec.remove_extra_whitespaces
    if normalizes or proto.trainer_spec.treat_whitespace_as_suffix or not spec.add_dummy_prefix:
        return NOTHING
    spec.add_dummy_prefix = False
    return SPACE


def _model_of_merges(pieces, merges, special, unknown):
    """Returns the model that merges as Hugging Face's tokenizers do.

    A token of several characters that no merge makes occurs in no text, but a model may emit it.
    SentencePiece decodes unused pieces; it merges them after all others, and splits them again.

    Args:
        pieces: The tokens in the order of their ids.
        merges: Pairs of them.
        special: The tokens that are not text.
        unknown: The token for unknown text, one of them.
    """
    missing = [byte for byte in range(256) if BYTES[byte] not in {*pieces}]
    needed = [BYTES[byte] for byte in missing if byte not in NO_UTF_8]
    if needed:
        raise ValueError(
            f"`vocab` must have the token of each byte that occurs in UTF-8. Received: "
            f"{len(needed)} are missing, such as {needed[0]!r}."
        )
    ranks = merge_ranks(pieces, merges)
    of_bytes = {*BYTES}
    unmade = {
        piece: len(merges)
        for piece in pieces
        if len(piece) > 1 and not (piece in ranks or piece in special or piece in of_bytes)
    }
    _check_unmade(check_merges(merges, ranks), ranks, unmade)
    proto = messages.ModelProto()
    proto.trainer_spec.model_type = messages.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    for piece in pieces:
        if piece in special or PLACEHOLDER.fullmatch(piece):
            kind = KINDS.UNKNOWN if piece == unknown else KINDS.CONTROL
            if piece in ranks or piece in of_bytes or len(piece) == 1:
                raise ValueError(f"{NOT_TEXT} Received: {piece!r}.")
        elif piece in of_bytes:
            kind = KINDS.BYTE
        else:
            kind = KINDS.UNUSED if piece in unmade else KINDS.NORMAL
        rank = ranks.get(piece, unmade.get(piece, -1))
        proto.pieces.add(piece=piece, score=-float(rank + 1), type=kind)
    for byte in missing:  # SentencePiece needs all of them
        proto.pieces.add(piece=BYTES[byte], type=KINDS.BYTE)
    return proto


def _check_unmade(never_made, ranks, unmade):
    """Refuses merges of tokens that no merge makes, which only SentencePiece would follow.

    Args:
        never_made: The pieces that `check_merges` returned; others need no such merge.
        ranks: What `merge_ranks` returned.
        unmade: Ranks of the tokens that no merge makes, above all others.
    """
    for piece in never_made:
        for pair in merged(piece, {**ranks, **unmade})[1]:
            if "".join(pair) in ranks and not unmade.keys().isdisjoint(pair):
                raise ValueError(
                    f"`merges` must also make the pieces that they merge. Received: {pair}, one of "
                    "which no merge makes."
                )


def _tokenizer(proto, size, roles, prefix):
    """Returns the tokenizer of a model.

    Args:
        proto: The model; it is changed.
        size: Number of its first pieces that are tokens.
        roles: Dictionary from `"pad"`, `"unk"`, `"bos"` and `"eos"` to pieces.
        prefix: The `TextSteps` before SentencePiece: `NOTHING`, `SPACE` or `ONE_SPACE`.
    """
    spec = proto.trainer_spec
    ids = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    special = {f"{role}_id": ids[piece] for role, piece in roles.items()}
    for role, piece in roles.items():
        if proto.pieces[ids[piece]].type in (KINDS.NORMAL, KINDS.BYTE):
            raise ValueError(f"{NOT_TEXT} Received: {piece!r}.")
        setattr(spec, f"{role}_piece", piece)
        setattr(spec, f"{role}_id", ids[piece])
    spec.vocab_size = len(proto.pieces)
    proto.ClearField("self_test_data")  # loading a model tokenizes these samples
    model = proto.SerializeToString()
    processor_of(model, ("pad", "bos", "eos"))
    own = [*range(size), *([-1] * (len(proto.pieces) - size))]
    return SentencePieceTokenizer(model, PieceTable(own, size, steps=prefix, **special))


def _unknown(model, ids):
    """Returns the unknown token of the model in a `tokenizer.json`."""
    token = model.get("unk_token")
    token = "<unk>" if token is None else token
    if not isinstance(token, str) or token not in ids:
        raise model.wrong("unk_token", "a token of the vocabulary")
    return token


def _prefix(whole):
    """Returns what a `tokenizer.json` puts in front of a text."""
    value, split = whole.get("normalizer"), whole.get("pre_tokenizer")
    is_sequence = isinstance(value, dict) and value.get("type") == "Sequence"
    steps = value.get("normalizers") if is_sequence else [value]
    if split is None and steps in ([PREPEND, REPLACE], [REPLACE]):
        return SPACE if PREPEND in steps else NOTHING
    if value is None and isinstance(split, dict) and METASPACE.items() <= split.items():
        scheme = split.get("prepend_scheme", "always")
        if isinstance(scheme, str) and scheme in SCHEMES:
            return SCHEMES[scheme]
    raise whole.wrong(
        "normalizer",
        f"one that writes {MARK} for a space, and may put one in front, without a `pre_tokenizer`; "
        "or null with a `pre_tokenizer` of the type Metaspace that does not split",
    )
