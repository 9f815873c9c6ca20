"""`Repetition`, a penalty of the tokens that an output already contains."""

import dataclasses
from typing import Any

from keras_transformer.decoding.predictor import NEVER, Vocabulary
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import is_tensor
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Repetition:
    """Penalty of the tokens that an output already contains.

    Its prompt counts, and the token that begins it: all inputs of the decoder so far. The penalty
    comes before all other rules for outputs.

    Args:
        penalty: Number above 0, or tensor, scalar or `[B]`.
        vocabulary: The `Vocabulary` of the predictor.

    Reference: Keskar et al. (2019), "CTRL: A Conditional Transformer Language Model for
        Controllable Generation", section 4.1.

    Differs from the paper: negative logits are multiplied by the penalty instead of divided, which
        would make them more likely; as in `transformers`.
    """

    penalty: Any
    vocabulary: Vocabulary

    @classmethod
    def of(cls, search: Any, vocabulary: Vocabulary) -> "Repetition | None":
        """Returns the `Repetition` of a search; `None` if it penalises nothing."""
        penalty = search.repetition_penalty
        return None if not is_tensor(penalty) and penalty == 1 else cls(penalty, vocabulary)

    def of_logits(self, logits: Tensor, seen: Tensor) -> Tensor:
        """Returns logits `[B, N, V]` with the penalty, as in greedy search and in sampling.

        Args:
            logits: `[B, N, V]`.
            seen: Result of `seen`.
        """
        penalty = self._penalty(logits)
        penalised = tf.where(logits > 0, logits / penalty, logits * penalty)
        return self._where(seen, penalised, logits)

    def of_log_probabilities(self, logits: Tensor, seen: Tensor, total: Tensor) -> Tensor:
        """Returns logits `[B, N, V]` whose log-probabilities have the penalty, as in a beam.

        Args:
            logits, seen: See `of_logits`.
            total: Logarithm of the sum of the exponentials of the logits, `[B, N, 1]`.
        """
        penalised = (logits - total) * self._penalty(logits) + total
        return self._where(seen, penalised, logits)

    def seen(self, tokens: Tensor, which: Tensor) -> Tensor:
        """Returns which tokens of the vocabulary the decoder has read, boolean `[B, N, V]`.

        Args:
            tokens: Tokens of the outputs `[B, N, L]`.
            which: Those that count, boolean, a shape that fits: all before the position.
        """
        size, first = self.vocabulary.size, self.vocabulary.bos_id
        seen = marked(tokens, tf.broadcast_to(which, tf.shape(tokens)), size)
        if self.vocabulary.rules.starts_with_language:  # the decoder has read it instead
            return seen
        return tf.logical_or(seen, tf.equal(tf.range(size), first))

    def _penalty(self, logits):
        return tf.reshape(tf.cast(self.penalty, logits.dtype), [-1, 1, 1])  # [B or 1, 1, 1]

    @staticmethod
    def _where(seen, penalised, logits):
        # A forbidden token stays forbidden, however small the penalty is.
        return tf.where(tf.logical_and(seen, logits > NEVER / 2), penalised, logits)


def marked(tokens: Tensor, which: Tensor, vocab_size: int) -> Tensor:
    """Returns the mask `[B, N, V]` of those of the tokens `[B, N, L]` that `which` marks."""
    width = tokens.shape[1] or tf.shape(tokens)[1]
    rows = tf.shape(tokens)[0] * width  # B * N
    first = tf.reshape(tf.range(rows) * vocab_size, [-1, width, 1])  # [B, N, 1]
    counts = tf.scatter_nd(
        tf.reshape(first + tokens, [-1, 1]),
        tf.reshape(tf.cast(which, tf.int32), [-1]),
        [rows * vocab_size],
    )  # [B * N * V]
    return tf.reshape(counts, [-1, width, vocab_size]) > 0
