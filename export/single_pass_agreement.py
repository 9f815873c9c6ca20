"""The judgement of an exported model that answers in one pass, against that of the run."""

import dataclasses

import numpy as np

from keras_transformer.export.parity import SHOWN, ExportError, shortened
from keras_transformer.export.processor import describe_processor
from keras_transformer.tasks.single_pass.codec import Choice, Codec

MAX_LOSS = 1.0  # of a figure from 0 to 100, such as accuracy


@dataclasses.dataclass(frozen=True)
class SinglePassAgreement:
    """How an exported model must agree with the model in memory before it is kept.

    In float32 every number must be the same within the codec's `tolerance`, and so every answer
    that is not tied within it. A quantised model is another model: what is limited is how far its
    scores of the run's answers are off on average, and with references how much it loses of the
    codec's figures. The share of equal answers is reported, and is a limit where one is asked for.

    Args:
        codec: The `Codec`.
        examples: List of examples.
        expected: `Result` of each by the model in memory.
        quantize: `"none"`, `"float16"` or `"int8"`.
        min_agreement: Smallest share of equal answers of a quantised model. `None`: no limit.
        references: List of the right answers, or `None`.
        max_loss: Most that a quantised model may lose of a figure.
        max_score_loss: See above. `None`: the codec's.
    """

    codec: Codec
    examples: list
    expected: list
    quantize: str = "none"
    min_agreement: float | None = None
    references: list | None = None
    max_loss: float = MAX_LOSS
    max_score_loss: float | None = None

    def judge(self, answers, what):
        """Returns the figures of how the answers of an export agree.

        Args:
            answers: `Result` of each example by the export.
            what: Name of the export, for an error.

        Returns:
            Dictionary of `sentences`, the number of examples; `identical` and `agreement`, number
            and share of equal answers; `<number>_difference`, such as `probability_difference`, the
            largest; `score_error`; `differences`, the first few of other answers; `processor`; and
            with references the codec's figures, each a dictionary of `in_memory`, `exported` and
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
        if self.quantize == "none":
            self._require_same(report, others, what)
        else:
            self._require_close(report, what)
        if self.references is not None:
            report.update(self._quality(answers, what))
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
        limit = self.max_score_loss
        limit = self.codec.max_score_loss[self.quantize] if limit is None else limit
        if not report["score_error"] <= limit:
            raise ExportError(
                f"{what}: the scores of the answers are off by {report['score_error']:.2g} on "
                f"average, {limit:g} are allowed; {100 * report['agreement']:.1f} % of the answers "
                "are the same. The export was not kept."
            )
        if self.min_agreement is not None and not report["agreement"] >= self.min_agreement:
            raise ExportError(
                f"{what}: {100 * report['agreement']:.1f} % of the answers are those of the model "
                f"in memory, {100 * self.min_agreement:g} % are asked for. The export was not kept."
            )

    def _quality(self, answers, what):
        ours, theirs = (
            self.codec.quality(side, self.references) for side in (self.expected, answers)
        )
        for name in ours:
            if self.quantize != "none" and not theirs[name] >= ours[name] - self.max_loss:
                raise ExportError(
                    f"{what}: the {name} falls from {ours[name]:.1f} to {theirs[name]:.1f}, by "
                    f"more than the {self.max_loss:g} that are allowed. The export was not kept."
                )
        return {
            name: {
                "in_memory": ours[name],
                "exported": theirs[name],
                "difference": theirs[name] - ours[name],
            }
            for name in ours
        }


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
