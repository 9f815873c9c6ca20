"""Agreement of an exported model that answers in one pass with the model in memory."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.parity import SHOWN, difference, shortened
from keras_transformer.export.processor import describe_processor
from keras_transformer.tasks.single_pass.codec import Codec
from keras_transformer.tasks.single_pass.result import Choice

DIFFERENCE = "_difference"  # ends the names of the numbers in a report


@dataclasses.dataclass(frozen=True)
class AnswerAgreement:
    """Required agreement of an export with the model in memory.

    In float32, all numbers must be equal within the codec's `tolerance`, and so must all answers
    that are not tied within it. A quantised model computes other numbers. Three losses are limited:
    the mean error of the scores that it gives to the answers of the model in memory; if results
    have no scores of other answers, by how much its answers are less probable to the model in
    memory than the model's own; and, with references, the loss in the codec's metrics. Scores that
    add up log-probabilities of tokens are compared per token. The share of equal answers is
    reported; `min_agreement` limits it.

    Args:
        codec: The `Codec`.
        examples: List of examples.
        expected: List of `Result`s of the model in memory, one per example.
        limits: The `Limits`. The default of `max_score_loss` is the codec's.
        log_probabilities: Function of an example and a list of `Result`s: see
            `SinglePass.log_probabilities`.
    """

    codec: Codec
    examples: list
    expected: list
    limits: Limits = Limits()
    log_probabilities: Callable = lambda example, results: None

    def judge(self, answers, what) -> dict[str, Any]:
        """Compares the answers of an export with those of the model in memory.

        Args:
            answers: List of `Result`s of the export, one per example.
            what: Name of the export, for errors.

        Returns:
            Dictionary of `sentences`, the number of examples; `identical` and `agreement`, number
            and share of equal answers; `<number>_difference`, such as `probability_difference`, the
            largest difference of each number; `score_error`, the mean error of the scores, in the
            codec's `score_unit`; `differences`, the first few answers that differ; `processor`; for
            a quantised model that generates text `score_loss`; and with references the codec's
            metrics, each a dictionary of `in_memory`, `exported` and `difference`.

        Raises:
            ExportError: If they do not agree.
        """
        rows = list(zip(self.examples, self.expected, answers, strict=True))
        cut = next((example for example, a, b in rows if a.truncated != b.truncated), None)
        if cut is not None:
            shown = shortened(self.codec.shown(cut))
            raise ExportError(
                f"{what}: only one of the two models read all of {shown!r}. The export was not "
                "kept."
            )
        tolerance = self.codec.tolerance
        others = [(example, a, b) for example, a, b in rows if not a.agrees(b, tolerance)]
        report = {
            "sentences": len(rows),
            "identical": len(rows) - len(others),
            "agreement": 1 - len(others) / len(rows),
            **self._differences(rows),
            "score_error": float(np.mean([a.score_error(b) for _, a, b in rows])),
            "differences": [
                difference(self.codec.shown(example), a.choice, b.choice)
                for example, a, b in others[:SHOWN]
            ],
            "processor": describe_processor(),
        }
        if self.limits.is_exact:
            self._require_same(report, others, what)
        else:
            report.update(self._loss(others, len(rows)))
            self._require_close(report, what)
        if self.limits.references is not None:
            metrics = (
                self.codec.quality(side, self.limits.references)
                for side in (self.expected, answers)
            )
            report.update(self.limits.compare_quality(*metrics, what))
        return report

    def _differences(self, rows):
        """Returns the largest difference of each number, by its name in the report."""
        gaps = {self.codec.number: [a.gap(b) for _, a, b in rows]}
        for _, a, b in rows:
            for name, gap in a.further_gaps(b).items():
                gaps.setdefault(name, []).append(gap)
        return {f"{name}{DIFFERENCE}": float(np.max(values)) for name, values in gaps.items()}

    def _require_same(self, report, others, what):
        for key in report:
            if key.endswith(DIFFERENCE) and not report[key] <= self.codec.tolerance:  # or NaN
                raise ExportError(
                    f"{what}: a {key.removesuffix(DIFFERENCE)} differs from that of the model in "
                    f"memory by {report[key]:.2g}. The export was not kept."
                )
        for example, ours, theirs in others:  # numbers agree: a tie, or wrong names
            if isinstance(ours, Choice) and not ours.is_tied(theirs, self.codec.tolerance):
                shown, *texts = map(
                    shortened, (self.codec.shown(example), theirs.choice, ours.choice)
                )
                raise ExportError(
                    f"{what}: {shown!r} became {texts[0]!r}, not {texts[1]!r}. The export was not "
                    "kept."
                )

    def _loss(self, others, count):
        """Returns `score_loss`, the mean over all examples; empty if no answer has one."""
        pairs = [self.log_probabilities(example, both) for example, *both in others]
        losses = [float(ours - theirs) for ours, theirs in filter(_is_given, pairs)]
        return {"score_loss": sum(losses) / count} if losses else {}

    def _require_close(self, report, what):
        limit = self.limits.score_loss(self.codec.max_score_loss)
        for name, meaning in (
            ("score_error", "the scores of the answers are off by"),
            ("score_loss", "to the model in memory, the answers are less probable than its own by"),
        ):
            if name in report and not report[name] <= limit:  # also true for NaN
                raise ExportError(
                    f"{what}: {meaning} {report[name]:.2g} {self.codec.score_unit} on average, but "
                    f"at most {limit:g} is allowed (`--max-score-loss`); "
                    f"{100 * report['agreement']:.1f} % of the answers are the same. The export "
                    "was not kept."
                )
        self.limits.require_agreement(report["agreement"], "answers", what)


def _is_given(pair):
    return pair is not None
