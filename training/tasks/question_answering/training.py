"""Training of extractive question answering."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.fields import Spans, Tokens
from keras_transformer.tasks.question_answering.passages import (
    Passages,
    cut_windows,
    read_questions,
)
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.task import TextTraining


class QuestionAnsweringTraining(TextTraining):
    """Training on questions, passages and answers with the mean cross-entropy of both ends.

    A batch is (tokens [B, S], ends [B, 2]), int32. The ends are the indices of the first token of
    the answer's first and last segment; of its first and last token if passages are tokenised as a
    whole; or twice the index of `bos_id` if the row does not contain the answer. If a passage is
    too long for the model, the row contains one window of it: see `chosen_windows`.
    """

    columns = ("question", "passage", "begin", "answers")

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {"tokens": Tokens(self.tokenizers.source), "answers": Spans()}

    def identity(self) -> dict[str, Any]:
        """Returns everything that rows depend on besides the data, including the window sizes."""
        limits = {"max_length": self.config.max_length}
        head = {name: getattr(self.config.head, name) for name in ("stride", "pair_layout")}
        return {**super().identity(), **limits, **head}

    def encode(self, columns) -> dict[str, Any]:
        """Returns token ids and the indices of both ends, -1 if the answer is not valid."""
        question, passage = columns["question"], columns["passage"]
        tokenizer = self.tokenizers.source
        longest, layout = self.config.max_length, LAYOUTS[self.config.head.pair_layout]
        questions, _ = read_questions(tokenizer, question, longest)
        passages = Passages.of(tokenizer, passage, layout)
        windows = cut_windows(
            tokenizer, questions, passages, longest, self.config.head.stride, layout
        )
        begin, answer = _numbers(columns["begin"]), _first(columns["answers"])
        size = tf.strings.length(answer)
        valid = (begin >= 0) & (size > 0) & (begin + size <= tf.strings.length(passage))
        inside = tf.strings.substr(passage, tf.where(valid, begin, 0), tf.where(valid, size, 0))
        valid &= tf.equal(inside, answer)
        ends = _tokens_at(passages, begin, begin + size - 1)  # [B] each
        valid &= (ends[0] >= 0) & (ends[1] >= 0)
        lines = tf.strings.join([question, passage], "\t")
        row = chosen_windows(windows, ends, lines)  # [B]
        places = tf.stack(ends_in_windows(windows, row, ends), axis=1)  # [B, 2]
        places = tf.where(tf.expand_dims(valid, 1), places, -1)
        return {
            "tokens": tf.gather(windows.source, row),
            "answers": self.fields["answers"].encode(places),
        }

    def assemble(self, tokens, answers) -> tuple:  # noqa: D102
        return tokens, answers

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return EndsCrossEntropy()

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [EndsAccuracy()]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each question, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)


def _numbers(column):
    """Returns integers `[B]`; a string that is not a number becomes -1."""
    if column.dtype != tf.string:
        return tf.cast(column, tf.int32)
    given = tf.strings.regex_full_match(column, "[0-9]{1,9}")
    return tf.strings.to_number(tf.where(given, column, "-1"), tf.int32)


def _first(answers):
    """Returns the first answer to each question, `[B]`; in text files a question has only one."""
    return answers.to_tensor("")[:, 0] if isinstance(answers, tf.RaggedTensor) else answers


def _tokens_at(passages, begin, end):
    """Returns the tokens at the ends of answers, `[B]` each; -1 if no segment contains an end.

    Args:
        passages: `Passages`.
        begin, end: First and last byte of the answers, `[B]`.
    """
    none, sizes = tf.constant(-1, tf.int64), tf.expand_dims(passages.pieces.row_lengths(), 1)
    inside = []
    for byte in (begin, end):
        byte = tf.expand_dims(byte, 1)
        inside.append((passages.begins <= byte) & (passages.ends > byte))
    beyond = tf.zeros_like(passages.first) + sizes
    first = tf.reduce_min(tf.where(inside[0], passages.first, beyond), axis=1)
    first = tf.where(first < sizes[:, 0], first, none)
    return first, tf.reduce_max(tf.where(inside[1], passages.first, none), axis=1)


def chosen_windows(windows, ends, lines) -> Tensor:
    """Chooses the window of each passage that is learned.

    For half of the passages it is the window with the most context on both sides of the answer. For
    the others it is any window, so that a model also sees windows without the answer. A hash of
    question and passage decides.

    Args:
        windows: `Windows` of the passages.
        ends: First and last token of the answers, `[B]` each, int64.
        lines: Question and passage of each example, strings `[B]`.

    Returns:
        Row of the window of each passage, `[B]`, int64.
    """
    sizes = windows.source.row_lengths() - windows.prefix - 1  # [R], tokens of the passage
    first, last = (tf.gather(end, windows.example) - windows.begin for end in ends)  # [R]
    margin = tf.minimum(first, sizes - 1 - last)  # [R], negative if the answer is not complete
    of_passage = tf.RaggedTensor.from_value_rowids(
        margin, windows.example, tf.size(lines, tf.int64), validate=False
    )
    lowest = margin.dtype.min
    best = tf.argmax(of_passage.to_tensor(lowest), axis=1)  # [B]
    count = of_passage.row_lengths()
    number = tf.strings.to_hash_bucket_fast(lines, 2**30)
    chosen = tf.where(tf.equal(number % 2, 0), best, number // 2 % count)
    return of_passage.row_splits[:-1] + chosen


def ends_in_windows(windows, row, ends) -> list[Tensor]:
    """Returns the indices of both ends in chosen windows.

    Args:
        windows: `Windows` of the passages.
        row: Row of the window of each passage, `[B]`.
        ends: First and last token of the answers, `[B]` each, int64.

    Returns:
        List of two int32 `[B]`. Both are the index of `bos_id` if a window does not contain the
        whole answer.
    """
    prefix, begin = tf.gather(windows.prefix, row), tf.gather(windows.begin, row)
    size = tf.gather(windows.source.row_lengths(), row) - prefix - 1
    whole = (ends[0] >= begin) & (ends[1] < begin + size)
    none = tf.gather(windows.none, row)
    return [tf.cast(tf.where(whole, end - begin + prefix, none), tf.int32) for end in ends]


@keras.saving.register_keras_serializable(package="keras_transformer")
class EndsCrossEntropy(keras.losses.Loss):
    """Mean of the cross-entropies of an answer's first and last token.

    Args:
        name: Name of the loss.

    Call arguments:
        y_true: Indices of both tokens, [B, 2].
        y_pred: Logits, [B, S, 2].

    Reference: Devlin et al. (2019), section 4.2.
    """

    def __init__(self, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred) -> Tensor:
        logits = tf.transpose(tf.cast(y_pred, tf.float32), [0, 2, 1])  # [B, 2, S]
        both = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(y_true, tf.int32), logits)
        return tf.reduce_mean(both, axis=1)  # [B]


@keras.saving.register_keras_serializable(package="keras_transformer")
class EndsAccuracy(keras.metrics.Mean):
    """Share of examples for which the tokens at both ends have the highest logits.

    Call arguments:
        y_true: Indices of both tokens, [B, 2].
        y_pred: Logits, [B, S, 2].
        sample_weight: Weight of each example, [B]. `None`: 1.
    """

    def __init__(self, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        places = tf.argmax(y_pred, axis=1, output_type=tf.int32)  # [B, 2]
        right = tf.reduce_all(tf.equal(places, tf.cast(y_true, tf.int32)), axis=1)
        super().update_state(tf.cast(right, tf.float32), sample_weight)
