"""A run: the folder in which training leaves everything that belongs together."""

import json
import pathlib

import keras

from keras_transformer.files import write_text


class Run:
    """The files of a run, by name.

    Args:
        path: The folder. It need not exist yet.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.toml"  # every setting, defaults included
        self.tokenizer = self.path / "tokenizer.model"  # SentencePiece
        self.model = self.path / "model.keras"
        self.checkpoints = self.path / "checkpoints"
        self.logs = self.path / "logs"  # TensorBoard
        self.history = self.path / "history.csv"  # losses, rates and scores over the updates
        self.curve = self.path / "curve.png"  # the same as a picture
        self.metrics = self.path / "metrics.json"

    def load_model(self):
        """Returns the trained `Transformer`.

        Raises:
            ValueError: If the run has no model, or it cannot be read.
        """
        import keras_transformer.models.transformer

        self._require(self.model)
        try:
            model = keras.saving.load_model(self.model, compile=False)
        except (PermissionError, MemoryError):
            raise
        except Exception as error:  # zip, JSON, HDF5 and Keras raise nearly anything
            raise ValueError(f"{self.model} is damaged: {self._restore()}") from error
        if not isinstance(model, keras_transformer.models.transformer.Transformer):
            raise ValueError(
                f"{self.model} must hold a Transformer. Received: a {type(model).__name__}."
            )
        return model

    def load_tokenizer(self):
        """Returns the run's `Tokenizer`.

        Raises:
            ValueError: If the run has no vocabulary, or it cannot be read.
        """
        from keras_transformer.text.tokenizer import Tokenizer

        self._require(self.tokenizer)
        try:
            return Tokenizer.load(self.tokenizer)
        except ValueError as error:
            raise ValueError(f"{error} Put back a copy: the run's exports carry one.") from error

    def require_finished(self):
        """Refuses a folder in which a file of a finished run is missing.

        Raises:
            ValueError: With the file, and what to do.
        """
        for file in (self.config, self.tokenizer, self.model):
            self._require(file)

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
        """Adds figures to `metrics.json`, or replaces those of the same name.

        The file is replaced whole: whoever reads it never sees half of it.
        """
        self.write_metrics({**self.read_metrics(), **figures})

    def write_metrics(self, figures):
        """Replaces all figures of `metrics.json`."""
        text = json.dumps(figures, indent=2, ensure_ascii=False)
        write_text(self.metrics, text + "\n")

    def _require(self, file):
        if file.is_file():
            return
        remedy = "Make one with `keras-transformer train CONFIG.toml --output RUN`."
        if not self.path.exists():
            remedy = f"There is no such folder. {remedy}"
        elif self.config.is_file() and any(self.checkpoints.glob("update-*.npz")):
            remedy = (
                "Its training has not ended: `keras-transformer train "
                f"{self.config} --output {self.path}` continues it, and `keras-transformer average "
                f"{self.path} --last 1` makes a run of its newest checkpoint."
            )
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
