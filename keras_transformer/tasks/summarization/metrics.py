"""ROUGE, the overlap of summaries with references; the only module that imports `rouge_score`."""

import importlib.metadata
import re
import statistics
from typing import Any

from keras_transformer.installation import install_hint

KINDS = ("rouge1", "rouge2", "rougeL")
WORD = re.compile(r"[^\W_]+")  # finds the words of rouge-score's own tokenizer in ASCII text


def rouge(summaries: list[str], references: list[str]) -> dict[str, Any]:
    """Compares summaries with their references.

    `rouge1` and `rouge2` are the F1 scores of common words and of common pairs of neighbouring
    words, `rougeL` is the F1 score of the longest common subsequence of words. Each is a mean over
    all summaries, from 0 to 1. Words are in lower case and stemmed (Porter's rules for English), as
    in published results.

    Args:
        summaries: List of strings.
        references: List of strings, one for each summary.

    Returns:
        Dictionary of `rouge1`, `rouge2` and `rougeL`; `rouge_signature`, which describes how they
        are computed; and `summaries`, their number.

    Raises:
        ValueError: If the lists are empty or differ in length, or rouge-score is not installed.

    Reference: Lin (2004), ROUGE: A Package for Automatic Evaluation of Summaries.
    """
    if len(summaries) != len(references):
        raise ValueError(
            "`references` must have one text for each summary. "
            f"Received: {len(summaries)} summaries, {len(references)} references."
        )
    if not references:
        raise ValueError("`references` must hold at least one text. Received: none.")
    scorer = load_scorer()
    scores = [scorer.score(*pair) for pair in zip(references, summaries, strict=True)]
    means = {kind: statistics.fmean(score[kind].fmeasure for score in scores) for kind in KINDS}
    version = importlib.metadata.version("rouge-score")
    signature = f"F1|case:lower|stem:porter|tok:unicode-words|rouge-score:{version}"
    return {**means, "rouge_signature": signature, "summaries": len(references)}


def load_scorer() -> Any:
    """Returns rouge-score's `RougeScorer`, with the tokenizer for all scripts.

    Raises:
        ValueError: If rouge-score is not installed; the message says how to install it.
    """
    try:
        from nltk.stem.porter import PorterStemmer
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ValueError(
            "ROUGE needs the package rouge-score. Install it with: " + install_hint("rouge")
        ) from error
    return RougeScorer(list(KINDS), tokenizer=Words(PorterStemmer()))


class Words:
    """Splits texts into words of letters and digits of any script.

    rouge-score's own tokenizer drops all letters that are not ASCII, so that a summary in Greek
    would have no words. For ASCII text both give the same words.

    Args:
        stemmer: Stemmer for words of more than three characters.
    """

    def __init__(self, stemmer):
        self._stemmer = stemmer

    def tokenize(self, text) -> list[Any]:
        """Returns the words of a text, in lower case and stemmed."""
        words = WORD.findall(text.lower())
        return [self._stemmer.stem(word) if len(word) > 3 else word for word in words]
