"""`Family`, the interface of a family of checkpoints."""

import abc
import functools
import importlib
import pathlib
import pkgutil
import re
import typing
from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.files.weights import open_tensors
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Weight
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import Tokenizers

CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
LICENSES = tuple(
    f"{name}{end}" for name in ("LICENSE", "LICENCE", "License") for end in ("", ".txt", ".md")
)


class Family(abc.ABC):
    """An open checkpoint of one family, and its conversion to a model.

    A family is a subclass in a file of its own in `keras_transformer/pretrained/families/`. All
    families share the reading of files, the filling of the model, ties of weights, and the checks
    for unused tensors and damaged files.

    Args:
        folder: A `CheckpointFolder`.
        **options: Options of the family; see its class.

    Attributes:
        name: Name of the format, as in the `origin.json` of a run.
        model_type: Value of `model_type` in the `config.json` of Hugging Face's format.
        reader: Class of `transformers` that reads such a folder, for messages.
        model_class: Class of the models, such as `Transformer`.
        task: Name of the models' task.
        base: Begins the names of the body's tensors in a file that has a head.
        ignored: Regular expressions of the names of tensors that our model does not need.
        listing: The `Listing` in the documentation.
        notes: List of settings that are not converted: strings without a full stop.
        folder: The `CheckpointFolder`.
        settings: The `CheckpointSettings`.
        tensors: The `Reader` of the tensors.
    """

    name = model_type = reader = task = base = ""
    model_class: Any
    listing: Listing
    ignored = ()

    def __init__(self, folder):
        self.folder, self.notes = folder, []
        self.settings = self.read_settings()
        self.tensors = self.read_tensors()

    @classmethod
    def matches(cls, folder) -> bool:
        """Returns whether a `CheckpointFolder` contains a checkpoint of this family."""
        if folder.model is not None:
            return False
        return (folder.json(CONFIG) or {}).get("model_type") == cls.model_type

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, ...]]:
        """Returns classes of `transformers`, with the tasks of the runs that they become."""
        return {cls.reader: (cls.task,)}

    @abc.abstractmethod
    def config(self) -> Any:
        """Returns the configuration of the model.

        Raises:
            ValueError: If a setting is missing, not valid or not supported; the error names it.
        """

    @abc.abstractmethod
    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields names and shapes of tensors that depend on all sizes in the configuration.

        The shapes are checked before a model of these sizes is created, because a file may be
        damaged or malicious.
        """

    @abc.abstractmethod
    def names(self, config) -> Iterator[Weight]:
        """Yields the `Weight`s of all variables of the model."""

    def names_after_pooling(self) -> Iterator[Weight]:
        """Yields the `Weight`s of the layers that a sentence encoder has after pooling."""
        yield from ()

    tokenizer: Any  # of families with one vocabulary

    def tokenizers(self, config) -> Any:
        """Returns the `Tokenizers` of the model, by default those of `tokenizer`.

        Raises:
            ValueError: If a file is missing or damaged, or does not fit the settings; the error
                names it.
        """
        return Tokenizers.of(self.tokenizer)

    @functools.cached_property
    def prefix(self) -> str:
        """Begins the names of the body's tensors; it is empty in a file of a body alone."""
        return self.base if any(name.startswith(self.base) for name in self.tensors.shapes) else ""

    def prompts(self) -> Any:
        """Returns the `TextPrompts` of a sentence encoder, or `None`."""
        return None

    def chat(self) -> Any:
        """Returns the `ChatTemplate` of an instruct model, or `None`."""
        return None

    def generation(self) -> Any:
        """Returns the checkpoint's rules for outputs, a `Generation`, or `None`."""
        return None

    def choose_languages(self, source, target) -> tuple[str | None, str | None]:
        """Takes the languages that a user chooses, and returns those that tokenizers must know.

        Args:
            source, target: Codes of languages, or `None`.

        Raises:
            ValueError: If the checkpoint does not have one of them.
        """
        return source, target

    def choose_task(self, task) -> None:
        """Takes the task that a user chooses for the model.

        Args:
            task: Name of the task. `None`: that which the files determine.

        Raises:
            ValueError: If the checkpoint is for another task.
        """
        if task not in (None, self.task):
            raise ValueError(
                f"{self.folder.path}: `task` must be {self.task}, that of the checkpoint. "
                f"Received: task={task!r}."
            )

    def read_settings(self) -> CheckpointSettings:
        """Returns the `CheckpointSettings`."""
        return CheckpointSettings(self.folder.require_json(CONFIG), self.folder.path / CONFIG)

    @functools.cached_property
    def generation_settings(self) -> CheckpointSettings:
        """The `CheckpointSettings` for outputs, from their own file or from `config.json`."""
        content = self.folder.json(GENERATION)
        if content is None:
            return self.settings
        return CheckpointSettings(content, self.folder.path / GENERATION)

    def read_tensors(self) -> Reader:
        """Returns the `Reader` of the tensors."""
        return Reader(open_tensors(self.folder))

    def origin(self) -> dict[str, Any]:
        """Returns the provenance in the checkpoint, a dictionary.

        Its keys are `format`, `name` and `license`; `base`, if the settings name another checkpoint
        that this one was trained from; and `license_file`, the name of a file with a licence that
        the model card does not name.
        """
        name, base = self.folder.path.resolve().name, self.settings.get("_name_or_path")
        parts = pathlib.PurePosixPath(base).parts if isinstance(base, str) else ()
        base, is_own = "/".join(parts[-2:]).lstrip("/"), parts[-1:] == (name,)
        origin = {"format": self.name, "name": base if is_own else name, "license": self._license()}
        if base and not is_own:
            origin["base"] = base
        files = [name for name in LICENSES if self.folder.file(name) is not None]
        if files and origin["license"] is None:
            origin["license_file"] = files[0]
        return origin

    def _license(self):
        """Returns the licence in the header of the model card, or `None`."""
        card = self.folder.file(CARD)
        if card is None:
            return None
        with card.open(encoding="utf-8", errors="replace") as file:
            head = file.read(20_000).split("\n---")[0]
        if not head.startswith("---"):
            return None
        stated = _in_header(head, "license")
        return (_in_header(head, "license_name") or stated) if stated == "other" else stated


