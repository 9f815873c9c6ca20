"""A run: the folder in which training leaves everything that belongs together."""

import json
import pathlib

import keras

from keras_transformer.atomic import write_text


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
        import keras_transformer.model  # noqa: F401  (registers the layers)

        self._require(self.model)
        try:
            return keras.saving.load_model(self.model, compile=False)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise ValueError(f"{self.model} cannot be read as a Keras model: {reason}") from error

    def load_tokenizer(self):
        """Returns the run's `Tokenizer`.

        Raises:
            ValueError: If the run has no vocabulary, or it cannot be read.
        """
        from keras_transformer.tokenizer import Tokenizer

        self._require(self.tokenizer)
        return Tokenizer.load(self.tokenizer)

    def update_metrics(self, **figures):
        """Adds figures to `metrics.json`, or replaces those of the same name.

        The file is replaced whole: whoever reads it never sees half of it.
        """
        known = json.loads(self.metrics.read_text("utf-8")) if self.metrics.exists() else {}
        text = json.dumps({**known, **figures}, indent=2, ensure_ascii=False)
        write_text(self.metrics, text + "\n")

    def _require(self, file):
        if not file.is_file():
            raise ValueError(
                f"{self.path} is not a finished run: {file.name} is missing. "
                "Make one with `keras-transformer train CONFIG.toml --output RUN`."
            )
