"""Base class of all models, each of which is built from a configuration and consists of parts."""

import contextlib
import re
import typing
from typing import Any

import keras
import numpy as np

from keras_transformer.config.model import ModelConfig
from keras_transformer.layers.composite import policy_of, quantize_sublayers, split_policy
from keras_transformer.layers.kernels import DEFAULT, Kernels
from keras_transformer.models.loss_shapes import check_loss
from keras_transformer.models.parts import Parts
from keras_transformer.tensors import Tensor

Kind = typing.TypeVar("Kind", bound="ConfiguredModel")
# The text of TensorFlow's error about a row that a table does not have.
MISSING_ROW = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")


class FigureColumn(typing.NamedTuple):
    """A column of Fig. 1: a stack of blocks with the layers before and after it.

    Attributes:
        name: Name of its tokens, such as `"source"`.
        length: Symbol for the number of tokens, such as `"S"`.
        embedding: The `PositionalEmbedding`.
        stack: The `Encoder` or `Decoder`; the memory of a decoder is the output of the previous
            column.
        head: The layers after the stack, in order; empty if there are none.
        segments: The segment embedding, if there is one.
    """

    name: str
    length: str
    embedding: typing.Any
    stack: typing.Any
    head: tuple = ()
    segments: typing.Any = None


class Prediction(typing.NamedTuple):
    """Output of a model's decoder at one position.

    Attributes:
        logits: Logits of the next token, `[B, N, V]`.
        cache: The cache including this position.
        weights: Cross-attention weights, one tensor `[B, H, N, S]` for each block. `None` if there
            is no memory or the weights were not requested.
    """

    logits: typing.Any
    cache: tuple
    weights: tuple | None = None


