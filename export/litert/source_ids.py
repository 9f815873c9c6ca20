"""The token ids that a .tflite file takes: the rule in words, in its graph and in Python."""

import numbers

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.tasks.token_rows import empty_where_wrong, right_rows

RULE = (
    "Each row: the ids of a sentence's pieces, each at least 0 and below vocab_size, none of them "
    "pad or bos; then eos, once; then pad up to source_length. For any other row, tokens is only "
    "pad, length is 0 and score is -1e9, in every hypothesis; the other rows are as without it."
)


def refuse_wrong_rows(search, config):
    """Wraps a search so that a row of wrong ids gives nothing, with the score `NONE`: see `RULE`.

    LiteRT reads a table where a wrong id points, or stops with an error that names no id, and a row
    without an end is translated as if it had one. Right rows pass unchanged.

    Args:
        search: Function from `source`, int32 `[B, S]` of known shape, and other tensors to a
            dictionary of `tokens`, `score`, `length` and perhaps `alignment`, each `[B, ...]`.
        config: The model's configuration.

    Returns:
        A function like `search`.
    """

    def screen(source, **controls):
        right = right_rows(source, config)  # [B]
        return right, {"source": empty_where_wrong(source, right, config), **controls}

    nothing = {"tokens": config.pad_id, "score": NONE, "length": 0, "alignment": 0.0}
    return screened(search, screen, nothing)


def screened(function, screen, nothing):
    """Wraps a function so that wrong rows give nothing and right rows pass unchanged.

    Args:
        function: Function from tensors, by their names, to a dictionary of outputs `[R, ...]`.
        screen: Function from the same tensors to which rows are right, boolean `[R]`, and the
            tensors to call `function` with, a dictionary.
        nothing: What each output is in a wrong row, by its name.

    Returns:
        A function like `function`.
    """

    def checked(**inputs):
        right, inputs = screen(**inputs)
        return {
            name: tf.where(_as_wide_as(output, right), output, nothing[name])
            for name, output in function(**inputs).items()
        }

    return checked


def _as_wide_as(output, rows):
    """`[B]` with as many axes as an output."""
    return tf.reshape(rows, [-1] + [1] * (output.shape.rank - 1))


def check_source_ids(sources, tokenizer):
    """Checks lists of token ids against the rule.

    Args:
        sources: List of lists of integers.
        tokenizer: The `Tokenizer`.

    Raises:
        TypeError: If it is something else, such as the ids of a single sentence.
        ValueError: If one does not follow it; the message names the first that does not.
    """
    if not all(isinstance(source, (list, tuple, np.ndarray)) for source in sources):
        raise TypeError(f"`sources` must be a list of lists of token ids. Received: {sources!r}.")
    for number, source in enumerate(sources):
        if problem := _problem(list(source), tokenizer):
            raise ValueError(
                f"`sources[{number}]` {problem}: each source is the ids of its pieces and then "
                f"eos_id, {tokenizer.eos_id}. Received: {_shown(source)}."
            )


def _problem(source, tokenizer):
    if not all(isinstance(token, numbers.Integral) for token in source):
        return "holds something other than integers"
    if outside := [token for token in source if not 0 <= token < tokenizer.vocab_size]:
        return f"has the id {outside[0]}, which is not in the vocabulary of {tokenizer.vocab_size}"
    if not source or source[-1] != tokenizer.eos_id:
        return "does not end in eos_id"
    for name in ("eos", "pad", "bos"):
        if getattr(tokenizer, f"{name}_id") in source[:-1]:
            return f"has {name}_id before its end"
    return None


def _shown(source):
    """A list that may be long."""
    return f"[{', '.join(map(str, source[:20]))}{', ...' if len(source) > 20 else ''}]"
