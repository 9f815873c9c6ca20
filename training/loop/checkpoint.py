"""Checkpoints: the complete state of training, from which it resumes exactly."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.files import replacing
from keras_transformer.training.loop.messages import diverged

STATE = "state"


class Checkpoints:
    """The checkpoints of a run, one file each, such as `update-00001000.npz`.

    A checkpoint is a NumPy archive: the variables in order, each under its number and path, and
    the rest of the state as JSON under `state`. It is written under a temporary name and renamed
    once it is on the disk. On loading, zip's checksums of all members are verified.

    Args:
        directory: Folder of the checkpoints; created with the first one.
        keep: Number of the newest checkpoints to keep.
    """

    def __init__(self, directory, keep=3):
        self.directory = Path(directory)
        self.keep = keep
        self._last = None  # the checkpoint that was written or loaded last

    def save(self, update, variables, state, best=None) -> Path:
        """Writes the checkpoint of an update and removes old ones.

        Args:
            update: Number of updates done.
            variables: Keras variables.
            state: Dictionary of plain values.
            best: Update whose checkpoint is kept regardless of its age.

        Returns:
            The path of the checkpoint.

        Raises:
            OSError: If it cannot be written, for example because the disk is full. Earlier
                checkpoints are unchanged, and the message names the one to resume from.
        """
        path = self.path(update)
        arrays = {_key(*item): item[1].value.numpy() for item in enumerate(variables)}
        arrays[STATE] = np.array(json.dumps(state))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, open(temporary, "wb") as file:
                np.savez(file, **arrays)
        except OSError as error:
            reason = error.strerror or error
            raise OSError(f"{path} cannot be written: {reason}. {self.last_good()}.") from error
        self._last = path
        self._prune(update, best)
        return path

    def path(self, update) -> Path:
        """Returns the path of the checkpoint of an update, whether it exists or not."""
        return self.directory / f"update-{update:08d}.npz"

    def paths(self) -> list[Path]:
        """Returns the paths of the checkpoints, the oldest first."""
        return [path for _, path in sorted(self._updates().items())]

    def newest(self) -> int:
        """Returns the update of the newest checkpoint, even if damaged; 0 if there is none."""
        return max(self._updates(), default=0)

    def last_good(self) -> str:
        """Returns a sentence, without full stop, that names the checkpoint to resume from."""
        if self._last is None or not self._last.exists():
            return "There is no checkpoint to resume from yet"
        return f"The last good checkpoint is {self._last}"

    def restore(self, variables, damaged=lambda path, reason: None) -> dict[str, Any] | None:
        """Loads the newest checkpoint that is not damaged.

        Args:
            variables: The Keras variables to fill, in the order in which they were saved.
            damaged: Function that is called with the path of each damaged checkpoint and the
                reason.

        Returns:
            The state that was saved with the checkpoint, or `None` if there is no checkpoint.

        Raises:
            ValueError: If the checkpoint belongs to another model.
        """
        for path in reversed(self.paths()):
            try:
                arrays = read(path)
            except ValueError as error:
                damaged(path, str(error))
                continue
            return self._fill(path, arrays, variables)
        return None

    def load(self, path, variables) -> dict[str, Any]:
        """Loads one checkpoint; see `restore`.

        Raises:
            ValueError: If it is damaged or missing, or belongs to another model.
        """
        try:
            arrays = read(path)
        except ValueError as error:
            raise ValueError(f"{path} is damaged or missing ({error}).") from error
        return self._fill(path, arrays, variables)

    def _fill(self, path, arrays, variables):
        state = json.loads(str(arrays.pop(STATE)))
        _assign(path, arrays, variables)
        self._last = path
        return state

    def _updates(self):
        return {
            int(name[1]): path
            for path in self.directory.glob("update-*.npz")
            if (name := re.fullmatch(r"update-(\d{8,})", path.stem))
        }

    def _prune(self, newest, best):
        """Removes old checkpoints; damaged ones after `newest` do not count among the kept ones."""
        earlier = {update: path for update, path in self._updates().items() if update <= newest}
        for update in sorted(earlier)[: -self.keep]:
            if update != best:
                earlier[update].unlink()


def refuse_infinite(variables, update, last_good) -> None:
    """Checks that all values of a checkpoint are finite.

    A finite loss does not suffice: it is computed before the update, whose gradient may have made
    weights infinite.

    Args:
        variables: List of the variables to save.
        update: Number of the last update.
        last_good: Function that describes the last good checkpoint, for the error.

    Raises:
        ValueError: If a value is NaN or infinite.
    """
    for variable in variables:
        values = variable.value.numpy()
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            what = f"{variable.path} is no longer finite after update {update}"
            raise diverged(what, last_good())


def read(path) -> dict[str, np.ndarray]:
    """Returns the arrays of a checkpoint, a dictionary by key.

    Raises:
        ValueError: If the file is damaged or missing. The message is the reason alone.
    """
    return _read(path)


def read_state(path) -> dict[str, Any]:
    """Returns the state that was saved with a checkpoint; raises the errors of `read`."""
    return json.loads(str(_read(path, [STATE])[STATE]))


def _read(path, keys=None):
    """Returns the arrays of some keys, or of all."""
    if not path.exists():
        raise ValueError("it is missing")
    try:
        if not zipfile.is_zipfile(path):  # NumPy would read it as pickled objects
            raise ValueError("its end is missing")
        with np.load(path, allow_pickle=False) as archive:
            if STATE not in archive.files:
                raise ValueError(f"it has no {STATE!r}")
            return {key: archive[key] for key in keys or archive.files}
    except MemoryError:
        raise
    except Exception as error:  # a damaged zip archive can raise almost any exception
        # NumPy's advice about pickled data is wrong for a checkpoint, which never contains any.
        pickled = "pickle" in str(error)
        reason = "its arrays cannot be read" if pickled else str(error) or type(error).__name__
        raise ValueError(reason) from error


def _key(index, variable):
    return f"{index:05d}/{variable.path}"


def _assign(path, arrays, variables):
    expected = [tuple(variable.shape) for variable in variables]
    stored = [arrays[key].shape for key in sorted(arrays)]
    if stored != expected:
        raise ValueError(
            f"{path} belongs to another model: {len(stored)} variables, {len(expected)} expected."
            if len(stored) != len(expected)
            else f"{path} belongs to another model: shapes differ."
        )
    for variable, key in zip(variables, sorted(arrays), strict=True):
        variable.assign(arrays[key])
