"""Windows of local self-attention as values."""

import dataclasses

from keras_transformer.arguments import option
from keras_transformer.checks import AtLeastTwo, Count
from keras_transformer.positions import Position, for_attention
from keras_transformer.variants import Variant, declared


class AttentionWindow(Variant):
    """Base class of the windows of local self-attention (Beltagy et al., 2020).

    A number alone stands for a `LocalWindow` of this size.
    """

    option = "window"
    default_kind = "local"
    number_for = "size"

    @property
    def position(self) -> Position | None:
        """`Position` of blocks with the window, instead of that of the stack; `None`: the same."""
        return None

    def at(self, number: int) -> "LocalWindow | None":
        """Returns the window of one block of a stack; `None` if its self-attention is global.

        Args:
            number: Index of the block, counted from 0.
        """
        raise NotImplementedError


@declared
class LocalWindow(AttentionWindow):
    """A window in every block.

    Args:
        **options: See `help(LocalWindow)`.

    Example:
        >>> from keras_transformer.layers import EncoderBlock, LocalWindow
        >>> EncoderBlock(num_heads=8, d_ff=2048, window=64).config.window == LocalWindow(size=64)
        True
    """

    kind = "local"

    size: Count = option(
        dataclasses.MISSING, "Largest distance between a query and a key, before or after it."
    )

    def at(self, number: int) -> "LocalWindow":  # noqa: D102
        return self


@declared
class AlternatingWindow(AttentionWindow):
    """A window in all blocks except every n-th, whose self-attention is global, as in ModernBERT.

    Args:
        **options: See `help(AlternatingWindow)`.
    """

    kind = "alternating"

    size: Count = option(
        dataclasses.MISSING, "Largest distance between a query and a key, before or after it."
    )
    global_every: AtLeastTwo = option(
        dataclasses.MISSING,
        "Interval of the blocks with global self-attention, beginning with the first block.",
    )
    position: Position | None = option(
        None,
        """Position encoding of the blocks with local self-attention. `None`: that of the other
        blocks.""",
        of=Position,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position is not None:
            for_attention(self.position)

    def at(self, number: int) -> LocalWindow | None:  # noqa: D102
        return LocalWindow(self.size) if number % self.global_every else None


def of_one_layer(window: AttentionWindow) -> LocalWindow:
    """Returns the window of a layer that does not belong to a stack.

    Raises:
        ValueError: If the window differs from block to block.
    """
    if isinstance(window, LocalWindow):
        return window
    raise ValueError(
        "`window` of a single layer must be a number or a `LocalWindow`: only an `Encoder` or a "
        f"`Decoder` has several blocks. Received: window={window!r}."
    )
