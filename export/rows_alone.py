"""Check that texts have the same outputs in a batch as on their own."""

import collections

import numpy as np

from keras_transformer.export.errors import ExportError

# In measurements every token and every bit of the scores was the same, in float32 and in int8. The
# tolerance allows for a near tie in a kernel that adds in another order. A single wrong row of a
# batch exceeds it by far.
MIN_TOKENS = 0.98
MAX_DIFFERENCE = 0.01  # of a score, relative to it


def require_as_alone(decode, alone, batch, pad_id, what) -> None:
    """Compares the best outputs for a batch with those for each of its rows.

    Args:
        decode: Function from lists of token ids to token ids `[B, M, L]` and scores `[B, M]`.
        alone: The same function for one list of token ids, a tuple.
        batch: List of tuples of token ids.
        pad_id: Token id that pads outputs.
        what: Name of the export, for the error.

    Raises:
        ExportError: If the outputs differ.
    """
    tokens, scores = (array[:, 0] for array in decode(batch))
    expected = [np.concatenate(column)[:, 0] for column in zip(*map(alone, batch), strict=True)]
    same = tokens == expected[0]  # [B, L]
    share = np.mean(same[(tokens != pad_id) | (expected[0] != pad_id)])
    gaps = np.abs(scores - expected[1]) / np.maximum(1, np.abs(expected[1]))
    gap = np.max(gaps[same.all(axis=1)], initial=0.0)
    if not (share >= MIN_TOKENS and gap <= MAX_DIFFERENCE):
        raise ExportError(
            f"{what}: the output for a sentence differs in a batch from on its own "
            f"({100 * share:.1f} % of the tokens are the same, scores differ by up to "
            f"{gap:.2g} of the score). The export was not kept."
        )


def equally_long(prompts) -> list:
    """Returns the prompts of the most frequent length.

    The prompts of a batch are read in one pass up to the end of the shortest one. Later tokens of
    longer ones are read one by one, which in int8 rounds them otherwise than the pass does.
    """
    lengths = collections.Counter(map(len, prompts)).most_common(1)
    return [row for row in prompts if len(row) == lengths[0][0]]
