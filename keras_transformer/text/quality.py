"""Translation quality as the field reports it: sacreBLEU and chrF with signatures, exact match.

The one door to `sacrebleu`.
"""

import sacrebleu


def score(hypotheses, references, *, lowercase=False, tokenize="13a"):
    """Compares translations with their references.

    Args:
        hypotheses: List of strings.
        references: List of strings, one for each hypothesis.
        lowercase: Whether case is ignored by BLEU and chrF.
        tokenize: sacreBLEU's tokeniser; `"none"` for text that is tokenised already.

    Returns:
        Dictionary of `bleu`, `chrf` and `exact_match` (share of sentences that equal their
        reference), each from 0 to 100; `bleu_signature` and `chrf_signature`, which say how;
        and `sentences`.

    Raises:
        ValueError: If the lists are empty or of different length.
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


def best_of(hypotheses, reference):
    """Returns the hypothesis with the highest chrF; of equals the first.

    Args:
        hypotheses: List of strings, one or more.
        reference: String.

    Reference: Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation".
    """
    chrf = sacrebleu.CHRF()
    return max(hypotheses, key=lambda text: chrf.sentence_score(text, [reference]).score)
