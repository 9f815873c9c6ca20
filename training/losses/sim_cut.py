"""SimCut: a loss on how much predictions change if the embeddings of some tokens are cut off."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import keras
import tensorflow as tf

from keras_transformer.checks import check_rate
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.consistency import Consistency


@dataclasses.dataclass(frozen=True)
class SimCut(Consistency):
    """SimCut: cross-entropy of a pass, plus its divergence from a pass with token cutoff.

    The first pass reads all tokens. In the second one, the embeddings of a random share of the
    tokens are zeros. With `p_1` and `p_2` for their predictions, the loss of a position is

        cross-entropy of p_1 + weight * KL(p_1 || p_2)

    As in the authors' code, the divergence has a gradient with respect to both passes.

    Args:
        weight: Weight of the divergence; 3 in the paper.
        rate: Share of the tokens that are cut off, at least 0 and below 1; 0.05 in the paper.
        special_ids: Ids of the tokens that are never cut off, such as those that begin and end a
            text.

    Reference: Gao, He, Wu & Wang (2022), "Bi-SimCut: A Simple Strategy for Boosting Neural Machine
        Translation", section 3. Not in Vaswani et al. (2017).
    """

    rate: float = 0.05
    special_ids: tuple[int, ...] = ()

    cross_entropies: ClassVar[int] = 1

    def added(self, loss, by_z, p, log_p) -> tuple[Tensor, Tensor]:
        """Adds `weight` times the `divergence` to the first pass; the second has no other loss."""
        apart, first_by_z, second_by_z = divergence(p, log_p)
        loss, by_z = (tf.split(values, 2)[0] for values in (loss, by_z))
        loss = tf.concat([loss + self.weight * apart, tf.zeros_like(apart)], axis=0)
        by_z = [by_z + self.weight * first_by_z, self.weight * second_by_z]
        return loss, tf.concat(by_z, axis=0)

    def counted(self, weights) -> Tensor:
        """Returns the weights of the cross-entropies: 0 for the second pass."""
        first = tf.split(weights, 2)[0]
        return tf.concat([first, tf.zeros_like(first)], axis=0)

    def make_cutoff(self) -> "TokenCutoff":
        """Returns a new `TokenCutoff`."""
        return TokenCutoff(self.rate, self.special_ids)


def divergence(p, log_p) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the KL divergence of the predictions of a second pass from those of the first.

    `KL(p_1 || p_2)` is `E[d]` with `d = log p_1 - log p_2` and E under `p_1`. Its gradients are
    `p_1 * (d - E[d])` with respect to the logits of `p_1`, and `p_2 - p_1` with respect to those of
    `p_2`.

    Args:
        p: Probabilities, float32 `[2 * R, V]`: rows r and R + r are the same position.
        log_p: Logarithms of `p`.

    Returns:
        The divergence of each position, `[R]`, and its gradients with respect to the logits of the
        first and of the second pass, `[R, V]` each.
    """
    (first, second), (log_first, log_second) = tf.split(p, 2), tf.split(log_p, 2)  # [R, V]
    apart = log_first - log_second
    expected = tf.reduce_sum(first * apart, axis=-1)  # [R]
    return expected, first * (apart - expected[:, None]), second - first


class TokenCutoff(keras.layers.Layer):
    """Chooses the tokens whose embeddings the second pass of a batch lacks.

    The choice is random in every call. The state of the random numbers is a variable of the layer,
    so that every checkpoint contains it.

    Args:
        rate: Probability that a token is cut off, at least 0 and below 1.
        special_ids: Ids of the tokens that are never cut off.
        seed: Random seed. `None`: a random one, which `keras.utils.set_random_seed` determines.
        name: Name of the layer.

    Call arguments:
        tokens: Token ids `[2 * B, S]`, integer; the second half of the rows is the second pass.

    Returns:
        Boolean `[2 * B, S]`: which embeddings are kept.

    Raises:
        ValueError: If `rate` is out of range.
    """

    def __init__(
        self,
        rate: float,
        special_ids: Sequence[int] = (),
        seed: int | None = None,
        name: str = "token_cutoff",
    ):
        check_rate("rate", rate)
        super().__init__(name=name)
        self.rate, self.special_ids = rate, tuple(special_ids)
        self.seed_generator = keras.random.SeedGenerator(seed, name=name)

    def call(self, tokens) -> Tensor:  # noqa: D102
        shape = tf.shape(tokens)
        drawn = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
        kept = drawn >= self.rate  # [2 * B, S]
        for special in self.special_ids:
            kept |= tf.equal(tokens, special)
        first_pass = tf.range(shape[0]) < shape[0] // 2  # [2 * B]
        return kept | first_pass[:, None]
