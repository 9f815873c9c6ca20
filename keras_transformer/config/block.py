"""`BlockConfig`, the configuration of a block, and the types of its options."""

import dataclasses
import functools
from typing import Annotated, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import (
    check_activation,
    check_count,
    check_flag,
    check_rate,
)
from keras_transformer.config.part_config import PartConfig
from keras_transformer.feed_forwards import Network
from keras_transformer.norms import Norm
from keras_transformer.scores import AttentionScore

Count = Annotated[int, check_count]
OptionalCount = Annotated[int | None, functools.partial(check_count, optional=True)]
OptionalFlag = Annotated[bool | None, functools.partial(check_flag, optional=True)]
Rate = Annotated[float, check_rate]

# The linear projections of attention, in the order of section 3.2.2.
PROJECTIONS = ("query", "key", "value", "output")


def head_sizes(d_model, num_heads, d_k=None, d_v=None) -> tuple[int, int]:
    """Returns d_k and d_v, which default to `d_model / num_heads`.

    Raises:
        ValueError: If a default is needed and `d_model` is not divisible by `num_heads`.
    """
    if d_model % num_heads and (d_k is None or d_v is None):
        raise ValueError(
            "`d_model` must be divisible by `num_heads`, so that every head has the same "
            "size, unless `d_k` and `d_v` are given. "
            f"Received: d_model={d_model}, num_heads={num_heads}."
        )
    return d_k or d_model // num_heads, d_v or d_model // num_heads


def check_groups(num_heads, num_key_value_heads, is_product) -> None:
    """Checks the number of key and value heads.

    Args:
        num_heads: Number of heads.
        num_key_value_heads: Number of key and value heads. `None`: `num_heads`.
        is_product: Whether the score is a product of query and key.

    Raises:
        ValueError: If groups of heads would differ in size, or the score has weights for each key
            head.
    """
    if num_key_value_heads in (None, num_heads):
        return
    if num_heads % num_key_value_heads:
        raise ValueError(
            "`num_heads` must be divisible by `num_key_value_heads`, so that each is shared by the "
            f"same number of heads. Received: num_heads={num_heads}, "
            f"num_key_value_heads={num_key_value_heads}."
        )
    if not is_product:
        raise ValueError(
            "`num_key_value_heads` must be None with an additive score, which has weights for "
            f"each key head. Received: num_key_value_heads={num_key_value_heads}."
        )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig(PartConfig):
    """Configuration of a block, except for its width and its positions.

    These belong to the whole stack; see `StackConfig`.

    Args:
        **options: See `help(BlockConfig)`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    num_heads: Count = option(8, "Number of attention heads.")
    num_key_value_heads: OptionalCount = option(
        None,
        """Number of key and value heads, each shared by `num_heads / num_key_value_heads`
        consecutive attention heads (Ainslie et al., 2023), as in Llama: the key/value cache is
        smaller by this factor. `None`: `num_heads`.""",
    )
    d_ff: Count = option(2048, "Width inside the feed-forward network, in features.")
    d_k: OptionalCount = option(
        None, "Width of a query or key head. `None`: `d_model / num_heads`."
    )
    d_v: OptionalCount = option(None, "Width of a value head. `None`: `d_model / num_heads`.")
    dropout: Rate = option(
        0.1,
        """Dropout rate on the output of each sublayer, and on the sum of embedding and position
        (section 5.4).""",
    )
    attention_dropout: Rate = option(
        0.0, "Dropout rate on the attention weights. The paper does not mention it."
    )
    activation_dropout: Rate = option(
        0.0, "Dropout rate inside the feed-forward network. The paper does not mention it."
    )
    activation: Annotated[str, check_activation] = option(
        "relu",
        """Activation of the feed-forward network: the name of a Keras activation, such as `"relu"`
        or `"gelu"`; `"gelu_tanh"`, the approximation of GELU in GPT-2 and T5 1.1; or the name of a
        function registered with Keras, such as `"my_package>my_function"`.""",
    )
    feed_forward: Network = option(
        "plain",
        """Kind of feed-forward network: `"plain"` as in the paper, or `"gated"` as in Llama and T5
        1.1 (Shazeer, 2020): `(activation(x W_g) * (x W_1)) W_2`, with 50 % more parameters; or a
        table with such a `kind` and its options, such as `{ kind = "gated", bias = false }`. In
        Python also a `Network`, which may be one of your own.""",
        of=Network,
    )
    norm: Literal["post", "pre"] = option(
        "post",
        """Place of the normalisations: `"post"` as in the paper, `LayerNorm(x + Sublayer(x))`; or
        `"pre"`, `x + Sublayer(LayerNorm(x))`, with one more normalisation after each stack.""",
    )
    normalization: Norm = option(
        "layer",
        """Kind of normalisation: `"layer"` as in the paper, or `"rms"` as in Llama and T5, without
        mean and offset (Zhang and Sennrich, 2019); or a table with such a `kind` and its options,
        such as `{ kind = "layer", epsilon = 1e-5 }`. In Python also a `Norm`, which may be one of
        your own.""",
        of=Norm,
    )
    attention_bias: bool = option(
        False,
        "Adds a bias to the four projections of attention. In the paper they have none.",
    )
    attention_key_bias: OptionalFlag = option(
        None,
        """Adds a bias to the key projection of attention; false in Whisper. `None`: the value of
        `attention_bias`.""",
    )
    attention_output_bias: OptionalFlag = option(
        None,
        """Adds a bias to the output projection of attention; false in Qwen2. `None`: the value of
        `attention_bias`.""",
    )
    query_key_norm: Norm | None = option(
        None,
        """Normalises each query and key head before positions rotate it, with learned factors that
        all heads share: `"rms"`, as in Qwen3, `"layer"` (Henry et al., 2020), or a table, as for
        `normalization`. `None`: heads are not normalised.""",
        of=Norm,
    )
    score: AttentionScore = option(
        "scaled_dot_product",
        """Scoring function of attention: `"scaled_dot_product"` (Eq. 1), `"dot_product"`, which is
        not divided by `sqrt(d_k)`, `"general"`, with a matrix between query and key (Luong et al.,
        2015), or `"additive"`, a network with one hidden layer (Bahdanau et al., 2015), which is
        slower. In Python also an `AttentionScore`, which may be one of your own.""",
        of=AttentionScore,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_groups(self.num_heads, self.num_key_value_heads, self.score.is_product)

    @property
    def is_pre_norm(self) -> bool:
        """`True` if the input of a sublayer is normalised, `False` if its output is."""
        return self.norm == "pre"

    @property
    def biased_projections(self) -> tuple[str, ...]:
        """Names of the projections with a bias, from `PROJECTIONS`."""
        given = {"key": self.attention_key_bias, "output": self.attention_output_bias}
        return tuple(
            name
            for name in PROJECTIONS
            if (self.attention_bias if given.get(name) is None else given[name])
        )
