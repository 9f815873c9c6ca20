"""Checkpoints on Hugging Face's hub, downloaded by its own library into its own cache."""

import functools
import importlib.util
import json
import pathlib
import re
import typing
from typing import Any

from keras_transformer.checkpoint_hints import INDEX, PYTORCH, SAFETENSORS, repository_name
from keras_transformer.installation import install_hint
from keras_transformer.pretrained.files.weights import MAP

LIBRARY = "huggingface_hub"
# What families read, and no program. Weights of PyTorch only if there are no others.
FILES = (
    *("*.json", "*.txt", "*.model", "*.spm", "*.safetensors"),
    *("README.md", "LICENSE*", "LICENCE*", "License*"),
)
PART = re.compile(r"[\w.-]+\.bin")  # one of several files; neither a path nor a pattern


class Place(typing.NamedTuple):
    """Where the files of a checkpoint are.

    Attributes:
        path: A folder or a file.
        root: Folder in which links may end, or `None` for `path`: the hub's cache stores files
            beside the folders that name them.
        origin: Provenance: the name of the repository and its revision, a commit.
        repository: Name of the repository, or `None` for files.
    """

    path: Any
    root: pathlib.Path | None = None
    origin: dict[str, str] = {}
    repository: str | None = None


def find_checkpoint(path: Any, revision: str | None = None) -> Place:
    """Returns the `Place` of a checkpoint, which is downloaded if `path` names a repository.

    A name is `"owner/name"`, without a folder `owner` here. Files that were downloaded before are
    not downloaded again. `HF_ENDPOINT`, `HF_HOME`, `HF_TOKEN` and `HF_HUB_OFFLINE` have the meaning
    that the library gives them.

    Args:
        path: A folder, a file, or the name of a repository.
        revision: A branch, a tag or a commit of the repository. `None`: its main branch.

    Raises:
        ValueError: If the repository or the revision does not exist or is not accessible, or if
            `revision` is given for a folder; the error is one line.
    """
    name = repository_name(path)
    if name is None or importlib.util.find_spec(LIBRARY) is None:
        if revision is not None and (name is not None or pathlib.Path(path).exists()):
            rule = "has no effect on files."
            if name is not None:
                rule = f"needs the package {LIBRARY}. Install it with: {install_hint('hub')}."
            raise ValueError(f"`revision` {rule} Received: revision={revision!r}, path={path}.")
        return Place(path)
    folder = _download(name, revision)
    origin = {"name": name, "repository": name, "revision": folder.name}
    return Place(folder, folder.parents[1], origin, name)


def _parts(index):
    """Returns the names of files in an index; a damaged one is reported when it is read."""
    try:
        names = {*json.loads(index.read_text("utf-8"))[MAP].values()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []
    return sorted(name for name in names if isinstance(name, str) and PART.fullmatch(name))


def _without_weights(folder):
    """Yields names of PyTorch's files for those folders of a checkpoint without other weights.

    These are the checkpoint itself and layers of sentence encoders, such as `2_Dense`.
    """
    for place in (folder, *(path.parent for path in folder.glob("*/config.json"))):
        if not any((place / name).exists() for name in (SAFETENSORS, SAFETENSORS + INDEX)):
            inside = place.relative_to(folder).as_posix()
            for name in (PYTORCH, *_parts(place / (PYTORCH + INDEX))):
                yield f"{inside}/{name}".removeprefix("./")


def _download(name, revision):
    """Returns the folder of a revision in the cache, whose name is the commit."""
    import huggingface_hub
    from huggingface_hub import errors

    what = name if revision is None else f"{name} at the revision {revision}"
    fetch = functools.partial(huggingface_hub.snapshot_download, name)
    try:
        folder = pathlib.Path(fetch(revision=revision, allow_patterns=[*FILES]))
        if more := [*_without_weights(folder)]:
            fetch(revision=folder.name, allow_patterns=more)
    except errors.GatedRepoError as error:
        raise ValueError(
            f"{what} is restricted: accept its conditions on its page, and log in with "
            "`hf auth login`."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ValueError(
            f"{name} has no revision {revision!r}: name a branch, a tag or a commit of it, or none "
            "for its main branch."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ValueError(
            f"{name} is neither a folder nor a repository on Hugging Face's hub that you may read; "
            "if it is private, log in with `hf auth login`."
        ) from error
    except (errors.HTTPError, errors.LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"{what} could not be downloaded, and is not in the cache: {reason}. Try again: "
            "complete files are kept. Or name a folder that contains the checkpoint."
        ) from error
    return folder
