"""Metrics of translation quality: BLEU and chrF of sacreBLEU with their signatures, exact match.

The only module that imports `sacrebleu`.
"""

from typing import Any

import sacrebleu


def score(
    hypotheses: list[str],
    references: list[str],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> dict[str, Any]:
    """Compares translations with their references.

    Args:
        hypotheses: List of strings.
        references: List of strings, one for each hypothesis.
        lowercase: Whether BLEU and chrF ignore case.
        tokenize: sacreBLEU's tokenizer; `"none"` for text that is already tokenized.

    Returns:
        Dictionary of `bleu`, `chrf` and `exact_match` (share of translations that equal their
        reference), each from 0 to 100; sacreBLEU's `bleu_signature` and `chrf_signature`; and
        `sentences`, their number.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            "`references` must have one sentence for each hypothesis. "
            f"Received: {len(hypotheses)} hypotheses, {len(references)} references."
        )
    if not references:
        raise ValueError("`references` must hold at least one sentence. Received: none.")
    bleu = sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    chrf = sacrebleu.CHRF(lowercase=lowercase)
    equal = sum(ours == theirs for ours, theirs in zip(hypotheses, references, strict=True))
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "exact_match": 100 * equal / len(references),
        "sentences": len(references),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
    }


def best_of(hypotheses: list[str], reference: str) -> str:
    """Returns the hypothesis with the highest chrF, the first one if several have it.

    Args:
        hypotheses: List of at least one string.
        reference: String.

    Reference: Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation".
    """
    chrf = sacrebleu.CHRF()
    return max(hypotheses, key=lambda text: chrf.sentence_score(text, [reference]).score)