class ConfiguredModel(keras.Model):
    """A functional model that is fully described by a configuration and a dtype policy.

    `compile`, `fit`, `summary` and `save` work as for every Keras model. Logits of tokens carry the
    mask of padding. `type(model).from_config(model.get_config())` returns a copy with new weights;
    `keras.models.clone_model` returns a plain functional model, without the methods that searches
    and exports need.

    Args:
        config: An instance of `config_class`, or the name of a preset. `None`: the defaults.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model. `None`: `default_name`.
        kernels: The `Kernels` of the layers; they are not saved with the model.
        trainable: Whether the weights are trained.
        **options: Options of the configuration, such as `num_layers=6`, instead of `config`, or in
            addition to the name of a preset.

    Attributes:
        config_class: Class of the configuration, a `ModelConfig`.
        default_name: Default name of a model.
        parts: The `Parts` of the model.
    """

    config_class: Any = None
    default_name: str | None = None
    _checked_loss: Any = None  # the loss that the model was last compiled with and has computed

    def __init__(
        self,
        config: ModelConfig | str | None = None,
        dtype: typing.Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = DEFAULT,
        trainable: bool = True,
        **options: typing.Any,
    ):
        config = self._configuration(config, options)
        policy, quantized = split_policy(keras.dtype_policies.get(dtype))
        parts = self.make_parts(config, policy, kernels)
        inputs = self.symbols(parts)
        outputs = self.connect(parts, inputs)
        super().__init__(inputs, outputs, name=name or self.default_name, trainable=trainable)
        self.config = config
        self.policy = policy
        self.kernels = kernels
        self.parts = parts
        for role, layer in self.roles(parts).items():
            setattr(self, role, layer)
        if quantized:
            quantize_sublayers(self, quantized)

    def _configuration(self, config, options):
        """Returns the configuration from the arguments of the constructor."""
        if config is None:
            return self.config_class(**options)
        if isinstance(config, str):
            return self.config_class.preset(config, **options)
        if not isinstance(config, self.config_class):
            raise TypeError(
                f"`config` must be a {self.config_class.__name__} or the name of a preset. "
                f"Received: config={config!r}."
            )
        if options:
            raise TypeError(
                "Options must be part of `config` if a configuration is given. "
                f"Received: {', '.join(options)}."
            )
        return config

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:
        """Returns the `Parts` of the model."""
        raise NotImplementedError

    def roles(self, parts: Any) -> dict[str, Any]:
        """Returns the layers by the names of their attributes in the model."""
        raise NotImplementedError

    def symbols(self, parts: Any) -> Tensor:
        """Returns the symbolic inputs."""
        return parts.input.symbol()

    def connect(self, parts: Any, inputs: Any) -> Tensor:
        """Returns the output of the model for its inputs."""
        raise NotImplementedError

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns `call`: in a `keras.RematScope`, the layers are recomputed one by one."""
        return layer_call

    def check_inputs(self, inputs: Any) -> None:
        """Checks shape, dtype and, where they are known, values of inputs; errors have one line."""
        self.parts.input.check(inputs, self)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Checks shape and dtype of the inputs, with errors of one line, and calls the model."""
        self.check_inputs(inputs)
        return super().__call__(inputs, *args, **kwargs)

    # A graph does not know the values of its inputs: a wrong token id would be an error without the
    # name of the model, and on a GPU silently a zero. Therefore, arrays are checked once, before;
    # of data sets, whose values nobody knows before, the error is worded.

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Checks inputs that are arrays, and trains the model: see `keras.Model.fit`."""
        validation = kwargs.get("validation_data")
        self._check_arrays(x, *(validation[:1] if isinstance(validation, (tuple, list)) else ()))
        with self._naming_unknown_ids():
            return super().fit(x, *args, **kwargs)

    def evaluate(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Checks inputs that are arrays, and evaluates the model: see `keras.Model.evaluate`."""
        self._check_arrays(x)
        with self._naming_unknown_ids():
            return super().evaluate(x, *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Checks inputs that are arrays, and predicts: see `keras.Model.predict`."""
        self._check_arrays(x)
        with self._naming_unknown_ids():
            return super().predict(x, *args, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Returns the loss: see `keras.Model.compute_loss`.

        Raises:
            ValueError: If the loss has no value for each position: see `check_loss`.
        """
        if self.loss is not self._checked_loss:
            check_loss(self.loss, y, y_pred)
            self._checked_loss = self.loss
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    @contextlib.contextmanager
    def _naming_unknown_ids(self):
        """Replaces the error of an operation that got an unknown id by one that says so."""
        try:
            yield
        except Exception as error:
            missing = MISSING_ROW.search(str(error))
            sizes = {int(layer.table.shape[0]) for layer in self.embeddings}
            if missing is None or int(missing[2]) not in sizes:  # a look-up of a loss, for example
                raise
            raise ValueError(
                f"The data contain a token id that is not in the vocabulary of {self.name!r}: ids "
                f"must be from 0 to {int(missing[2]) - 1}. Received: {missing[1]}. Are the data "
                "from another tokenizer?"
            ) from error

    def _check_arrays(self, *inputs):
        for one in inputs:
            tensors = one.values() if isinstance(one, dict) else [one]
            if all(isinstance(t, np.ndarray) or keras.ops.is_tensor(t) for t in tensors):
                self.check_inputs(one)

    @property
    def columns(self) -> tuple[FigureColumn, ...]:
        """The `FigureColumn`s of the model, in order, for a diagram like Fig. 1.

        Raises:
            ValueError: If the input of the model is not tokens.
        """
        raise ValueError(
            f"`model` must read tokens to be drawn as in Fig. 1. Received: a {type(self).__name__}."
        )

    @property
    def embeddings(self) -> list[keras.Layer]:
        """The layers that embed tokens, one for each table."""
        layers = reversed(self.parts.embeddings)  # for a shared table, the first layer remains
        return list({id(layer.table): layer for layer in layers}.values())[::-1]

    @property
    def input_embedding(self) -> keras.Layer:
        """The embedding of the input tokens; in a `Transformer`, of the source tokens."""
        return self.parts.input.embedding

    def summary(self, line_length: int = 120, expand_nested: bool = True, **kwargs: Any) -> None:
        """Prints a summary like `keras.Model.summary`, including all sublayers."""
        return super().summary(line_length=line_length, expand_nested=expand_nested, **kwargs)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        policy = keras.dtype_policies.serialize(policy_of(self, self.policy))
        return {"config": self.config.to_dict(), "dtype": policy, "name": self.name}

    @classmethod
    def from_config(
        cls: type[Kind], config: Any, custom_objects: dict[str, Any] | None = None
    ) -> Kind:  # noqa: D102
        fields = cls.config_class.from_dict(config["config"])
        return cls(fields, **{key: value for key, value in config.items() if key != "config"})


class TokenOutput:
    """Mixin of models with a `NextTokenLogits` head: output weights for losses and searches."""

    parts: Parts

    @property
    def output_weights(self) -> Any:
        """The `OutputWeights`."""
        return self.parts.head.weights

    @property
    def output_matrix(self) -> Tensor:
        """The output weights `[V, D]`; the table of the embedding if they are tied."""
        return self.output_weights.matrix

    @property
    def output_bias(self) -> Tensor | None:
        """Bias of the logits, a variable `[V]`; `None` without a bias."""
        return self.output_weights.bias


def named_weights(stack, weights) -> dict[str, Any]:
    """Returns the attention weights of a stack with the name of the stack in their names.

    Args:
        stack: An `Encoder` or a `Decoder`.
        weights: Attention weights from a call with `return_attention_scores`, named
            `"block_0/self_attention"` and so on.
    """
    return {f"{stack.name}/{name}": tensor for name, tensor in weights.items()}
