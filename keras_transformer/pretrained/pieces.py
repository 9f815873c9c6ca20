"""Token ids of a checkpoint's vocabulary, and its SentencePiece model."""

from keras_transformer.checks import is_integer
from keras_transformer.text.piece_table import with_table
from keras_transformer.text.tokenizers import SentencePieceTokenizer

UNKNOWN, END = "<unk>", "</s>"


def check_ids(ids, size, path) -> None:
    """Refuses ids that are out of range or that two tokens share.

    Args:
        ids: Dictionary from tokens to their ids.
        size: Size of the model's vocabulary.
        path: File of the ids, for messages.

    Raises:
        ValueError: If an id is not valid; the error names its token.
    """
    taken = set()
    for piece, number in ids.items():
        if not is_integer(number) or not 0 <= number < size:
            raise ValueError(
                f"{path}: ids must be whole numbers from 0 to below {size}, the vocabulary of "
                f"config.json. Received: {piece!r}: {number!r}."
            )
        if number in taken:
            raise ValueError(f"{path}: every token must have a different id. Received: {piece!r}.")
        taken.add(number)


def pieces_of_ids(ids, size, path) -> list[str]:
    """Returns the tokens in the order of their ids, with a placeholder for an id without a token.

    Args:
        ids, size, path: See `check_ids`.

    Raises:
        ValueError: If an id is not valid; the error names its token.
    """
    check_ids(ids, size, path)
    names = {number: piece for piece, number in ids.items()}
    return [names.get(number, f"<unused {number}>") for number in range(size)]


def read_ids(folder, name, size) -> dict[str, int]:
    """Returns the dictionary from tokens to ids in a file such as `vocab.json`.

    Args:
        folder: The `CheckpointFolder`.
        name: Name of the file.
        size: Size of the model's vocabulary.

    Raises:
        ValueError: If the file is missing or damaged, or does not fit the model.
    """
    ids, path = folder.require_json(name), folder.path / name
    check_ids(ids, size, path)
    if UNKNOWN not in ids:
        raise ValueError(f"{path}: the token {UNKNOWN!r} is missing.")
    return ids


def sentencepiece_tokenizer(vocabulary, ids, config, size, **options) -> SentencePieceTokenizer:
    """Returns a tokenizer with the tokens of a SentencePiece model and the ids of a checkpoint.

    Args:
        vocabulary: The `PieceVocabulary`.
        ids: Dictionary from tokens to ids.
        config: The configuration of the model, with the ids of special tokens.
        size: Size of the model's vocabulary.
        **options: Further arguments of `with_table`.

    Raises:
        ValueError: If the vocabulary does not fit the model.
    """
    try:
        if ids.get(END) != config.tokens.eos_id:
            raise ValueError(
                f"{END!r} must have the id of the end token in config.json, "
                f"{config.tokens.eos_id}. Received: {ids.get(END)}"
            )
        special = {name: getattr(config.tokens, name) for name in ("pad_id", "bos_id", "eos_id")}
        rules = {**special, "steps": vocabulary.steps, **options}
        pieces = with_table(vocabulary.model, ids, size, unk_id=ids[UNKNOWN], **rules)
        return SentencePieceTokenizer(*pieces)
    except ValueError as error:
        raise ValueError(f"{vocabulary.path}: {str(error).rstrip('.')}.") from error
