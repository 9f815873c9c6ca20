"""The token ids that a .tflite file takes: the rule in words and in Python."""

import numbers

import numpy as np

RULE = (
    "Each row: the ids of a sentence's pieces, each at least 0 and below vocab_size, none of them "
    "pad or bos; then eos, once; then pad up to source_length. For any other row, tokens is only "
    "pad, length is 0 and score is -1e9, in every hypothesis; the other rows are as without it."
)


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
