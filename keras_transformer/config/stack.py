"""`StackConfig`, the configuration of a stack of blocks: an encoder or a decoder."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from keras_transformer.checks import check_count, check_positive
from keras_transformer.config.arguments import documented, option, options_of
from keras_transformer.config.block import (
    AttentionPositionOption,
    Autoregression,
    BlockConfig,
    Count,
    OptionalCount,
    OptionalFlag,
    PositionOption,
    head_sizes,
)
from keras_transformer.config.part_config import PartConfig
from keras_transformer.config.positions import (
    RELATIVE,
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
    """Configuration of a stack of blocks.

    `Encoder.from_stack` and `Decoder.from_stack` take it as a whole, and pass it to each block.

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
    max_length: Count = option(512, "Maximum length of sources and outputs, in tokens.")
    final_norm: OptionalFlag = option(
        None,
        """Adds a normalisation at the end of a stack. `None`: only with `norm="pre"`.""",
    )
    embedding_norm: bool = option(
        False,
        """Normalises the input of a stack, the sum of embedding and position, before dropout, as in
        BART (Lewis et al., 2020). Encoder and decoder have separate normalisations.""",
    )
    position: PositionOption = option(
        "sinusoidal",
        """Position encoding: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E),
        `"binary"` (digits of 1 and -1), `"rotary"` (Su et al., 2021), `"relative"` (Shaw et al.,
        2018), `"alibi"` (Press et al., 2022), `"t5"` (Raffel et al., 2020), `"disentangled"` (He et
        al., 2021; bidirectional self-attention only) or `"none"`. The first
        three are added to the embedding; the next five act in self-attention. With ALiBi, an
        encoder-decoder cannot distinguish a source from its reverse. Or the name of a class
        registered with Keras, such as `"my_package>MyPosition"`; in Python also a `Position`.""",
    )
    attention_position: AttentionPositionOption = option(
        "none",
        """Position encoding that acts in self-attention in addition to a `position` that is added
        to the embedding: `"t5"` in MPNet (Song et al., 2020). `"none"`: there is only
        `position`.""",
    )
    sinusoid_layout: Literal["interleaved", "halves"] = option(
        "interleaved",
        """Order of the features of sinusoidal positions: `"interleaved"` as in the paper, sine and
        cosine in turn, or `"halves"`, all sines first.""",
    )
    sinusoid_endpoint: bool = option(
        False,
        """Makes the longest wavelength of sinusoidal positions exactly 10,000 times the shortest,
        as in tensor2tensor.""",
    )
    position_offset: Annotated[int, _check_offset] = option(
        0, "Position of the first token, 0 in the paper."
    )
    rotary_base: OptionalNumber = option(
        None,
        """Base of the wavelengths of rotary positions: the slowest rotation takes about this many
        positions, times 2 pi. `None`: 10,000.""",
    )
    rotary_factor: OptionalNumber = option(
        None,
        """Factor that rotary positions are divided by, so that texts may be longer than those that
        a model was trained on (Chen et al., 2023). `None`: 1.""",
    )
    rotary_short_wave: OptionalNumber = option(
        None,
        """Rotations with a shorter wavelength than this, in positions, are not divided by
        `rotary_factor`, as in Llama 3.1. `None`: all of them are divided.""",
    )
    rotary_long_wave: OptionalNumber = option(
        None,
        """Rotations with a longer wavelength than this, in positions, are divided by
        `rotary_factor`, and those between `rotary_short_wave` and this one in part.
        `None`: all of them are divided.""",
    )
    rotary_log_ramp: OptionalFlag = option(
        None,
        """Divides rotations between `rotary_short_wave` and `rotary_long_wave` by a share of
        `rotary_factor` that depends on the logarithm of their wavelength, as in YaRN (Peng et al.,
        2023). `None`: on their frequency, as in Llama 3.1.""",
    )
    rotary_scale: OptionalNumber = option(
        None,
        """Factor of the query and key heads that rotary positions rotate, above 1 in YaRN.
        `None`: 1.""",
    )
    relative_distance: OptionalCount = option(
        None,
        """Largest distance with a parameter of its own, for relative positions, T5's and
        disentangled ones; farther ones share it. `None`: 16, 128 and 512.""",
    )
    relative_buckets: OptionalCount = option(
        None,
        """Number of biases per head in T5's positions, or of vectors in disentangled ones, each for
        a range of distances. `None`: 32 and 512.""",
    )
    share_positions: OptionalFlag = option(
        None,
        """Shares the table of T5's or of disentangled positions among all blocks of a stack, as in
        T5 and DeBERTa; the first block holds it. `None`: each block has its own table.""",
    )
    window: OptionalCount = option(
        None,
        """Largest distance between a query and a key, before or after it, in local self-attention.
        `None`: self-attention is global in all blocks.""",
    )
    global_every: OptionalCount = option(
        None,
        """Interval of the blocks whose self-attention is global in spite of `window`, beginning
        with the first block: 3 for every third block, as in ModernBERT. `None`: self-attention is
        local in all blocks.""",
    )
    local_rotary_base: OptionalNumber = option(
        None, "`rotary_base` of blocks with local self-attention. `None`: `rotary_base`."
    )
    attends_to_start: OptionalFlag = option(
        None,
        """Lets all positions of causal self-attention attend to the first one. False for a language
        model like Qwen, which was trained without a token at the beginning of a text: only that
        token itself attends to it. `None`: true.""",
    )
    first_norm: OptionalFlag = option(
        None,
        """Normalises the input of the first block's self-attention, with `norm="pre"`; false in
        ModernBERT, where `embedding_norm` does that already. `None`: true.""",
    )
    autoregression: Autoregression = option(
        "self_attention",
        """Sublayer of the decoder that reads earlier positions of an output: `"self_attention"` as
        in the paper, or `"ssru"`, a recurrence with a state of fixed size (Kim et al., 2019). With
        SSRUs, `position` must be one that is added to the embedding, or `"none"`.""",
    )
    block: BlockConfig = BlockConfig()

    has_blocks = True  # unlike `RecurrentConfig`

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.block, BlockConfig):
            raise TypeError(f"`block` must be a `BlockConfig`. Received: block={self.block!r}.")
        check_stack(self)

    @classmethod
    def from_flat(cls, **options: Any) -> "StackConfig":
        """Returns the configuration with these options of the stack and its blocks.

        Args:
            **options: Options of `StackConfig` and `BlockConfig`, by name.
        """
        stack_options = {key: value for key, value in options.items() if key in OPTIONS_OF_STACK}
        block_options = {key: value for key, value in options.items() if key not in stack_options}
        return cls(**stack_options, block=BlockConfig(**block_options))

    def options(self) -> dict[str, dataclasses.Field]:  # noqa: D102
        return {**OPTIONS_OF_STACK, **OPTIONS_OF_BLOCK}

    def to_flat(self) -> dict[str, Any]:  # noqa: D102
        fields = dataclasses.asdict(self)
        return {**fields.pop("block"), **fields}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "StackConfig":  # noqa: D102
        block = BlockConfig.from_dict(fields.get("block", {}))
        return super().from_dict({**fields, "block": block})

    def is_local(self, number: int) -> bool:
        """Returns `True` if the self-attention of block `number`, counted from 0, has a window."""
        is_global = self.global_every is not None and number % self.global_every == 0
        return self.window is not None and not is_global

    def of_block(self, number: int) -> "StackConfig":
        """Returns the configuration for the self-attention of block `number`, counted from 0.

        In it `window` and `rotary_base` are those of this block.
        """
        base = self.rotary_base
        if self.is_local(number):
            base = self.local_rotary_base or base
        window = self.window if self.is_local(number) else None
        return dataclasses.replace(
            self, rotary_base=base, window=window, global_every=None, local_rotary_base=None
        )

    @property
    def position_in_attention(self) -> str:
        """Name of the position encoding that self-attention is given; it may do nothing there."""
        return self.position if self.attention_position == "none" else self.attention_position

    @property
    def hides_start(self) -> bool:
        """`True` if no other position attends to the first one."""
        return self.attends_to_start is False

    @property
    def is_recurrent(self) -> bool:
        """`True` if blocks have SSRUs instead of self-attention."""
        return self.autoregression == "ssru"

    @property
    def has_final_norm(self) -> bool:
        """`True` if the stack ends with a normalisation."""
        return self.block.is_pre_norm if self.final_norm is None else self.final_norm

    @property
    def embedding_dropout(self) -> float:
        """Dropout rate of the embedding; 0 with `embedding_norm`, which dropout follows instead."""
        return 0.0 if self.embedding_norm else self.block.dropout


