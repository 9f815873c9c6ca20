"""Strings in, strings out: tokenizer, model and decoding loop in one traceable object."""

import dataclasses

import tensorflow as tf

from keras_transformer.decoding import greedy_decode
from keras_transformer.run import Run

BYTES_PER_TOKEN = 64  # SentencePiece's pieces have 16 characters at most, UTF-8's 4 bytes


@dataclasses.dataclass(frozen=True)
class Translation:
    """What became of one sentence.

    Args:
        text: The translation.
        score: Sum of the log-probabilities of its tokens, the end of the sentence included.
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

    def __call__(self, sentences, batch_size=64):
        """Returns the translations of a list of strings, in order.

        Args:
            sentences: List of strings, of any length.
            batch_size: Sentences decoded at a time; sentences of similar length go together.
        """
        if isinstance(sentences, str):
            raise TypeError(f"`sentences` must be a list of strings. Received: {sentences!r}.")
        results = translate_sorted(self, list(sentences), batch_size)
        return [result.text for result in results]


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
    columns = (outputs[name].numpy() for name in ("translation", "score", "truncated"))
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
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    results = [None] * len(sentences)
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = translator.translate_batch([sentences[number] for number in numbers])
        for number, result in zip(numbers, batch, strict=True):
            results[number] = result
    return results
