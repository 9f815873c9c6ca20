"""Settings of searches that an export fixes."""

from keras_transformer.decoding import Beam, Greedy, Sample


def check_fixed(search, held, path, *more) -> None:
    """Raises a `ValueError` if a search differs from an export's in what the export fixes.

    Args:
        search: The search, a `Beam` or a `Sample`.
        held: That of the export, of the same kind.
        path: The export, for the error.
        *more: Names of further settings that the export fixes.
    """
    kind = {Beam: "beam", Sample: "sampling"}[type(held)]
    names = ("normalization", "stopping", "min_length", "repetition_penalty")
    for name in (*(names if isinstance(held, Beam) else ()), *more):
        ours, theirs = getattr(search, name), getattr(held, name)
        if ours != theirs:
            shown = f'"{theirs}"' if isinstance(theirs, str) else theirs
            raise ValueError(
                f"`{name}` of the {kind} of {path} is {shown}, which is fixed in the export. "
                f"Received: search={search!r}."
            )


def fixed_greedy(search, held, path) -> Greedy:
    """Returns the greedy search of an export.

    Args:
        search: The `Greedy` to search with, whose defaults stand for the settings of the export.
        held: The `Greedy` of the export.
        path: The export, for the error.

    Raises:
        ValueError: If another setting differs.
    """
    for name, value in search.given().items():
        if value != getattr(held, name):
            raise ValueError(
                f"`{name}` of the greedy search of {path} is {getattr(held, name)}, which is fixed "
                f"in the export. Received: search={search!r}."
            )
    return held
