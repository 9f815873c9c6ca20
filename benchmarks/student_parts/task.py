"""The task of all engines: an SSRU student with random weights, sentences and a shortlist."""

import dataclasses
import functools
import math

from decoding_task import BOS_ID, EOS_ID, PAD_ID, UNK_ID

SOURCE_LENGTH = 24  # tokens, the end included
FIRST, BEST = 50, 50  # of the shortlist, the defaults of `keras-transformer shortlist`
NEVER = -1e4  # added to the logits of special tokens
# Distribution of tokens in sentences and lists: probability ~ 1 / (rank + 2.7)**EXPONENT. Zipf's
# law has 1; with 1.37 and 4,000 tokens, sentences of Multi30K's lengths have as many candidates as
# the real ones.
EXPONENT = 1.2
DRAWS = 200  # per list


@dataclasses.dataclass(frozen=True)
class Student:
    """An SSRU student: an encoder with self-attention, a decoder with SSRUs, tied weights.

    Args:
        size: Name of the size.
        vocab_size, d_model, num_layers, num_decoder_layers, num_heads, d_ff: Sizes of the model.
        length: Number of tokens of every output, which is the maximum length of the model.
        seed: Seed of weights, sentences and lists.
    """

    size: str
    vocab_size: int
    d_model: int
    num_layers: int
    num_decoder_layers: int
    num_heads: int
    d_ff: int
    length: int = 32
    seed: int = 1

    @property
    def length_factor(self):
        """Maximum length of an output relative to its source; Bergamot rounds upwards."""
        return math.floor(1000 * self.length / SOURCE_LENGTH) / 1000

    def sources(self, batch_size):
        """Returns token ids `[batch_size, SOURCE_LENGTH]`, int32, always the same."""
        import numpy as np  # here, so that a process that only starts workers does not load it

        random = np.random.default_rng(self.seed)
        sources = random.choice(self._ids(), (batch_size, SOURCE_LENGTH), p=self._frequencies())
        sources[:, -1] = EOS_ID
        return sources.astype(np.int32)

    def counts(self):
        """Returns rows of source id, target id and frequency, for `Shortlist.from_counts`.

        Every token has a list of other tokens, drawn by their frequencies.
        """
        import numpy as np

        random, frequencies = np.random.default_rng(self.seed + 1), np.cumsum(self._frequencies())
        rows = []
        for piece in range(self.vocab_size):
            drawn = np.searchsorted(frequencies, random.random(DRAWS) * frequencies[-1])
            drawn = drawn + EOS_ID + 1
            _, first = np.unique(drawn, return_index=True)
            drawn = drawn[np.sort(first)]  # without repetitions, in the order of the draws
            kept = drawn[drawn >= FIRST][:BEST]
            rows.append(np.stack([np.full_like(kept, piece), kept, np.ones_like(kept)], axis=1))
        return np.concatenate(rows)

    def _ids(self):
        import numpy as np

        return np.arange(EOS_ID + 1, self.vocab_size)

    def _frequencies(self):
        weights = 1 / (self._ids() - EOS_ID + 1.7) ** EXPONENT
        return weights / weights.sum()


def words(tokens):
    """Returns the text of token ids without the end; every word is the id of a token."""
    return " ".join(str(token) for token in tokens if token != EOS_ID)


def tokens_of(text):
    """Returns the token ids of a text."""
    return [int(word) for word in text.split()]


@functools.cache
def sentences(student, batch_size):
    """Returns the sources as a list of strings."""
    return [words(row) for row in student.sources(batch_size)]


def build(student):
    """Returns a `Transformer` with random weights that never ends an output.

    The signs of the last normalisation are random, because otherwise every token would be followed
    by itself. The kernels are scaled down by factors with which outputs depend on the source as
    much as on previous tokens: repetitions of a single token would hide errors.
    """
    import keras
    import numpy as np

    from keras_transformer import Transformer, TransformerConfig

    keras.utils.set_random_seed(student.seed)
    names = ("vocab_size", "d_model", "num_layers", "num_decoder_layers", "num_heads", "d_ff")
    sizes = {name: getattr(student, name) for name in names}
    transformer = Transformer(
        TransformerConfig.preset(
            "student_tiny", **sizes, dropout=0.0, max_length=student.length, pad_id=PAD_ID,
            bos_id=BOS_ID, eos_id=EOS_ID,
        )
    )  # fmt: skip
    for weight in transformer.weights:
        if weight.path.endswith("kernel"):
            weight.assign(weight * (0.7 if "cross_attention" in weight.path else 0.3))
    signs = np.random.default_rng(student.seed).choice([-1.0, 1.0], student.d_model)
    transformer.decoder.blocks[-1].feed_forward_norm.gamma.assign(signs)
    bias = np.zeros(student.vocab_size)
    bias[[PAD_ID, UNK_ID, BOS_ID, EOS_ID]] = NEVER
    transformer.output_bias.assign(bias)
    return transformer


STUDENTS = {
    "tiny": Student("tiny", 32_000, 256, 6, 2, 8, 1536),
    # For the tests.
    "smoke": Student("smoke", 256, 64, 1, 1, 4, 64),
}
