"""The training of extractive question answering."""

import keras
import tensorflow as tf

from keras_transformer.tasks.question_answering.passages import cut_windows, read_passages
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.cross_entropy import smoothed_cross_entropy
from keras_transformer.training.tasks.task import TextTraining

BITS = 15  # of the place of an end in a row; both ends are one number


class QuestionAnsweringTraining(TextTraining):
    """Questions with passages, and answers; the loss is the mean cross-entropy of both ends.

    A batch is (tokens [B, S], ends [B, 2]), int32: the places of the answer's first and last
    segment in the row. A passage is one window here.
    """

    @property
    def texts(self):  # noqa: D102
        return {0: self.tokenizers.source}

    def encode(self, lines, answers):
        """Returns token ids, and both ends as one number, -1 if the answer is not there."""
        cells = (
            tf.strings.regex_replace(lines, "\t.*", ""),
            tf.strings.regex_replace(lines, "^[^\t]*\t?", ""),
        )
        questions = self.tokenizers.source.encode(cells[0])[:, :-1]
        passages = read_passages(self.tokenizers.source, cells[1])
        windows = cut_windows(self.tokenizers.source, questions, passages)
        begin, answer = self._places(answers)
        size = tf.strings.length(answer)
        right = (begin >= 0) & (size > 0) & (begin + size <= tf.strings.length(cells[1]))
        inside = tf.strings.substr(cells[1], tf.where(right, begin, 0), tf.where(right, size, 0))
        right &= tf.equal(inside, answer)
        ends = [self._token(passages, windows, place) for place in (begin, begin + size - 1)]
        right &= (ends[0] >= 0) & (ends[1] >= 0)
        return windows.source, tf.where(right, ends[0] * 2**BITS + ends[1], -1)

    def _places(self, answers):
        """The byte at which each answer begins, -1 if it is not given, and the answer."""
        begin = tf.strings.regex_replace(answers, "\t(?s:.*)", "")
        given = tf.strings.regex_full_match(answers, r"(?s)[0-9]{1,9}\t.*")
        numbers = tf.strings.to_number(tf.where(given, begin, "-1"), tf.int32)
        first = tf.strings.regex_replace(answers, "^[0-9]+\t", "", replace_global=False)
        return numbers, tf.strings.regex_replace(first, "\t(?s:.*)", "")

    def _token(self, passages, windows, byte):
        """The place in a row of the segment that has a byte, -1 if none has, `[B]`."""
        has = (passages.begins <= tf.expand_dims(byte, 1)) & (
            passages.ends > tf.expand_dims(byte, 1)
        )
        place = tf.reduce_max(
            tf.where(has, passages.first, tf.constant(-1, tf.int64)), axis=1
        )  # [B]
        return tf.cast(tf.where(place >= 0, place + windows.prefix, -1), tf.int32)

    def number(self, column):
        """Is not called: `encode` numbers both columns together."""
        raise NotImplementedError

    def explain(self, column):
        """Returns what an answer must be."""
        return (
            "the byte of the passage at which the answer begins, a tab and the answer, which must "
            "be there"
        )

    def assemble(self, tokens, ends):  # noqa: D102
        return tokens, tf.stack([ends // 2**BITS, ends % 2**BITS], axis=1)  # [B, 2]

    def loss(self, settings):  # noqa: D102
        return EndsCrossEntropy(settings.label_smoothing)

    def metrics(self):  # noqa: D102
        return [EndsAccuracy()]

    def weigh(self, inputs, labels):
        """Returns 1 for each question, and 0 for the rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)


@keras.saving.register_keras_serializable(package="keras_transformer")
class EndsCrossEntropy(ClassCrossEntropy):
    """The mean of the cross-entropies of an answer's first and last token.

    Args:
        label_smoothing: Must be 0: most tokens cannot be an end.
        name: Name of the loss.

    Call arguments:
        y_true: Places, [B, 2].
        y_pred: Logits, [B, S, 2].
    """

    def call(self, y_true, y_pred):
        ends = (smoothed_cross_entropy(y_true[:, k], y_pred[:, :, k]) for k in (0, 1))
        return tf.add_n(list(ends)) / 2  # [B]


@keras.saving.register_keras_serializable(package="keras_transformer")
class EndsAccuracy(keras.metrics.Mean):
    """Share of the examples of which both ends have the highest logit.

    Call arguments:
        y_true: Places, [B, 2].
        y_pred: Logits, [B, S, 2].
        sample_weight: How much each example counts, [B]. `None`: 1.
    """

    def __init__(self, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        places = tf.argmax(y_pred, axis=1, output_type=tf.int32)  # [B, 2]
        right = tf.reduce_all(tf.equal(places, tf.cast(y_true, tf.int32)), axis=1)
        super().update_state(tf.cast(right, tf.float32), sample_weight)
