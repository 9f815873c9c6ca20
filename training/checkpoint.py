"""Checkpoints: everything a training needs to go on as if it had never stopped."""

import json
import re
from pathlib import Path

import numpy as np

from keras_transformer.atomic import replacing

STATE = "state"


class Checkpoints:
    """The checkpoints of a run: `update-00001000.npz`, one file each.

    A checkpoint is a NumPy archive: the variables in order, each under its number and path, and
    the rest of the state as JSON under `state`. It is written under a temporary name and renamed
    when it is on the disk; zip's checksum of every member is verified on loading.

    Args:
        directory: Folder of the checkpoints; created with the first one.
        keep: How many of the newest to keep.
    """

    def __init__(self, directory, keep=3):
        self.directory = Path(directory)
        self.keep = keep

    def save(self, update, variables, state):
        """Writes the checkpoint of an update and removes those that are too old.

        Args:
            update: Number of updates done.
            variables: Keras variables.
            state: Dictionary of plain values.

        Returns:
            The path of the checkpoint.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        arrays = {_key(*item): item[1].value.numpy() for item in enumerate(variables)}
        arrays[STATE] = np.array(json.dumps(state))
        path = self.directory / f"update-{update:08d}.npz"
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)
        for old in self.paths()[: -self.keep]:
            old.unlink()
        return path

    def paths(self):
        """Returns the checkpoints, oldest first."""
        updates = {
            int(name[1]): path
            for path in self.directory.glob("update-*.npz")
            if (name := re.fullmatch(r"update-(\d{8,})", path.stem))
        }
        return [updates[update] for update in sorted(updates)]

    def restore(self, variables, damaged=lambda path, reason: None):
        """Loads the newest checkpoint that is whole.

        Args:
            variables: The Keras variables to fill, in the order in which they were saved.
            damaged: Called with the path of every checkpoint that cannot be read, and why.

        Returns:
            The state that was saved with it, or `None` if there is no checkpoint.

        Raises:
            ValueError: If the checkpoint is whole but belongs to another model.
        """
        for path in reversed(self.paths()):
            try:
                arrays = read(path)
            except Exception as error:  # a damaged zip archive raises nearly anything
                damaged(path, str(error) or type(error).__name__)
                continue
            state = json.loads(str(arrays.pop(STATE)))
            _assign(path, arrays, variables)
            return state
        return None


def read(path):
    """Returns the arrays of a checkpoint by their keys; raises if any of it is damaged."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    if STATE not in arrays:
        raise ValueError(f"it holds no {STATE!r}")
    return arrays


def _key(index, variable):
    return f"{index:05d}/{variable.path}"


def _assign(path, arrays, variables):
    expected = [tuple(variable.shape) for variable in variables]
    found = [arrays[key].shape for key in sorted(arrays)]
    if found != expected:
        raise ValueError(
            f"{path} belongs to another model: {len(found)} variables, {len(expected)} expected."
            if len(found) != len(expected)
            else f"{path} belongs to another model: shapes differ."
        )
    for variable, key in zip(variables, sorted(arrays), strict=True):
        variable.assign(arrays[key])
