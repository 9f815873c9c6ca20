"""The searches of the model in memory, with which those of an export are compared."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import greedy_decode
from keras_transformer.decoding.hypotheses import exists
from keras_transformer.tasks.beam_translator import BeamTranslator, search_with_limit
from keras_transformer.tasks.translation import Translation, encode, map_sorted

SOURCE = tf.TensorSpec([None, None], tf.int32)
BATCH_SIZE = 64


@dataclasses.dataclass(frozen=True)
class Output(Translation):
    """A translation and its tokens.

    Args:
        tokens: Tuple of token ids up to `eos_id`, which is there unless the limit came first; none
            for a hypothesis that does not exist. `None`: not known.
        guessed: Whether the tokens were found by the text: a search may have taken others, and no
            end where the limit came first.
    """

    tokens: tuple | None = None
    guessed: bool = False


@dataclasses.dataclass(frozen=True)
class Rules:
    """What must be known of a search to judge its outputs.

    Args:
        max_length: Most tokens of an output.
        greedy: Whether it searches greedily; with a beam otherwise.
        length_penalty: See `beam_decode`.
        normalization: See `beam_decode`.
        min_length: See `BeamTranslator`.
        extra_length: See `BeamTranslator`.
    """

    max_length: int
    greedy: bool = True
    length_penalty: float = 0.0
    normalization: str = "none"
    min_length: int = 1
    extra_length: int | None = None

    @classmethod
    def of(cls, settings):
        """Returns those of a `Translator` or of a `BeamTranslator`."""
        if not isinstance(settings, BeamTranslator):
            return cls(settings.max_length)
        return cls(
            settings.translator.max_length,
            False,
            settings.length_penalty,
            settings.normalization,
            settings.min_length,
            settings.extra_length,
        )

    def penalty(self, tokens):
        """Returns what the log-probability of an output of that many tokens is divided by."""
        if self.normalization == "gnmt":
            return ((5 + tokens) / 6) ** self.length_penalty
        return tokens if self.normalization == "average" else 1.0

    def limit(self, source_length):
        """Returns the most tokens of an output for a source of that many."""
        if self.extra_length is None:
            return self.max_length
        return min(self.max_length, max(source_length + self.extra_length, self.min_length))


class Reference:
    """A search of the model in memory.

    Args:
        settings: A `Translator`, which searches greedily, or a `BeamTranslator`.
        n_best: Hypotheses M of each sentence.

    Attributes:
        rules: Its `Rules`.
    """

    def __init__(self, settings, n_best=1):
        self.rules = Rules.of(settings)
        self._translator = settings if self.rules.greedy else settings.translator
        self._beam = settings
        self._n_best = n_best
        search = self._greedy if self.rules.greedy else self._search
        self._decode = tf.function(search, input_signature=[SOURCE], autograph=False)

    def outputs(self, sentences):
        """Returns for each of a list of strings a list of M `Output`s, the best first."""
        translator = self._translator
        pad_id = translator.tokenizer.pad_id

        def decode(ids):
            return self._decode(ids.to_tensor(pad_id))

        return outputs_of(decode, translator.tokenizer, translator.max_length, sentences)

    def _greedy(self, source):
        tokens, scores = greedy_decode(self._translator.model, source, self._translator.max_length)
        return tf.expand_dims(tokens, 1), tf.expand_dims(scores, 1)  # [B, M=1, L], [B, M=1]

    def _search(self, source):
        beam = self._beam
        return search_with_limit(
            self._translator,
            source,
            beam.beam_size,
            self._n_best,
            beam.normalization,
            beam.length_penalty,
            beam.min_length,
            self._translator.max_length if beam.extra_length is None else beam.extra_length,
        )  # [B, M, L], [B, M]


def outputs_of(decode, tokenizer, max_length, sentences):
    """Translates a list of strings by a search from token ids.

    Args:
        decode: Function of ragged token ids `[B, (S)]` to token ids `[B, M, L]` and scores
            `[B, M]`.
        tokenizer: The `Tokenizer`.
        max_length: Longest source in tokens.
        sentences: List of strings.

    Returns:
        For each sentence a list of M `Output`s.
    """

    def answer(batch):
        ids, truncated, empty = encode(tokenizer, tf.constant(batch), max_length)
        tokens, scores = (np.asarray(each) for each in decode(ids))
        texts = tokenizer.decode(tf.constant(tokens.reshape(-1, tokens.shape[-1])))
        columns = texts.numpy().reshape(scores.shape), scores, tokens
        rows = zip(*columns, truncated.numpy(), empty.numpy(), strict=True)
        return [_outputs(tokenizer, *row) for row in rows]

    return map_sorted(answer, sentences, BATCH_SIZE)


def tokens_of(tokenizer, row):
    """Returns the tokens of a row `[L]` as a tuple: up to `eos_id`, or before the padding."""
    row = np.asarray(row)
    ends = np.flatnonzero(row == tokenizer.eos_id)
    length = ends[0] + 1 if len(ends) else np.count_nonzero(row != tokenizer.pad_id)
    return tuple(row[:length].tolist())


def with_tokens(tokenizer, outputs, *known):
    """Fills in tokens that are not known.

    Args:
        tokenizer: A `Tokenizer`.
        outputs: For each sentence a list of `Output`s.
        *known: The same of other searches, with tokens: where the text is the same, so are they.
            Otherwise they are those that the tokenizer makes of the text.
    """
    filled = []
    for number, row in enumerate(outputs):
        tokens = {
            output.text: output.tokens
            for rows in reversed(known)
            for output in reversed(rows[number])
        }
        filled.append([_filled(tokenizer, output, tokens) for output in row])
    return filled


def best_of(outputs):
    """Returns the first of each sentence."""
    return [best for best, *_ in outputs]


def flat(rows):
    """Returns the elements of a list of lists, in order."""
    return [each for row in rows for each in row]


def _filled(tokenizer, output, known):
    if output.tokens is not None:
        return output
    nothing = output.text == "" and output.score == 0  # the translation of an empty sentence
    if nothing or not exists(output.score):
        return dataclasses.replace(output, tokens=())
    tokens = known.get(output.text)
    if tokens is None:
        tokens = tuple(tokenizer.encode([output.text]).to_list()[0])
    return dataclasses.replace(output, tokens=tokens, guessed=True)


def _outputs(tokenizer, texts, scores, tokens, truncated, empty):
    """The `Output`s of one sentence."""
    if empty:
        return [Output("", 0.0, bool(truncated), ()) for _ in texts]
    return [
        Output(
            text.decode("utf-8", "replace"),
            float(score),
            bool(truncated),
            tokens_of(tokenizer, row) if exists(score) else (),
        )
        for text, score, row in zip(texts, scores, tokens, strict=True)
    ]
