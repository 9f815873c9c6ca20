"""Beams of a .tflite file: names of signatures state the size, the metadata has the settings."""

from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.search import check_search
from keras_transformer.decoding.stored import as_dict, from_dict
from keras_transformer.export.litert.format import FORMAT
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS
from keras_transformer.export.searches import check_fixed

BEAM, DEFAULT = "beam", "default_search"  # in the metadata


def beam_of(search, kind) -> Beam | None:
    """Returns the beam of a file, or `None` if its search is greedy.

    Args:
        search: The `Greedy` or `Beam`.
        kind: `SIGNATURES`, or `STRINGS` if the file also takes strings.

    Raises:
        TypeError: If it is another search.
        ValueError: If a .tflite file does not support the beam.
    """
    check_search(search, Greedy, Beam)
    if isinstance(search, Greedy):
        return None
    check_beam(search, kind)
    return search


def check_beam(search, kind) -> None:
    """Raises a `ValueError` if a beam has a setting that signatures of a kind do not support."""
    if kind == STRINGS and search.max_length is not None:
        raise ValueError(
            "`search` must have no `max_length` if the .tflite file takes strings. "
            f"Received: search={search!r}."
        )
    FORMAT.beams.check(search)


def beam_metadata(beam, default) -> dict[str, Any]:
    """Returns the metadata about the beam of a file, a dictionary.

    Args:
        beam: The `Beam`, or `None`.
        default: The default search of the model, which becomes the default of the file if it equals
            `beam`.
    """
    if beam is None:
        return {}
    return {BEAM: as_dict(beam), DEFAULT: BEAM if beam == default else "greedy"}


def beam_in(metadata) -> Any:
    """Returns the `Beam` with which a file was exported, or `None`.

    Args:
        metadata: Metadata of the file.

    Raises:
        ValueError: If the metadata is damaged.
    """
    return from_dict(metadata[BEAM]) if BEAM in metadata else None


def search_in(metadata, search, kind, path) -> Any:
    """Returns the search to use with a file.

    Args:
        metadata: Metadata of the file.
        search: A `Greedy` or a `Beam`. `None`: the default search of the file.
        kind: `SIGNATURES` or `STRINGS`.
        path: The file, for the error.

    Raises:
        ValueError: If the file does not have such a search.
    """
    held = beam_in(metadata)
    if search is None:
        search = held if metadata.get(DEFAULT) == BEAM else Greedy()
    if not isinstance(search, Beam):
        _check_greedy(search, metadata, path)
        return search
    if held is None:
        raise ValueError(
            f"{path} was exported for greedy search only, so it has no beam of size {search.size}. "
            f"Export it again with --beam {search.size}."
        )
    check_beam(search, kind)
    check_fixed(search, held, path)
    return search


def _check_greedy(search, metadata, path):
    """Raises a `ValueError` unless a file has greedy search with this `max_length`."""
    greedy = [signature for signature in metadata[SIGNATURES] if not signature.get("beam_size")]
    if not greedy:
        raise ValueError(
            f"{path} was exported with --beam-only, so it has no greedy search. Export it again "
            "without --beam-only."
        )
    if search.max_length is None:
        return
    longest = metadata["max_length"]
    fixed = {signature.get("max_length") or signature["target_length"] for signature in greedy}
    if search.limit(None, longest) not in fixed:
        raise ValueError(
            f"`max_length` of the greedy search of {path} is {max(fixed)}, which is fixed in the "
            f"export. Received: search={search!r}."
        )
