"""The beams that a .tflite file can have: its signatures name the size, and not every setting."""

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.litert.packed import STRINGS


def beam_of(searches, kind):
    """Returns the beam among the searches of a file, or `None`.

    Args:
        searches: List of searches.
        kind: `SIGNATURES`, or `STRINGS` if the file also takes strings.

    Raises:
        ValueError: If they are not `Greedy` and at most one `Beam`, or a file cannot have it.
    """
    right = isinstance(searches, (list, tuple))
    right = right and all(isinstance(search, (Greedy, Beam)) for search in searches)
    beams = [search for search in searches if isinstance(search, Beam)] if right else []
    if not right or len(beams) > 1:
        raise ValueError(
            "`searches` must be a list of `Greedy()` and at most one `Beam`. "
            f"Received: searches={searches!r}."
        )
    for beam in beams:
        check_beam(beam, kind)
    return beams[0] if beams else None


def check_beam(search, kind):
    """Raises unless a beam has no settings but those that the signatures of a kind can have."""
    if kind == STRINGS and search.max_length is not None:
        raise ValueError(
            "`search` must have no `max_length` where a .tflite file takes strings. "
            f"Received: search={search!r}."
        )
    if (search.normalization, search.min_length, search.stopping) != ("gnmt", 1, "count"):
        raise ValueError(
            '`search` in a .tflite file must have the `normalization` "gnmt", a `min_length` of 1 '
            f'and `stopping="count"`. Received: search={search!r}.'
        )
