"""What an export can be asked: each signature of a SavedModel is one of these."""

import tensorflow as tf

from keras_transformer.beam_translator import BeamTranslator
from keras_transformer.decoding.alignment import check_alignment

from .searches import SOURCE, BeamSearch, GreedySearch, traced

DEFAULT = "serving_default"


def make_endpoints(translator, n_best=None, graph_of=traced, alignment=None):
    """Returns the signatures of an export, in order; the table to add another one to.

    Args:
        translator: A `Translator`, whose default signature searches greedily, or a
            `BeamTranslator`, whose settings are those of every search with a beam.
        n_best: Translations M that the signatures with several give. `None`: 4, or the beam's size
            if that is less.
        graph_of: Makes of each search the function that the endpoints call.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: with it there is a signature that says, too, what each token attended to.

    Returns:
        List of `Endpoint`s.

    Raises:
        ValueError: If `n_best` is not between 1 and the size of the beam, or there is no such layer
            or head.
    """
    beam = translator
    if not isinstance(translator, BeamTranslator):
        beam = BeamTranslator(translator, max(4, n_best or 4))
    check_alignment(alignment, beam.translator.model.config)
    n_best = min(4, beam.beam_size) if n_best is None else n_best
    several, greedy = BeamSearch(beam, n_best), GreedySearch(beam.translator)
    best = BeamSearch(beam) if translator is beam else greedy
    table = [
        (Sentences, DEFAULT, best),
        (Sentences, "n_best", several),
        (Ids, "tokens", greedy),
        (Ids, "beam_tokens", several),
    ]
    if alignment is not None:
        table.append((Alignments, "alignment", best.aligned(alignment)))
    graphs = {search: graph_of(search) for search in dict.fromkeys(each[-1] for each in table)}
    return [
        kind(name, beam.translator, graphs[search], search.summary) for kind, name, search in table
    ]


class Endpoint:
    """A signature: one input, a search, and named outputs whose first axis is the input's.

    Args:
        name: The signature's name.
        translator: The `Translator` that knows the vocabulary and the longest length L.
        search: Function from token ids `[B, S]` to a dictionary of `tokens`, `score` and whatever
            else the endpoint answers with, such as a `GreedySearch` in a graph.
        summary: How it searches, for people.

    Attributes:
        input: The `tf.TensorSpec` of the input.
        last_axes: The letters of an output's last axes, by its name, where it has other than the
            batch and the n-best list.
        function: The `tf.function` to export, from the input to a dictionary.
    """

    input = None
    last_axes = {}

    def __init__(self, name, translator, search, summary):
        self.name = name
        self.translator = translator
        self.search = search
        self.summary = summary
        self.function = tf.function(self.answer, input_signature=[self.input], autograph=False)

    def answer(self, value):
        """Returns the outputs for an input, by name."""
        raise NotImplementedError

    def example(self, sentences):
        """Returns the input that asks for the translation of a list of strings."""
        raise NotImplementedError


class Sentences(Endpoint):
    """Strings to translations.

    `sentences`, string `[B]`, UTF-8, to `translation`, string, and `score`, float32, both `[B]`, or
    `[B, M]` with the best first; and `truncated`, boolean `[B]`: whether the sentence was longer
    than `max_length` tokens and was cut. An empty sentence stays empty. Where a search finds fewer
    than M, the others are empty and have a score of -1e9.
    """

    input = tf.TensorSpec([None], tf.string, name="sentences")

    def answer(self, value):  # noqa: D102
        source, truncated, empty = self.translator.encode(value)  # [B, S], [B], [B]
        return self._translations(self.search(source), truncated, empty)

    def _translations(self, outputs, truncated, empty):
        """What a search found, as strings."""
        tokens, scores = outputs["tokens"], outputs["score"]  # [B, (M,) L], [B, (M)]
        texts = self.translator.tokenizer.decode(tf.reshape(tokens, [-1, tokens.shape[-1]]))
        texts = tf.reshape(texts, tf.shape(scores))  # [B, (M)]
        if len(scores.shape) == 2:
            empty = tf.expand_dims(empty, 1)  # [B, 1]
        return {
            "translation": tf.where(empty, "", texts),
            "score": tf.where(empty, 0.0, scores),
            "truncated": truncated,
        }

    def example(self, sentences):  # noqa: D102
        return tf.constant(sentences, tf.string, [len(sentences)])


