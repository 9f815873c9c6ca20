"""The rows of a batch in a .tflite file against the same sentences alone."""

import functools
import itertools

import numpy as np
import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.tasks.strings import encode

# Seen: every token and every bit of the scores is the same, in float32 and in int8. Room for a near
# tie in a kernel that adds in another order, far less than one wrong row of a batch would take.
MIN_TOKENS = 0.98
MAX_DIFFERENCE = 0.01  # of a score, relative to it


def require_rows_as_alone(loaded, sentences, what):
    """Compares a full batch of every signature that takes several sentences with each alone.

    Args:
        loaded: A `LiteRTTranslator`.
        sentences: List of real sentences; where there are too few to fill a batch, some are in it
            several times.
        what: Name of the file, for the error.

    Raises:
        ExportError: If a batch gives other translations.
    """
    ids, _, _ = encode(loaded.tokenizers.source, tf.constant(sentences), loaded.max_length)
    ids = [tuple(row) for row in ids.to_list()]
    alone = functools.cache(lambda row: loaded.decode([row]))
    for signature in loaded.signatures:
        fitting = [row for row in ids if len(row) <= signature.source_length]
        if signature.batch_size == 1 or not fitting:
            continue
        batch = list(itertools.islice(itertools.cycle(fitting), signature.batch_size))
        tokens, scores = (array[:, 0] for array in loaded.decode(batch, signature=signature))
        expected = [np.concatenate(column)[:, 0] for column in zip(*map(alone, batch), strict=True)]
        pad_id = loaded.tokenizers.target.pad_id
        _require_equal(tokens, scores, *expected, pad_id, f"{what}, {signature.name}")


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
