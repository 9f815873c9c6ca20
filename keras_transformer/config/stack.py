"""`StackConfig`, the configuration of a stack of blocks: an encoder or a decoder."""

import dataclasses
import functools
from typing import Annotated, Literal

from keras_transformer.checks import check_count, check_positive
from keras_transformer.config.arguments import documented, option, options_of
from keras_transformer.config.block import (
    Autoregression,
    BlockConfig,
    Count,
    OptionalCount,
    OptionalFlag,
    Position,
    head_sizes,
)
from keras_transformer.config.part_config import PartConfig
from keras_transformer.config.positions import (
    check_digits,
    check_position,
    check_recurrent,
)

OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]


def _check_offset(name, value):
    check_count(name, value, least=0)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig(PartConfig):
    """Everything that decides the shape and the arithmetic of a stack of blocks.

    It is passed whole to `Encoder.from_stack` and `Decoder.from_stack`, and from there to each
    block.

    Args:
        block: `BlockConfig` of every block.
        **options: See `help(StackConfig)`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Example:
        >>> from keras_transformer.config.stack import StackConfig
        >>> config = StackConfig.from_flat(num_layers=2, d_model=64, num_heads=4, norm="pre")
        >>> config.num_layers, config.block.num_heads, config.has_final_norm
        (2, 4, True)
    """

    num_layers: Count = option(6, "Number of blocks.")
    d_model: OptionalCount = option(512, "Width of the model, in features.")
    max_length: Count = option(512, "Longest source and longest output, in tokens.")
    final_norm: OptionalFlag = option(
        None,
        """Whether a stack ends in one more normalisation. `None`: with `norm="pre"`.""",
    )
    embedding_norm: bool = option(
        False,
        """Whether the input of a stack, the sum of embedding and position, is normalised, before
        the dropout. Encoder and decoder have a normalisation each. As in BART (Lewis et al.,
        2020).""",
    )
    position: Position = option(
        "sinusoidal",
        """Position encoding: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E),
        `"binary"` (digits of 1 and -1), `"rotary"` (Su et al., 2021), `"relative"` (Shaw et al.,
        2018), `"alibi"` (Press et al., 2022), `"t5"` (Raffel et al., 2020) or `"none"`. An
        embedding adds the first three; every self-attention applies the next four. With ALiBi an
        encoder and decoder cannot tell a source from its reverse.""",
    )
    sinusoid_layout: Literal["interleaved", "halves"] = option(
        "interleaved",
        """`"interleaved"` as in the paper, sine and cosine in turn, or `"halves"`, all sines
        first.""",
    )
    sinusoid_endpoint: bool = option(
        False,
        """Whether the longest wave is exactly 10,000 times the shortest, as in tensor2tensor.""",
    )
    position_offset: Annotated[int, _check_offset] = option(
        0, "Position of the first token; the paper's is 0."
    )
    rotary_base: OptionalNumber = option(
        None,
        """Base of the wave lengths of rotary positions: the slowest turn takes this many positions,
        times 2 pi. `None`: 10,000.""",
    )
    relative_distance: OptionalCount = option(
        None,
        """Largest distance with a parameter of its own, for relative positions and T5's; farther
        ones share it. `None`: 16 for relative positions, 128 for T5's.""",
    )
    relative_buckets: OptionalCount = option(
        None,
        """Number of biases of a head, each for a range of distances, for T5's positions.
        `None`: 32.""",
    )
    share_positions: OptionalFlag = option(
        None,
        """Whether the blocks of a stack share the table of T5's positions, which the first block
        holds, as in T5. `None`: each has its own.""",
    )
    window: OptionalCount = option(
        None,
        """Largest distance of a key that a local self-attention attends to, before and after the
        query. `None`: every self-attention is global.""",
    )
    global_every: OptionalCount = option(
        None,
        """Interval of the blocks whose self-attention is global in spite of `window`, counted from
        the first block: 3 for every third, as in ModernBERT. `None`: all are local.""",
    )
    local_rotary_base: OptionalNumber = option(
        None, "`rotary_base` of local self-attentions. `None`: that of the global ones."
    )
    first_norm: OptionalFlag = option(
        None,
        """Whether the first block normalises the input of its self-attention with `norm="pre"`.
        ModernBERT's does not, after its `embedding_norm`. `None`: it does.""",
    )
    autoregression: Autoregression = option(
        "self_attention",
        """Sublayer that reads the earlier positions of an output: `"self_attention"` as in the
        paper, or `"ssru"`, a recurrence whose state has a fixed size (Kim et al., 2019). With an
        SSRU positions must be those of the embedding, or none.""",
    )
    block: BlockConfig = BlockConfig()

    has_blocks = True  # unlike `RecurrentConfig`

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.block, BlockConfig):
            raise TypeError(f"`block` must be a `BlockConfig`. Received: block={self.block!r}.")
        check_stack(self)

    @classmethod
    def from_flat(cls, **options):
        """Returns the configuration with some options of the stack and of its blocks.

        Args:
            **options: Options of `StackConfig` and of `BlockConfig`, by name.
        """
        of_stack = {key: value for key, value in options.items() if key in OPTIONS_OF_STACK}
        of_block = {key: value for key, value in options.items() if key not in of_stack}
        return cls(**of_stack, block=BlockConfig(**of_block))

    def options(self):  # noqa: D102
        return {**OPTIONS_OF_STACK, **OPTIONS_OF_BLOCK}

    def to_flat(self):  # noqa: D102
        fields = dataclasses.asdict(self)
        return {**fields.pop("block"), **fields}

    @classmethod
    def from_dict(cls, fields):  # noqa: D102
        block = BlockConfig.from_dict(fields.get("block", {}))
        return super().from_dict({**fields, "block": block})

    def is_local(self, number):
        """Returns whether the self-attention of a block, counted from 0, has a window."""
        is_global = self.global_every is not None and number % self.global_every == 0
        return self.window is not None and not is_global

    def of_block(self, number):
        """Returns the configuration as the self-attention of a block, counted from 0, has it."""
        base = self.rotary_base
        if self.is_local(number):
            base = self.local_rotary_base or base
        window = self.window if self.is_local(number) else None
        return dataclasses.replace(
            self, rotary_base=base, window=window, global_every=None, local_rotary_base=None
        )

    @property
    def is_recurrent(self):
        """`True` if an SSRU reads earlier positions, and no self-attention."""
        return self.autoregression == "ssru"

    @property
    def has_final_norm(self):
        """`True` if the stack ends in a normalisation of its own."""
        return self.block.is_pre_norm if self.final_norm is None else self.final_norm

    @property
    def embedding_dropout(self):
        """Rate on the sum of embedding and position; 0 where the stack drops after its norm."""
        return 0.0 if self.embedding_norm else self.block.dropout


