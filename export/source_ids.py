"""Rule for the token ids that a .tflite file takes, as a text and as a check."""

import numbers

import numpy as np

RULE = (
    "A row has the ids of the sentence's tokens, from 0 to below vocab_size, without pad and bos; "
    "then eos once; then pad up to source_length. For an invalid row, every hypothesis has only "
    "pad in tokens, a length of 0 and a score of -1e9; other rows of the batch are not affected."
)
# The same for a model with languages to choose from.
FRONT = (
    " In front are {}; `languages` has the tokens of the languages, and `source_language` and "
    "`target_language` are the defaults."
)


def check_source_ids(sources, tokenizer) -> None:
    """Checks that lists of token ids follow the rule.

    Args:
        sources: List of lists of integers.
        tokenizer: The `Tokenizer`.

    Raises:
        TypeError: If `sources` is not a list of lists, but the ids of one sentence, for example.
        ValueError: If a list does not follow the rule. The message names the first one.
    """
    if not all(isinstance(source, (list, tuple, np.ndarray)) for source in sources):
        raise TypeError(f"`sources` must be a list of lists of token ids. Received: {sources!r}.")
    for number, source in enumerate(sources):
        if problem := _problem(list(source), tokenizer):
            raise ValueError(
                f"`sources[{number}]` {problem}: a source must be the ids of its tokens followed "
                f"by eos_id, {tokenizer.eos_id}. Received: {_shown(source)}."
            )


def _problem(source, tokenizer):
    if not all(isinstance(token, numbers.Integral) for token in source):
        return "contains something other than integers"
    if outside := [token for token in source if not 0 <= token < tokenizer.vocab_size]:
        return f"has the id {outside[0]}, which is not in the vocabulary of {tokenizer.vocab_size}"
    if not source or source[-1] != tokenizer.eos_id:
        return "does not end in eos_id"
    languages = tokenizer.languages
    if languages is not None and not languages.begin(source):
        return f"does not begin with {languages.front_rule}"
    if tokenizer.starts_with_bos:
        source = source[1:]
    for name in ("eos", "pad", "bos"):
        number = getattr(tokenizer, f"{name}_id")
        is_unknown = name == "bos" and number == tokenizer.unk_id  # as in MADLAD-400
        if number in source[:-1] and not is_unknown:
            return f"has {name}_id before its end"
    return None


def _shown(source):
    """Returns a list as text, shortened if it is long."""
    return f"[{', '.join(map(str, source[:20]))}{', ...' if len(source) > 20 else ''}]"
