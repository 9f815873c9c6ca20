"""Checks of a byte-level BPE vocabulary: which pieces may have which part."""

from keras_transformer.text.byte_pairs import CHARACTERS


def check_special(special, ids, ranks) -> None:
    """Requires that special tokens are pieces that no text contains.

    Args:
        special: Dictionary from roles, such as `"eos"`, to pieces.
        ids: What `ids_of` returned.
        ranks: What `merge_ranks` returned.

    Raises:
        ValueError: If they are not.
    """
    for role, piece in special.items():
        if piece not in ids:
            raise ValueError(f"`pieces` must have the piece {piece!r}, which is `{role}`.")
        if piece in ranks or piece in CHARACTERS:
            raise ValueError(f"`{role}` must not be a piece of text. Received: {role}={piece!r}.")


def split_words(whole_words, ids, ranks, never_made) -> list[str]:
    """Returns those of `whole_words` that merges would split; only these need a table.

    Args:
        whole_words: See `ByteBPETokenizer`.
        ids, ranks: See `check_special`.
        never_made: What `check_merges` returned.

    Raises:
        ValueError: If one of them is no piece.
    """
    made = {*never_made}
    whole = [p for p in whole_words if p in made or p not in ranks and len(p) > 1]
    if not {*whole} <= {*ids}:
        raise ValueError(
            "`whole_words` must be pieces. "
            f"Received: {next(piece for piece in whole if piece not in ids)!r}."
        )
    return whole


def check_no_text(no_text, ids, ranks) -> None:
    """Requires that tokens that are decoded to nothing are pieces that no text contains.

    Raises:
        ValueError: If they are not.
    """
    for piece in no_text:
        if piece not in ids or piece in ranks or piece in CHARACTERS:
            raise ValueError(
                f"`no_text` must be pieces that are no part of a text. Received: {piece!r}."
            )


def check_found(found, ids, special) -> None:
    """Requires that tokens that are found in texts are pieces that are not special.

    Raises:
        ValueError: If they are not.
    """
    strangers = [x for x in found if not x or x not in ids or x in special.values()]
    if strangers:
        raise ValueError(
            f"`found` must be pieces that are not special. Received: {strangers[0]!r}."
        )
