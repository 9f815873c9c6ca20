"""A decoder on top of the encoder's output, as in ByteNet."""

from __future__ import annotations

from keras_transformer.mixers.memory import MemoryReader
from keras_transformer.scores import AttentionScore, ScaledDotProduct
from keras_transformer.variants import declared


@declared
class SamePosition(MemoryReader):
    """Reads the output of the encoder at the same position instead of attending to all of it.

    A `PositionReader` computes it. After the end of the source a position reads zeros; the decoder
    continues as long as it likes (dynamic unfolding). The time of a translation is linear in its
    length.

    Differs from the paper: every block reads the encoder's output, not only the first one, and the
        encoder does not continue after the end of the source.

    Attributes:
        num_heads: 0, as there is no attention.
        groups, score, query_key_norm: Those of attention without options.

    Reference: Kalchbrenner et al. (2016), "Neural Machine Translation in Linear Time", sections 3.1
        and 3.2.
    """

    kind = "same_position"
    attends = False
    num_heads = 0
    groups = 1
    score: AttentionScore = ScaledDotProduct()
    query_key_norm = None

    def head_sizes(self, d_model: int) -> tuple[int, int]:
        """Returns the widths of keys and of values that a search keeps: 0 and `d_model`."""
        return 0, d_model
