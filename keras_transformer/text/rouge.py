"""ROUGE: how much of a right summary a summary has. The one door to `rouge_score`."""

import importlib.metadata
import re
import statistics

KINDS = ("rouge1", "rouge2", "rougeL")
WORD = re.compile(r"[^\W_]+")  # of ASCII text what rouge-score's own tokenizer finds


def rouge(summaries, references):
    """Compares summaries with the right ones.

    `rouge1` and `rouge2` are the F1 of words and of pairs of neighbouring words that both have,
    `rougeL` that of their longest common subsequence of words; means over all summaries, from 0 to
    1. Words are in lower case and stemmed (Porter's rules for English), as published figures are.

    Args:
        summaries: List of strings.
        references: List of strings, one for each summary.

    Returns:
        Dictionary of `rouge1`, `rouge2`, `rougeL`; `rouge_signature`, how they are computed; and
        `summaries`, their number.

    Raises:
        ValueError: If the lists are empty or of different length, or rouge-score is missing.

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


def load_scorer():
    """Returns what computes ROUGE.

    Raises:
        ValueError: If rouge-score is not installed; the message says how to.
    """
    try:
        from nltk.stem.porter import PorterStemmer
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ValueError(
            "ROUGE needs the package rouge-score. Install it with: "
            'pip install "keras-transformer-kit[rouge]"'
        ) from error
    return RougeScorer(list(KINDS), tokenizer=Words(PorterStemmer()))


class Words:
    """Splits a text into words: letters and digits of any script.

    rouge-score's own tokenizer, which gives the same for ASCII, drops all other letters: a summary
    in Greek would have no words.

    Args:
        stemmer: What words of more than three characters are stemmed by.
    """

    def __init__(self, stemmer):
        self._stemmer = stemmer

    def tokenize(self, text):
        """Returns the words of a text, in lower case and stemmed."""
        words = WORD.findall(text.lower())
        return [self._stemmer.stem(word) if len(word) > 3 else word for word in words]
