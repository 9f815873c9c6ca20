"""Word-level targets: teachers predict every token of the pairs that a student learns."""

import functools
import hashlib

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.scoring import target_logits
from keras_transformer.fields.distributions import RankedTokens
from keras_transformer.files import read_json, remove_stale_drafts, write_json
from keras_transformer.tasks import open_run
from keras_transformer.tasks.strings import encode
from keras_transformer.training.data.distributions import (
    MANIFEST,
    pair_keys,
    part_path,
    vocabulary_digest,
    write_manifest,
    write_part,
)
from keras_transformer.training.distillation.pace import Pace
from keras_transformer.training.loop.messages import say

PART = 8192  # pairs in a part; an interruption loses at most so many
LOGIT_BYTES = 2**27  # size of the float32 logits that are in memory at a time
PLAN = "plan.json"


def check_word_level(teachers, k) -> None:
    """Raises a `ValueError` if teachers cannot predict `k` tokens at each position."""
    if not teachers:
        raise ValueError("`word_level` needs a teacher that translates sources.")
    first, *others = teachers
    for other in others:
        if other.tokenizers.files() != first.tokenizers.files():
            raise ValueError(
                f"{other.run.path} has a different vocabulary from {first.run.path}: teachers of "
                "word-level targets need the same vocabulary, also if they are `separate`."
            )
    size = first.tokenizers.target.vocab_size
    if k > size:
        raise ValueError(
            f"`word_level` must be at most {size:,}, the size of the vocabulary. "
            f"Received: word_level={k}."
        )


class Predictions:
    """Most probable tokens at every position of given targets, by the mean of teachers.

    Args:
        teachers: `Teacher`s with the same vocabulary.
        k: Number K of tokens, at most the size of the vocabulary.
        batch_size: Maximum number of pairs in a batch.

    Raises:
        ValueError: If a file of a run is damaged.
    """

    def __init__(self, teachers, k, batch_size):
        self._pipeline = open_run([teacher.run.path for teacher in teachers])
        self._tokenizers = teachers[0].tokenizers
        self._predictor = predictor_of(self._pipeline.whole)
        self.k, self._batch_size = k, batch_size
        self.vocab_size = self._tokenizers.target.vocab_size
        self._dtype = RankedTokens(k, self.vocab_size).dtype
        ids = tf.TensorSpec([None, None], tf.int32)
        self._graph = tf.function(self.most_probable, input_signature=[ids, ids], autograph=False)

    def most_probable(self, source, target) -> tuple:
        """Returns the K most probable tokens and their probabilities, `[B, T, K]` each.

        Args:
            source: Padded token ids `[B, S]`.
            target: Padded token ids `[B, T]`, each row ending in `eos_id`.
        """
        logits = target_logits(self._predictor, source, target)  # [B, T, V]
        logits = tf.cast(logits, tf.float32)
        best, tokens = tf.math.top_k(logits, self.k)
        return tokens, tf.exp(best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))

    def __call__(self, pairs, done=lambda targets: None) -> dict[str, np.ndarray]:
        """Returns the arrays of a part of `Distributions`, for a list of pairs of bytes.

        Probabilities are 0 where the source or the target is too long for the teachers.

        Args:
            pairs: List of pairs of bytes.
            done: Function that is called with the targets of each batch.
        """
        sources, targets = (tf.constant(list(column)) for column in zip(*pairs, strict=True))
        limit, pad_id = self._pipeline.max_length, self._pipeline.model.config.tokens.pad_id
        source, is_truncated, _ = encode(self._tokenizers.source, sources, limit)
        target = self._tokenizers.target.encode(targets)  # ragged [pairs, (T)]
        lengths = target.row_lengths().numpy()
        ends = np.cumsum(lengths)
        tokens = np.zeros([lengths.sum(), self.k], self._dtype)
        probabilities = np.zeros([lengths.sum(), self.k], np.float16)
        scored = np.flatnonzero(~is_truncated.numpy() & (lengths <= limit) & (lengths > 0))
        for rows in self._batches(scored, lengths):
            ids = [tf.gather(side, rows).to_tensor(pad_id) for side in (source, target)]
            best = [values.numpy() for values in self._graph(*ids)]  # [B, T, K] twice
            for place, row in enumerate(rows):
                inside = slice(ends[row] - lengths[row], ends[row])
                tokens[inside], probabilities[inside] = (x[place, : lengths[row]] for x in best)
            done([pairs[row][1] for row in rows])
        if others := [pairs[row][1] for row in np.setdiff1d(np.arange(len(pairs)), scored)]:
            done(others)
        return {
            "keys": pair_keys(sources, targets).numpy(),
            "lengths": lengths.astype(np.int32),
            "tokens": tokens,
            "probabilities": probabilities,
        }

    def _batches(self, rows, lengths):
        """Yields batches of rows of similar lengths, the longest first, whose logits are small."""
        rows = rows[np.argsort(-lengths[rows], kind="stable")]
        begin = 0
        while begin < len(rows):
            size = LOGIT_BYTES // (4 * self.vocab_size * int(lengths[rows[begin]]))
            size = max(1, min(size, self._batch_size))
            yield rows[begin : begin + size]
            begin += size


def predict_words(
    folder, pairs, teachers, k, batch_size, console, seconds, is_trained=False
) -> None:
    """Writes the `Distributions` of the pairs that a student learns; resumes after its last part.

    Predictions of other teachers or for other pairs in the folder are removed, unless a student has
    been trained on them.

    Args:
        folder: The folder, a `Path`.
        pairs: List of pairs of bytes, all training pairs in their order.
        teachers: `Teacher`s with the same vocabulary, of whose probabilities the mean counts.
        k: Number K of tokens at each position.
        batch_size: Maximum number of pairs in a batch; it does not affect the result.
        console, seconds: See `Pace`.
        is_trained: Whether training of the student has begun.

    Raises:
        ValueError: If the student has been trained on other predictions, or on none.
        KeyboardInterrupt: After Ctrl-C or SIGTERM; all complete parts are kept.
    """
    plan = {"teachers": [teacher.digest() for teacher in teachers], "k": k, "pairs": _digest(pairs)}
    parts = -(-len(pairs) // PART)
    if read_json(folder / PLAN) != plan:
        if is_trained:
            raise ValueError(
                f"{folder.parent.parent} was trained with other word-level targets, or with none: "
                "choose another folder."
            )
        for path in folder.glob("*"):
            path.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / PLAN, plan)
    if (folder / MANIFEST).exists():
        return
    remove_stale_drafts(folder)
    names = " and ".join(str(teacher.run.path) for teacher in teachers)
    say(console, f"{len(pairs):,} pairs for {names}, the {k} most probable tokens.")
    opened = functools.cache(lambda: Predictions(teachers, k, batch_size))
    with Pace([target for _, target in pairs], console, seconds, "predicted") as pace:
        for number in range(parts):
            part = pairs[number * PART : (number + 1) * PART]
            if part_path(folder, number).exists():
                pace.skip([target for _, target in part])
            else:
                write_part(folder, number, **opened()(part, pace.done))
    target = teachers[0].tokenizers.target
    write_manifest(
        folder,
        parts,
        k=k,
        vocab_size=target.vocab_size,
        vocabulary=vocabulary_digest(target),
        rows=len(pairs),
    )


def _digest(pairs):
    checksum = hashlib.sha256()
    for source, target in pairs:
        checksum.update(source + b"\n" + target + b"\0")
    return checksum.hexdigest()
