"""A run: the folder that holds all files of a trained model."""

import json
import os
import pathlib
import re
import zipfile
from typing import TYPE_CHECKING, Any

import keras
import tomlkit

from keras_transformer.checkpoint_hints import hint, is_export, quoted
from keras_transformer.files import read_json, write_bytes, write_json
from keras_transformer.plugins import REMEDY
from keras_transformer.variants import UnknownKindError

if TYPE_CHECKING:
    from keras_transformer.text.tokenizers import Tokenizers


class Run:
    """Folder of a run, with its files by name.

    Args:
        path: The folder, which need not exist yet.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.toml"  # every setting, defaults included
        # The SentencePiece vocabulary. Files of other tokenizers have other suffixes.
        self.tokenizer = self.path / "tokenizer.model"
        self.model = self.path / "model.keras"
        self.checkpoints = self.path / "checkpoints"
        self.store = self.path / "store"  # encoded examples of its data
        self.logs = self.path / "logs"  # TensorBoard
        self.history = self.path / "history.csv"  # losses, learning rates and metrics
        self.curve = self.path / "curve.png"  # the same as a plot
        self.metrics = self.path / "metrics.json"
        self.exports = self.path / "exports"  # a report of the last export to each format
        self.origin = self.path / "origin.json"  # provenance of the original checkpoint
        self.distillation = self.path / "distillation"  # outputs of teachers for its training data
        self.generation = self.path / "generation.json"  # that checkpoint's rules for outputs
        self.prompts = self.path / "prompts.json"  # of a sentence encoder
        self.chat = self.path / "chat.json"  # the chat template of an instruct model
        self.search = self.path / "search.json"  # replaces the search in generation.json
        self.threshold = self.path / "threshold.json"  # replaces that of the model's configuration

    def load(
        self, model_class: type | None, task: str | None = None
    ) -> tuple[Any, "Tokenizers | None"]:
        """Returns the trained model and its `Tokenizers`, or `None` if it has no vocabulary.

        Args:
            model_class, task: See `load_model`.

        Raises:
            ValueError: If a file is missing or damaged, or the files do not belong to one run.
        """
        model = self.load_model(model_class, task)
        return model, self.load_tokenizers_of(model) if model.config.has_vocabulary else None

    def load_tokenizers_of(self, model: Any) -> "Tokenizers":
        """Returns the run's `Tokenizers` after checking that they fit a model.

        Args:
            model: The model of the run.

        Raises:
            ValueError: If a file is missing or damaged, or does not belong to the model.
        """
        tokenizers = self.load_tokenizers()
        try:
            tokenizers.check_sizes(model.config)
        except ValueError:
            files = " and ".join(str(self.path / name) for name in tokenizers.files())
            sizes = " and ".join(str(side.vocab_size) for side in dict.fromkeys(tokenizers))
            config = model.config
            theirs = dict.fromkeys((config.tokens.vocab_size, config.output_size))
            raise ValueError(
                f"{files} does not belong to this run: it has {sizes} tokens, but {self.model} "
                f"was trained with {' and '.join(map(str, theirs))}. Put back the original."
            ) from None
        return tokenizers

    def load_model(self, model_class: type | None = None, task: str | None = None) -> Any:
        """Returns the trained model.

        Args:
            model_class: Required class, such as `Transformer`. `None`: any class of this package.
            task: Name of the task of the run. `None`: it is read from its settings.

        Raises:
            ValueError: If the run has no model, or the model cannot be read.
        """
        from keras_transformer.config import OldConfigurationError
        from keras_transformer.models.model import ConfiguredModel

        self._require(self.model)
        task = task or self.task()
        try:
            self._register(task)
            model = keras.saving.load_model(self.model, compile=False)
        except (PermissionError, MemoryError):
            raise
        except OldConfigurationError as error:
            raise ValueError(f"{self.model} {error}") from error
        except UnknownKindError as error:
            raise ValueError(f"{self.model}: {error}") from error
        except Exception as error:  # zip, JSON, HDF5 and Keras raise errors of nearly any type
            if unknown := re.search(r"Could not locate (?:class|function) '([^']+)'", str(error)):
                name = unknown[1]
                text = f"{self.model} needs {name}, which is not registered with Keras"
                raise ValueError(f"{text}: {REMEDY}.") from error
            raise ValueError(f"{self.model} is damaged: {self._restore()}") from error
        wanted = ConfiguredModel if model_class is None else model_class
        if not isinstance(model, wanted):
            name = "model of this package" if model_class is None else wanted.__name__
            raise ValueError(
                f"{self.model} must hold a {name}. Received: a {type(model).__name__}."
            )
        model.config = self.configure(model.config)
        return model

    def read_model_config(self) -> Any:
        """Returns the configuration of the run's model without reading its weights.

        Returns `None` if there is no readable model of this package; `load_model` then raises an
        error that explains the cause.
        """
        try:
            kind, content = self._register(self.task())
            config = kind.config_class.from_dict(content["config"])
            return self.configure(config)
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _register(self, task):
        """Imports the model's class, which registers it with Keras.

        Args:
            task: Name of the task that is imported first. Others are imported as long as none has
                a model of this class.

        Returns:
            The class, or `None` if it is unknown, and its configuration in the `.keras` file.
        """
        from keras_transformer.tasks import TASKS

        with zipfile.ZipFile(self.model) as archive:
            content = json.loads(archive.read("config.json"))
        for name in sorted(TASKS, key=lambda name: name != task):  # stable: `task` first
            if keras.saving.get_registered_object(content["registered_name"]) is not None:
                break
            TASKS[name].pipeline_class()
        return keras.saving.get_registered_object(content["registered_name"]), content["config"]

    def task(self) -> str | None:
        """Returns the name of the task in the run's settings; `None` if they name none.

        Raises:
            ValueError: If the settings cannot be read.
        """
        return self.read_setting("task", "kind")

    def read_setting(self, section: str, key: str) -> Any:
        """Returns a value in `config.toml`; `None` if the run has no such value.

        Raises:
            ValueError: If the settings cannot be read.
        """
        return self.read_settings().get(section, {}).get(key)

    def read_settings(self) -> dict[str, dict[str, Any]]:
        """Returns the sections in `config.toml` as they are written; none without this file.

        Raises:
            ValueError: If the settings cannot be read.
        """
        if not self.config.is_file():
            return {}
        try:
            sections = tomlkit.parse(self.config.read_text("utf-8")).unwrap()
        except ValueError as error:
            raise ValueError(f"{self.config} is damaged: {error}") from error
        for name, section in sections.items():
            if not isinstance(section, dict):
                raise ValueError(f"{self.config} is damaged: {name} is not a section")
        return sections

    def load_tokenizers(self) -> "Tokenizers":
        """Returns the run's `Tokenizers`.

        Raises:
            ValueError: If the run has no vocabulary, or the vocabulary cannot be read.
        """
        from keras_transformer.text.tokenizers import Tokenizers

        def read(name):
            file = self.path / name
            return file.read_bytes() if file.is_file() else None

        self._require_vocabulary()
        try:
            return Tokenizers.from_files(read)
        except ValueError as error:
            raise ValueError(
                f"{self.path}/{error} Put back a copy: the run's exports contain one."
            ) from error

    def write_tokenizers(self, tokenizers: Any) -> None:
        """Writes the vocabularies, each file atomically."""
        for name, model in tokenizers.files().items():
            write_bytes(self.path / name, model)

    def vocabulary(self) -> tuple[pathlib.Path, ...]:
        """Returns the files of the vocabulary, one or two; none before it is written."""
        files = self._vocabulary_files()
        return files if all(file.is_file() for file in files) else ()

    def remove_vocabulary(self) -> None:
        """Removes the files of the vocabulary, and the rules that name its ids."""
        from keras_transformer.text.tokenizers.pair import FILES

        for name in (*FILES, self.generation.name):
            (self.path / name).unlink(missing_ok=True)

    def require_finished(self, vocabulary: bool = True) -> None:
        """Refuses a folder in which a file of a finished run is missing.

        Args:
            vocabulary: Whether the model has a vocabulary.

        Raises:
            ValueError: If a file is missing; the error names the file and a remedy.
        """
        self._require(self.config)
        if vocabulary:
            self._require_vocabulary()
        self._require(self.model)

    def read_metrics(self) -> dict[str, Any]:
        """Returns the content of `metrics.json`, an empty dictionary if there is no file yet.

        Raises:
            ValueError: If the file cannot be read.
        """
        if not self.metrics.exists():
            return {}
        try:
            return dict(json.loads(self.metrics.read_text("utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.metrics} is damaged ({error}): remove it and repeat the commands that "
                "wrote its results."
            ) from error

    def update_metrics(self, **results: Any) -> None:
        """Adds results to `metrics.json`, or replaces those of the same name.

        The file is written atomically, so that readers never see half of it.
        """
        self.write_metrics({**self.read_metrics(), **results})

    def write_metrics(self, results: Any) -> None:
        """Replaces all results in `metrics.json`."""
        write_json(self.metrics, results)

    def read_origin(self) -> dict[str, Any]:
        """Returns the provenance of the original checkpoint.

        Returns:
            A dictionary of strings and `None`; empty if the weights do not come from a checkpoint.

        Raises:
            ValueError: If the file cannot be read.
        """
        return read_json(self.origin, dict) or {}

    def write_origin(self, origin: Any) -> None:
        """Writes `origin.json` unless `origin` is empty."""
        if origin:
            write_json(self.origin, origin)

    def read_search(self) -> Any:
        """Returns the default search of the run.

        Returns:
            The search in `search.json`, otherwise the one in `generation.json`. `None`: neither
            file names a search.

        Raises:
            ValueError: If a file cannot be read.
        """
        from keras_transformer.decoding.stored import from_dict

        search, generation = read_json(self.search, from_dict), self.read_generation()
        return search or (generation and generation.search)

    def write_search(self, search: Any) -> None:
        """Writes `search.json` unless `search` is `None`."""
        from keras_transformer.decoding.stored import as_dict

        if search is not None:
            write_json(self.search, as_dict(search))

    def read_generation(self) -> Any:
        """Returns the original checkpoint's rules for outputs.

        Returns:
            A `Generation`; `None` if there are no rules.

        Raises:
            ValueError: If the file cannot be read.
        """
        from keras_transformer.config import OldConfigurationError
        from keras_transformer.decoding.generation import Generation

        try:
            return read_json(self.generation, Generation.from_dict)
        except ValueError as error:
            if isinstance(error.__cause__, OldConfigurationError):
                raise ValueError(f"{self.generation} {error.__cause__}") from error
            raise

    def write_generation(self, generation: Any) -> None:
        """Writes `generation.json` unless `generation` is `None`."""
        if generation is not None:
            write_json(self.generation, generation.to_dict())

    def read_prompts(self) -> Any:
        """Returns the `TextPrompts` of a sentence encoder; `None` if it has none.

        Raises:
            ValueError: If the file cannot be read.
        """
        from keras_transformer.text.prompts import TextPrompts

        return read_json(self.prompts, TextPrompts.from_dict)

    def write_prompts(self, prompts: Any) -> None:
        """Writes `prompts.json` unless `prompts` is `None`."""
        if prompts is not None:
            write_json(self.prompts, prompts.to_dict())

    def read_chat(self) -> Any:
        """Returns the `ChatTemplate` of an instruct model; `None` if the run has none.

        Raises:
            ValueError: If the file cannot be read.
        """
        from keras_transformer.text.chat_template import ChatTemplate

        return read_json(self.chat, ChatTemplate.from_dict)

    def write_chat(self, template: Any) -> None:
        """Writes `chat.json` unless `template` is `None`."""
        if template is not None:
            write_json(self.chat, template.to_dict())

    def read_threshold(self) -> Any:
        """Returns the threshold of a classifier with several labels; `None` without such a file.

        Returns:
            A number, or a dictionary from labels to numbers, unchecked.

        Raises:
            ValueError: If the file cannot be read.
        """
        return read_json(self.threshold, lambda value: value)

    def write_threshold(self, threshold: Any) -> None:
        """Writes `threshold.json`."""
        write_json(self.threshold, threshold)

    def configure(self, config: Any) -> Any:
        """Returns a model's configuration with the token ids in `generation.json`.

        Raises:
            ValueError: If an id is not in the model's vocabulary.
        """
        generation = self.read_generation()
        try:
            return config if generation is None else generation.configure(config)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.generation} does not fit the model: {error}") from error

    def inherit(self, other: Any) -> None:
        """Copies from another `Run`: provenance, rules for outputs, chat template and search."""
        self.write_origin(other.read_origin())
        self.write_chat(other.read_chat())
        self.write_generation(other.read_generation())
        if other.search.is_file():
            self.write_search(other.read_search())

    def _vocabulary_files(self):
        """Returns the paths of the vocabulary files, which need not exist."""
        from keras_transformer.text.tokenizers.pair import vocabulary_files

        names = vocabulary_files(lambda name: (self.path / name).is_file())
        return tuple(self.path / name for name in names)

    def _require_vocabulary(self):
        for file in self._vocabulary_files():
            self._require(file)

    def _require(self, file):
        if file.is_file():
            return
        remedy = "Create one with `keras-transformer train CONFIG.toml --output RUN`."
        if not self.path.exists():
            remedy = f"There is no such folder. {remedy}{hint(self.path)}"
        elif self.model.is_file() and file in self._vocabulary_files():
            remedy = "Put back a copy: the run's exports contain one."
        elif self.config.is_file() and any(self.checkpoints.glob("update-*.npz")):
            remedy = (
                "Training is not finished: `keras-transformer train "
                f"{quoted(self.config)} --output {quoted(self.path)}` continues it, and "
                f"`keras-transformer average {quoted(self.path)} --last 1` makes a run from its "
                "newest checkpoint."
            )
        elif is_export(self.path):
            remedy = (
                "It is an export, which `keras-transformer predict` and `keras_transformer.open` "
                "read; for anything else, name the run that it was made from."
            )
        elif hint(self.path):
            remedy = hint(self.path).strip()
        raise ValueError(f"{self.path} is not a finished run: {file.name} is missing. {remedy}")

    def _restore(self):
        """Returns the remedy for a damaged model."""
        if any(self.checkpoints.glob("*.npz")):
            return (
                "remove it and run `keras-transformer train "
                f"{self.config} --output {self.path}`, which writes it again from the newest "
                "checkpoint."
            )
        return "put back a copy of it, or train again."
