"""What encoder and decoder blocks share: their arguments and the residual connection (Fig. 1)."""

from keras_transformer.checks import (
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_rate,
)
from keras_transformer.config import NORMS
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.feed_forward import FeedForward, check_activation
from keras_transformer.layers.normalization import LayerNormalization


class Block(AttendingLayer):
    """The arguments of a block, and `residual`, which joins a sublayer to its input.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the output of each sublayer (section 5.4).
        attention_dropout: Rate on the attention weights. The paper does not mention it.
        activation_dropout: Rate inside the feed-forward network. The paper does not mention it.
        activation: Keras activation of the feed-forward network.
        norm: `"post"` or `"pre"`.
        layer_norm_epsilon: Added to the variance in layer normalisation.
        attention_bias: Whether the projections of an attention have a bias.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.
    """

    def __init__(
        self,
        num_heads,
        d_ff,
        d_k=None,
        d_v=None,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        norm="post",
        layer_norm_epsilon=1e-6,
        attention_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.arguments = {
            "num_heads": num_heads,
            "d_ff": d_ff,
            "d_k": d_k,
            "d_v": d_v,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
            "layer_norm_epsilon": layer_norm_epsilon,
            "attention_bias": attention_bias,
        }
        _check_arguments(self.arguments)
        self.norm_position = norm

    def residual(self, x, sublayer, norm, training=None):
        """Adds what `sublayer` makes of `x` to `x`, and normalises.

        Post-norm is the paper's `LayerNorm(x + Sublayer(x))`. Differs from the paper: pre-norm,
        `x + Sublayer(LayerNorm(x))`, which trains without warm-up.

        Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
        """
        if self.norm_position == "pre":
            return x + self.dropout(sublayer(norm(x)), training=training)
        return norm(x + self.dropout(sublayer(x), training=training))

    def _attention_arguments(self, name):
        return {
            "num_heads": self.arguments["num_heads"],
            "d_k": self.arguments["d_k"],
            "d_v": self.arguments["d_v"],
            "dropout": self.arguments["attention_dropout"],
            "use_bias": self.arguments["attention_bias"],
            "dtype": self.dtype_policy,
            "name": name,
        }

    def _make_feed_forward(self):
        return FeedForward(
            self.arguments["d_ff"],
            self.arguments["activation"],
            self.arguments["activation_dropout"],
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _make_norm(self, name):
        epsilon = self.arguments["layer_norm_epsilon"]
        return LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name=name)

    def _make_dropout(self):
        rate = self.arguments["dropout"]
        return Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self.arguments}


class Stack(AttendingLayer):
    """`num_layers` blocks one after the other; pre-norm stacks normalise once more at the end.

    Args:
        num_layers: Number of blocks.
        **arguments: Arguments of every block, and `name`, `dtype` and `trainable`.
    """

    block_class = None

    def __init__(self, num_layers, num_heads, d_ff, **arguments):
        own = {
            key: arguments.pop(key) for key in ("name", "dtype", "trainable") if key in arguments
        }
        super().__init__(**own)
        check_count("num_layers", num_layers)
        self.num_layers = num_layers
        self.blocks = [
            self.block_class(
                num_heads, d_ff, **arguments, dtype=self.dtype_policy, name=f"block_{number}"
            )
            for number in range(num_layers)
        ]
        self.norm = None
        if self.blocks[0].norm_position == "pre":
            self.norm = self.blocks[0]._make_norm("norm")

    def _build_blocks(self, x_shape, *others):
        self.check_shapes(**dict(zip(("x", "memory"), (x_shape, *others), strict=False)))
        for block in self.blocks:
            block.build(x_shape, *others)
        if self.norm is not None:
            self.norm.build(x_shape)

    def _end(self, x):
        return x if self.norm is None else self.norm(x)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            **self.blocks[0].arguments,
        }


def _check_arguments(arguments):
    """Refuses what no sublayer could be made of: a block makes them only when it is built."""
    check_count("num_heads", arguments["num_heads"])
    check_count("d_ff", arguments["d_ff"])
    for name in ("d_k", "d_v"):
        check_count(name, arguments[name], optional=True)
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        check_rate(name, arguments[name])
    check_activation(arguments["activation"])
    check_choice("norm", arguments["norm"], NORMS)
    check_positive("layer_norm_epsilon", arguments["layer_norm_epsilon"])
    check_flag("attention_bias", arguments["attention_bias"])
