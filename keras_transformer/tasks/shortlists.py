"""Shortlists learned from a model's own alignments: what attends to what in given pairs."""

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.strings import check_sentences, encode
from keras_transformer.text.shortlist import Shortlist

STRINGS = tf.TensorSpec([None], tf.string)


def learn_shortlist(
    translator,
    sources,
    targets,
    first=50,
    best=50,
    *,
    layer=-1,
    head=None,
    batch_size=64,
    progress=None,
):
    """Learns from pairs of texts which target pieces a source piece becomes.

    The model reads each source with the given target, as in training, and a target piece goes with
    the source piece that its position in the decoder attends to most. The `best` most frequent ones
    of each source piece become its list.

    Args:
        translator: A `Translator`, or another `ConditionalGenerator`.
        sources: List of strings.
        targets: What belongs to them, a list of as many strings.
        first: How many pieces at the beginning of the vocabulary are candidates of every source.
        best: Most pieces in a list.
        layer: Number of the decoder's layer.
        head: Number of the attention head. `None`: the mean of all.
        batch_size: Pairs read at a time.
        progress: Function that is called with the number of pairs that have been read. `None`: it
            is not shown.

    Returns:
        A `Shortlist`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If the lists are empty or of different length, `first` is above the number of
            pieces, or there is no such layer or head.
    """
    if not isinstance(translator, ConditionalGenerator):
        raise TypeError(
            "`translator` must have a model with an encoder and a decoder. "
            f"Received: {type(translator).__name__}."
        )
    config = translator.model.config
    check_alignment((layer, head), config)
    sources, targets = check_sentences(sources, "sources"), check_sentences(targets, "targets")
    if len(sources) != len(targets) or not sources:
        raise ValueError(
            "`targets` must have one text for each source, and there must be some. "
            f"Received: {len(sources)} sources, {len(targets)} targets."
        )
    check_count("best", best)
    check_count("first", first, least=0)
    if first > config.output_size:
        raise ValueError(
            f"`first` must be at most the number of pieces, {config.output_size}. "
            f"Received: first={first}."
        )
    counts = _count(translator, (layer, head), sources, targets, batch_size, progress)
    return Shortlist.from_counts(counts, config.vocab_size, first, best)


def _count(translator, alignment, sources, targets, batch_size, progress):
    """How often each source id went with each target id, `[pairs, 3]`."""
    check_count("batch_size", batch_size)
    read, size = _reader(translator, alignment), translator.model.config.output_size
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = ([texts[number] for number in numbers] for texts in (sources, targets))
        source, target = (ids.numpy() for ids in read(*map(tf.constant, batch)))
        met = np.concatenate([keys, source.astype(np.int64) * size + target])
        weights = np.concatenate([counts, np.ones(len(source), np.int64)])
        keys, places = np.unique(met, return_inverse=True)
        counts = np.bincount(places, weights).astype(np.int64)
        if progress is not None:
            progress(begin + len(numbers))
    return np.stack([keys // size, keys % size, counts], axis=1)


def _reader(translator, alignment):
    """A function of a batch of pairs to the source ids and the target ids that go together."""
    model, config, (layer, head) = translator.model, translator.model.config, alignment
    name = f"decoder/block_{layer % config.decoder_layers}/cross_attention"

    def read(sources, targets):
        source, target = (
            encode(tokenizer, texts, translator.max_length)[0].to_tensor(config.pad_id)
            for tokenizer, texts in zip(translator.tokenizers, (sources, targets), strict=True)
        )  # [B, S], [B, T]
        begin = tf.fill([tf.shape(target)[0], 1], config.bos_id)
        inputs = {"source": source, "target": tf.concat([begin, target[:, :-1]], axis=1)}
        weights = tf.cast(model.attention_weights(inputs)[name], tf.float32)  # [B, H, T, S]
        weights = tf.reduce_mean(weights, axis=1) if head is None else weights[:, head]
        # The end of a source is where a head looks that looks for nothing.
        word = tf.not_equal(source, config.pad_id) & tf.not_equal(source, config.eos_id)  # [B, S]
        weights = tf.where(tf.expand_dims(word, 1), weights, -1.0)  # [B, T, S]
        places = tf.argmax(weights, axis=-1, output_type=tf.int32)  # [B, T]
        real = tf.not_equal(target, config.pad_id) & tf.not_equal(target, config.eos_id)
        real &= tf.reduce_any(word, axis=1, keepdims=True)  # [B, T]
        attended = tf.gather(source, places, batch_dims=1)  # [B, T]
        return tf.boolean_mask(attended, real), tf.boolean_mask(target, real)

    return tf.function(read, input_signature=[STRINGS, STRINGS], autograph=False)