OPTIONS_OF_STACK = options_of(StackConfig)
OPTIONS_OF_BLOCK = options_of(BlockConfig)


def check_stack(stack) -> None:
    """Checks the options of a `StackConfig`.

    Raises:
        ValueError: If options contradict each other or have no effect.
    """
    block = stack.block
    check_position(stack)
    if stack.is_recurrent:
        check_recurrent(stack)
    _check_local(stack)
    if stack.hides_start and stack.position not in RELATIVE:
        raise ValueError(
            "`attends_to_start` must be true unless `position` depends on distances alone, as in "
            f"{', '.join(RELATIVE)}. Received: position={stack.position!r}."
        )
    if stack.first_norm is not None and not block.is_pre_norm:
        raise ValueError(
            '`first_norm` has an effect only with `norm="pre"`. '
            f"Received: first_norm={stack.first_norm}, norm={block.norm!r}."
        )
    if stack.position != "sinusoidal" and (
        stack.sinusoid_layout != "interleaved" or stack.sinusoid_endpoint or stack.position_offset
    ):
        raise ValueError(
            "`sinusoid_layout`, `sinusoid_endpoint` and `position_offset` have an effect only on "
            f"sinusoidal positions. Received: position={stack.position!r}."
        )
    if stack.d_model is not None:
        _check_width(stack)


def _check_local(stack):
    """Raises `ValueError` for options of local self-attention if it is global in all blocks."""
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
    """Raises `ValueError` if the width does not fit the positions or the heads."""
    block = stack.block
    d_k, _ = head_sizes(stack.d_model, block.num_heads, block.d_k, block.d_v)
    if stack.position == "sinusoidal" and stack.d_model % 2:
        raise ValueError(
            "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
            f"and cosine. Received: d_model={stack.d_model}."
        )
    if stack.position_in_attention == "rotary" and d_k % 2:
        raise ValueError(
            "`d_k` must be even for rotary positions, which rotate pairs of features. "
            f"Received: d_k={d_k}."
        )
    if stack.position == "binary":
        check_digits(stack.max_length, stack.d_model)
