"""Self-attention as a mixer."""

from keras_transformer.arguments import option
from keras_transformer.checks import OptionalCount
from keras_transformer.mixers.attention import AttentionHeads
from keras_transformer.mixers.mixer import Mixer
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
        "self-attention as in the paper, or with a `window` the restricted self-attention of its "
        "Table 1 (local in Beltagy et al., 2020)"
    )
    attends = True

    window: OptionalCount = option(
        None,
        """Largest distance between a query and a key, before or after it, in local self-attention
        (Beltagy et al., 2020). `None`: self-attention is global in all blocks.""",
    )
