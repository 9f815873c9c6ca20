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
from keras_transformer.config.arguments import documented, option

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


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """Everything that decides the arithmetic of a block, except its width and its positions.

    Those belong to the whole stack: see `StackConfig`.

    Args:
        **options: See `help(BlockConfig)`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    num_heads: Count = option(8, "Attention heads.")
    d_ff: Count = option(2048, "Width inside the feed-forward network, in features.")
    d_k: OptionalCount = option(
        None, "Width of a query and key head. `None`: `d_model / num_heads`."
    )
    d_v: OptionalCount = option(None, "Width of a value head. `None`: `d_model / num_heads`.")
    dropout: Rate = option(0.1, "Dropout rate on the output of each sublayer (section 5.4).")
    attention_dropout: Rate = option(
        0.0, "Dropout rate on the attention weights. The paper does not mention it."
    )
    activation_dropout: Rate = option(
        0.0, "Dropout rate inside the feed-forward network. The paper does not mention it."
    )
    activation: Annotated[str, check_activation] = option(
        "relu", "Keras activation of the feed-forward network."
    )
    norm: Literal["post", "pre"] = option(
        "post",
        """`"post"` as in the paper: `LayerNorm(x + Sublayer(x))`; or `"pre"`:
        `x + Sublayer(LayerNorm(x))`, and one more normalisation after each stack.""",
    )
    layer_norm_epsilon: Annotated[float, check_positive] = option(
        1e-6, "Added to the variance in every layer normalisation."
    )
    attention_bias: bool = option(
        False,
        """Whether the four projections of an attention have a bias. The paper's are plain
        matrices.""",
    )
    score: Score = option(
        "scaled_dot_product",
        """Score of a query and a key in every attention: `"scaled_dot_product"` (Eq. 1),
        `"dot_product"`, which is not divided by `sqrt(d_k)`, `"general"`, with a matrix in between
        (Luong et al., 2015), or `"additive"`, a network with one hidden layer (Bahdanau et al.,
        2015), which is slower.""",
    )
    feed_forward_bias: bool = option(
        True, "Whether the two maps of the feed-forward network have a bias, as the paper's have."
    )

    def __post_init__(self):
        check_fields(self)

    @property
    def is_pre_norm(self):
        """Whether a sublayer reads its input normalised, instead of its output being normalised."""
        return self.norm == "pre"