def _in_header(head, key):
    """Returns the text, or the items of the list, of a key in the header of a model card."""
    item = r"['\"]?([\w.\- ]*[\w.])['\"]?[ \t]*$"
    match = re.search(rf"^{key}:[ \t]*{item}", head, re.MULTILINE)
    if match:
        return match[1].strip()
    block = re.search(rf"^{key}:[ \t]*\n((?:[ \t]*-[ \t]+.*\n?)+)", head, re.MULTILINE)
    items = re.findall(rf"^[ \t]*-[ \t]+{item}", block[1], re.MULTILINE) if block else []
    return ", ".join(items) or None


class Checkpoint(typing.NamedTuple):
    """A checkpoint as objects of this package.

    Attributes:
        model: The model, such as a `Transformer`.
        tokenizers: The `Tokenizers`.
        task: Name of the task.
        origin: Provenance: a dictionary; see `Family.origin`.
        generation: Rules for outputs, a `Generation`; `None` if the model generates no text.
        notes: List of settings that are not converted: strings without a full stop.
        prompts: The `TextPrompts` of a sentence encoder; `None` if it has none.
        chat: The `ChatTemplate` of an instruct model; `None` if it has none.
    """

    model: typing.Any
    tokenizers: typing.Any
    task: str
    origin: dict
    generation: typing.Any
    notes: list
    prompts: typing.Any = None
    chat: typing.Any = None

    @property
    def search(self) -> Any:
        """The checkpoint's own search, a `Greedy` or a `Beam`, or `None`."""
        return None if self.generation is None else self.generation.search


@functools.cache
def families() -> tuple[type[Family], ...]:
    """Returns the classes of all families, one for each file in `families/`, in order."""
    from keras_transformer.pretrained import families as package

    modules = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    classes = []
    for name in modules:
        module = importlib.import_module(f"{package.__name__}.{name}")
        classes += [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, Family)
            and value.__module__ == module.__name__
        ]
    return tuple(classes)
