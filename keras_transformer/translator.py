"""Strings in, strings out: tokenizer, model and decoding loop in one traceable object."""

import dataclasses
import functools

import tensorflow as tf

from keras_transformer.decoding import beam_decode, greedy_decode
from keras_transformer.decoding.beam import check_beam, check_lengths, exists
from keras_transformer.run import Run

COLUMNS = ("translation", "score", "truncated")
BYTES_PER_TOKEN = 64  # SentencePiece's pieces have 16 characters at most, UTF-8's 4 bytes


@dataclasses.dataclass(frozen=True)
class Translation:
    """What became of one sentence.

    Args:
        text: The translation.
        score: Sum of the log-probabilities of its tokens, the end of the sentence included; from a
            beam divided by its penalty for the length.
        truncated: Whether the source was longer than the model's limit and was cut.
    """

    text: str
    score: float
    truncated: bool


class Translator(tf.Module):
    """A trained model with its tokenizer.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` it was trained with.
        max_length: Longest source and longest output in tokens, the end of the sentence included.
            `None`: the model's `max_length`.

    Raises:
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        translator = Translator.from_run("runs/demo")
        translator(["in 17 weeks", "Monday, 3 March 2031"])
    """

    def __init__(self, model, tokenizer, max_length=None):
        super().__init__(name="translator")
        config = model.config
        self.max_length = config.max_length if max_length is None else max_length
        if not 1 <= self.max_length <= config.max_length:
            raise ValueError(
                f"`max_length` must be between 1 and the model's {config.max_length}. "
                f"Received: max_length={max_length}."
            )
        if tokenizer.vocab_size != config.vocab_size:
            raise ValueError(
                "`tokenizer` must have as many entries as the model's vocabulary. "
                f"Received: {tokenizer.vocab_size} entries, vocab_size={config.vocab_size}."
            )
        self.tokenizer = tokenizer
        # The variables are tracked and the model is only closed over: a SavedModel of a tracked
        # Keras model can be loaded by Python alone, not by TensorFlow Serving.
        self.weights = [variable.value for variable in model.variables]
        self._model = lambda: model
        # In a cache and not in a dictionary: what a SavedModel could track would be saved with it.
        self.search = functools.cache(functools.partial(_trace_search, self))

    @classmethod
    def from_run(cls, path, max_length=None):
        """Returns the translator that training left in the folder `path`."""
        run = Run(path)
        return cls(run.load_model(), run.load_tokenizer(), max_length)

    @property
    def model(self):
        """The `Transformer`."""
        return self._model()

    def encode(self, sentences):
        """Returns token ids `[B, S]`, filled up with padding; see the function `encode`."""
        ids, truncated, empty = encode(self.tokenizer, sentences, self.max_length)
        return ids.to_tensor(self.model.config.pad_id), truncated, empty

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sentences")])
    def translate(self, sentences):
        """Translates a batch of sentences; this is the function that is exported.

        Args:
            sentences: `[B]`, string, UTF-8. A sentence longer than `max_length` tokens is cut.

        Returns:
            Dictionary of `translation`, string `[B]`; `score`, float32 `[B]`, the sum of the
            log-probabilities; and `truncated`, boolean `[B]`. An empty sentence stays empty.
        """
        source, truncated, empty = self.encode(sentences)
        tokens, scores = greedy_decode(self.model, source, self.max_length)
        return {
            "translation": tf.where(empty, "", self.tokenizer.decode(tokens)),
            "score": tf.where(empty, 0.0, scores),
            "truncated": truncated,
        }

    def translate_batch(self, sentences):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        return to_translations(self.translate(tf.constant(sentences, tf.string, [len(sentences)])))

    def __call__(self, sentences, batch_size=64, beam_size=None, **options):
        """Returns the translations of a list of strings, in order.

        Args:
            sentences: List of strings, of any length.
            batch_size: Sentences decoded at a time; sentences of similar length go together.
            beam_size: Hypotheses that run at a time. `None`: greedy search.
            **options: With a beam, the other arguments of `BeamTranslator`.

        Raises:
            TypeError: If `sentences` is a string, or there are options and no beam.
        """
        if options and beam_size is None:
            raise TypeError(f"`beam_size` must be given with {', '.join(options)}. Received: None.")
        search = self if beam_size is None else BeamTranslator(self, beam_size, **options)
        results = translate_sorted(search, _check_sentences(sentences), batch_size)
        return [result.text for result in results]

    def n_best(self, sentences, n, batch_size=64, beam_size=None, **options):
        """Returns for each of a list of strings its `n` best translations, the best first.

        Args:
            sentences: List of strings, of any length.
            n: Translations of each. There are fewer where the same text was found twice, written
                with other tokens, and one of an empty sentence, which stays empty.
            batch_size: Sentences decoded at a time.
            beam_size: Hypotheses that run at a time, at least `n`. `None`: 4, or `n` if that is
                more.
            **options: The other arguments of `BeamTranslator`.

        Returns:
            List of lists of `Translation`.
        """
        search = BeamTranslator(self, max(4, n) if beam_size is None else beam_size, **options)
        n_best = functools.partial(search.n_best_batch, n=n)
        return _map_sorted(n_best, _check_sentences(sentences), batch_size)


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
        ValueError: If a number is out of range or `normalization` is unknown.
    """

    translator: Translator
    beam_size: int = 4
    length_penalty: float = 0.6
    normalization: str = "gnmt"
    min_length: int = 1
    extra_length: int | None = 50

    def __post_init__(self):
        check_beam(self.beam_size, 1, self.length_penalty, self.normalization)
        check_lengths(self.translator.max_length, self.min_length)
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
        outputs = search(batch, self.length_penalty, self.min_length, extra)
        results = []
        for row in zip(*(outputs[name].numpy() for name in COLUMNS), strict=True):
            found = {}
            for text, score in zip(*row[:2], strict=True):
                if exists(score):  # else there are fewer
                    text = text.decode("utf-8", "replace")
                    found.setdefault(text, Translation(text, float(score), bool(row[2])))
            results.append(list(found.values()))
        return results


def _trace_search(translator, beam_size, n_best, normalization):
    """The graph of one beam: what is not an argument here is one of the graph's."""

    def search(sentences, length_penalty, min_length, extra_length):
        source, truncated, empty = translator.encode(sentences)  # [B, S], [B], [B]
        real = tf.not_equal(source, translator.model.config.pad_id)
        limit = tf.reduce_sum(tf.cast(real, tf.int32), axis=1) + extra_length  # [B]
        tokens, scores = beam_decode(
            translator.model,
            source,
            beam_size,
            n_best,
            length_penalty,
            normalization,
            min_length,
            tf.maximum(limit, min_length),
            cache_length=translator.max_length,
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


def _check_sentences(sentences):
    if isinstance(sentences, str):
        raise TypeError(f"`sentences` must be a list of strings. Received: {sentences!r}.")
    return list(sentences)


def encode(tokenizer, sentences, max_length):
    """Tokenises sentences for a model.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: `[B]`, string.
        max_length: Most tokens, the end of the sentence included.

    Returns:
        Ragged token ids `[B, (S)]`, cut at `max_length`; whether each was cut, `[B]`; and whether
        each holds nothing to translate, `[B]`, such as spaces of any script.
    """
    # A megabyte in an unknown script takes SentencePiece minutes: what no token can reach is cut.
    limit = BYTES_PER_TOKEN * max_length
    ids = tokenizer.encode(tf.strings.substr(sentences, 0, limit))
    truncated = (ids.row_lengths() > max_length) | (tf.strings.length(sentences) > limit)
    empty = tf.equal(ids.row_lengths(), 1) & ~truncated
    words = ids[:, :-1][:, : max_length - 1]
    ends = tf.fill([tf.shape(sentences)[0], 1], tokenizer.eos_id)
    return tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1), truncated, empty


def to_translations(outputs):
    """Returns a list of `Translation` from the tensors that `Translator.translate` returns."""
    columns = (outputs[name].numpy() for name in COLUMNS)
    return [
        Translation(text.decode("utf-8", "replace"), float(score), bool(truncated))
        for text, score, truncated in zip(*columns, strict=True)
    ]


def translate_sorted(translator, sentences, batch_size=64):
    """Translates with short sentences together, so that little is spent on padding.

    Args:
        translator: Anything with `translate_batch`: a `Translator` or an exported model.
        sentences: List of strings.
        batch_size: Sentences at a time.

    Returns:
        List of `Translation`, in the order of `sentences`.
    """
    return _map_sorted(translator.translate_batch, sentences, batch_size)


def _map_sorted(function, sentences, batch_size):
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    results = [None] * len(sentences)
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = [sentences[number] for number in numbers]
        for number, result in zip(numbers, function(batch), strict=True):
            results[number] = result
    return results
