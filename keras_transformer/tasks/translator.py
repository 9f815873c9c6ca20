"""Strings in, strings out: tokenizer, model and decoding loop in one traceable object."""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.decoding.alignment import check_alignment
from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.decoding.search import check_search
from keras_transformer.models.transformer import Transformer
from keras_transformer.run import Run
from keras_transformer.tasks.graphs import trace_alignment, trace_score, trace_search
from keras_transformer.tasks.memory import beam_memory, check_memory
from keras_transformer.tasks.translation import (
    Alignment,
    Score,
    check_sentences,
    encode,
    map_sorted,
    to_best,
    to_n_best,
)
from keras_transformer.text.tokenizer import Tokenizer

SMALL = 2**29  # bytes of a beam that are not compared with what is available, at no cost


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
        from keras_transformer import Beam
        translator = Translator.from_run("runs/demo")
        translator(["in 17 weeks", "Monday, 3 March 2031"], search=Beam(4, length_penalty=0.6))
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
        self._searcher = functools.cache(functools.partial(trace_search, self))
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

    def check(self, search, n_best=1):
        """Raises unless the settings of a search fit the model.

        Raises:
            ValueError: If they do not.
        """
        search.check(Vocabulary.of(self.model.config), self.max_length, n_best)

    def graph(self, search=Greedy(), n_best=1):
        """Returns the `tf.function` that translates a batch of sentences with a search.

        There is one for all values of the search's `inputs`. That of `Greedy`, which has none, can
        be the signature of a SavedModel as it is.

        Args:
            search: A `Greedy`, `Beam` or `Sample`.
            n_best: Translations M of each sentence.

        Returns:
            A function of `sentences`, string `[B]`, UTF-8, of which one longer than `max_length`
            tokens is cut, and of the `inputs` of the search; to a dictionary of `translation`,
            string `[B, M]`; `score`, float32 `[B, M]`; and `truncated`, boolean `[B]`. An empty
            sentence stays empty.
        """
        return self._searcher(search.kind, n_best)

    def translate_batch(self, sentences, search=Greedy()):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        return [best for best, *_ in self.n_best_batch(sentences, 1, search)]

    def n_best_batch(self, sentences, n, search, numbers=None):
        """Returns a list of at most `n` `Translation`s for each of a list of strings, one batch."""
        self.check(search, n)
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        self._check_memory(search, batch)
        values = search.values(range(len(sentences)) if numbers is None else numbers)
        return to_n_best(self.graph(search, n)(batch, *values), n)

    def _check_memory(self, search, batch):
        """Refuses a beam that cannot fit."""
        if not isinstance(search, Beam):
            return
        config, count = self.model.config, batch.shape[0]
        if beam_memory(config, count, search.size, self.max_length) >= SMALL:
            check_memory(config, count, search.size, self.encode(batch)[0].shape[1])

    def __call__(self, sentences, search=Greedy(), batch_size=64):
        """Returns the translations of a list of strings, in order.

        Args:
            sentences: List of strings, of any length.
            search: A `Greedy`, `Beam` or `Sample`.
            batch_size: Sentences decoded at a time; sentences of similar length go together.

        Raises:
            TypeError: If `sentences` is not a list of strings, or `search` is something else.
            ValueError: If the settings of the search do not fit the model, or a beam does not fit
                into memory.
        """
        return [best.text for best, *_ in self.n_best(sentences, 1, search, batch_size)]

    def n_best(self, sentences, n, search=None, batch_size=64, numbers=None):
        """Returns for each of a list of strings its `n` best translations, the best first.

        Args:
            sentences: List of strings, of any length.
            n: Translations of each. There are fewer where the same text was found twice, written
                with other tokens, and one of an empty sentence, which stays empty.
            search: A `Beam` of at least `n` hypotheses; with an `n` of 1 any search. `None`: a beam
                of 4, or of `n` if that is more.
            batch_size: Sentences decoded at a time; it changes nothing else.
            numbers: For a `Sample`, integers of 32 bits, one for each sentence, in place of its
                place in the list.

        Returns:
            List of lists of `Translation`.

        Raises:
            TypeError: As when it is called.
            ValueError: As when it is called, or if `numbers` are not as many.
        """
        search = Beam(max(4, n)) if search is None else search
        check_search(search, Greedy, Beam, Sample)
        sentences = check_sentences(sentences)
        numbers = range(len(sentences)) if numbers is None else list(numbers)
        if len(numbers) != len(sentences):
            raise ValueError(
                "`numbers` must be as many as `sentences`. "
                f"Received: {len(numbers)} numbers, {len(sentences)} sentences."
            )

        def translate(batch):
            numbers, texts = zip(*batch, strict=True)
            return self.n_best_batch(texts, n, search, numbers)

        numbered = list(zip(numbers, sentences, strict=True))
        return map_sorted(translate, numbered, batch_size, key=lambda pair: len(pair[1]))

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
            check_sentences(sources, "sources"),
            check_sentences(targets, "targets"),
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
            rows = zip(*columns, to_best(outputs), strict=True)
            return [self._alignment(*row) for row in rows]

        return map_sorted(align, check_sentences(sentences), batch_size)

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
