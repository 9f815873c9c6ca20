"""Shortlists learned from a model's own alignments: what attends to what in given pairs."""

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.strings import check_sentences, encode
from keras_transformer.text.shortlist import Shortlist

STRINGS = tf.TensorSpec([None], tf.string)
# Source pieces that share in a target piece, those that it attends to most. Seen on Multi30K, 4,000
# pieces, a small model: with 1 of them greedy search lost 0.3 BLEU, with 2 or 3 at most 0.02.
SHARING = 3
UNITS = 256  # of a target piece, so that rounding decides nothing on the way


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

    The model reads each source with the given target, as in training. A target piece is shared out
    among the three source pieces that its position in the decoder attends to most, in proportion;
    the `best` of each source piece that have most become its list. Before that, the `best` most
    frequent target pieces become the list of the end of the source, which every source has: they
    are in no other list, and neither are the first ones.

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
    translator.require_one("have no alignments to learn a shortlist from")
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
    counts = _without_frequent(counts, config.eos_id, first, best)
    return Shortlist.from_counts(counts, config.vocab_size, first, best)


def _count(translator, alignment, sources, targets, batch_size, progress):
    """How much of each target id went to each source id, `[pairs, 3]`, in `UNITS`.

    What goes to the end of the source is how frequent a target id is.
    """
    check_count("batch_size", batch_size)
    read, size = _reader(translator, alignment), translator.model.config.output_size
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = ([texts[number] for number in numbers] for texts in (sources, targets))
        source, target, share = (values.numpy() for values in read(*map(tf.constant, batch)))
        met = np.concatenate([keys, source.astype(np.int64) * size + target])
        keys, places = np.unique(met, return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, share])).astype(np.int64)
        if progress is not None:
            progress(begin + len(numbers))
    return np.stack([keys // size, keys % size, counts], axis=1)


def _without_frequent(counts, eos_id, first, best):
    """The counts without those of the most frequent target ids, but for the end's."""
    of_end = counts[(counts[:, 0] == eos_id) & (counts[:, 1] >= first)]
    frequent = of_end[np.lexsort((of_end[:, 1], -of_end[:, 2]))][:best]
    others = (counts[:, 0] != eos_id) & ~np.isin(counts[:, 1], frequent[:, 1])
    return np.concatenate([frequent, counts[others]])


def _reader(translator, alignment):
    """A function of a batch of pairs to source ids, target ids, and how much of these they have."""
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
        words, real = (_is_word(ids, config) for ids in (source, target))  # [B, S], [B, T]
        # The end of a source is where a head looks that looks for nothing.
        weights = tf.where(tf.expand_dims(words, 1), weights, 0.0)  # [B, T, S]
        weights = tf.pad(weights, [[0, 0], [0, 0], [0, SHARING]])  # or a source may be too short
        most, places = tf.math.top_k(weights, SHARING)  # [B, T, 3]
        total = tf.reduce_sum(weights, axis=2, keepdims=True)
        shares = tf.round(UNITS * tf.math.divide_no_nan(most, total))
        padded = tf.pad(source, [[0, 0], [0, SHARING]], constant_values=config.pad_id)
        attended = tf.gather(padded, places, batch_dims=1)  # [B, T, 3]
        written = tf.tile(tf.expand_dims(target, 2), [1, 1, SHARING])
        known = tf.expand_dims(real, 2) & (shares > 0)
        ends, whole = (tf.fill(tf.shape(target), value) for value in (config.eos_id, float(UNITS)))
        shared = _masked((attended, written, shares), known)
        of_end = _masked((ends, target, whole), real)
        return [tf.concat(pair, axis=0) for pair in zip(shared, of_end, strict=True)]

    return tf.function(read, input_signature=[STRINGS, STRINGS], autograph=False)


def _masked(columns, mask):
    return [tf.boolean_mask(values, mask) for values in columns]


def _is_word(ids, config):
    """Which of token ids are neither padding nor an end."""
    return tf.not_equal(ids, config.pad_id) & tf.not_equal(ids, config.eos_id)
