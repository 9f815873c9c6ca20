"""A run: the folder in which training leaves everything that belongs together."""

import json
import pathlib
import zipfile

import keras
import tomlkit

from keras_transformer.checkpoint_hints import hint
from keras_transformer.files import read_json, write_bytes, write_json


class Run:
    """The files of a run, by name.

    Args:
        path: The folder. It need not exist yet.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.toml"  # every setting, defaults included
        # The vocabulary of SentencePiece; that of another tokenizer has other endings
        self.tokenizer = self.path / "tokenizer.model"
        self.model = self.path / "model.keras"
        self.checkpoints = self.path / "checkpoints"
        self.store = self.path / "store"  # encoded examples of its data
        self.logs = self.path / "logs"  # TensorBoard
        self.history = self.path / "history.csv"  # losses, rates and scores over the updates
        self.curve = self.path / "curve.png"  # the same as a picture
        self.metrics = self.path / "metrics.json"
        self.origin = self.path / "origin.json"  # of a checkpoint that it was converted from
        self.distillation = self.path / "distillation"  # what teachers made of its training data
        self.generation = self.path / "generation.json"  # that checkpoint's rules for outputs
        self.search = self.path / "search.json"  # in the place of that checkpoint's search

    def load(self, model_class):
        """Returns the trained model, which is a `model_class`, and its `Tokenizers`.

        A model without a vocabulary has `None` for these.

        Raises:
            ValueError: If a file is missing or damaged, or they are not of one run.
        """
        model = self.load_model(model_class)
        return model, self.load_tokenizers_of(model) if model.config.has_vocabulary else None

    def load_tokenizers_of(self, model):
        """Returns the run's `Tokenizers`.

        Args:
            model: Its model.

        Raises:
            ValueError: If a file is missing or damaged, or is not of the same run.
        """
        tokenizers = self.load_tokenizers()
        try:
            tokenizers.check_sizes(model.config)
        except ValueError:
            files = " and ".join(str(self.path / name) for name in tokenizers.files())
            sizes = " and ".join(str(side.vocab_size) for side in dict.fromkeys(tokenizers))
            config = model.config
            theirs = dict.fromkeys((config.vocab_size, config.output_size))
            raise ValueError(
                f"{files} is another run's: it has {sizes} pieces, and {self.model} was trained "
                f"with {' and '.join(map(str, theirs))}. Put back its own."
            ) from None
        return tokenizers

    def load_model(self, model_class=None):
        """Returns the trained model.

        Args:
            model_class: The class that it must have, such as `Transformer`. `None`: any of this
                package.

        Raises:
            ValueError: If the run has no model, or it cannot be read.
        """
        from keras_transformer.config import OldConfigurationError
        from keras_transformer.models.model import ConfiguredModel
        from keras_transformer.registration import import_models

        self._require(self.model)
        import_models()
        try:
            model = keras.saving.load_model(self.model, compile=False)
        except (PermissionError, MemoryError):
            raise
        except OldConfigurationError as error:
            raise ValueError(f"{self.model} {error}") from error
        except Exception as error:  # zip, JSON, HDF5 and Keras raise nearly anything
            raise ValueError(f"{self.model} is damaged: {self._restore()}") from error
        wanted = ConfiguredModel if model_class is None else model_class
        if not isinstance(model, wanted):
            name = "model of this package" if model_class is None else wanted.__name__
            raise ValueError(
                f"{self.model} must hold a {name}. Received: a {type(model).__name__}."
            )
        model.config = self.configure(model.config)
        return model

    def read_model_config(self):
        """Returns the configuration of its `Transformer`, without reading weights.

        It is `None` for another model, and where there is none that can be read: `load_model` names
        what is wrong.
        """
        from keras_transformer.models.transformer import Transformer

        try:
            with zipfile.ZipFile(self.model) as archive:
                content = json.loads(archive.read("config.json"))
            if content["class_name"] != Transformer.__name__:
                return None
            config = Transformer.config_class.from_dict(content["config"]["config"])
            return self.configure(config)
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError):
            return None

    def task(self):
        """Returns the name of the task that its settings name; `None` if they name none.

        Raises:
            ValueError: If the settings cannot be read.
        """
        if not self.config.is_file():
            return None
        try:
            settings = tomlkit.parse(self.config.read_text("utf-8")).unwrap()
            return settings.get("task", {}).get("kind")
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{self.config} is damaged: {error}") from error

    def load_tokenizers(self):
        """Returns the run's `Tokenizers`.

        Raises:
            ValueError: If the run has no vocabulary, or it cannot be read.
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
                f"{self.path}/{error} Put back a copy: the run's exports carry one."
            ) from error

    def write_tokenizers(self, tokenizers):
        """Writes the vocabularies; each file is replaced whole."""
        for name, model in tokenizers.files().items():
            write_bytes(self.path / name, model)

    def vocabulary(self):
        """Returns the files of the vocabulary: one, or those of source and target; none yet."""
        files = self._vocabulary_files()
        return files if all(file.is_file() for file in files) else ()

    def remove_vocabulary(self):
        """Removes the files of the vocabulary, and the rules about its ids."""
        from keras_transformer.text.tokenizers.pair import FILES

        for name in (*FILES, self.generation.name):
            (self.path / name).unlink(missing_ok=True)

    def require_finished(self, vocabulary=True):
        """Refuses a folder in which a file of a finished run is missing.

        Args:
            vocabulary: Whether its model has a vocabulary.

        Raises:
            ValueError: With the file, and what to do.
        """
        self._require(self.config)
        if vocabulary:
            self._require_vocabulary()
        self._require(self.model)

    def read_metrics(self):
        """Returns the content of `metrics.json`, empty where there is none yet.

        Raises:
            ValueError: If it cannot be read.
        """
        if not self.metrics.exists():
            return {}
        try:
            return dict(json.loads(self.metrics.read_text("utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.metrics} is damaged ({error}): remove it; what made its figures makes them "
                "again."
            ) from error

    def update_metrics(self, **figures):
        """Adds results to `metrics.json`, or replaces those of the same name.

        The file is replaced whole: whoever reads it never sees half of it.
        """
        self.write_metrics({**self.read_metrics(), **figures})

    def write_metrics(self, figures):
        """Replaces all results in `metrics.json`."""
        write_json(self.metrics, figures)

    def read_origin(self):
        """Returns what is known of the checkpoint that the weights come from, perhaps at first.

        Returns:
            A dictionary of strings and `None`, empty where they were trained from nothing.

        Raises:
            ValueError: If the file cannot be read.
        """
        return read_json(self.origin, dict) or {}

    def write_origin(self, origin):
        """Writes `origin.json`; nothing where `origin` is empty."""
        if origin:
            write_json(self.origin, origin)

    def read_search(self):
        """Returns the search of its model where none is named, a `Greedy` or a `Beam`.

        Returns:
            That in `search.json`, or else that of `generation.json`; `None` where neither names
            one.

        Raises:
            ValueError: If a file cannot be read.
        """
        from keras_transformer.decoding.search import from_dict

        search, generation = read_json(self.search, from_dict), self.read_generation()
        return search or (generation and generation.search)

    def write_search(self, search):
        """Writes `search.json`; nothing where `search` is `None`."""
        from keras_transformer.decoding.search import as_dict

        if search is not None:
            write_json(self.search, as_dict(search))

    def read_generation(self):
        """Returns the rules for outputs of the checkpoint that it was converted from.

        Returns:
            A `Generation`; `None` where there are none.

        Raises:
            ValueError: If the file cannot be read.
        """
        from keras_transformer.decoding.generation import Generation

        return read_json(self.generation, Generation.from_dict)

    def write_generation(self, generation):
        """Writes `generation.json`; nothing where `generation` is `None`."""
        if generation is not None:
            write_json(self.generation, generation.to_dict())

    def configure(self, config):
        """Returns the configuration of its model with the ids that `generation.json` has.

        Raises:
            ValueError: If they are no ids of its vocabulary.
        """
        generation = self.read_generation()
        try:
            return config if generation is None else generation.configure(config)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.generation} does not fit the model: {error}") from error

    def inherit(self, other):
        """Writes what another `Run` knows of its checkpoint: origin, rules for outputs, search."""
        self.write_origin(other.read_origin())
        self.write_generation(other.read_generation())
        if other.search.is_file():
            self.write_search(other.read_search())

    def _vocabulary_files(self):
        """The files of a vocabulary, whether they are there or not."""
        from keras_transformer.text.tokenizers.pair import vocabulary_files

        names = vocabulary_files(lambda name: (self.path / name).is_file())
        return tuple(self.path / name for name in names)

    def _require_vocabulary(self):
        for file in self._vocabulary_files():
            self._require(file)

    def _require(self, file):
        if file.is_file():
            return
        remedy = "Make one with `keras-transformer train CONFIG.toml --output RUN`."
        if not self.path.exists():
            remedy = f"There is no such folder. {remedy}{hint(self.path)}"
        elif self.config.is_file() and any(self.checkpoints.glob("update-*.npz")):
            remedy = (
                "Its training has not ended: `keras-transformer train "
                f"{self.config} --output {self.path}` continues it, and `keras-transformer average "
                f"{self.path} --last 1` makes a run of its newest checkpoint."
            )
        elif hint(self.path):
            remedy = hint(self.path).strip()
        raise ValueError(f"{self.path} is not a finished run: {file.name} is missing. {remedy}")

    def _restore(self):
        """What to do about a damaged model."""
        if any(self.checkpoints.glob("*.npz")):
            return (
                "remove it and run `keras-transformer train "
                f"{self.config} --output {self.path}`, which writes it again from the newest "
                "checkpoint."
            )
        return "put back a copy of it, or train again."
