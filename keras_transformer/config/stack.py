"""`StackConfig`, the configuration of a stack of blocks: an encoder or a decoder."""

import dataclasses
from typing import Any

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.checks import Count, OptionalCount, OptionalFlag
from keras_transformer.config.block import BlockConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.mixers import (
    AttentionHeads,
    AttentionWindow,
    Mixer,
    SelfAttention,
    short_options,
)
from keras_transformer.positions import Position
from keras_transformer.positions.position import acting


def check_positions(stack: Any) -> None:
    """Checks the positions of a `StackConfig`.

    Raises:
        ValueError: If a position has no effect, or does not fit the stack.
    """
    if stack.attention_position.embeds and not stack.attention_position.attends:
        raise ValueError(
            "`attention_position` must act in self-attention, but "
            f"{stack.attention_position!r} is added to embeddings: write `position`. "
            f"Received: attention_position={stack.attention_position!r}."
        )
    if stack.attention_position.attends and stack.position.attends:
        raise ValueError(
            "`attention_position` must be 'none' unless `position` is added to the embedding: other"
            f" positions act in self-attention themselves. Received: attention_position="
            f"{stack.attention_position!r}, position={stack.position!r}."
        )
    if stack.has_state:
        _check_state(stack)
    for position in {stack.position, stack.acting_position, stack.local_position} - {None}:
        position.check_stack(stack)
    has_position = stack.position.embeds or stack.position.attends
    if stack.hides_start and has_position and not stack.position.is_relative:
        raise ValueError(
            "`attends_to_start` must be true unless `position` depends on distances alone. "
            f"Received: position={stack.position!r}."
        )


