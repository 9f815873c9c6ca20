"""The task of all training peers: one model, one batch, and the cost of a step."""

import dataclasses
import functools

PAD_ID, BOS_ID, EOS_ID = 0, 2, 3


@dataclasses.dataclass(frozen=True)
class Task:
    """Training of an encoder-decoder Transformer, post-norm, with one table for both embeddings.

    The table also serves as output weights.

    Every peer applies dropout to embeddings, attention weights and the output of each sublayer, has
    biases in its attention layers, masks the padding of the source and the future of the target,
    and averages the label-smoothed cross-entropy over the labels that are not padding. Padding
    after a target needs no mask.

    Args:
        size: Name of the size.
        vocab_size, d_model, num_layers, num_heads, d_ff: As in the paper; `num_layers` blocks each
            in encoder and decoder.
        rows: Number of sentences in a batch.
        length: Length in tokens to which every source and target is padded.
        dropout: Dropout rate.
        label_smoothing: Rate of label smoothing.
        learning_rate: Constant learning rate of Adam.
        jit_compile: Whether Keras models are compiled with XLA.
        closed_form_loss: Whether the Keras peers smooth labels in closed form instead of with
            Keras's one-hot targets.
    """

    size: str
    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    rows: int = 64
    length: int = 32
    dropout: float = 0.1
    label_smoothing: float = 0.1
    learning_rate: float = 3e-4
    jit_compile: bool = False
    closed_form_loss: bool = False

    @property
    def places(self):
        """Number of target positions in a batch, padding included.

        Every peer computes the hidden states of all positions; ours does not compute the logits of
        padding.
        """
        return self.rows * self.length

    @functools.cached_property
    def real_share(self):
        """Fraction of the target positions that are not padding."""
        return float((self.batch()[2] != PAD_ID).mean())

    def training_flops(self, logits_share=1.0):
        """Returns the operations in the matrix products of a training step, per target position.

        A multiplication and an addition count as two floating-point operations. The forward pass
        has the following numbers of multiplications per position:

            encoder block    4 D^2           projections of the self-attention
                           + 2 S D           its scores and weighted values
                           + 2 D F           feed-forward
            decoder block    4 D^2 + 2 T D   self-attention
                           + 4 D^2 + 2 S D   cross-attention
                           + 2 D F           feed-forward
            logits           D V             where they are computed

        Here S = T = `length`, so there is one source position for every target position. For each
        product of the forward pass, the backward pass has two, for weights and for inputs, so a
        step costs three times the forward pass. Look-ups, softmax, layer normalisation and the
        optimizer are not counted.

        Args:
            logits_share: Fraction of the positions whose logits are computed: 1, or `real_share`
                if the logits of padding, which no loss needs, are not.
        """
        d_model, length = self.d_model, self.length
        attention = 4 * d_model**2 + 2 * length * d_model
        feed_forward = 2 * d_model * self.d_ff
        block_pair = 3 * attention + 2 * feed_forward
        logits = logits_share * d_model * self.vocab_size
        forward = self.num_layers * block_pair + logits
        return 3 * 2 * forward

    def batch(self):
        """Returns `source`, `target` and `labels`, each int32 `[rows, length]`, always the same.

        Every sentence fills at least three quarters of its row. `target` is `labels` shifted to the
        right, beginning with `BOS_ID`.
        """
        import numpy as np  # here, so that a process that only starts workers does not load it

        random = np.random.default_rng(1)

        def sentences():
            ids = random.integers(4, self.vocab_size, (self.rows, self.length), "int32")
            lengths = random.integers(self.length - self.length // 4, self.length + 1, self.rows)
            place = np.arange(self.length)
            ids[place[None, :] >= lengths[:, None]] = PAD_ID
            ids[np.arange(self.rows), lengths - 1] = EOS_ID
            return ids

        source, labels = sentences(), sentences()
        words = np.where(labels == EOS_ID, PAD_ID, labels)
        target = np.concatenate([np.full((self.rows, 1), BOS_ID, "int32"), words[:, :-1]], axis=1)
        return source, target, labels


SIZES = {
    "tiny": Task("tiny", vocab_size=10_000, d_model=128, num_layers=4, num_heads=4, d_ff=256),
    "base": Task(
        "base",
        vocab_size=32_000,
        d_model=512,
        num_layers=6,
        num_heads=8,
        d_ff=2048,
        learning_rate=1e-4,  # low, because post-norm without warm-up must learn from the start
    ),
    # For the tests: as small as possible for a model that still learns.
    "smoke": Task(
        "smoke",
        vocab_size=1000,
        d_model=16,
        num_layers=1,
        num_heads=2,
        d_ff=32,
        rows=4,
        length=8,
        learning_rate=3e-3,
    ),
}
