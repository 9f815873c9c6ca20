"""Endings of hypotheses in a beam: which ones may be returned, without terms and with them."""

import dataclasses
from collections.abc import Callable

from keras_transformer.decoding.banks import Banks
from keras_transformer.decoding.hypotheses import (
    NONE,
    BeamState,
    Continuations,
    Rows,
    among_the_best,
    exists,
    in_order,
)
from keras_transformer.decoding.phrases import Terms
from keras_transformer.decoding.predictor import pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Endings:
    """Endings in a beam without terms: every hypothesis may be returned."""

    def banks(self, state: BeamState, used) -> Banks | None:
        """Returns the `Banks` that choose the continuations; `None`: they are chosen by score.

        Args:
            state: The state before the step.
            used: Size of the beam: a number, or an integer tensor `[B, 1]`.
        """
        del state, used

    def ends(self, best: Continuations, state: BeamState, used) -> Tensor:
        """Returns the scores `[B, N]` of the hypotheses that end here, `NONE` for the others.

        Args:
            best: The `Continuations`.
            state: The state before them.
            used: See `banks`.
        """
        del state
        return among_the_best(best.ends, best.scores, used)

    def in_order(self, best: Continuations) -> Continuations:
        """Returns the continuations with the best first."""
        return best

    def returnable(self, which: Tensor, state: BeamState) -> Tensor:
        """Returns which of the running hypotheses in the mask may be returned as they are.

        Args:
            which: Boolean `[B, 1]`.
            state: The `BeamState`.
        """
        del state
        return which

    def cut(self, scores: Tensor, state: BeamState) -> tuple[Rows, Tensor]:
        """Returns the running hypotheses to return at the maximum length, the best first.

        Args:
            scores: Their normalised scores, `[B, N]`.
            state: The last `BeamState`.
        """
        return state.rows, scores


@dataclasses.dataclass(frozen=True)
class EndingsWithTerms(Endings):
    """Endings in a beam with terms: only hypotheses that contain them may be returned.

    Args:
        terms: The `Terms`.
        begun: Function from a position to whether it comes after the prompt; see `Rules.begun`.
    """

    terms: Terms
    begun: Callable[[Tensor], Tensor]

    def banks(self, state, used):  # noqa: D102
        begun, size = self.begun(state.index), state.scores.shape[1]
        return Banks(self.terms, state.runs.terms, begun, size, used)

    def ends(self, best, state, used):  # noqa: D102
        ends = among_the_best(best.ends, best.rivals, best.places)
        return tf.where(self._presentable(ends, state), ends, NONE)

    def in_order(self, best):  # noqa: D102
        return in_order(best)

    def returnable(self, which, state):  # noqa: D102
        return which & self._presentable(state.scores, state)  # [B, N]

    def cut(self, scores, state):  # noqa: D102
        scores = tf.where(self._presentable(scores, state), scores, NONE)
        scores, order = tf.math.top_k(scores, scores.shape[1])
        return pick(state.rows, order), scores

    def _presentable(self, scores, state):
        """Returns which hypotheses `[B, N]` may be returned if they end here.

        These are the ones that contain all terms. If none does, nor any that has finished, they are
        the ones with the largest part of them.
        """
        progress = self.terms.progress(state.runs.terms)  # [B, N]
        satisfied = self.terms.satisfied(state.runs.terms)
        most = tf.reduce_max(tf.where(exists(scores), progress, -1), axis=1, keepdims=True)
        good = exists(state.ended_scores[:, :1])  # [B, 1]
        good |= tf.reduce_any(satisfied & exists(scores), axis=1, keepdims=True)
        return tf.where(good, satisfied, tf.equal(progress, most))
