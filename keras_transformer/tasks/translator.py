"""Strings in, strings out: tokenizer, model and decoding loop in one traceable object."""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.decoding import greedy_decode
from keras_transformer.decoding.alignment import check_alignment
from keras_transformer.decoding.sampling import check_sampling
from keras_transformer.models.transformer import Transformer
from keras_transformer.run import Run
from keras_transformer.tasks.beam_translator import BeamTranslator, trace_search
from keras_transformer.tasks.graphs import trace_alignment, trace_sample, trace_score
from keras_transformer.tasks.translation import (
    Alignment,
    Score,
    encode,
    map_sorted,
    to_translations,
    translate_sorted,
)
from keras_transformer.text.tokenizer import Tokenizer


class Translator(tf.Module):
    """A trained model with its tokenizer.

    Args:
        model: A `Transformer`.
        tokenizer: The `Tokenizer` it was trained with.
        max_length: Longest source and longest output in tokens, the end of the sentence included.
            `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        translator = Translator.from_run("runs/demo")
        translator(["in 17 weeks", "Monday, 3 March 2031"])
    """

    def __init__(self, model, tokenizer, max_length=None):
        super().__init__(name="translator")
        _check_type("model", model, Transformer)
        _check_type("tokenizer", tokenizer, Tokenizer)
        config = model.config
        self.max_length = config.max_length if max_length is None else max_length
        if not is_integer(self.max_length):
            raise TypeError(
                f"`max_length` must be an integer, or None. Received: max_length={max_length!r}."
            )
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
        self.search = functools.cache(functools.partial(trace_search, self))
        self._sampler = functools.cache(functools.partial(trace_sample, self))
        self._scorer = functools.cache(functools.partial(trace_score, self))
        self._aligner = functools.cache(functools.partial(trace_alignment, self))

    @classmethod
    def from_run(cls, path, max_length=None):
        """Returns the translator that training left in the folder `path`.

        Raises:
            ValueError: If a file is missing or damaged, or they are not of one run.
        """
        run = Run(path)
        model, tokenizer = run.load_model(), run.load_tokenizer()
        if tokenizer.vocab_size != model.config.vocab_size:
            raise ValueError(
                f"{run.tokenizer} is another run's: it has {tokenizer.vocab_size} pieces, and "
                f"{run.model} was trained with {model.config.vocab_size}. Put back its own."
            )
        return cls(model, tokenizer, max_length)

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
            TypeError: If `sentences` is not a list of strings, or there are options and no beam.
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
        return map_sorted(n_best, _check_sentences(sentences), batch_size)

    def sample(
        self,
        sentences,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        seed=0,
        batch_size=64,
        numbers=None,
    ):
        """Returns for each of a list of strings a translation drawn at random; see `sample_decode`.

        A sentence's sample depends on the seed and on its place in the list: the same sentence,
        several times in it, has several samples.

        Args:
            sentences: List of strings, of any length.
            temperature: At least 0. 0 is greedy search.
            top_k: Tokens to draw from. 0: all.
            top_p: Probability of the tokens to draw from. 1: all.
            seed: Integer of 32 bits.
            batch_size: Sentences decoded at a time; it changes nothing else.
            numbers: Integers of 32 bits, one for each sentence, in place of its place in the list.

        Returns:
            List of `Translation`.

        Raises:
            ValueError: If a number is out of range, or `numbers` are not as many.
        """
        check_sampling(temperature, top_k, top_p)
        sentences = _check_sentences(sentences)
        numbers = range(len(sentences)) if numbers is None else list(numbers)
        if len(numbers) != len(sentences):
            raise ValueError(
                "`numbers` must be as many as `sentences`. "
                f"Received: {len(numbers)} numbers, {len(sentences)} sentences."
            )
        numbered = list(zip(numbers, sentences, strict=True))

        def sample(batch):
            numbers, texts = zip(*batch, strict=True)
            seeds = tf.constant([(seed, number) for number in numbers], tf.int32)
            sample = self._sampler()
            return to_translations(sample(tf.constant(texts), temperature, top_k, top_p, seeds))

        return map_sorted(sample, numbered, batch_size, key=lambda each: len(each[1]))

    def score(self, sources, targets, batch_size=64):
        """Returns how probable the model finds given translations.

        Args:
            sources: List of strings.
            targets: Their translations, a list of as many strings.
            batch_size: Sentences scored at a time.

        Returns:
            List of `Score`.

        Raises:
            TypeError: If `sources` or `targets` is not a list of strings.
            ValueError: If the lists are of different length.
        """
        sources, targets = (
            _check_sentences(sources, "sources"),
            _check_sentences(targets, "targets"),
        )
        if len(sources) != len(targets):
            raise ValueError(
                "`targets` must have one translation for each source. "
                f"Received: {len(sources)} sources, {len(targets)} targets."
            )

        def score(pairs):
            outputs = self._scorer()(*(tf.constant(side) for side in zip(*pairs, strict=True)))
            columns = (outputs[name].numpy().tolist() for name in ("score", "tokens", "truncated"))
            return [Score(*row) for row in zip(*columns, strict=True)]

        pairs = list(zip(sources, targets, strict=True))
        return map_sorted(score, pairs, batch_size, key=lambda pair: sum(map(len, pair)))

    def align(self, sentences, layer=-1, head=None, batch_size=64):
        """Translates by greedy search and returns what each piece attended to in the source.

        Args:
            sentences: List of strings, of any length.
            layer: Number of the decoder's layer.
            head: Number of the attention head. `None`: the mean of all.
            batch_size: Sentences decoded at a time.

        Returns:
            List of `Alignment`.

        Raises:
            ValueError: If there is no such layer or head.
        """
        config = self.model.config
        check_alignment((layer, head), config)

        def align(batch):
            outputs = self._aligner(layer, head)(tf.constant(batch))
            columns = (outputs[name].numpy() for name in ("source", "target", "weights"))
            rows = zip(*columns, to_translations(outputs), strict=True)
            return [self._alignment(*row) for row in rows]

        return map_sorted(align, _check_sentences(sentences), batch_size)

    def _alignment(self, source, target, weights, translation):
        source, target = (
            side[: np.count_nonzero(side != self.model.config.pad_id)] for side in (source, target)
        )
        pieces = [self.tokenizer.pieces(each) for each in (source, target)]
        return Alignment(*pieces, weights[: len(target), : len(source)], translation)


def _check_type(name, value, wanted):
    if not isinstance(value, wanted):
        raise TypeError(
            f"`{name}` must be a {wanted.__name__}; `Translator.from_run(FOLDER)` opens a trained "
            f"run. Received: {name} of type {type(value).__name__}."
        )


def _check_sentences(sentences, name="sentences"):
    if isinstance(sentences, str | bytes) or not hasattr(sentences, "__iter__"):
        raise TypeError(f"`{name}` must be a list of strings. Received: {sentences!r}.")
    sentences = list(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str | bytes):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {sentence!r} at place {number}."
            )
    return sentences
