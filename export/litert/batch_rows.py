"""Check of a .tflite file: sentences have the same outputs in a batch as on their own."""

import collections
import functools
import itertools

import numpy as np
import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.tasks.strings import encode

# In measurements every token and every bit of the scores was the same, in float32 and in int8. The
# tolerance allows for a near tie in a kernel that adds in another order. A single wrong row of a
# batch exceeds it by far.
MIN_TOKENS = 0.98
MAX_DIFFERENCE = 0.01  # of a score, relative to it


def require_rows_as_alone(loaded, sentences, what) -> None:
    """Compares the outputs of a full batch with those of its sentences on their own.

    Every signature that takes several sentences is checked.

    Args:
        loaded: A `LiteRTTranslator`.
        sentences: List of real sentences, which are repeated if there are too few to fill a batch.
        what: Name of the file, for the error.

    Raises:
        ExportError: If the outputs differ.
    """
    ids, _, _ = encode(loaded.tokenizers.source, tf.constant(sentences), loaded.max_length)
    ids = [tuple(row) for row in ids.to_list()]
    alone = functools.cache(lambda row: loaded.decode([row]))
    for signature in loaded.signatures:
        fitting = [row for row in ids if len(row) <= signature.source_length]
        fitting = fitting if loaded.pipeline.has_source else _equally_long(fitting)
        if signature.batch_size == 1 or not fitting:
            continue
        batch = list(itertools.islice(itertools.cycle(fitting), signature.batch_size))
        tokens, scores = (array[:, 0] for array in loaded.decode(batch, signature=signature))
        expected = [np.concatenate(column)[:, 0] for column in zip(*map(alone, batch), strict=True)]
        pad_id = loaded.tokenizers.target.pad_id
        _require_equal(tokens, scores, *expected, pad_id, f"{what}, {signature.name}")


def _equally_long(prompts):
    """Returns the prompts of the most frequent length.

    The prompts of a batch are read in one pass up to the end of the shortest one. Later tokens of
    longer ones are read one by one, which in int8 rounds them otherwise than the pass does.
    """
    lengths = collections.Counter(map(len, prompts)).most_common(1)
    return [row for row in prompts if len(row) == lengths[0][0]]


def _require_equal(tokens, scores, expected, expected_scores, pad_id, what):
    same = tokens == expected  # [B, L]
    share = np.mean(same[(tokens != pad_id) | (expected != pad_id)])
    gaps = np.abs(scores - expected_scores) / np.maximum(1, np.abs(expected_scores))
    gap = np.max(gaps[same.all(axis=1)], initial=0.0)
    if not (share >= MIN_TOKENS and gap <= MAX_DIFFERENCE):
        raise ExportError(
            f"{what}: the output for a sentence differs in a batch from on its own "
            f"({100 * share:.1f} % of the tokens are the same, scores differ by up to "
            f"{gap:.2g} of the score). The export was not kept."
        )