OPTIONS_OF_STACK = options_of(StackConfig)
OPTIONS_OF_BLOCK = options_of(BlockConfig)


def check_stack(stack):
    """Refuses options of a `StackConfig` that contradict each other or have no effect.

    Raises:
        ValueError: If there are any.
    """
    block = stack.block
    check_position(stack)
    if stack.is_recurrent:
        check_recurrent(stack)
    _check_local(stack)
    if stack.first_norm is not None and not block.is_pre_norm:
        raise ValueError(
            '`first_norm` has no effect but with `norm="pre"`. '
            f"Received: first_norm={stack.first_norm}, norm={block.norm!r}."
        )
    if stack.position != "sinusoidal" and (
        stack.sinusoid_layout != "interleaved" or stack.sinusoid_endpoint or stack.position_offset
    ):
        raise ValueError(
            "`sinusoid_layout`, `sinusoid_endpoint` and `position_offset` have no effect but "
            f"for sinusoidal positions. Received: position={stack.position!r}."
        )
    if stack.d_model is not None:
        _check_width(stack)


def _check_local(stack):
    """Refuses options of local self-attentions where all are global."""
    for name in ("global_every", "local_rotary_base"):
        value = getattr(stack, name)
        if stack.window is None and value is not None:
            raise ValueError(f"`{name}` has no effect without `window`. Received: {name}={value}.")
    if stack.global_every == 1:
        raise ValueError(
            "`global_every` must be at least 2: `window` has no effect if every block is global. "
            "Received: global_every=1."
        )


def _check_width(stack):
    """Refuses a width that positions or heads do not fit."""
    block = stack.block
    d_k, _ = head_sizes(stack.d_model, block.num_heads, block.d_k, block.d_v)
    if stack.position == "sinusoidal" and stack.d_model % 2:
        raise ValueError(
            "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
            f"and cosine. Received: d_model={stack.d_model}."
        )
    if stack.position == "rotary" and d_k % 2:
        raise ValueError(
            "`d_k` must be even for rotary positions, which turn pairs of features. "
            f"Received: d_k={d_k}."
        )
    if stack.position == "binary":
        check_digits(stack.max_length, stack.d_model)
