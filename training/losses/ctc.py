"""Connectionist temporal classification (CTC), a loss over all alignments of frames and labels."""

import dataclasses

import tensorflow as tf

from keras_transformer.tensors import Tensor

NEVER = -1e30  # log-probability of what cannot happen; finite, so that no difference is NaN


@dataclasses.dataclass(frozen=True)
class CTC:
    """CTC of the encoder's states, as a part of the loss of an encoder-decoder.

    The loss of a batch is `(1 - weight)` times the cross-entropy of the decoder plus `weight` times
    the CTC of the encoder. CTC only allows alignments in which the labels follow one another in
    time: the encoder learns from it where each label is, which attention alone learns slowly.

    The logits of the encoder's states are computed with the output weights of the decoder. The
    label of padding, which no text contains, is the blank. The model therefore has no weights of
    its own for CTC.

    Args:
        weight: Weight of CTC, above 0 and below 1; 0.3 in Karita et al. (2019).
        blank_id: Label of the blank and of padding.
        end_id: Label of the end of a text, which has no place in time: CTC leaves it out.

    Reference: Kim, Hori & Watanabe (2017), "Joint CTC-Attention based End-to-End Speech Recognition
        using Multi-task Learning", section 3.1; Karita et al. (2019), "A Comparative Study on
        Transformer vs RNN in Speech Applications". Not in Vaswani et al. (2017).
    """

    weight: float
    blank_id: int = 0
    end_id: int = -1

    def joined(self, cross_entropy, logits, padding_mask, labels, weights) -> Tensor:
        """Adds CTC to the cross-entropy of a batch.

        Args:
            cross_entropy: Sum of the cross-entropies of the labels, a float32 scalar.
            logits: Logits of the encoder's positions, float32 `[B, S, V]`.
            padding_mask: Positions that are not padding, boolean `[B, S]`.
            labels: Labels, `[B, T]`.
            weights: Factor on the loss of each row, float32 `[B]`.

        Returns:
            The weighted sum of both losses, a scalar.
        """
        dropped = tf.equal(labels, self.blank_id) | tf.equal(labels, self.end_id)  # [B, T]
        # The labels of a prompt are padding as well: what is left moves to the front.
        order = tf.argsort(tf.cast(dropped, tf.int32), axis=1, stable=True)
        labels = tf.gather(tf.where(dropped, self.blank_id, labels), order, batch_dims=1)
        counts = tf.reduce_sum(tf.cast(~dropped, tf.int32), axis=1)  # [B]
        losses = ctc_loss(logits, padding_mask, labels, counts, self.blank_id)  # [B]
        return (1 - self.weight) * cross_entropy + self.weight * tf.reduce_sum(weights * losses)


def ctc_loss(logits, padding_mask, labels, counts, blank_id=0) -> Tensor:
    """Computes the negative log-probability of label sequences, over all their alignments.

    An alignment gives each position a label or the blank, which is also necessary between two equal
    labels. Alignments are paths through `2 L + 1` states: blank, first label, blank, second label
    and so on. With `a` for the log-probability of all beginnings of a path that reach a state at a
    position, and `b` for that of all ends, the gradient with respect to the logits is

        softmax(logits) - sum over states with this label of exp(a + b - log p - log P)

    where `p` is the probability of the label and `P` that of all paths. `b` is `a` of the reversed
    row, so that one loop over positions computes both.

    On a processor, `keras.ops.ctc_loss` takes seven times as long, because it compares all pairs of
    states at each position; XLA cannot compile the kernel of `tf.nn.ctc_loss` for sparse labels.

    Args:
        logits: Scores before the softmax, float32 `[B, S, V]`.
        padding_mask: Positions that are not padding, boolean `[B, S]`.
        labels: Labels, integer `[B, L]`, without blanks, padded with anything.
        counts: Number of labels of each row, integer `[B]`.
        blank_id: Label of the blank.

    Returns:
        float32 `[B]`; 0, without a gradient, for a row with too few positions for its labels.

    Reference: Graves et al. (2006), "Connectionist Temporal Classification", section 4.1.
    """
    labels, counts = tf.cast(labels, tf.int32), tf.cast(counts, tf.int32)
    states, exists, skips = _states(labels, counts, blank_id)  # [B, E] each

    @tf.custom_gradient
    def loss(logits):
        log_p = tf.nn.log_softmax(logits)  # [B, S, V]
        emitted = tf.gather(log_p, states, axis=2, batch_dims=1)  # [B, S, E]
        emitted = tf.where(exists[:, None], emitted, NEVER)
        begins, ends, likelihood = _both_ways(emitted, padding_mask, skips, counts)
        possible = likelihood > NEVER / 2  # [B]

        def gradient(upstream):
            factor = tf.where(possible, upstream, 0.0)[:, None] * tf.cast(padding_mask, tf.float32)
            occupied = tf.exp(begins + ends - emitted - likelihood[:, None, None])  # [B, S, E]
            occupied = tf.where(factor[:, :, None] == 0, 0.0, occupied)  # it is infinite there
            slopes = _subtract(tf.exp(log_p), states, occupied)  # [B, S, V]
            return factor[:, :, None] * slopes

        return tf.where(possible, -likelihood, 0.0), gradient

    return loss(tf.cast(logits, tf.float32))


