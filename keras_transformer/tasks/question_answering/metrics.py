"""Exact match and F1 of answers, as SQuAD defines them."""

import collections
import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(answer) -> str:
    """Returns an answer in lower case without punctuation, articles and repeated white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer, reference) -> float:
    """Returns 1 if two answers are equal after `normalized`, otherwise 0."""
    return float(normalized(answer) == normalized(reference))


def token_f1(answer, reference) -> float:
    """Returns the F1 of the words of an answer, from 0 to 1.

    If one of the answers has no words, the result is 1 if the other has none either, otherwise 0.
    """
    ours, theirs = normalized(answer).split(), normalized(reference).split()
    if not ours or not theirs:
        return float(ours == theirs)
    shared = (collections.Counter(ours) & collections.Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs))


def answer_metrics(answers, references) -> dict[str, float]:
    """Returns `exact_match` and `f1`, from 0 to 100, with the best of several references.

    Args:
        answers: List of strings.
        references: List of the correct answers to each question, which are lists of strings.

    Reference: Rajpurkar et al. (2016), section 6.1, and the evaluation script of SQuAD 1.1.
    """
    count = len(answers)
    pairs = list(zip(answers, references, strict=True))
    return {
        name: 100 * sum(max(measure(a, one) for one in several) for a, several in pairs) / count
        for name, measure in (("exact_match", exact_match), ("f1", token_f1))
    }
