"""The ids that a checkpoint has for the pieces of its vocabulary."""

from keras_transformer.checks import is_integer
from keras_transformer.text.piece_table import with_table
from keras_transformer.text.tokenizers import SentencePieceTokenizer

UNKNOWN, END = "<unk>", "</s>"


def check_ids(ids, size, path):
    """Refuses ids that are none of a model's, or that two pieces share.

    Args:
        ids: Dictionary from the pieces to their ids.
        size: Entries of the model's vocabulary.
        path: Their file, for messages.

    Raises:
        ValueError: With the piece.
    """
    taken = set()
    for piece, number in ids.items():
        if not is_integer(number) or not 0 <= number < size:
            raise ValueError(
                f"{path}: ids must be whole numbers from 0 to below {size}, the vocabulary of "
                f"config.json. Received: {piece!r}: {number!r}."
            )
        if number in taken:
            raise ValueError(
                f"{path}: every piece must have an id of its own. Received: {piece!r}."
            )
        taken.add(number)


def read_ids(folder, name, size):
    """Returns the ids in a file such as `vocab.json`, a dictionary from the pieces.

    Args:
        folder: The `CheckpointFolder`.
        name: Name of the file.
        size: Entries of the model's vocabulary.

    Raises:
        ValueError: If it is missing or damaged, or does not fit the model.
    """
    ids, path = folder.require_json(name), folder.path / name
    check_ids(ids, size, path)
    if UNKNOWN not in ids:
        raise ValueError(f"{path}: the piece {UNKNOWN!r} is missing.")
    return ids


def sentencepiece_tokenizer(folder, name, ids, config, size):
    """Returns the tokenizer that cuts as a SentencePiece model does and has other ids.

    Args:
        folder: The `CheckpointFolder`.
        name: Name of the file of the SentencePiece model.
        ids: What `read_ids` returned.
        config: The configuration of the model, which has the special ids.
        size: Entries of the model's vocabulary.

    Raises:
        ValueError: If the file is missing or damaged, or does not fit.
    """
    path = folder.require(name)
    try:
        if ids.get(END) != config.eos_id:
            raise ValueError(
                f"{END!r} must have the id that config.json has for the end of a text, "
                f"{config.eos_id}. Received: {ids.get(END)}"
            )
        special = {name: getattr(config, name) for name in ("pad_id", "bos_id", "eos_id")}
        pieces = with_table(path.read_bytes(), ids, size, unk_id=ids[UNKNOWN], **special)
        return SentencePieceTokenizer(*pieces)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).rstrip('.')}.") from error
