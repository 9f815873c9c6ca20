"""Metrics of translation quality: BLEU and chrF of sacreBLEU with their signatures, exact match.

The only module that imports `sacrebleu`.
"""

from typing import Any

import sacrebleu

from keras_transformer.installation import install_command
from keras_transformer.text.scripts import TOKENIZERS, tokenizer_for

# Extras of sacreBLEU with the dictionaries of some tokenizers.
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


def score(
    hypotheses: list[str],
    references: list[str],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> dict[str, Any]:
    """Compares translations with their references.

    Args:
        hypotheses: List of strings.
        references: List of strings, one for each hypothesis.
        lowercase: Whether BLEU and chrF ignore case.
        tokenize: sacreBLEU's tokenizer, one of `TOKENIZERS`; `"none"` for text that is already
            tokenised. `None`: that of `scripts.tokenizer_for`.

    Returns:
        Dictionary of `bleu`, `chrf` and `exact_match` (share of translations that equal their
        reference), each from 0 to 100; sacreBLEU's `bleu_signature` and `chrf_signature`; and
        `sentences`, their number; and if BLEU has no meaning, `bleu_warning`.

    Raises:
        ValueError: If the lists are empty or differ in length, or the tokenizer needs a package or
            a file that is missing.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            "`references` must have one sentence for each hypothesis. "
            f"Received: {len(hypotheses)} hypotheses, {len(references)} references."
        )
    if not references:
        raise ValueError("`references` must hold at least one sentence. Received: none.")
    tokenize = tokenize or tokenizer_for(references)
    bleu = _bleu(lowercase, tokenize)
    chrf = sacrebleu.CHRF(lowercase=lowercase)
    equal = sum(ours == theirs for ours, theirs in zip(hypotheses, references, strict=True))
    warning = single_words(references, tokenize)
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "exact_match": 100 * equal / len(references),
        "sentences": len(references),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        **({"bleu_warning": warning} if warning else {}),
    }


def single_words(references: list[str], tokenize: str | None = None) -> str:
    """Returns a warning if no reference has more than one token, otherwise an empty string.

    BLEU is then 0 even for translations that equal their references.

    Args:
        references: List of strings.
        tokenize: See `score`.
    """
    tokenize = tokenize or tokenizer_for(references)
    tokenizer = _bleu(False, tokenize).tokenizer
    if any(len(tokenizer(text).split()) > 1 for text in references):
        return ""
    return (
        f"every reference is a single token for BLEU's tokenizer {tokenize}, so BLEU is 0 whatever "
        "the translations are: choose another tokenizer, such as char, or use exact_match"
    )


def _bleu(lowercase, tokenize):
    """Returns sacreBLEU's metric; a missing package or file is a `ValueError` of one line."""
    if tokenize not in TOKENIZERS:
        raise ValueError(
            f"`tokenize` must be one of {', '.join(TOKENIZERS)}. Received: {tokenize!r}."
        )
    try:
        return sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    except Exception as error:  # sacreBLEU prints a page, or fails to download a vocabulary
        remedy = "sacreBLEU downloads its vocabulary, which needs a connection"
        if tokenize in EXTRAS:
            command = install_command(f'"sacrebleu[{EXTRAS[tokenize]}]"')
            remedy = f"`{command}` installs it"
        raise ValueError(
            f"BLEU's tokenizer {tokenize} is not available: {remedy}; or choose char."
        ) from error


def best_of(hypotheses: list[str], reference: str) -> str:
    """Returns the hypothesis with the highest chrF, the first one if several have it.

    Args:
        hypotheses: List of at least one string.
        reference: String.

    Reference: Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation".
    """
    chrf = sacrebleu.CHRF()
    return max(hypotheses, key=lambda text: chrf.sentence_score(text, [reference]).score)
