"""What an export can be asked: each signature of a SavedModel is one of these."""

import tensorflow as tf

from keras_transformer.beam_translator import BeamTranslator

from .searches import SOURCE, BeamSearch, GreedySearch, traced

DEFAULT = "serving_default"


def make_endpoints(translator, n_best=None, graph_of=traced):
    """Returns the signatures of an export, in order; the table to add another one to.

    Args:
        translator: A `Translator`, whose default signature searches greedily, or a
            `BeamTranslator`, whose settings are those of every search with a beam.
        n_best: Translations M that the signatures with several give. `None`: 4, or the beam's size
            if that is less.
        graph_of: Makes of each search the function that the endpoints call.

    Returns:
        List of `Sentences` and `Ids`.

    Raises:
        ValueError: If `n_best` is not between 1 and the size of the beam.
    """
    beam = translator
    if not isinstance(translator, BeamTranslator):
        beam = BeamTranslator(translator, max(4, n_best or 4))
    n_best = min(4, beam.beam_size) if n_best is None else n_best
    several, greedy = BeamSearch(beam, n_best), GreedySearch(beam.translator)
    best = BeamSearch(beam) if translator is beam else greedy
    graphs = {search: graph_of(search) for search in (several, greedy, best)}
    table = [
        (Sentences, DEFAULT, best),
        (Sentences, "n_best", several),
        (Ids, "tokens", greedy),
        (Ids, "beam_tokens", several),
    ]
    return [
        kind(name, beam.translator, graphs[search], search.summary) for kind, name, search in table
    ]


class Endpoint:
    """A signature: one input, a search, and named outputs whose first axis is the input's.

    Args:
        name: The signature's name.
        translator: The `Translator` that knows the vocabulary and the longest length L.
        search: Function from token ids `[B, S]` to a dictionary of `tokens` and `score`, such as a
            `GreedySearch` in a graph.
        summary: How it searches, for people.

    Attributes:
        input: The `tf.TensorSpec` of the input.
        function: The `tf.function` to export, from the input to a dictionary.
    """

    input = None

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
        outputs = self.search(source)
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


class Ids(Endpoint):
    """Token ids to token ids.

    `source`, int32 `[B, S]`, each row ending in `eos_id`, to `tokens`, int32 `[B, L]`, each row
    ending in `eos_id` and then padding, and `score`, float32 `[B]`; or `[B, M, L]` and `[B, M]`
    with the best first. Whatever follows the first `eos_id` of a row is ignored: TensorFlow Serving
    fills up the rows of a batch with the first id of a request, not with `pad_id`. A row without
    `eos_id`, longer than `max_length`, or with ids that are not in the vocabulary is an error.
    """

    input = SOURCE

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
