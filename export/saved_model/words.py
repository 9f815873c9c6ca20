"""Words of each sentence as strings: their tokens in the graph, a search and a signature."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Found
from keras_transformer.export.saved_model.endpoints import Sentences
from keras_transformer.export.searches import ModelSearch
from keras_transformer.export.words import BANNED, PREFIX, TERMS, WordInputs
from keras_transformer.tasks.generator import SOURCE
from keras_transformer.tasks.strings import is_utf8
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tasks.wording import MAX_CHARACTERS, TOO_LONG, Wording, WordingTokens
from keras_transformer.tensors import Tensor

STRINGS = {
    PREFIX: tf.TensorSpec([None], tf.string, name=PREFIX),
    BANNED: tf.TensorSpec([None], tf.string, name=BANNED),
    TERMS: tf.TensorSpec([None], tf.string, name=TERMS),
}
# Strings hold several words, because TensorFlow Serving would pad a second axis with the first
# string of a request.
LINES = "\n"  # between phrases or terms
SEPARATOR = "\t"  # between the spellings of a term
INVALID = b"\xff"  # a sentence that is not UTF-8, which has empty outputs
ERROR = "error"  # output: why a sentence has none, a line that begins with the name of an input
# Numbers of the words of a sentence. Each takes memory and time at each step of the search.
MOST = {BANNED: 250, TERMS: 50}
NOT_UTF8 = "is not valid UTF-8."
UNKNOWN = "has a term with characters that the vocabulary lacks."
TOO_MANY = {
    BANNED: f"has more than {MOST[BANNED]} phrases for a sentence. Leave some out.",
    TERMS: f"has more than {MOST[TERMS]} terms and spellings for a sentence. Leave some out.",
}


@dataclasses.dataclass(frozen=True)
class WordedSearch(ModelSearch):
    """A search with words, called with token ids `[B, S]` and the inputs of `WordInputs`."""

    @property
    def words(self) -> WordInputs:
        """The `WordInputs`."""
        return WordInputs(self.pipeline, self.search.takes_terms)

    @property
    def inputs(self) -> Any:  # noqa: D102
        return SOURCE, *self.words.specs()

    def __call__(self, source, *words) -> dict[str, Any]:
        given = dict(zip(self.words.names, words, strict=True))

        def find(constraints):
            return Found(**self._run(self.search, source, constraints=constraints))

        found = self.words.searched(find, given)
        return {name: value for name, value in found._asdict().items() if value is not None}

    @property
    def summary(self) -> str:  # noqa: D102
        return f"with the words in the request, {super().summary}"


class SentencesAndWords(Sentences):
    """Signature from strings to texts, with words that each output must or must not contain.

    The inputs are `sentences`, string `[B]`, and for each of them

    - `prefix`, string `[B]`: the beginning of the output;
    - `banned`, string `[B]`: phrases that the output does not contain, separated by newlines.

    The empty string stands for no words. The outputs are those of `Sentences` and `error`, string
    `[B]`: `""`, or a line about words that are not valid UTF-8, too many or too long. Such a
    sentence has empty outputs with a score of -1e9 and does not affect the others of its batch. The
    tokens of the words are those of a `Wording` in a run.
    """

    inputs = (*Sentences.inputs, STRINGS[PREFIX], STRINGS[BANNED])

    def answer(self, sentences, prefix, banned) -> dict[str, Tensor]:  # noqa: D102
        return self._with_words(sentences, {PREFIX: prefix, BANNED: banned})

    def _with_words(self, sentences, words):
        """Returns the outputs for words by the names of their inputs."""
        checks = {
            f"`{name}` must have one string for each of `sentences`.": tf.equal(
                tf.size(strings), tf.size(sentences)
            )
            for name, strings in words.items()
        }
        with tf.control_dependencies(assertions(checks)):
            ids, errors = WordTokens(self.pipeline)(words)
        sentences = tf.where(tf.equal(errors, ""), sentences, INVALID)
        return {**self._written(self._translate(sentences, *ids)), ERROR: errors}

    def request(self, sentences, wording) -> dict[str, Tensor]:
        """Returns the inputs of a request for a list of strings with the words of a `Wording`."""
        words = strings_of(wording, sentences, range(len(sentences)))
        size = [len(sentences)]
        given = {spec.name: words[spec.name] for spec in self.inputs[1:]}
        given = {name: tf.constant(strings, tf.string, size) for name, strings in given.items()}
        return {**super().example(sentences), **given}

    def example(self, sentences) -> dict[str, Tensor]:
        """Returns the inputs of a request in which every other sentence has a prefix."""
        count = len(sentences)
        prefix = [(sentence.split() or [""])[0][: len(sentence) % 2 * 9] for sentence in sentences]
        none = tf.constant("", tf.string, [count])
        words = {PREFIX: tf.constant(prefix, tf.string, [count]), BANNED: none, TERMS: none}
        words = {spec.name: words[spec.name] for spec in self.inputs[1:]}
        return {**super().example(sentences), **words}


class SentencesAndTerms(SentencesAndWords):
    """Signature from strings to texts, with words and terms of the output of each sentence.

    It also has the input `terms`, string `[B]`: terms that the output contains, separated by
    newlines. Several spellings of a term, of which one is enough, are separated by tabs. A term
    whose characters are not in the vocabulary is also an `error`. See `SentencesAndWords`.
    """

    inputs = (*SentencesAndWords.inputs, STRINGS[TERMS])

    def answer(self, sentences, prefix, banned, terms) -> dict[str, Tensor]:  # noqa: D102
        return self._with_words(sentences, {PREFIX: prefix, BANNED: banned, TERMS: terms})


class WordTokens:
    """Token ids of the words of sentences, in the graph.

    Args:
        pipeline: A `ConditionalGenerator`.
    """

    def __init__(self, pipeline):
        begin = pipeline.model.config.head.rules.beginning_length
        self._tokens = WordingTokens(Wording(), pipeline.target_tokenizer, begin)
        self._tokenizer, self._begin = pipeline.target_tokenizer, begin

    def __call__(self, words: dict[str, Tensor]) -> tuple[list[Tensor], Tensor]:
        """Returns the ids of `WordInputs`, and the `error` of each sentence, string `[B]`.

        Call arguments:
            words: Strings by the names of the inputs of the signature; see `SentencesAndWords`.
        """
        kinds = {PREFIX: self._prefix, BANNED: self._banned, TERMS: self._terms}
        errors = _errors(words)
        words = {name: tf.where(tf.equal(errors, ""), texts, "") for name, texts in words.items()}
        results = [kinds[name](strings) for name, strings in words.items()]
        for _, known in results:
            errors = _first(errors, known, f"`{TERMS}` {UNKNOWN}")
        return [ids for ids, _ in results], errors

    def _prefix(self, texts):
        ids = self._padded(self._tokenizer.tokenize(texts))  # [B, P]
        ids = tf.pad(ids, [[0, 0], [self._begin, 0]], constant_values=self._tokenizer.pad_id)
        return ids, True

    def _banned(self, phrases):
        phrases = tf.strings.split(phrases, LINES).to_tensor("")  # [B, N]
        batch = tf.shape(phrases)[0]
        ids = self._tokenizer.tokenize(tf.reshape(_spellings(phrases), [-1]))  # [R, (Q)]
        unknown = tf.reduce_any(tf.equal(ids, self._tokenizer.unk_id), axis=1)  # [R]
        ids = tf.ragged.boolean_mask(ids, ids.with_values(tf.repeat(~unknown, ids.row_lengths())))
        pieces = tf.gather(tf.constant(self._tokens.pieces), ids)
        ways = self._tokens.segmentations(tf.strings.reduce_join(pieces, axis=-1))  # [R, W, T]
        own = tf.expand_dims(ids.to_tensor(self._tokenizer.pad_id), 1)  # [R, 1, Q]
        longest = tf.maximum(tf.shape(ways)[2], tf.shape(own)[2])
        rows = tf.concat([self._widened(own, longest), self._widened(ways, longest)], 1)
        count = tf.shape(phrases)[1] * 2 * tf.shape(rows)[1]
        rows = tf.reshape(rows, tf.stack([batch, count, longest]))
        real = tf.reduce_any(tf.not_equal(rows, self._tokenizer.pad_id), axis=2)  # [B, count]
        return self._padded(tf.ragged.boolean_mask(rows, real)), True

    def _terms(self, terms):
        terms = tf.strings.split(terms, LINES).to_tensor("")  # [B, C]
        earlier = tf.linalg.band_part(tf.ones([tf.shape(terms)[1]] * 2), -1, 0) > 0  # [C, C]
        earlier &= ~tf.eye(tf.shape(terms)[1], dtype=tf.bool)
        same = tf.equal(tf.expand_dims(terms, 2), tf.expand_dims(terms, 1)) & earlier  # [B, C, C]
        terms = tf.where(tf.reduce_any(same, axis=2), "", terms)
        split = tf.strings.split(tf.reshape(terms, [-1]), SEPARATOR)  # [B * C, (A)]
        split = split.to_tensor("")
        written = tf.reshape(_spellings(split), tf.stack([tf.shape(split)[0], -1]))  # [B * C, 2A]
        ids = self._padded(self._tokenizer.tokenize(tf.reshape(written, [-1])))  # [B * C * 2A, Q]
        as_given = tf.equal(tf.range(tf.shape(ids)[0]) % 2, 0)  # the others begin a sentence
        unknown = tf.reduce_any(tf.equal(ids, self._tokenizer.unk_id), axis=1)
        known = tf.reshape(~(unknown & as_given), tf.stack([tf.shape(terms)[0], -1]))
        shape = [*tf.unstack(tf.shape(terms)), tf.shape(written)[1], tf.shape(ids)[1]]
        return tf.reshape(ids, tf.stack(shape)), tf.reduce_all(known, axis=1)

    def _padded(self, ragged):
        return ragged.to_tensor(self._tokenizer.pad_id)

    def _widened(self, ids, length):
        missing = length - tf.shape(ids)[2]
        pads = [[0, 0], [0, 0], [0, missing]]
        return tf.pad(ids, pads, constant_values=self._tokenizer.pad_id)


def strings_of(wording, texts, numbers) -> dict[str, list[str]]:
    """Returns the words of each text as strings, by the names of the inputs.

    Args:
        wording: The `Wording`.
        texts: The sources.
        numbers: Their indices among all sources, which select the prefixes.
    """
    terms = [wording.terms_of(text) for text in texts]
    return {
        PREFIX: wording.prefixes(numbers),
        BANNED: [LINES.join(wording.banned)] * len(texts),
        TERMS: [LINES.join(map(SEPARATOR.join, row)) for row in terms],
    }


def _errors(words):
    """Returns a line about the words of each sentence, string `[B]`; `""` if they are in order.

    They are checked before the work that long or many words take.
    """
    errors = tf.zeros_like([*words.values()][0])
    for name, strings in words.items():
        valid = is_utf8(strings)  # [B]
        errors = _first(errors, valid, f"`{name}` {NOT_UTF8}")
        if name not in MOST:
            continue
        phrases = tf.strings.split(tf.where(valid, strings, ""), LINES)  # [B, (N)]
        if name == BANNED:
            lengths = phrases.with_values(tf.strings.length(phrases.values, unit="UTF8_CHAR"))
            short = tf.reduce_all(lengths <= MAX_CHARACTERS, axis=1)
            errors = _first(errors, short, f"`{name}` {TOO_LONG}")
        else:
            phrases = tf.strings.split(phrases, SEPARATOR).merge_dims(1, 2)
        few = tf.cast(phrases.row_lengths(), tf.int32) <= MOST[name]
        errors = _first(errors, few, f"`{name}` {TOO_MANY[name]}")
    return errors


def _first(errors, valid, error):
    """Returns the errors, with another one where there is none and a sentence is not `valid`."""
    return tf.where(tf.equal(errors, "") & tf.logical_not(valid), error, errors)


def _spellings(terms):
    """Returns `[..., 2]`: each term, and how it begins a sentence, `""` if that is the same.

    It is the function `spellings` in the graph.
    """
    first = tf.strings.upper(tf.strings.substr(terms, 0, 1, unit="UTF8_CHAR"), encoding="utf-8")
    capital = first + tf.strings.regex_replace(terms, r"(?s)\A.", "")
    return tf.stack([terms, tf.where(tf.equal(capital, terms), "", capital)], axis=-1)
