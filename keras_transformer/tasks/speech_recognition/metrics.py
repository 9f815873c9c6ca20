"""Word and character error rates of transcripts; the only module that imports `jiwer`."""

import importlib.metadata
from typing import Any

from keras_transformer.installation import install_hint


def word_error_rate(hypotheses: list[str], references: list[str]) -> float:
    """Returns the word error rate of transcripts: 0 without errors, and above 1 in bad cases.

    It is the number of words that must be replaced, removed or inserted to turn all hypotheses into
    their references, divided by the number of words in all references. Words are separated by white
    space; case and punctuation count. A reference may be empty; then all words of its hypothesis
    are errors.

    Args:
        hypotheses: List of strings.
        references: List of strings, one for each hypothesis.

    Raises:
        ValueError: If the lists differ in length, no reference has a word, or jiwer is not
            installed.

    Reference: Morris et al. (2004), From WER and RIL to MER and WIL, section 2.
    """
    references, hypotheses = _checked(hypotheses, references)
    return float(load_jiwer().process_words(references, hypotheses).wer)


def character_error_rate(hypotheses: list[str], references: list[str]) -> float:
    """Returns the character error rate of transcripts, like `word_error_rate`.

    Characters are Unicode code points. White space counts as one space between words.

    Args:
        hypotheses: List of strings.
        references: List of strings, one for each hypothesis.

    Raises:
        ValueError: As for `word_error_rate`.
    """
    references, hypotheses = _checked(hypotheses, references)
    return float(load_jiwer().process_characters(references, hypotheses).cer)


def error_rates(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """Returns a dictionary of `wer` and `cer`, and `wer_signature`: how they are computed."""
    return {
        "wer": word_error_rate(hypotheses, references),
        "cer": character_error_rate(hypotheses, references),
        "wer_signature": f"case:mixed|punctuation:yes|jiwer:{importlib.metadata.version('jiwer')}",
    }


def load_jiwer() -> Any:
    """Returns the module `jiwer`.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    try:
        import jiwer
    except ImportError as error:
        raise ValueError(
            "Word error rates need the package jiwer. Install it with: " + install_hint("speech")
        ) from error
    return jiwer


def _checked(hypotheses, references):
    """Returns references and hypotheses with single spaces between words."""
    if len(hypotheses) != len(references):
        raise ValueError(
            "`references` must have one text for each hypothesis. "
            f"Received: {len(hypotheses)} hypotheses, {len(references)} references."
        )
    references, hypotheses = (
        [" ".join(text.split()) for text in texts] for texts in (references, hypotheses)
    )
    if not any(references):
        raise ValueError(
            "`references` must have at least one word, because rates are relative to their "
            f"number. Received: {len(references)} texts without words."
        )
    return references, hypotheses
