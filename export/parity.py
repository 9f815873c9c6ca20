"""Comparison of an export's outputs with the model's own, and copies of models to export."""

import itertools
from typing import Any

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.layers.kernels import DEFAULT

# Runtimes add in different orders, which changed scores by 1e-6 of their value in measurements.
SCORE_TOLERANCE = 1e-3
SHOWN = 5  # differences in a report
LONGEST = 120  # characters of a text in an error or a report


def compare(sentences, expected, exported, tokenizer) -> dict[str, Any]:
    """Compares two lists of generated texts.

    Args:
        sentences: List of strings.
        expected: List of outputs of the model in memory, such as `Translation`s.
        exported: List of outputs of the export.
        tokenizer: `Tokenizer` of the outputs, to count the tokens that agree.

    Returns:
        Dictionary of `sentences`, the number of sentences; `identical` and `agreement`, number and
        share of texts that are equal, character by character; `token_agreement`, the share of
        positions with equal tokens; `score_difference`, the largest difference between the scores
        of identical texts, relative to the score, or to 1 if that is larger; and `differences`, the
        first few texts that differ, as dictionaries of `sentence`, `expected` and `found`.
    """
    same = [_shown(ours) == _shown(theirs) for ours, theirs in zip(expected, exported, strict=True)]
    differences = [
        difference(sentence, _shown(ours), _shown(theirs))
        for sentence, ours, theirs, equal in zip(sentences, expected, exported, same, strict=True)
        if not equal
    ]
    ours, theirs = (
        np.array([translation.score for translation in side]) for side in (expected, exported)
    )
    gaps = np.abs(ours - theirs) / np.maximum(1, np.abs(ours))
    return {
        "sentences": len(same),
        "identical": sum(same),
        "agreement": sum(same) / len(same),
        "token_agreement": _token_agreement(expected, exported, tokenizer),
        "score_difference": float(np.max(gaps[same], initial=0.0)),
        "differences": differences[:SHOWN],
    }


def difference(sentence, expected, found) -> dict[str, str]:
    """Returns an entry of the `differences` of a report: an input and its two outputs."""
    texts = {"sentence": sentence, "expected": expected, "found": found}
    return {name: shortened(text) for name, text in texts.items()}


def require_identical(parity, what) -> None:
    """Requires that all texts and scores are the same.

    Args:
        parity: Result of `compare`.
        what: Name of the export, for the error.

    Raises:
        ExportError: If a text or a score differs. The message shows the first text that does.
    """
    total, same = parity["sentences"], parity["identical"]
    if parity["differences"]:
        first = parity["differences"][0]
        raise ExportError(
            f"{what}: {total - same} of {total} outputs differ from those of the model in memory. "
            f"First: {first['sentence']!r} became {first['found']!r}, not {first['expected']!r}. "
            "The export was not kept."
        )
    difference = parity["score_difference"]
    if not difference <= SCORE_TOLERANCE:  # also true for NaN
        raise ExportError(
            f"{what}: the outputs equal those of the model in memory, but their scores differ by "
            f"up to {difference:.2g} of the score. The export was not kept."
        )


def without_sentences(report) -> dict[str, Any]:
    """Returns a report without its sentences, as it is stored in an export."""
    return {
        name: without_sentences(value) if isinstance(value, dict) else value
        for name, value in report.items()
        if name != "differences"
    }


def in_float32(pipeline) -> Any:
    """Returns the pipeline, or a copy that computes in float32 with the same weights.

    Exports compute in float32, whatever dtype policy the model was trained with: weights are always
    stored in float32, and neither LiteRT nor most CPUs multiply in bfloat16.

    Raises:
        ExportError: If the model was quantised in memory.
        ValueError: If the pipeline has several models.
    """
    pipeline.require_one("cannot be exported")
    if any(layer.quantization_mode for layer in pipeline.model._flatten_layers()):
        raise ExportError(
            "The model was quantised by `model.quantize`, but an export needs floating-point "
            "weights. Export the model before it is quantised; exports to LiteRT, CTranslate2 and "
            'Marian quantise it themselves with `quantize="int8"`.'
        )
    policy = pipeline.model.policy
    if policy.compute_dtype == policy.variable_dtype == "float32":
        return pipeline
    return copy_pipeline(pipeline)


def copy_pipeline(pipeline, kernels=DEFAULT) -> Any:
    """Returns a copy of a `Pipeline` whose model computes in float32 with the given `Kernels`."""
    model = copy_model(pipeline.model, kernels)
    return pipeline.with_model(model)


def copy_model(model, kernels=DEFAULT) -> Any:
    """Returns a copy of a model that computes in float32 with the given `Kernels`."""
    copy = type(model)(model.config, dtype="float32", kernels=kernels)
    for ours, theirs in zip(copy.weights, model.weights, strict=True):
        ours.assign(theirs.value)  # shares the memory until one of them changes
    return copy


def shortened(text) -> str:
    """Returns a text of at most `LONGEST` characters, or its beginning and its length."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 30].rstrip()} ... ({len(text)} characters)"


def _shown(translation):
    return translation.text + (" [source truncated]" if translation.truncated else "")


def _token_agreement(expected, exported, tokenizer):
    ours, theirs = (
        tokenizer.encode([translation.text for translation in translations]).to_list()
        for translations in (expected, exported)
    )
    pairs = [list(itertools.zip_longest(*pair)) for pair in zip(ours, theirs, strict=True)]
    positions = list(itertools.chain(*pairs))
    return sum(one == other for one, other in positions) / len(positions)
