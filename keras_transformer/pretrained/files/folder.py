"""The files in the folder of a checkpoint, which may not be links to files outside of it."""

import json
import pathlib
from typing import Any

from keras_transformer.checkpoint_hints import hint

POINTER = b"version https://git-lfs.github.com/"
LARGEST = 64 * 2**20  # bytes; a vocabulary of 58,101 tokens has 2 million


class CheckpointFolder:
    """A folder with the files of a checkpoint.

    Args:
        path: The folder, or a file that is a checkpoint itself.
        root: Folder in which links may end. `None`: the folder itself.
        repository: Name of the repository on Hugging Face's hub whose files these are, or `None`.

    Raises:
        ValueError: If there is no such folder or file.

    Attributes:
        path: The folder.
        model: The file, or `None` if `path` is a folder.
        repository: See above.
    """

    def __init__(self, path, root=None, repository=None):
        path, self.repository = pathlib.Path(path), repository
        self.model = path if path.is_file() else None
        self.path = path if self.model is None else path.parent
        if not self.path.is_dir():
            raise ValueError(
                f"{path} must be a folder with a checkpoint. There is no such folder."
                f"{hint(path, conversion=False)}"
            )
        self._root = (self.path if root is None else root).resolve()

    def subfolder(self, name) -> "CheckpointFolder":
        """Returns the folder of that name in this one, whose links may end in this one.

        Raises:
            ValueError: If there is no such folder.
        """
        return CheckpointFolder(self.path / name, self._root, self.repository)

    def file(self, name) -> pathlib.Path | None:
        """Returns the path of a file, or `None` if there is no such file.

        Raises:
            ValueError: If it is a link to a file outside of the folder, or a pointer of Git LFS.
        """
        path = self.path / name
        if not path.is_file():
            return None
        if self._root not in path.resolve().parents:
            raise ValueError(
                f"{path} must be in its folder. It is a link to a file outside: copy the folder "
                "with `cp -rL`."
            )
        with path.open("rb") as file:  # a clone without Git LFS has a small text instead
            if file.read(len(POINTER)) == POINTER:
                raise ValueError(
                    f"{path} is a pointer of Git LFS, which stands for the file. Fetch the file "
                    "with `git lfs pull` in this folder."
                )
        return path

    def require(self, name) -> pathlib.Path:
        """Returns the path of a file.

        Raises:
            ValueError: If it is missing.
        """
        path = self.file(name)
        if path is None:
            raise ValueError(f"{self.path / name} is missing.")
        return path

    def text(self, name) -> str:
        """Returns the text of a file.

        Raises:
            ValueError: If it is missing, too large or not UTF-8.
        """
        path = self.require(name)
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} must be smaller than 64 MiB.")
        try:
            return path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be UTF-8: {error}.") from error

    def require_json(self, name) -> Any:
        """Returns the dictionary in a JSON file.

        Raises:
            ValueError: If the file is missing or too large, or does not contain a JSON object.
        """
        self.require(name)
        return self.json(name)

    def json(self, name, kind=dict) -> Any:
        """Returns the dictionary in a JSON file, or `None` if there is no such file.

        Args:
            name: Name of the file.
            kind: `list` for a file that contains a JSON array.

        Raises:
            ValueError: If the file is too large, or does not contain a JSON object.
        """
        path = self.file(name)
        if path is None:
            return None
        text = self.text(name)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged: {error}.") from error
        if not isinstance(content, kind):
            rule = "a JSON object" if kind is dict else "a JSON array"
            raise ValueError(f"{path} must contain {rule}. Received: {type(content).__name__}.")
        return content
