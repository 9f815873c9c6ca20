"""Searches of a .tflite file: signatures state sizes and lengths, the metadata the settings."""

import dataclasses
from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.loop import smaller
from keras_transformer.decoding.search import check_search
from keras_transformer.decoding.stored import as_dict, from_dict
from keras_transformer.export.fixed_searches import check_fixed, fixed_greedy
from keras_transformer.export.litert.format import FORMAT
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS

BEAM, GREEDY, DEFAULT = "beam", "greedy", "default_search"  # in the metadata


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
    if kind == STRINGS:
        for name in ("max_length", "max_length_ratio"):
            if getattr(search, name) is not None:
                raise ValueError(
                    f"`search` must have no `{name}` if the .tflite file takes strings. "
                    f"Received: search={search!r}."
                )
    FORMAT.beams.check(search)


def searches_metadata(greedy, beam, default) -> dict[str, Any]:
    """Returns the metadata about the searches of a file, a dictionary.

    Args:
        greedy: The `Greedy`, or `None`.
        beam: The `Beam`, or `None`.
        default: The default search of the model, which becomes the default of the file if it equals
            `beam`.
    """
    metadata = {} if greedy is None else {GREEDY: as_dict(greedy)}
    if beam is None:
        return metadata
    default = BEAM if beam == default else GREEDY
    return {**metadata, BEAM: as_dict(beam), DEFAULT: default}


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
        return _greedy(search, metadata, path)
    if held is None:
        raise ValueError(
            f"{path} was exported for greedy search only, so it has no beam of size {search.size}. "
            f"Export it again with --beam {search.size}."
        )
    check_beam(search, kind)
    check_fixed(search, held, path)
    return search


def _greedy(search, metadata, path):
    """Returns the greedy search of a file; raises a `ValueError` unless it is like `search`."""
    greedy = [signature for signature in metadata[SIGNATURES] if not signature.get("beam_size")]
    if not greedy:
        raise ValueError(
            f"{path} was exported with --beam-only, so it has no greedy search. Export it again "
            "without --beam-only."
        )
    held: Any = from_dict(metadata[GREEDY]) if GREEDY in metadata else Greedy()
    held = fixed_greedy(dataclasses.replace(search, max_length=None), held, path)
    if search.max_length is None:
        return held
    longest = metadata["max_length"]
    fixed = {signature.get("max_length") or signature["target_length"] for signature in greedy}
    if smaller(search.max_length, longest) not in fixed:
        raise ValueError(
            f"`max_length` of the greedy search of {path} is {max(fixed)}, which is fixed in the "
            f"export. Received: search={search!r}."
        )
    return dataclasses.replace(held, max_length=search.max_length)
