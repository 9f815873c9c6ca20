"""The judgement of an export that answers in one pass: its answers against those in memory."""

import dataclasses

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.parity import SHOWN, shortened
from keras_transformer.export.processor import describe_processor
from keras_transformer.tasks.single_pass.codec import Choice, Codec


@dataclasses.dataclass(frozen=True)
class AnswerAgreement:
    """How an exported model must agree with the model in memory before it is kept.

    In float32 every number must be the same within the codec's `tolerance`, and so every answer
    that is not tied within it. A quantised model is another model: what is limited is how far its
    scores of the run's answers are off on average, and with references how much it loses of the
    codec's metrics. The share of equal answers is reported, and is a limit where one is asked for.

    Args:
        codec: The `Codec`.
        examples: List of examples.
        expected: `Result` of each by the model in memory.
        limits: The `Limits`; the default of `max_score_loss` is the codec's.
    """

    codec: Codec
    examples: list
    expected: list
    limits: Limits = Limits()

    def judge(self, answers, what):
        """Returns the results of how the answers of an export agree.

        Args:
            answers: `Result` of each example by the export.
            what: Name of the export, for an error.

        Returns:
            Dictionary of `sentences`, the number of examples; `identical` and `agreement`, number
            and share of equal answers; `<number>_difference`, such as `probability_difference`, the
            largest; `score_error`; `differences`, the first few of other answers; `processor`; and
            with references the codec's metrics, each a dictionary of `in_memory`, `exported` and
            `difference`.

        Raises:
            ExportError: If they do not agree.
        """
        rows = list(zip(self.examples, self.expected, answers, strict=True))
        cut = next((example for example, a, b in rows if a.truncated != b.truncated), None)
        if cut is not None:
            shown = shortened(self.codec.shown(cut))
            raise ExportError(f"{what}: only one of both read all of {shown!r}. It was not kept.")
        others = [(example, a, b) for example, a, b in rows if a.text != b.text]
        report = {
            "sentences": len(rows),
            "identical": len(rows) - len(others),
            "agreement": 1 - len(others) / len(rows),
            f"{self.codec.number}_difference": max(_gap(a, b) for _, a, b in rows),
            "score_error": float(np.mean([_error(a, b) for _, a, b in rows])),
            "differences": [
                {
                    "sentence": shortened(self.codec.shown(example)),
                    "expected": shortened(a.text),
                    "found": shortened(b.text),
                }
                for example, a, b in others[:SHOWN]
            ],
            "processor": describe_processor(),
        }
        if self.limits.is_exact:
            self._require_same(report, others, what)
        else:
            self._require_close(report, what)
        if self.limits.references is not None:
            metrics = (
                self.codec.quality(side, self.limits.references)
                for side in (self.expected, answers)
            )
            report.update(self.limits.compare_quality(*metrics, what))
        return report

    def _require_same(self, report, others, what):
        difference = report[f"{self.codec.number}_difference"]
        if not difference <= self.codec.tolerance:  # not a number is not
            raise ExportError(
                f"{what}: a {self.codec.number} differs from that of the model in memory by "
                f"{difference:.2g}. The export was not kept."
            )
        for example, ours, theirs in others:  # within the tolerance: a tie, or other names
            if isinstance(ours, Choice) and not ours.is_tied(theirs, self.codec.tolerance):
                shown, *texts = map(shortened, (self.codec.shown(example), theirs.text, ours.text))
                raise ExportError(
                    f"{what}: {shown!r} became {texts[0]!r}, not {texts[1]!r}. The export was not "
                    "kept."
                )

    def _require_close(self, report, what):
        limit = self.limits.score_loss(self.codec.max_score_loss)
        if not report["score_error"] <= limit:
            raise ExportError(
                f"{what}: the scores of the answers are off by {report['score_error']:.2g} on "
                f"average, {limit:g} are allowed; {100 * report['agreement']:.1f} % of the answers "
                "are the same. The export was not kept."
            )
        self.limits.require_agreement(report["agreement"], "answers", what)


def _error(ours, theirs):
    """By how much a score is off; not a number if there is none."""
    same_shape = ours.numbers.shape == theirs.numbers.shape
    return abs(ours.score - theirs.score_of(ours)) if same_shape else float("nan")


def _gap(ours, theirs):
    """The largest difference of two arrays; not a number if their shapes differ."""
    ours, theirs = ours.numbers, theirs.numbers
    if ours.shape != theirs.shape:
        return float("nan")
    return float(np.max(np.abs(ours - theirs), initial=0.0))
