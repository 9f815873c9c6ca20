"""Parity of an export with the model in memory, and the copies that are exported."""

import dataclasses
import itertools

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.layers.kernels import DEFAULT

# Runtimes order their additions differently: seen are relative differences of 1e-6.
SCORE_TOLERANCE = 1e-3
SHOWN = 5
LONGEST = 120  # characters of a text in an error or a report


@dataclasses.dataclass(frozen=True)
class Parity:
    """Agreement of two pipelines.

    Args:
        sentences: Number of sentences that both translated.
        identical: How many translations are the same, character by character.
        token_agreement: Share of tokens that are the same at the same position.
        score_difference: Largest difference between the scores of identical translations, relative
            to the score, or to 1 where that is larger.
        differences: The first few that differ: dictionaries of `sentence`, `expected` and `found`.
    """

    sentences: int
    identical: int
    token_agreement: float
    score_difference: float
    differences: tuple

    @property
    def agreement(self):
        """Share of sentences whose translations are identical."""
        return self.identical / self.sentences

    def to_dict(self):
        """Returns the figures as plain values."""
        return {
            "sentences": self.sentences,
            "identical": self.identical,
            "agreement": self.agreement,
            "token_agreement": self.token_agreement,
            "score_difference": self.score_difference,
            "differences": list(self.differences),
        }


def compare(sentences, expected, exported, tokenizer):
    """Compares two lists of translations.

    Args:
        sentences: List of strings.
        expected: `Translation` of each by the model in memory.
        exported: `Translation` of each by what was exported.
        tokenizer: Splits the translations into tokens, to count those that agree.

    Returns:
        A `Parity`.
    """
    same = [_shown(ours) == _shown(theirs) for ours, theirs in zip(expected, exported, strict=True)]
    differences = [
        {
            "sentence": shortened(sentence),
            "expected": shortened(_shown(ours)),
            "found": shortened(_shown(theirs)),
        }
        for sentence, ours, theirs, equal in zip(sentences, expected, exported, same, strict=True)
        if not equal
    ]
    ours, theirs = (
        np.array([translation.score for translation in side]) for side in (expected, exported)
    )
    gaps = np.abs(ours - theirs) / np.maximum(1, np.abs(ours))
    return Parity(
        sentences=len(same),
        identical=sum(same),
        token_agreement=_token_agreement(expected, exported, tokenizer),
        score_difference=float(np.max(gaps[same], initial=0.0)),
        differences=tuple(differences[:SHOWN]),
    )


def require_identical(parity, what):
    """Returns `parity` if every translation is the same, scores included.

    Args:
        parity: A `Parity`.
        what: Name of what was exported, for the error.

    Raises:
        ExportError: If a translation or a score differs; it names the first sentence that does.
    """
    if parity.differences:
        first = parity.differences[0]
        raise ExportError(
            f"{what}: {parity.sentences - parity.identical} of {parity.sentences} translations "
            f"differ from those of the model in memory. First: {first['sentence']!r} became "
            f"{first['found']!r}, not {first['expected']!r}. The export was not kept."
        )
    if not parity.score_difference <= SCORE_TOLERANCE:  # NaN is not agreement either
        raise ExportError(
            f"{what}: the translations are those of the model in memory, but their scores differ "
            f"by up to {parity.score_difference:.2g} of the score. The export was not kept."
        )
    return parity


def in_float32(pipeline):
    """Returns the pipeline, or one that computes in float32 with the same weights.

    Exports compute in float32 whatever the policy the model was trained under: its weights are
    float32 in any case, and neither LiteRT nor most CPUs multiply in bfloat16.

    Raises:
        ExportError: If the model was quantised in memory.
        ValueError: If it has several models.
    """
    pipeline.require_one("cannot be exported")
    if any(layer.quantization_mode for layer in pipeline.model._flatten_layers()):
        raise ExportError(
            "The model was quantised by `model.quantize`, and an export starts from floating "
            "weights. Export the model as it was before; exports to LiteRT, CTranslate2 and "
            'Marian quantise it themselves with `quantize="int8"`.'
        )
    policy = pipeline.model.policy
    if policy.compute_dtype == policy.variable_dtype == "float32":
        return pipeline
    return copy_pipeline(pipeline)


def copy_pipeline(pipeline, kernels=DEFAULT):
    """Returns a `Pipeline` in float32 with the same weights, and with some `Kernels`."""
    model = copy_model(pipeline.model, kernels)
    return pipeline.with_model(model)


def copy_model(model, kernels=DEFAULT):
    """Returns a model in float32 with the weights of another, and some `Kernels`."""
    copy = type(model)(model.config, dtype="float32", kernels=kernels)
    copy.set_weights(model.get_weights())
    return copy


def shortened(text):
    """Returns a text of at most `LONGEST` characters, or its beginning and how long it is."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 30].rstrip()} ... ({len(text)} characters)"


def _shown(translation):
    return translation.text + (" [source cut]" if translation.truncated else "")


def _token_agreement(expected, exported, tokenizer):
    ours, theirs = (
        tokenizer.encode([translation.text for translation in translations]).to_list()
        for translations in (expected, exported)
    )
    pairs = [list(itertools.zip_longest(*pair)) for pair in zip(ours, theirs, strict=True)]
    positions = list(itertools.chain(*pairs))
    return sum(one == other for one, other in positions) / len(positions)
