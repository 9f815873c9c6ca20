"""The judgement of an exported classifier: its probabilities against those of the run."""

import dataclasses

import numpy as np

from keras_transformer.export.parity import SHOWN, ExportError
from keras_transformer.export.processor import describe_processor
from keras_transformer.tasks.classification import SPACES

# Runtimes add in different orders. Seen: differences of probabilities of up to 1e-6.
TOLERANCE = 1e-4
# What a quantised model may differ by in the mean: the log-probability of the run's label, in nats.
MAX_SCORE_LOSS = {"none": 0.0, "float16": 0.01, "int8": 0.1}
MAX_LOSS = 1.0  # of accuracy, from 0 to 100


@dataclasses.dataclass(frozen=True)
class LabelAgreement:
    """How an exported classifier must agree with the model in memory before it is kept.

    In float32 every probability must be the same within `TOLERANCE`, and so every label that is not
    tied within it. A quantised model is another model: what is limited is how far its
    log-probabilities of the labels are off in the mean, and with references how much accuracy is
    lost. The share of equal labels is reported, and is a limit where one is asked for.

    Args:
        sentences: List of strings.
        expected: `Classification` of each by the model in memory.
        quantize: `"none"`, `"float16"` or `"int8"`.
        min_agreement: Smallest share of equal labels of a quantised model. `None`: no limit.
        references: List of the right labels, or `None`.
        max_loss: Most accuracy that a quantised model may lose, from 0 to 100.
        max_score_loss: See above, in nats. `None`: see `MAX_SCORE_LOSS`.
    """

    sentences: list
    expected: list
    quantize: str = "none"
    min_agreement: float | None = None
    references: list | None = None
    max_loss: float = MAX_LOSS
    max_score_loss: float | None = None

    def judge(self, found, what):
        """Returns the figures of how the answers of an export agree.

        Args:
            found: `Classification` of each sentence by the export.
            what: Name of the export, for an error.

        Returns:
            Dictionary of `sentences`, their number; `identical` and `agreement`, number and share
            of equal labels; `probability_difference`, the largest; `score_error`, in nats;
            `differences`, the first few of other labels; `processor`; and with references
            `accuracy`, a dictionary of `in_memory`, `exported` and `difference`.

        Raises:
            ExportError: If they do not agree.
        """
        pairs = list(zip(self.sentences, self.expected, found, strict=True))
        gaps = [np.max(np.abs(a.probabilities - b.probabilities)) for _, a, b in pairs]
        others = [(text, a, b) for text, a, b in pairs if a.label != b.label]
        cut = next((text for text, a, b in pairs if a.truncated != b.truncated), None)
        if cut is not None:
            raise ExportError(f"{what}: only one of both read all of {cut!r}. It was not kept.")
        errors = [abs(a.score - _score(b, a)) for _, a, b in pairs]
        report = {
            "sentences": len(pairs),
            "identical": len(pairs) - len(others),
            "agreement": 1 - len(others) / len(pairs),
            "probability_difference": float(np.max(gaps)),
            "score_error": float(np.mean(errors)),
            "differences": [
                {"sentence": text, "expected": a.label, "found": b.label}
                for text, a, b in others[:SHOWN]
            ],
            "processor": describe_processor(),
        }
        if self.quantize == "none":
            self._require_same(report, others, what)
        else:
            self._require_close(report, what)
        if self.references is not None:
            report["accuracy"] = self._accuracy(found, what)
        return report

    def _require_same(self, report, others, what):
        if not report["probability_difference"] <= TOLERANCE:  # not a number is not
            raise ExportError(
                f"{what}: a probability differs from that of the model in memory by "
                f"{report['probability_difference']:.2g}. The export was not kept."
            )
        for text, ours, theirs in others:  # within the tolerance: a tie, or another order of labels
            top, second = np.sort(ours.probabilities)[:-3:-1]
            if top - second > 2 * TOLERANCE:
                raise ExportError(
                    f"{what}: {text!r} became {theirs.label!r}, not {ours.label!r}. The export was "
                    "not kept."
                )

    def _require_close(self, report, what):
        limit = self.max_score_loss
        limit = MAX_SCORE_LOSS[self.quantize] if limit is None else limit
        if not report["score_error"] <= limit:
            raise ExportError(
                f"{what}: the log-probabilities of the labels are off by "
                f"{report['score_error']:.2g} nats in the mean, {limit:g} are allowed; "
                f"{100 * report['agreement']:.1f} % of the labels are the same. The export was not "
                "kept."
            )
        if self.min_agreement is not None and not report["agreement"] >= self.min_agreement:
            raise ExportError(
                f"{what}: {100 * report['agreement']:.1f} % of the labels are those of the model "
                f"in memory, {100 * self.min_agreement:g} % are asked for. The export was not kept."
            )

    def _accuracy(self, found, what):
        right = [reference.strip(SPACES) for reference in self.references]
        ours, theirs = (
            100 * np.mean([a.label == b for a, b in zip(side, right, strict=True)])
            for side in (self.expected, found)
        )
        if self.quantize != "none" and not theirs >= ours - self.max_loss:
            raise ExportError(
                f"{what}: the accuracy falls from {ours:.1f} to {theirs:.1f}, by more than the "
                f"{self.max_loss:g} that are allowed. The export was not kept."
            )
        figures = {"in_memory": ours, "exported": theirs, "difference": theirs - ours}
        return {name: float(value) for name, value in figures.items()}


def _score(found, expected):
    """The log-probability of the label that was expected."""
    probability = found.probabilities[expected.probabilities.argmax()]
    return float(np.log(max(probability, np.finfo(np.float32).tiny)))
