"""Rules of timestamps in transcripts: tokens of times that enclose segments, as in Whisper."""

from keras_transformer.decoding.predictor import NEVER
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Timestamps:
    """Allows timestamps only in pairs and in order.

    The ids from `timestamp_id` on are times, in order. After the prompt, an output begins with a
    timestamp. Between two segments there are two timestamps, the end of the first one and the
    beginning of the second one; after the end of a segment there may also be the end of the output.
    No timestamp is smaller than an earlier one, and a segment is not empty. Where all timestamps
    together are more probable than any other token, one of them is chosen. Probabilities are not
    renormalised.

    Args:
        vocabulary: The `Vocabulary` of a predictor, with a `timestamp_id`.
        beginning: The `Beginning` of the outputs, which says which of them have timestamps. These
            do not contain `no_timestamps_id`.

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 4.5; `WhisperTimeStampLogitsProcessor` in Hugging Face's Transformers.
    """

    def __init__(self, vocabulary, beginning):
        # Position of the first token after the prompt, and the outputs that have timestamps.
        self.begin = tf.reshape(beginning.count, [-1, 1, 1])  # [B or 1, 1, 1]
        self.applies = tf.reshape(beginning.has_timestamps, [-1, 1, 1])  # [B or 1, 1, 1]
        self.eos_id, self.first = vocabulary.eos_id, vocabulary.rules.timestamp_id
        most, without = vocabulary.rules.max_first_timestamp, vocabulary.rules.no_timestamps_id
        last = vocabulary.size - 1 if most is None else self.first + most
        numbers = range(vocabulary.size)
        self.is_time = [number >= self.first for number in numbers]  # [V]
        self.is_text = [number < self.eos_id for number in numbers]  # [V]
        self.is_possible = [number != without for number in numbers]  # [V]
        self.may_begin = [self.first <= number <= last for number in numbers]  # [V]
        self.numbers = tf.range(vocabulary.size)  # [V]

    def apply(self, allowed: Tensor, logits: Tensor, tokens: Tensor, index: Tensor) -> Tensor:
        """Returns the mask of allowed tokens with these rules, boolean `[B, N, V]`.

        Args:
            allowed: The mask without them, boolean, `[V]` or `[B or 1, N or 1, V]`.
            logits: Logits of the tokens at this position, `[B, N, V]`.
            tokens: Tokens before this position `[B, N, L]`.
            index: Number of the position; scalar.
        """
        given, count = allowed, index - self.begin  # tokens after the prompt, [B or 1, 1, 1]
        last = self._is_time_at(tokens, index - 1) & (count >= 1)  # [B, N, 1]
        earlier = self._is_time_at(tokens, index - 2) | (count < 2)  # [B, N, 1]
        ends = last & ~earlier  # a segment has just ended
        newest = tf.reduce_max(self._times(tokens, index), axis=2, keepdims=True)  # [B, N, 1]
        least = tf.where(ends, newest, newest + 1)  # -1 becomes 0: there is no timestamp yet
        allowed &= self.is_possible
        allowed &= ~(last & earlier & self.is_time)
        allowed &= ~(ends & self.is_text)
        allowed &= ~(self.is_time & (self.numbers - self.first < least))
        allowed &= tf.logical_or(self.may_begin, count > 0)
        possible = tf.where(allowed, tf.cast(logits, tf.float32), NEVER)
        times = tf.where(self.is_time, possible, NEVER)
        words = tf.where(self.is_time, NEVER, possible)
        likely = tf.reduce_logsumexp(times, axis=2, keepdims=True) > tf.reduce_max(
            words, axis=2, keepdims=True
        )  # [B, N, 1]
        # The prompt is not affected: its tokens have probability 1.
        here = self.applies & (count >= 0)  # [B or 1, 1, 1]
        return tf.where(here, allowed & (self.is_time | ~likely), given)

    def _is_time_at(self, tokens, place):
        """Returns whether the token at a position is a timestamp, `[B, N, 1]`."""
        return tf.expand_dims(tf.gather(tokens, tf.maximum(place, 0), axis=2) >= self.first, 2)

    def _times(self, tokens, index):
        """Returns the numbers of the timestamps after the prompt, -1 for others, `[B, N, L]`."""
        places = tf.range(tokens.shape[2])
        real = (places >= self.begin) & (places < index) & (tokens >= self.first)
        return tf.where(real, tokens - self.first, -1)