def _subtract(p, states, occupied):
    """Subtracts what states occupy, `[B, S, E]`, from probabilities of labels, `[B, S, V]`.

    A row of the subtraction is a state at all positions: this is six times as fast as single
    elements.
    """
    rows = tf.broadcast_to(tf.range(tf.shape(states)[0])[:, None], tf.shape(states))  # [B, E]
    places = tf.stack([rows, states], axis=-1)  # [B, E, 2]
    by_label, by_state = (tf.transpose(x, [0, 2, 1]) for x in (p, occupied))  # [B, V, S], [B, E, S]
    return tf.transpose(tf.tensor_scatter_nd_sub(by_label, places, by_state), [0, 2, 1])


def _states(labels, counts, blank_id):
    """Returns the labels of the states, which of them exist, and the cost of skipping into them.

    Each is `[B, E]`, E = 2 L + 1. A path may skip the blank between two different labels: the cost
    is 0 there and `NEVER` elsewhere.
    """
    blanks = tf.fill(tf.shape(labels), blank_id)  # [B, L]
    pairs = tf.reshape(tf.stack([blanks, labels], axis=2), [tf.shape(labels)[0], -1])  # [B, 2 L]
    states = tf.concat([pairs, tf.fill([tf.shape(labels)[0], 1], blank_id)], axis=1)  # [B, E]
    exists = tf.range(tf.shape(states)[1]) <= 2 * counts[:, None]
    before = tf.pad(states, [[0, 0], [2, 0]], constant_values=blank_id)[:, :-2]
    different = tf.not_equal(states, before) & tf.not_equal(states, blank_id)
    return states, exists, tf.where(different, 0.0, NEVER)


def _both_ways(emitted, padding_mask, skips, counts):
    """Returns log-probabilities of the beginnings and the ends of paths, and of all paths.

    Args:
        emitted: Log-probability of each state's label, `[B, S, E]`.
        padding_mask: Positions that are not padding, `[B, S]`.
        skips: Cost of skipping into a state, `[B, E]`.
        counts: Number of labels, `[B]`.

    Returns:
        float32 `[B, S, E]` twice, and `[B]`.
    """
    size = 2 * counts + 1  # number of states
    backwards = tf.reverse_sequence(tf.reverse(emitted, [1]), size, seq_axis=2)
    # A reversed path skips into a state from the one that a path skips into it from.
    skips_back = tf.reverse_sequence(tf.roll(skips, -2, axis=1), size, seq_axis=1)
    paths = _paths(
        tf.concat([emitted, backwards], axis=0),
        tf.concat([padding_mask, tf.reverse(padding_mask, [1])], axis=0),
        tf.concat([skips, skips_back], axis=0),
    )  # [2 * B, S, E]
    begins, ends = tf.split(paths, 2)
    ends = tf.reverse(tf.reverse_sequence(ends, size, seq_axis=2), [1])
    # Paths end in the last label or in the blank after it.
    last = tf.gather(begins[:, -1], 2 * counts, batch_dims=1)  # [B]
    before = tf.gather(begins[:, -1], tf.maximum(2 * counts - 1, 0), batch_dims=1)
    before = tf.where(counts > 0, before, NEVER)
    return begins, ends, tf.reduce_logsumexp([last, before], axis=0)


def _paths(emitted, padding_mask, skips):
    """Returns the log-probability of the paths to each state at each position, `[B, S, E]`."""

    def move(paths, position):
        emitted, padding_mask = position  # [B, E], [B]
        from_one = tf.pad(paths, [[0, 0], [1, 0]], constant_values=NEVER)[:, :-1]
        from_two = tf.pad(paths, [[0, 0], [2, 0]], constant_values=NEVER)[:, :-2] + skips
        best = tf.maximum(tf.maximum(paths, from_one), from_two)
        total = sum(tf.exp(one - best) for one in (paths, from_one, from_two))
        return tf.where(padding_mask[:, None], best + tf.math.log(total) + emitted, paths)

    is_first = tf.equal(tf.range(tf.shape(skips)[1]), 0)
    start = tf.broadcast_to(tf.where(is_first, 0.0, NEVER), tf.shape(skips))  # before position 0
    positions = tf.transpose(emitted, [1, 0, 2]), tf.transpose(padding_mask)
    return tf.transpose(tf.scan(move, positions, start), [1, 0, 2])
