"""Encoder-only models whose encoder runs in CTranslate2, as the pipelines of their tasks."""

import pathlib
from typing import Any

import numpy as np

from keras_transformer.export.ctranslate2.engine import load_ctranslate2, open_engine
from keras_transformer.export.ctranslate2.folder import CONFIG, read_folder
from keras_transformer.export.ctranslate2.head import read_head
from keras_transformer.export.ctranslate2.metadata import MAX_LENGTH, MODEL_CONFIG, PROMPTS, TASK
from keras_transformer.export.runtime import check_threads
from keras_transformer.layers.inputs.segments import second_text, separator_of
from keras_transformer.layers.masks import padding_mask
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks import TASKS
from keras_transformer.text.prompts import TextPrompts


def open_encoder(path, num_threads=None, compute_type="default", num_parallel_calls=1) -> Any:
    """Returns the pipeline of a folder with an encoder, such as an `Embedder`.

    Args:
        path: Path of the folder.
        num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        ValueError: If ctranslate2 is missing, the folder was not written by `export_ctranslate2`,
            or a number is out of range.
    """
    load_ctranslate2()
    check_threads(num_parallel_calls=num_parallel_calls)
    path = pathlib.Path(path)
    metadata, tokenizers = read_folder(path)
    kind, config, prompts = _described(path / CONFIG, metadata)
    head = read_head(path, kind.model_class, config)
    engine = open_engine("Encoder", path, num_threads, compute_type, num_parallel_calls)
    pipeline = kind(EngineModel(config, head, engine), tokenizers, metadata[MAX_LENGTH])
    return pipeline if prompts is None else pipeline.with_prompts(prompts)


def _described(path, metadata):
    """Returns the pipeline's class, the model's configuration and `TextPrompts` in metadata."""
    try:
        kind = TASKS[metadata[TASK]].pipeline_class()
        prompts = metadata.get(PROMPTS) and TextPrompts.from_dict(metadata[PROMPTS])
        return kind, kind.model_class.config_class.from_dict(metadata[MODEL_CONFIG]), prompts
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged: it does not describe a model of this version. Export the model "
            "again."
        ) from error


class EngineModel:
    """An `EncoderModel` whose input and encoder run in CTranslate2, in eager mode or in a graph.

    Args:
        config: The configuration of the model.
        head: Its `Head`.
        engine: The `ctranslate2.Encoder`.
    """

    is_exported = True  # see `Format.check`

    def __init__(self, config, head, engine):
        self.config, self.config_class = config, type(config)
        self._head, self._engine = head, engine
        self._storage = load_ctranslate2().StorageView

    @property
    def variables(self) -> list[Any]:
        """Variables of the head."""
        return [weight for layer in self._head.layers.values() for weight in layer.weights]

    def __call__(self, inputs, training=False) -> Any:
        """Returns the output of the head for token ids `[B, S]`."""
        real = padding_mask(inputs, self.config.tokens.pad_id)  # [B, 1, S]
        return self._head(self.encode(inputs), inputs, real)

    def hidden_states(self, inputs, training=False) -> Any:
        """Returns the input of the output weights of a `MaskedLanguageModel`, `[B, S, D]`."""
        return self._head.before_weights(self.encode(inputs))

    @property
    def output_weights(self) -> Any:
        """The `OutputWeights` of a `MaskedLanguageModel`."""
        return self._head.weights

    def attention_weights(self, inputs) -> Any:
        """Raises a `ValueError`: CTranslate2 returns no attention weights of an encoder."""
        raise ValueError(
            "A folder for CTranslate2 has no attention weights. Open the run that it was exported "
            "from."
        )

    def encode(self, inputs) -> Any:
        """Returns the output of the encoder for token ids `[B, S]`, float32 `[B, S, D]`."""
        arguments = [inputs]
        if self.config.input.segments != "none":
            arguments.append(second_text(inputs, *separator_of(self.config.input)))
        hidden = tf.numpy_function(self._encode, arguments, tf.float32)
        hidden.set_shape([*inputs.shape, self.config.encoder.d_model])
        return hidden

    def _encode(self, ids, second=None):
        """Runs CTranslate2 on arrays; the states of padding, which it leaves undefined, are 0."""
        if not len(ids):
            return np.zeros((*ids.shape, self.config.encoder.d_model), np.float32)
        ids = np.ascontiguousarray(ids, np.int32)
        lengths = np.sum(ids != self.config.tokens.pad_id, axis=1, dtype=np.int32)
        output = self._engine.forward_batch(
            self._storage.from_array(ids),
            self._storage.from_array(lengths),
            token_type_ids=None if second is None else second.astype(int).tolist(),
        )
        states = np.array(output.last_hidden_state, np.float32)  # [B, S, D]
        states[ids == self.config.tokens.pad_id] = 0
        return states
