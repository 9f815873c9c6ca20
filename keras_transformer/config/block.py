"""`BlockConfig`, the configuration of a block, and the types of its fields."""

import dataclasses
import functools
from typing import Annotated, Literal

from keras_transformer.checks import (
    check_activation,
    check_count,
    check_fields,
    check_flag,
    check_positive,
    check_rate,
)
from keras_transformer.config.positions import check_block_position

Count = Annotated[int, check_count]
OptionalCount = Annotated[int | None, functools.partial(check_count, optional=True)]
OptionalFlag = Annotated[bool | None, functools.partial(check_flag, optional=True)]
Rate = Annotated[float, check_rate]
Position = Literal["sinusoidal", "learned", "binary", "rotary", "relative", "alibi", "t5", "none"]
Autoregression = Literal["self_attention", "ssru"]
Score = Literal["scaled_dot_product", "dot_product", "general", "additive"]


def head_sizes(d_model, num_heads, d_k=None, d_v=None):
    """Returns d_k and d_v, which are `d_model / num_heads` unless they are given.

    Raises:
        ValueError: If `d_model` is not divisible by `num_heads` where that decides.
    """
    if d_model % num_heads and (d_k is None or d_v is None):
        raise ValueError(
            "`d_model` must be divisible by `num_heads`, so that every head has the same "
            "size, unless `d_k` and `d_v` are given. "
            f"Received: d_model={d_model}, num_heads={num_heads}."
        )
    return d_k or d_model // num_heads, d_v or d_model // num_heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """Everything that decides the shape and the arithmetic of a block, but for `d_model`.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the output of each sublayer (section 5.4).
        attention_dropout: Rate on the attention weights. The paper does not mention it.
        activation_dropout: Rate inside the feed-forward network. The paper does not mention it.
        activation: Keras activation of the feed-forward network.
        norm: `"post"` as in the paper: `LayerNorm(x + Sublayer(x))`; or `"pre"`:
            `x + Sublayer(LayerNorm(x))` with one more normalisation after each stack.
        final_norm: Whether there is one more normalisation after each stack. `None`: with
            `norm="pre"`.
        embedding_norm: Whether what a stack reads, the sum of embedding and position, is
            normalised, before the dropout; encoder and decoder have a normalisation each. As in
            BART (Lewis et al., 2020).
        layer_norm_epsilon: Added to the variance in every layer normalisation.
        attention_bias: Whether the four projections of an attention have a bias. The paper's are
            plain matrices.
        score: How well a key fits a query in every attention: `"scaled_dot_product"` (Eq. 1),
            `"dot_product"`, which is not divided by `sqrt(d_k)`, `"general"`, which has a matrix
            between (Luong et al., 2015), or `"additive"`, a network with one hidden layer (Bahdanau
            et al., 2015), which is slower.
        feed_forward_bias: Whether the two maps of the feed-forward network have a bias, as the
            paper's have.
        position: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E), `"binary"` (digits of
            1 and -1), `"rotary"` (Su et al., 2021), `"relative"` (Shaw et al., 2018), `"alibi"`
            (Press et al., 2022), `"t5"` (Raffel et al., 2020) or `"none"`. The first three are the
            work of the embedding, the others of every self-attention. With ALiBi a source and its
            reverse are the same to an encoder and decoder.
        relative_distance: Farthest distance of query and key that is told from farther ones, for
            relative positions and T5's. `None`: 16 for relative positions, 128 for T5's.
        relative_buckets: Number of biases of a head, each for a range of distances, for T5's
            positions. `None`: 32.
        max_length: Longest source and longest output, in tokens.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    num_heads: Count = 8
    d_ff: Count = 2048
    d_k: OptionalCount = None
    d_v: OptionalCount = None
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    activation: Annotated[str, check_activation] = "relu"
    norm: Literal["post", "pre"] = "post"
    final_norm: OptionalFlag = None
    embedding_norm: bool = False
    layer_norm_epsilon: Annotated[float, check_positive] = 1e-6
    attention_bias: bool = False
    score: Score = "scaled_dot_product"
    feed_forward_bias: bool = True
    position: Position = "sinusoidal"
    relative_distance: OptionalCount = None
    relative_buckets: OptionalCount = None
    max_length: Count = 512

    def __post_init__(self):
        check_fields(self)
        check_block_position(self)

    @property
    def is_pre_norm(self):
        """Whether a sublayer sees its input normalised, and not its output."""
        return self.norm == "pre"

    @property
    def has_final_norm(self):
        """Whether a stack ends in a normalisation of its own."""
        return self.is_pre_norm if self.final_norm is None else self.final_norm

    @property
    def embedding_dropout(self):
        """Rate on the sum of embedding and position; 0 where the stack drops after its norm."""
        return 0.0 if self.embedding_norm else self.dropout

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration that `to_dict` described.

        Raises:
            ValueError: If there is no such field.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(known))
        if unknown:
            raise ValueError(
                f"`{cls.__name__}` has the fields {', '.join(known)}. "
                f"Received: {', '.join(unknown)}."
            )
        return cls(**fields)

    def to_dict(self):
        """Returns the fields as a dictionary of plain values."""
        return dataclasses.asdict(self)
