"""`Family`, the interface of a family of checkpoints."""

import abc
import functools
import importlib
import pathlib
import pkgutil
import re
import typing

from keras_transformer.pretrained.files.tensors import open_tensors
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.settings import CheckpointSettings

CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"


class Family(abc.ABC):
    """A checkpoint of one family, opened: its settings, its tensors and what they become here.

    A family is one subclass in a file of its own in `keras_transformer/pretrained/families/`.
    Reading, filling the model, the check that every tensor is used, ties and damaged files are
    shared.

    Args:
        folder: A `CheckpointFolder`.
        **options: Options of the family's own: see its class.

    Attributes:
        name: Name of the format, as `origin.json` of a run has it.
        model_type: `model_type` in `config.json` of a folder in Hugging Face's format.
        reader: Class of `transformers` that reads such a folder, for messages.
        model_class: Class of its models, such as `Transformer`.
        task: Name of the task of its models.
        ignored: Regular expressions of the tensors that a model here does not need.
        notes: What of the settings is not carried over: strings, without a full stop.
        folder: The `CheckpointFolder`.
        settings: Its `CheckpointSettings`.
        tensors: The `Reader` of its tensors.
    """

    name = model_type = reader = task = ""
    model_class = None
    ignored = ()

    def __init__(self, folder):
        self.folder, self.notes = folder, []
        self.settings = self.read_settings()
        self.tensors = self.read_tensors()

    @classmethod
    def matches(cls, folder):
        """Returns whether a `CheckpointFolder` holds a checkpoint of this family."""
        if folder.model is not None:
            return False
        return (folder.json(CONFIG) or {}).get("model_type") == cls.model_type

    @abc.abstractmethod
    def config(self):
        """Returns the configuration of the model.

        Raises:
            ValueError: If a setting is missing, wrong or cannot be expressed; it is named.
        """

    @abc.abstractmethod
    def sizes(self, config):
        """Yields names and shapes of tensors that depend on each size of the configuration.

        They are checked before a model of these sizes is made: a file may be damaged or made to
        harm.
        """

    @abc.abstractmethod
    def names(self, config):
        """Yields the `Weight`s of all variables of the model."""

    @abc.abstractmethod
    def tokenizers(self, config):
        """Returns the `Tokenizers` of the model.

        Raises:
            ValueError: If a file is missing, damaged or does not fit the settings; it is named.
        """

    def generation(self):
        """Returns the `Generation`, its rules for outputs. `None`: the checkpoint has none."""
        return None

    def read_settings(self):
        """Returns the `CheckpointSettings`."""
        return CheckpointSettings(self.folder.require_json(CONFIG), self.folder.path / CONFIG)

    @functools.cached_property
    def generation_settings(self):
        """The `CheckpointSettings` for outputs, in a file of their own or in `config.json`."""
        content = self.folder.json(GENERATION)
        if content is None:
            return self.settings
        return CheckpointSettings(content, self.folder.path / GENERATION)

    def read_tensors(self):
        """Returns the `Reader` of the tensors."""
        return Reader(open_tensors(self.folder, self.reader))

    def origin(self):
        """Returns the name and the licence that the checkpoint has for itself, a dictionary."""
        name = self.settings.get("_name_or_path")
        parts = pathlib.PurePosixPath(name).parts if isinstance(name, str) else ()
        name = "/".join(parts[-2:]) or self.folder.path.resolve().name
        return {"format": self.name, "name": name, "license": self._license()}

    def _license(self):
        """Returns the licence in the head of the model's card, or `None`."""
        card = self.folder.file(CARD)
        if card is None:
            return None
        with card.open(encoding="utf-8", errors="replace") as file:
            head = file.read(20_000).split("\n---")[0]
        match = re.search(r"^license:[ \t]*['\"]?([\w.\- ]+)", head, re.MULTILINE)
        return match[1].strip() if match and head.startswith("---") else None


class Checkpoint(typing.NamedTuple):
    """A checkpoint as objects of this package.

    Attributes:
        model: The model, such as a `Transformer`.
        tokenizers: Its `Tokenizers`.
        task: Name of its task.
        origin: Dictionary of what is known of it: `format`, `name`, `license`.
        generation: Its rules for outputs, a `Generation`; `None` where it generates nothing.
        notes: List of strings: what of its settings is not carried over.
    """

    model: typing.Any
    tokenizers: typing.Any
    task: str
    origin: dict
    generation: typing.Any
    notes: list

    @property
    def search(self):
        """The search that it asks for, a `Greedy` or a `Beam`, or `None`."""
        return None if self.generation is None else self.generation.search


@functools.cache
def families():
    """Returns the classes of all families: one for each file of `families/`, in order."""
    from keras_transformer.pretrained import families as package

    modules = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    found = []
    for name in modules:
        module = importlib.import_module(f"{package.__name__}.{name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, Family)
            and value.__module__ == module.__name__
        ]
    return tuple(found)
