"""The base of the models: a configuration that is all they are built from, and their parts."""

import typing

import keras

from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.layers.quantization import policy_of, quantize_sublayers, split_policy


class FigureColumn(typing.NamedTuple):
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


class Prediction(typing.NamedTuple):
    """The decoder of a model at one position.

    Attributes:
        logits: Logits of the token that follows, `[B, N, V]`.
        cache: The cache with this position in it.
        weights: The weights of the attention to the memory, of every block `[B, H, N, S]`. `None`
            without a memory, or unless they are asked for.
    """

    logits: typing.Any
    cache: tuple
    weights: tuple | None = None


class ConfiguredModel(keras.Model):
    """A functional model that a configuration and a dtype policy describe whole.

    `compile`, `fit`, `summary`, `save` and `clone_model` work as for every Keras model.

    Args:
        config: A `config_class`, or the name of a preset. `None`: the defaults.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.
        trainable: Whether the weights are trained.
        **options: Options of the configuration, such as `num_layers=6`, in place of a
            configuration or in addition to the name of a preset.

    Attributes:
        config_class: The class of its configuration, a `ModelConfig`.
        default_name: Name of a model that is given none.
        parts: Its `Parts`.
    """

    config_class = None
    default_name = None

    def __init__(
        self, config=None, dtype=None, name=None, *, kernels=DEFAULT, trainable=True, **options
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
        """The configuration that the arguments of the constructor describe."""
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
                "Options must be given in `config` if there is one. "
                f"Received: {', '.join(options)}."
            )
        return config

    def make_parts(self, config, policy, kernels):
        """Returns the `Parts` of the model."""
        raise NotImplementedError

    def roles(self, parts):
        """Returns the layers by the names of the model's attributes."""
        raise NotImplementedError

    def symbols(self, parts):
        """Returns the symbolic inputs."""
        return parts.input.symbol()

    def connect(self, parts, inputs):
        """Returns the output of the model for its inputs."""
        raise NotImplementedError

    def __call__(self, inputs, *args, **kwargs):
        """Refuses inputs of a wrong shape or dtype in one line, and calls the model."""
        self.parts.input.check(inputs, self)
        return super().__call__(inputs, *args, **kwargs)

    @property
    def columns(self):
        """The `FigureColumn`s of the model, in order, as they are drawn in Fig. 1.

        Raises:
            ValueError: If it does not read tokens, for which there is no such picture.
        """
        raise ValueError(
            f"`model` must read tokens to be drawn as in Fig. 1. Received: a {type(self).__name__}."
        )

    @property
    def embeddings(self):
        """The layers that embed tokens, one for each table."""
        layers = reversed(self.parts.embeddings)  # of one table the first layer is kept
        return list({id(layer.table): layer for layer in layers}.values())[::-1]

    @property
    def input_embedding(self):
        """The layer that embeds the tokens of the input; of a `Transformer` those of the source."""
        return self.parts.input.embedding

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


class TokenOutput:
    """The output weights of a model with a `NextTokenLogits`, for losses and searches."""

    @property
    def output_weights(self):
        """The `OutputWeights`."""
        return self.parts.head.weights

    @property
    def output_matrix(self):
        """The output weights, `[V, D]`: the table of the embedding if they are tied."""
        return self.output_weights.matrix

    @property
    def output_bias(self):
        """The variable `[V]` that is added to the logits; `None` for nothing."""
        return self.output_weights.bias


def named_weights(stack, weights):
    """Returns the attention weights of a stack under the names that a model has for them.

    Args:
        stack: An `Encoder` or a `Decoder`.
        weights: The weights that it returned with `return_weights`, by
            `"block_0/self_attention"` and so on.
    """
    return {f"{stack.name}/{name}": tensor for name, tensor in weights.items()}
