"""The base of the models: a configuration that is all they are built from, and their ends."""

import functools
import typing

import keras
from keras import ops

from keras_transformer.layers import positions
from keras_transformer.layers.call_checks import check_ids
from keras_transformer.layers.embedding import OutputBias, PositionalEmbedding
from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.quantization import policy_of, quantize_sublayers, split_policy


class Column(typing.NamedTuple):
    """A stack of blocks and what comes before and after it: a column of Fig. 1.

    Attributes:
        name: What its tokens are, such as `"source"`.
        length: Symbol of their number, such as `"S"`.
        embedding: The `PositionalEmbedding`.
        stack: The `Encoder` or `Decoder`; a decoder's memory is the column before it.
        head: The layers that follow, in order; empty if the stack ends it.
        segments: The layer that tells parts of the tokens apart, if there is one.
    """

    name: str
    length: str
    embedding: typing.Any
    stack: typing.Any
    head: tuple = ()
    segments: typing.Any = None


class ConfiguredModel(keras.Model):
    """A functional model that a configuration and a dtype policy describe whole.

    `compile`, `fit`, `summary`, `save` and `clone_model` work as for every Keras model.

    Args:
        config: A `config_class`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Attributes:
        config_class: The class of its configuration, a `ModelConfig`.
    """

    config_class = None

    def __init__(self, config="base", dtype=None, name=None, *, kernels=DEFAULT, **kwargs):
        if isinstance(config, str):
            config = self.config_class.preset(config)
        if not isinstance(config, self.config_class):
            raise TypeError(
                f"`config` must be a {self.config_class.__name__} or the name of a preset. "
                f"Received: config={config!r}."
            )
        policy, quantized = split_policy(keras.dtype_policies.get(dtype))
        layers = self._make_layers(config, policy, kernels)
        inputs = self._make_inputs(config)
        super().__init__(inputs, self._connect(config, layers, inputs), name=name, **kwargs)
        self.config = config
        self.policy = policy
        self.kernels = kernels
        for role, layer in layers.items():
            setattr(self, role, layer)
        if quantized:
            quantize_sublayers(self, quantized)

    def _make_layers(self, config, policy, kernels):
        """The layers of the model, by the names of its attributes."""
        raise NotImplementedError

    def _make_inputs(self, config):
        """The symbolic inputs."""
        raise NotImplementedError

    def _connect(self, config, layers, inputs):
        """From the inputs to the output."""
        raise NotImplementedError

    @property
    def columns(self):
        """The `Column`s of the model, in order, as they are drawn in Fig. 1.

        Raises:
            ValueError: If it does not read tokens, for which there is no such picture.
        """
        raise ValueError(
            f"`model` must read tokens to be drawn as in Fig. 1. Received: a {type(self).__name__}."
        )

    @property
    def embeddings(self):
        """The layers that embed tokens, each once."""
        return [layer for layer in self.layers if isinstance(layer, PositionalEmbedding)]

    @property
    def input_embedding(self):
        """The layer that embeds the tokens of what the model reads: of a `Transformer` sources."""
        return getattr(self, "source_embedding", None) or self.embedding

    def summary(self, line_length=120, expand_nested=True, **kwargs):
        """Prints the model as `keras.Model.summary` does, with every sublayer."""
        return super().summary(line_length=line_length, expand_nested=expand_nested, **kwargs)

    def get_config(self):  # noqa: D102
        policy = keras.dtype_policies.serialize(policy_of(self, self.policy))
        return {"config": self.config.to_dict(), "dtype": policy, "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):  # noqa: D102
        fields = cls.config_class.from_dict(config["config"])
        return cls(fields, **{key: value for key, value in config.items() if key != "config"})


class TokenModel(ConfiguredModel):
    """A `ConfiguredModel` of token ids `[B, T]`."""

    def __call__(self, inputs, *args, **kwargs):
        """Refuses ids of a wrong rank or dtype in one line, and calls the model."""
        check_ids(inputs, "tokens", self)
        return super().__call__(inputs, *args, **kwargs)

    def _make_inputs(self, config):
        return keras.Input((None,), dtype="int32", name="tokens")


class TokenOutput:
    """Logits of tokens: what a model with `output_layer` and `logits` has for losses of its own."""

    @property
    def output_matrix(self):
        """The output weights, `[V, D]`: the table of the embedding if they are tied."""
        if isinstance(self.output_layer, PositionalEmbedding):
            return ops.convert_to_tensor(self.output_layer.table)
        if self.output_layer.quantization_mode:  # the kernel holds integers without their scale
            rows = ops.eye(self.config.d_model, dtype=self.output_layer.compute_dtype)
            return ops.transpose(self.output_layer(rows))
        return ops.transpose(self.output_layer.kernel)

    @property
    def output_bias(self):
        """What is added to the logits, a variable `[V]`; `None` for nothing."""
        return self.logits.bias if self.config.output_bias else None

    def output_of(self, tokens):
        """Returns a function from hidden states to the logits of a few tokens.

        Their weights are gathered here, once for all calls of the function. After
        `model.quantize` all logits are computed, and those of the tokens taken.

        Args:
            tokens: Token ids `[C]`, int32, with C known statically.

        Returns:
            Function from `[B, N, D]` to `[B, N, C]`.
        """
        layer = self.output_layer
        if layer.quantization_mode:  # only the layer can multiply by what it holds
            product = functools.partial(_picked, layer, tokens)
        else:
            tied = isinstance(layer, PositionalEmbedding)
            weights, axis = (layer.table, 0) if tied else (layer.kernel, 1)
            product = self.kernels.restrict(weights, tokens, axis, layer.compute_dtype)
        bias = self.output_bias
        bias = None if bias is None else self.kernels.pick(bias, tokens)  # [C]
        dtypes = layer.compute_dtype, self.logits.compute_dtype
        return functools.partial(_some_logits, product, bias, *dtypes)


def _picked(layer, tokens, hidden):
    """Returns the logits `[B, N, C]` that a layer gives C tokens for hidden states `[B, N, D]`."""
    return ops.take(layer(hidden), tokens, axis=-1)


def _some_logits(product, bias, compute_dtype, dtype, hidden):
    """`[B, N, D]` to `[B, N, C]`, by a product with output weights and a bias `[C]`, or `None`."""
    logits = ops.cast(product(ops.cast(hidden, compute_dtype)), dtype)
    return logits if bias is None else ops.add(logits, ops.cast(bias, dtype))


def named_weights(stack, weights):
    """Returns the attention weights of a stack under the names that a model has for them.

    Args:
        stack: An `Encoder` or a `Decoder`.
        weights: What it returned with `return_weights`, by `"block_0/self_attention"` and so on.
    """
    return {f"{stack.name}/{name}": tensor for name, tensor in weights.items()}


def make_embedding(config, vocab_size, policy, kernels, name):
    """Returns the embedding of tokens that a `StackConfig` describes."""
    return PositionalEmbedding(
        vocab_size,
        config.d_model,
        positions.of_embedding(config),
        config.max_length,
        config.embedding_dropout,
        scale=config.embedding_scale,
        dtype=policy,
        kernels=kernels,
        name=name,
    )


def make_logits(policy, bias=False):
    """Returns the layer that casts logits: losses over a large vocabulary need float32.

    Args:
        policy: The dtype policy of the model.
        bias: Whether it also adds a bias.
    """
    in_half = policy.compute_dtype in ("float16", "bfloat16")
    dtype = "float32" if in_half else policy.compute_dtype
    if bias:
        return OutputBias(dtype=dtype, name="logits")
    return keras.layers.Activation("linear", dtype=dtype, name="logits")


def project(output, logits, hidden):
    """Hidden states to logits, through the tied table or a matrix of its own."""
    tied = isinstance(output, PositionalEmbedding)
    return logits(output(hidden, reverse=True) if tied else output(hidden))  # [B, T, V]
