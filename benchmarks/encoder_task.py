"""The task of all peers of `encoders.py`: an encoder with random weights, and texts for it."""

import dataclasses
import random

PAD_ID, CLS_ID, SEP_ID = 0, 2, 3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # the first tokens; others are words
LONGEST_MIXED = 128  # tokens


@dataclasses.dataclass(frozen=True)
class Encoder:
    """An encoder of BERT's kind, and what is computed from it.

    Args:
        name: Name of the shape.
        head: `"labels"`, the probabilities of two labels by the pooled first token, or `"vector"`,
            the mean over the tokens, of unit length.
        num_layers, d_model, num_heads, d_ff: As in the paper.
        vocab_size: Number of tokens.
        max_length: Maximum length of a text in tokens.
        seed: Seed of weights and texts.
    """

    name: str
    head: str
    num_layers: int
    d_model: int
    num_heads: int
    d_ff: int
    vocab_size: int = 30_522
    max_length: int = 512
    seed: int = 1

    @property
    def verb(self):
        """Beginning of the names of our signatures."""
        return {"labels": "classify", "vector": "embed"}[self.head]

    @property
    def output(self):
        """Name of the output of our signatures."""
        return {"labels": "probabilities", "vector": "vector"}[self.head]


@dataclasses.dataclass(frozen=True)
class Case:
    """Texts to measure, and how they are divided into batches.

    Args:
        batch: Number of texts.
        length: Tokens of every text; 0: from 4 to `LONGEST_MIXED`, most of them short.
        group: Number of texts in a batch, sorted by length. 0: all texts are one batch.
    """

    batch: int
    length: int
    group: int = 0

    @property
    def title(self):
        """Description in a few words."""
        if self.length:
            return f"{self.batch} x {self.length}"
        return f"{self.batch} mixed, " + (f"sorted by {self.group}" if self.group else "padded")

    def groups(self, encoder):
        """Returns the batches: lists of rows of token ids without padding."""
        rows = [self._row(encoder, number) for number in range(self.batch)]
        if not self.group:
            return [rows]
        rows.sort(key=len)
        return [rows[first : first + self.group] for first in range(0, len(rows), self.group)]

    def checked(self, encoder):
        """Returns shorter rows, and the width of the first batch, to which they are padded."""
        rows = self.groups(encoder)[0]
        width = max(map(len, rows))
        ends = [
            min(len(row), max(3, width * (2 + number % 3) // 5)) for number, row in enumerate(rows)
        ]
        return [[*row[: end - 1], SEP_ID] for row, end in zip(rows, ends, strict=True)], width

    def _row(self, encoder, number):
        draw = random.Random(1000 * encoder.seed + number)
        length = self.length or min(LONGEST_MIXED, max(4, round(draw.lognormvariate(3.2, 0.8))))
        words = [draw.randrange(len(SPECIAL), encoder.vocab_size) for _ in range(length - 2)]
        return [CLS_ID, *words, SEP_ID]


def padded(rows, width=None):
    """Returns token ids and a mask of real tokens, int32 `[B, S]`."""
    import numpy as np  # here, so that a process that only starts workers does not load it

    ids = np.full((len(rows), width or max(map(len, rows))), PAD_ID, np.int32)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    return ids, mask


def words(row):
    """Returns the text of a row of token ids: every word is the id of its token."""
    return " ".join(str(token) for token in row[1:-1])


ENCODERS = {
    "bert-base": Encoder("bert-base", "labels", 12, 768, 12, 3072),
    "minilm-l6": Encoder("minilm-l6", "vector", 6, 384, 12, 1536),
    # For the tests.
    "smoke-labels": Encoder("smoke-labels", "labels", 1, 16, 2, 32, 200, 128),
    "smoke-vector": Encoder("smoke-vector", "vector", 1, 16, 2, 32, 200, 128),
}
