"""Best path of CTC: a text from the encoder alone, without a loop over its tokens."""

import dataclasses
import typing
from typing import Any

import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.decoding.prompts import Prompted
from keras_transformer.decoding.search import Search
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import BestPathSettings
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class BestPath(BestPathSettings, Search):
    """Takes the most probable label of CTC at each position of the encoder.

    The labels are those of training with CTC: tokens, and padding as the blank. Equal labels in a
    row become one token, and blanks are left out. The decoder is not used, and no loop is needed.
    The score is the log-probability of the path, summed over the positions of the encoder. Only for
    models that were trained with CTC (`training.ctc_weight`); others return meaningless tokens.

    Args:
        max_length: Maximum length of an output in tokens, `eos_id` included: integer, or tensor,
            scalar or `[B]`. `None`: that of the result, which also limits larger values.

    Call arguments:
        model: An encoder-decoder model, its predictor, or an `Ensemble` of models whose encoders
            have the same number of positions.
        source: The source of the model, such as frames `[B, S, F]`.
        options: The `SearchOptions`; only the length has an effect.

    Raises:
        TypeError: When called, if the model does not have both an encoder and a decoder.
        ValueError: If `max_length` is out of range. When called, also raised if outputs of the
            model begin with a prompt, or an option has no effect.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.decoding import BestPath
        >>> from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig
        >>> model = SpeechTransformer(SpeechTransformerConfig.preset("tiny", vocab_size=100))
        >>> BestPath(max_length=9)(model, np.ones((2, 70, 80), "float32")).scores.shape
        TensorShape([2, 1])

    Reference: Graves et al. (2006), "Connectionist Temporal Classification", section 3.2, "best
        path decoding". Not in Vaswani et al. (2017).
    """

    unused: typing.ClassVar[tuple] = (
        *("constraints", "token_scores", "alignment", "confidence"),
        *Search.unused,
    )

    def terms(self, tokens: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        return positions

    def check(self, vocabulary: Any, longest: int, n_best: int = 1) -> None:  # noqa: D102
        super().check(vocabulary, longest, n_best)
        _check_no_prompt(vocabulary)

    def _length(self, predictor, source, cache_length):
        check_count("cache_length", cache_length, optional=True)
        return predictor.max_length if cache_length is None else cache_length

    def _outputs(self, predictor, source, length, options):
        vocabulary = predictor.vocabulary
        _check_no_prompt(vocabulary, source)
        log_probs, padding_mask = predictor.label_log_probs(source)  # [B, P, V], [B, P]
        log_probs = _without_others(log_probs, vocabulary)
        scores = tf.reduce_sum(
            tf.where(padding_mask, tf.reduce_max(log_probs, axis=2), 0.0), axis=1
        )
        labels = tf.argmax(log_probs, axis=2, output_type=tf.int32)
        labels = tf.where(padding_mask, labels, vocabulary.pad_id)
        tokens = _collapsed(labels, vocabulary, length, self._limits(predictor, source, length))
        return {"tokens": tf.expand_dims(tokens, 1), "scores": tf.expand_dims(scores, 1)}

    def __str__(self) -> str:
        return "CTC, best path"


def _check_no_prompt(vocabulary, inputs=None):
    """Raises a `ValueError` if outputs begin with a prompt, whose tokens have no place in time."""
    is_prompted = isinstance(inputs, Prompted)
    if is_prompted or vocabulary.rules.prompt_ids:
        of_model = f"a model with prompt_ids={list(vocabulary.rules.prompt_ids)}"
        raise ValueError(
            "CTC finds the outputs of models without a prompt only. "
            f"Received: {'inputs with a prompt' if is_prompted else of_model}."
        )


def _without_others(log_probs, vocabulary):
    """Returns log-probabilities `[..., V]` with `NEVER` for tokens that are not labels of CTC."""
    never = np.zeros(vocabulary.size, np.float32)
    ends = vocabulary.eos_id, *vocabulary.rules.end_ids
    others = (
        vocabulary.bos_id,
        *ends,
        *vocabulary.rules.banned_ids,
        *vocabulary.rules.suppressed_ids,
    )
    never[[token for token in others if token != vocabulary.pad_id]] = NEVER
    return log_probs + never


def _collapsed(labels, vocabulary, length, longest):
    """Returns the tokens `[B, length]` of labels `[B, P]`, at most `longest` of each row.

    `longest` is a number or `[B]`.
    """
    before = tf.pad(labels[:, :-1], [[0, 0], [1, 0]], constant_values=vocabulary.pad_id)
    is_token = tf.not_equal(labels, vocabulary.pad_id) & tf.not_equal(labels, before)  # [B, P]
    places = tf.cumsum(tf.cast(is_token, tf.int32), axis=1)  # counted from 1
    count = tf.reduce_max(places, axis=1, keepdims=True)  # [B, 1]
    # What is left out goes to a column before the first token or one after the last.
    places = tf.where(is_token, tf.minimum(places, length + 1), 0)
    rows = tf.broadcast_to(tf.range(tf.shape(labels)[0])[:, None], tf.shape(labels))
    shape = tf.stack([tf.shape(labels)[0], length + 2])
    tokens = tf.scatter_nd(tf.stack([rows, places], axis=2), labels, shape)[:, 1:-1]
    column, longest = tf.range(length), tf.reshape(longest, [-1, 1])  # [B or 1, 1]
    tokens = tf.where(column < tf.minimum(count, longest), tokens, vocabulary.pad_id)
    ends = tf.equal(column, count) & (column < longest)
    return tf.ensure_shape(tf.where(ends, vocabulary.eos_id, tokens), [None, length])
