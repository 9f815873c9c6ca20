"""Banks of a beam: hypotheses by the number of tokens of terms that they contain."""

import dataclasses
import typing

from keras_transformer.decoding.phrases import Terms, TermState
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Banks:
    """Choice of continuations so that each bank keeps its best ones.

    Args:
        terms: The `Terms`.
        state: The `TermState` of the hypotheses before the step.
        begun: Whether the position comes after the prompt, `[]` or `[B, 1]`.
        size: Number of continuations to choose, a Python integer N.
        used: Number of them that the beam keeps: `N`, or an integer tensor `[B, 1]`.

    Reference: Post and Vilar (2018); Hu et al. (2019), "Improved Lexically Constrained Decoding for
        Translation and Monolingual Rewriting", chooses for a whole batch at once.
    """

    terms: Terms
    state: TermState
    begun: Tensor
    size: int
    used: typing.Any

    def with_terms(self, best, tokens, allowed) -> tuple[Tensor, Tensor]:
        """Returns the best logits and tokens of each hypothesis with the next tokens of terms.

        Args:
            best: Logits `[B, N, K]`, `NEVER` for those that do not exist.
            tokens: Tokens `[B, N, K]`.
            allowed: Logits of all tokens, `[B, N, V]`, `NEVER` for forbidden ones.
        """
        wanted, tries = self.terms.next_tokens(self.state)  # [B, N, P]
        logits = tf.gather(allowed, wanted, batch_dims=2)  # [B, N, P]
        exist = tf.where(best > NEVER / 2, tokens, -1)  # [B, N, K]
        known = _among(wanted, exist) | _repeated(wanted, tries)
        logits = tf.where(tries & ~known, logits, NEVER)
        return tf.concat([best, logits], 2), tf.concat([tokens, wanted], 2)

    def choose(self, scores, tokens) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the indices `[B, N]` of the chosen continuations, and what ends compete with.

        The best of each bank come first, then the second best of each, and so on; among equals, the
        bank with more tokens of terms comes first. With a single bank this is the order of scores.

        Args:
            scores: Scores of the K continuations of all hypotheses, `[B, N * K]`.
            tokens: Their tokens, `[B, N, K]`.

        Returns:
            The indices, and the fields `rivals` and `places` of `Continuations`.
        """
        after = self.terms.continued(self.state, tokens, self.begun)
        bank = tf.reshape(self.terms.progress(after), tf.shape(scores))  # [B, N * K]
        final = tf.reshape(self.terms.satisfied(after), tf.shape(scores))  # [B, N * K]
        exists = scores > NEVER / 2
        order = tf.range(tf.shape(scores)[1])
        ours, theirs = tf.expand_dims(scores, 2), tf.expand_dims(scores, 1)
        ahead = (theirs > ours) | tf.equal(theirs, ours) & (
            tf.expand_dims(order, 0) < tf.expand_dims(order, 1)
        )
        ahead &= tf.equal(tf.expand_dims(bank, 2), tf.expand_dims(bank, 1))
        ahead &= tf.expand_dims(exists, 1)
        rank = tf.reduce_sum(tf.cast(ahead, tf.int32), axis=2)  # [B, N * K], within the bank
        most = tf.reduce_max(bank, axis=1, keepdims=True) + 1
        turn = rank * most + (most - 1 - bank)  # [B, N * K], smaller ones first
        # Equal scores of continuations that do not exist keep the order of a single bank.
        late = tf.reduce_max(turn, axis=1, keepdims=True) + 1
        turn = tf.where(exists, turn, late + order)
        chosen = tf.math.top_k(-turn, self.size)[1]  # [B, N]
        kept = tf.gather(exists & ~final, chosen, batch_dims=1)  # [B, N], in other banks
        kept &= tf.range(self.size) < self.used
        others = tf.reduce_sum(tf.cast(kept, tf.int32), axis=1, keepdims=True)  # [B, 1]
        places = tf.maximum(self.used - others, 1)
        return chosen, {"rivals": tf.where(final, scores, NEVER), "places": places}


def _among(tokens, others):
    """Returns which of the tokens `[B, N, P]` are among others `[B, N, K]`."""
    return tf.reduce_any(tf.equal(tf.expand_dims(tokens, 3), tf.expand_dims(others, 2)), axis=3)


def _repeated(tokens, which):
    """Returns which of the tokens `[B, N, P]` are equal to an earlier one of those in `which`."""
    order = tf.range(tf.shape(tokens)[2])
    earlier = tf.expand_dims(order, 0) < tf.expand_dims(order, 1)  # [P, P]
    same = tf.equal(tf.expand_dims(tokens, 3), tf.expand_dims(tokens, 2))  # [B, N, P, P]
    return tf.reduce_any(same & earlier & tf.expand_dims(which, 2), axis=3)
