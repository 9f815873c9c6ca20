"""A translator that searches with a beam (section 6.1)."""

import dataclasses

import tensorflow as tf

from keras_transformer.decoding import beam_decode
from keras_transformer.decoding.beam import check_beam
from keras_transformer.decoding.lengths import check_lengths
from keras_transformer.decoding.memory import beam_memory, check_memory
from keras_transformer.tasks.translation import to_n_best

SMALL = 2**29  # bytes of a beam that are not compared with what is free


@dataclasses.dataclass(frozen=True)
class BeamTranslator:
    """A `Translator` that searches with a beam. The defaults are the paper's, section 6.1.

    One graph serves every length penalty and every length.

    Args:
        translator: The `Translator`.
        beam_size: Hypotheses that run at a time.
        length_penalty: See `beam_decode`.
        normalization: See `beam_decode`.
        min_length: Shortest output in tokens, the end of the sentence included.
        extra_length: How many tokens an output may be longer than its source. It is never longer
            than the translator's `max_length`. `None`: only that limit.

    Raises:
        ValueError: If a number is out of range or `normalization` is unknown; and when it
            translates, if so many hypotheses cannot fit into memory.
    """

    translator: tf.Module
    beam_size: int = 4
    length_penalty: float = 0.6
    normalization: str = "gnmt"
    min_length: int = 1
    extra_length: int | None = 50

    def __post_init__(self):
        check_beam(self.beam_size, 1, self.length_penalty, self.normalization)
        check_lengths(self.translator.max_length, self.min_length)
        vocab_size = self.translator.model.config.output_size
        if self.beam_size > vocab_size:
            raise ValueError(
                f"`beam_size` must be at most the vocabulary's number of pieces, {vocab_size}. "
                f"Received: beam_size={self.beam_size}."
            )
        if self.extra_length is not None and self.extra_length < 0:
            raise ValueError(
                "`extra_length` must be at least 0, or None. "
                f"Received: extra_length={self.extra_length}."
            )

    def translate_batch(self, sentences):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        return [best for best, *_ in self.n_best_batch(sentences, 1)]

    def n_best_batch(self, sentences, n):
        """Returns a list of at most `n` `Translation`s for each of a list of strings."""
        check_beam(self.beam_size, n, self.length_penalty, self.normalization)
        search = self.translator.search(self.beam_size, n, self.normalization)
        extra = self.translator.max_length if self.extra_length is None else self.extra_length
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        self._check_memory(batch)
        outputs = search(batch, self.length_penalty, self.min_length, extra)
        return to_n_best(outputs, n)

    def memory(self, batch_size):
        """Returns about how many bytes `batch_size` sentences take at most."""
        config = self.translator.model.config
        return beam_memory(config, batch_size, self.beam_size, self.translator.max_length)

    def _check_memory(self, batch):
        if self.memory(batch.shape[0]) < SMALL:  # the usual case, at no cost
            return
        config, tokens = self.translator.model.config, self.translator.encode(batch)[0]  # [B, S]
        check_memory(config, batch.shape[0], self.beam_size, tokens.shape[1])


def trace_search(translator, beam_size, n_best, normalization):
    """The graph of one beam: what is not an argument here is one of the graph's."""

    def search(sentences, length_penalty, min_length, extra_length):
        source, truncated, empty = translator.encode(sentences)  # [B, S], [B], [B]
        tokens, scores = search_with_limit(
            translator,
            source,
            beam_size,
            n_best,
            normalization,
            length_penalty,
            min_length,
            extra_length,
        )  # [B, M, L], [B, M]
        flat = tf.reshape(tokens, [-1, translator.max_length])
        texts = tf.reshape(translator.tokenizer.decode(flat), [-1, n_best])
        empty = tf.expand_dims(empty, 1)  # [B, 1]
        return {
            "translation": tf.where(empty, "", texts),
            "score": tf.where(empty, 0.0, scores),
            "truncated": truncated,
        }

    number, count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)
    return tf.function(
        search,
        input_signature=[tf.TensorSpec([None], tf.string), number, count, count],
        autograph=False,
    )


def search_with_limit(
    translator,
    source,
    beam_size,
    n_best,
    normalization,
    length_penalty,
    min_length,
    extra_length,
    alignment=None,
):
    """Searches as `BeamTranslator` does, from token ids.

    Args:
        translator: A `Translator`.
        source: Token ids `[B, S]`, int32, each row ending in `eos_id` and then padding.
        beam_size: Hypotheses N that run at a time, an integer.
        n_best: Hypotheses M that are returned, an integer.
        normalization: See `beam_decode`.
        length_penalty: See `beam_decode`.
        min_length: Shortest output in tokens, integer or scalar tensor.
        extra_length: How many tokens an output may be longer than its source, likewise.
        alignment: See `beam_decode`.

    Returns:
        What `beam_decode` returns.
    """
    real = tf.not_equal(source, translator.model.config.pad_id)
    limit = tf.reduce_sum(tf.cast(real, tf.int32), axis=1) + extra_length  # [B]
    return beam_decode(
        translator.model,
        source,
        beam_size,
        n_best,
        length_penalty,
        normalization,
        min_length,
        tf.maximum(limit, min_length),
        cache_length=translator.max_length,
        alignment=alignment,
    )
