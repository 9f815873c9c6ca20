"""The vocabulary of a Marian model of Hugging Face's: SentencePiece models and tables of ids."""

from keras_transformer.checks import is_integer
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import pieces_of, with_unused_pieces
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer

UNKNOWN, END, PADDING = "<unk>", "</s>", "<pad>"
SOURCE, TARGET, PIECES, TARGET_PIECES = (
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
)


def read_tokenizers(folder, config, shared):
    """Returns the `Tokenizers` of a folder.

    Args:
        folder: A `CheckpointFolder`.
        config: The model's `TransformerConfig`.
        shared: Whether both sides must have one vocabulary.

    Raises:
        ValueError: If a file is missing, damaged or does not fit the others; it is named.
    """
    ids = _read_ids(folder, PIECES, config.vocab_size)
    separate = folder.file(TARGET_PIECES) is not None
    if separate and shared:
        raise ValueError(
            f"{folder.path / TARGET_PIECES} must not be there, as config.json has one vocabulary "
            "for both sides (`share_encoder_decoder_embeddings`)."
        )
    target_ids = ids
    if separate or config.output_size != config.vocab_size:
        target_ids = _read_ids(folder, TARGET_PIECES, config.output_size)
    source = _tokenizer(folder, SOURCE, ids, config, config.vocab_size)
    name = SOURCE if folder.file(TARGET) is None else TARGET
    return Tokenizers.of([source, _tokenizer(folder, name, target_ids, config, config.output_size)])


def _read_ids(folder, name, size):
    """The ids of the pieces, a dictionary from their names."""
    path = folder.require(name)
    ids = folder.json(name)
    for piece, number in ids.items():
        if not is_integer(number) or not 0 <= number < size:
            raise ValueError(
                f"{path}: ids must be whole numbers from 0 to below {size}, the vocabulary of "
                f"config.json. Received: {piece!r}: {number!r}."
            )
    if len(set(ids.values())) < len(ids):
        numbers, twice = set(), None
        for piece, number in ids.items():
            twice = piece if number in numbers else twice
            numbers.add(number)
        raise ValueError(f"{path}: every piece must have an id of its own. Received: {twice!r}.")
    if UNKNOWN not in ids:
        raise ValueError(f"{path}: the piece {UNKNOWN!r} is missing.")
    return ids


def _tokenizer(folder, name, ids, config, size):
    path = folder.require(name)
    model = path.read_bytes()
    try:
        pieces = pieces_of(model)
        known = set(pieces)
        names = {number: piece for piece, number in ids.items()}
        # Pieces of the other side alone, which an output may hold all the same.
        others = [
            piece
            for number, piece in sorted(names.items())
            if piece not in known and number != config.pad_id and not _is_special(piece)
        ]
        model = with_unused_pieces(model, others)
        pieces += others
        placed = set(pieces)
        table = PieceTable(
            ids=[ids.get(piece, -1) for piece in pieces],
            size=size,
            pad_id=config.pad_id,
            unk_id=ids[UNKNOWN],
            bos_id=config.bos_id,
            eos_id=config.eos_id,
            names={
                number: names.get(number, f"<unused {number}>")
                for number in range(size)
                if names.get(number) not in placed
            },
            banned_ids=config.banned_ids,
            silent_ids=config.silent_ids,
            forced_eos_id=config.forced_eos_id,
        )
        if ids.get(END) != config.eos_id:
            raise ValueError(
                f"{END!r} must have the id that config.json has for the end of a text, "
                f"{config.eos_id}. Received: {ids.get(END)}"
            )
        return SentencePieceTokenizer(model, table)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).rstrip('.')}.") from error


def _is_special(piece):
    """Whether a piece stands for no text, such as a code of a language."""
    return piece in (UNKNOWN, END, PADDING, "<s>") or (
        piece.startswith(">>") and piece.endswith("<<")
    )