class Alignments(Sentences):
    """Strings to the best translation of each and what its tokens attended to in the source.

    `sentences`, string `[B]`, UTF-8, to what `Sentences` gives; `tokens`, int32 `[B, T]`;
    `source_pieces`, string `[B, S]`, and `target_pieces`, string `[B, T]`, as SentencePiece writes
    them, the end of the sentence included; and `alignment`, float32 `[B, T, S]`. S and T are the
    lengths of the longest source and translation of the batch. Behind the end, tokens are
    `pad_id`, pieces are empty and weights are 0. Of an empty sentence there is nothing but the end
    of the source.
    """

    last_axes = {
        "tokens": ("T",),
        "source_pieces": ("S",),
        "target_pieces": ("T",),
        "alignment": ("T", "S"),
    }

    def answer(self, value):  # noqa: D102
        source, truncated, empty = self.translator.encode(value)  # [B, S], [B], [B]
        outputs = self.search(source)
        pad_id = self.translator.tokenizer.pad_id
        said = tf.not_equal(outputs["tokens"], pad_id) & ~tf.expand_dims(empty, 1)  # [B, L]
        columns = tf.range(1, said.shape[1] + 1)  # [L]
        longest = tf.reduce_max(tf.where(tf.reduce_any(said, axis=0), columns, 0))  # T
        said = said[:, :longest]  # [B, T]
        tokens = tf.where(said, outputs["tokens"][:, :longest], pad_id)
        # A compiled search has filled up the sources: S may be less than the width it looked at.
        weights = outputs["alignment"][:, :longest, : tf.shape(source)[1]]  # [B, T, S]
        return {
            **self._translations(outputs, truncated, empty),
            "tokens": tokens,
            "source_pieces": self._pieces(source),
            "target_pieces": self._pieces(tokens),
            "alignment": tf.where(tf.expand_dims(said, 2), weights, 0.0),
        }

    def _pieces(self, ids):
        """Names of ids. TensorFlow Serving knows no operation of SentencePiece that gives them."""
        tokenizer = self.translator.tokenizer
        names = tokenizer.pieces(range(tokenizer.vocab_size))
        names[tokenizer.pad_id] = ""
        return tf.gather(tf.constant(names), ids)


class Ids(Endpoint):
    """Token ids to token ids.

    `source`, int32 `[B, S]`, each row ending in `eos_id`, to `tokens`, int32 `[B, L]`, each row
    ending in `eos_id` and then padding, and `score`, float32 `[B]`; or `[B, M, L]` and `[B, M]`
    with the best first. Whatever follows the first `eos_id` of a row is ignored: TensorFlow Serving
    fills up the rows of a batch with the first id of a request, not with `pad_id`. A row without
    `eos_id`, longer than `max_length`, or with ids that are not in the vocabulary is an error.
    """

    input = SOURCE
    last_axes = {"tokens": ("L",)}

    def answer(self, value):  # noqa: D102
        return self.search(self._checked(value))

    def example(self, sentences):  # noqa: D102
        return self.translator.encode(tf.constant(sentences, tf.string, [len(sentences)]))[0]

    def _checked(self, source):
        """`source` with padding behind each `eos_id`, as wide as its longest row, at least 1."""
        tokenizer, longest = self.translator.tokenizer, self.translator.max_length
        source = tf.pad(source, [[0, 0], [0, 1]], constant_values=tokenizer.pad_id)
        is_end = tf.cast(tf.equal(source, tokenizer.eos_id), tf.int32)
        before = tf.cumsum(is_end, axis=1, exclusive=True)  # [B, S + 1], ends before each position
        source = tf.where(tf.equal(before, 0), source, tokenizer.pad_id)
        lengths = tf.argmax(is_end, axis=1, output_type=tf.int32) + 1  # [B]
        checks = {
            f"`source` must end each row in the id {tokenizer.eos_id}.": tf.equal(
                tf.reduce_max(is_end, axis=1), 1
            ),
            f"`source` must have at most {longest} ids in a row.": lengths <= longest,
            f"`source` must hold ids from 0 to {tokenizer.vocab_size - 1}.": tf.logical_and(
                source >= 0, source < tokenizer.vocab_size
            ),
        }
        asserts = [
            tf.debugging.Assert(tf.reduce_all(correct), [message])
            for message, correct in checks.items()
        ]
        with tf.control_dependencies(asserts):
            return source[:, : tf.maximum(tf.reduce_max(lengths), 1)]
