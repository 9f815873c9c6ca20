"""Best path of CTC: a text from the encoder alone, without a loop over its tokens."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.beginnings import Prompted
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.tensors import Tensor


def ctc_decode(
    model: Any,
    source: Tensor,
    max_length: int | Tensor | None = None,
    cache_length: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Takes the most probable label at each position of the encoder.

    The labels are those of training with CTC: tokens, and padding as the blank. Equal labels in a
    row become one token, and blanks are left out. The decoder is not used, and no loop is needed.
    A model that was trained without CTC returns meaningless tokens.

    Args:
        model: An encoder-decoder model, its predictor, or an `Ensemble` of models whose encoders
            have the same number of positions.
        source: The source of the model, such as frames `[B, S, F]`.
        max_length: Maximum length of an output in tokens, `eos_id` included: integer, or tensor,
            scalar or `[B]`. `None`: `cache_length`.
        cache_length: Length L of the result, an integer. `None`: the model's `max_length`.

    Returns:
        Token ids `[B, L]`, int32, each row ending in `eos_id` and then padding (without `eos_id`
        where the maximum length came first), and scores `[B]`, float32: the log-probability of the
        path, summed over the positions of the encoder.

    Raises:
        TypeError: If the model does not have both an encoder and a decoder, or a length is not an
            integer.
        ValueError: If a length is below 1, or outputs of the model begin with a prompt.

    Reference: Graves et al. (2006), "Connectionist Temporal Classification", section 3.2, "best
        path decoding". Not in Vaswani et al. (2017).
    """
    predictor = predictor_of(model)
    if not tf.is_tensor(max_length):
        check_count("max_length", max_length, optional=True)
    check_count("cache_length", cache_length, optional=True)
    check_no_prompt(predictor.vocabulary, source)
    length = predictor.max_length if cache_length is None else cache_length
    longest = length if max_length is None else tf.minimum(max_length, length)
    log_probs, allowed = predictor.label_log_probs(source)  # [B, P, V], [B, P]
    log_probs = _without_others(log_probs, predictor.vocabulary)
    score = tf.reduce_sum(tf.where(allowed, tf.reduce_max(log_probs, axis=2), 0.0), axis=1)
    labels = tf.argmax(log_probs, axis=2, output_type=tf.int32)
    labels = tf.where(allowed, labels, predictor.vocabulary.pad_id)
    return _collapsed(labels, predictor.vocabulary, length, longest), score


def check_no_prompt(vocabulary, inputs=None) -> None:
    """Raises a `ValueError` if outputs begin with a prompt, whose tokens have no place in time."""
    is_prompted = isinstance(inputs, Prompted)
    if is_prompted or vocabulary.prompt_ids:
        of_model = f"a model with prompt_ids={list(vocabulary.prompt_ids)}"
        raise ValueError(
            "CTC finds the outputs of models without a prompt only. "
            f"Received: {'inputs with a prompt' if is_prompted else of_model}."
        )


def _without_others(log_probs, vocabulary):
    """Returns log-probabilities `[..., V]` with `NEVER` for tokens that are not labels of CTC."""
    never = np.zeros(vocabulary.size, np.float32)
    ends = vocabulary.eos_id, *vocabulary.end_ids
    others = (vocabulary.bos_id, *ends, *vocabulary.banned_ids, *vocabulary.silent_ids)
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
