"""Beams of a .tflite file: signatures name the size, the metadata holds the settings."""

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.search import as_dict, from_dict
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS

BEAM, DEFAULT = "beam", "default_search"  # in the metadata


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
    FORMATS["litert"].beams.check(search)


def beam_metadata(beam, default):
    """Returns what a file keeps of its beam, a dictionary.

    Args:
        beam: The `Beam`, or `None`.
        default: The search of the model where none is named, which is that of the file if it has
            that beam.
    """
    if beam is None:
        return {}
    return {BEAM: as_dict(beam), DEFAULT: BEAM if beam == default else "greedy"}


def beam_in(metadata):
    """Returns the `Beam` that a file was exported with, or `None`; `metadata` are the file's.

    Raises:
        ValueError: If they are damaged.
    """
    return from_dict(metadata[BEAM]) if BEAM in metadata else None


def search_in(metadata, search, kind, path):
    """Returns the search that a file is opened with.

    Args:
        metadata: Those of the file.
        search: A `Greedy` or a `Beam`. `None`: that of the file.
        kind: `SIGNATURES` or `STRINGS`.
        path: The file, for the error.

    Raises:
        ValueError: If the file's beam is another one, or it has none.
    """
    held = beam_in(metadata)
    if search is None:
        search = held if metadata.get(DEFAULT) == BEAM else Greedy()
    if not isinstance(search, Beam):
        _check_greedy(search, metadata, path)
        return search
    if held is None:
        raise ValueError(
            f"{path} was exported for greedy search only, so it has no beam of {search.size}. "
            f"Export it again with --beam {search.size}."
        )
    check_beam(search, kind)
    for name in ("normalization", "stopping"):
        ours, theirs = getattr(search, name), getattr(held, name)
        if ours != theirs:
            raise ValueError(
                f'`{name}` of the beam of {path} is "{theirs}", as it was exported. '
                f"Received: search={search!r}."
            )
    return search


def _check_greedy(search, metadata, path):
    """Raises `ValueError` for a maximum length that differs from that of the exported search."""
    if search.max_length is None:
        return
    greedy = [entry for entry in metadata[SIGNATURES] if not entry.get("beam_size")]
    fixed = {entry["target_length"] for entry in greedy}
    if search.limit(None, metadata["max_length"]) not in fixed:
        raise ValueError(
            f"`max_length` of the greedy search of {path} is {max(fixed)}, as it was exported. "
            f"Received: search={search!r}."
        )