def _check_state(stack):
    """Raises `ValueError` for options of self-attention of a stack with another mixer."""
    if stack.acting_position.attends:
        name = "attention_position" if stack.attention_position.attends else "position"
        raise ValueError(
            f"`{name}` must be added to the embedding, or 'none', with {stack.mixer!r}: other "
            f"positions act in self-attention. Received: {name}={stack.acting_position!r}."
        )
    if stack.hides_start:
        raise ValueError(
            f"`attends_to_start` must be true with {stack.mixer!r}, which is no self-attention. "
            "Received: attends_to_start=False."
        )


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
        >>> config.num_layers, config.block.mixer.num_heads, config.has_final_norm
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
    position: Position = option(
        "sinusoidal",
        """Position encoding: `"sinusoidal"` (section 3.5), `"learned"` (Table 3, row E),
        `"binary"` (digits of 1 and -1), `"rotary"` (Su et al., 2021), `"relative"` (Shaw et al.,
        2018), `"alibi"` (Press et al., 2022), `"t5"` (Raffel et al., 2020), `"disentangled"` (He et
        al., 2021; bidirectional self-attention only) or `"none"`; or a table with such a `kind` and
        its options, such as `{ kind = "rotary", base = 500000.0 }`. The first three are added to
        the embedding; the next five act in self-attention. With ALiBi, an encoder-decoder cannot
        distinguish a source from its reverse. In Python also a `Position`, which may be one of your
        own.""",
        of=Position,
    )
    attention_position: Position = option(
        "none",
        """Position encoding that acts in self-attention in addition to a `position` that is added
        to the embedding: `"t5"` in MPNet (Song et al., 2020). `"none"`: there is only
        `position`.""",
        of=Position,
    )
    attends_to_start: OptionalFlag = option(
        None,
        """Lets all positions of causal self-attention attend to the first position. False for a
        language model such as Qwen, which was trained without a start token: then no later position
        attends to the first. `None`: true.""",
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
        return cls().with_options(**options)

    def with_options(self, **options: Any) -> "StackConfig":  # noqa: D102
        own = {key: options.pop(key) for key in OPTIONS_OF_STACK if key in options}
        return dataclasses.replace(self, block=self.block.with_options(**options), **own)

    def options(self) -> dict[str, dataclasses.Field]:  # noqa: D102
        attention = short_options(type(self.block.attention))
        options = {**OPTIONS_OF_STACK, **OPTIONS_OF_BLOCK, **attention}
        return {name: options[name] for name in options if name not in self.block.without_effect}

    def to_flat(self) -> dict[str, Any]:  # noqa: D102
        options = super().to_flat()
        return {**options.pop("block").to_flat(), **options}

    def to_dict(self) -> dict[str, Any]:  # noqa: D102
        return {**super().to_dict(), "block": self.block.to_dict()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "StackConfig":  # noqa: D102
        block = BlockConfig.from_dict(fields.get("block", {}))
        return super().from_dict({**fields, "block": block})

    def is_local(self, number: int) -> bool:
        """Returns `True` if the self-attention of block `number`, counted from 0, has a window."""
        return self.window is not None and self.window.at(number) is not None

    def of_block(self, number: int) -> "StackConfig":
        """Returns the configuration of block `number`, counted from 0, as if it stood alone.

        It has the mixer, the window, the position and the place of norms of this block.
        """
        own = {"mixer": self.mixer.at(number), "norm": self.block.norm.at(number)}
        changes: dict[str, Any] = {"block": dataclasses.replace(self.block, **own)}
        if self.is_local(number) and self.local_position is not None:
            acts = "attention_position" if self.attention_position.attends else "position"
            changes[acts] = self.local_position
        return dataclasses.replace(self, **changes)

    def position_of(self, number: int) -> Position:
        """Returns the `Position` of the self-attention of block `number`, counted from 0."""
        local = self.local_position if self.is_local(number) else None
        position = self.acting_position if local is None else local
        return acting(position, "attends").within(self.max_length)

    @property
    def embedded_position(self) -> Position:
        """`Position` of the embedding before the stack."""
        return acting(self.position, "embeds").within(self.max_length)

    @property
    def acting_position(self) -> Position:
        """`Position` that self-attention is given; it may do nothing there."""
        return self.attention_position if self.attention_position.attends else self.position

    @property
    def head_sizes(self) -> tuple[int, int]:
        """Widths of query and key heads, and of value heads."""
        return self.block.attention.head_sizes(self.d_model)

    @property
    def mixer(self) -> Mixer:
        """The mixer of each block, which reads the other positions."""
        return self.block.mixer

    @property
    def window(self) -> AttentionWindow | None:
        """Window of local self-attention; `None` without."""
        return self.mixer.window if isinstance(self.mixer, SelfAttention) else None

    @property
    def local_position(self) -> Position | None:
        """`Position` of blocks with a window; `None`: that of the others."""
        return None if self.window is None else self.window.position

    @property
    def dropout(self) -> float:
        """Dropout rate of the output of each sublayer."""
        return self.block.dropout

    @property
    def hides_start(self) -> bool:
        """`True` if no other position attends to the first one."""
        return self.attends_to_start is False

    @property
    def has_state(self) -> bool:
        """`True` if blocks have a state of fixed size instead of self-attention."""
        return not self.mixer.attends

    @property
    def has_final_norm(self) -> bool:
        """`True` if the stack ends with a normalisation."""
        return self.block.norm.is_before if self.final_norm is None else self.final_norm

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
    if stack.d_model is not None:
        for attention in (stack.block.mixer, stack.block.cross_attention):
            if isinstance(attention, AttentionHeads):
                attention.head_sizes(stack.d_model)  # raises if the heads do not divide the width
    check_positions(stack)
    width = stack.d_model and stack.mixer.output_width(stack.d_model)
    if width != stack.d_model:
        raise ValueError(
            "`mixer` must have outputs as wide as its inputs in a block, which adds them up. "
            f"Received: mixer={stack.mixer!r}, d_model={stack.d_model}."
        )
    if stack.block.normalization.is_identity:
        for name in ("final_norm", "embedding_norm"):
            if getattr(stack, name):
                raise ValueError(
                    f"`{name}` has no effect with normalization={stack.block.normalization!r}. "
                    f"Received: {name}=True."
                )


# The encoder of most models, and the decoder that reads its output.
ENCODER = Part(StackConfig(), kind="mixer", leave_out=("cross_attention", "attends_to_start"))
DECODER = Part(StackConfig(), kind="mixer", leave_out=("attends_to_start",))
