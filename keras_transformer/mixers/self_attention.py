"""Self-attention as a mixer."""

import dataclasses

from keras_transformer.arguments import option
from keras_transformer.mixers.attention import AttentionHeads
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.variants import declared


@declared
class SelfAttention(AttentionHeads, Mixer):
    """The self-attention of the paper, which a `MultiHeadSelfAttention` computes.

    Args:
        **options: See `help(SelfAttention)`.

    Reference: Vaswani et al. (2017), section 3.2.3, second and third item.
    """

    kind = "self_attention"
    about = (
        "self-attention as in the paper or, with a `window`, the restricted self-attention of the "
        "paper's Table 1 (local attention in Beltagy et al., 2020)"
    )
    attends = True

    window: AttentionWindow | None = option(
        None,
        """Largest distance between a query and a key, before or after it, in local self-attention
        (Beltagy et al., 2020); or a table with a `kind` and its options, such as
        `{ kind = "alternating", size = 64, global_every = 3 }`, with which every third block is
        global. `None`: self-attention is global in all blocks.""",
        of=AttentionWindow,
    )

    def at(self, number: int) -> "SelfAttention":  # noqa: D102
        window = None if self.window is None else self.window.at(number)
        return self if window is self.window else dataclasses.replace(self, window=window)
