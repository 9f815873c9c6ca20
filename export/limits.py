"""Limits of the quality that a quantised export may lose."""

import dataclasses

from keras_transformer.export.errors import ExportError
from keras_transformer.export.options import QuantizedOptions

ANY_LOSS = 100.0  # points of a metric from 0 to 100: no limit
NAMES = {"bleu": "BLEU", "chrf": "chrF"}  # names of metrics in errors


@dataclasses.dataclass(frozen=True)
class Limits(QuantizedOptions):
    """Quantisation of an export, the loss that it may cause, and what it is measured with.

    Args:
        quantize, max_loss, max_score_loss, min_agreement: See `QuantizedOptions`.
        references: List of the correct outputs for the samples, or `None`.

    Raises:
        ValueError: If a limit is out of range.
    """

    references: list | None = None

    @classmethod
    def of(cls, options: QuantizedOptions, references: list | None = None) -> "Limits":
        """Returns the limits in the options of an export, with references."""
        names = [field.name for field in dataclasses.fields(QuantizedOptions)]
        return cls(**{name: getattr(options, name) for name in names}, references=references)

    def check_together(self) -> None:
        """Accepts everything: an exporter sets further limits, also of an export in float32."""

    def check_references(self, samples) -> None:
        """Raises a `ValueError` unless each sample has a reference."""
        if self.references is not None and len(self.references) != len(samples):
            raise ValueError(
                "`references` must have one reference for each sample. Received: "
                f"{len(samples)} samples, {len(self.references)} references."
            )

    @property
    def is_exact(self) -> bool:
        """`True` if the export must equal the model in memory up to rounding."""
        return self.quantize == "none"

    def score_loss(self, usual) -> float:
        """Returns the limit for the scores.

        Args:
            usual: Dictionary from quantisations to the default limit.
        """
        return usual[self.quantize] if self.max_score_loss is None else self.max_score_loss

    def require_agreement(self, share, of, what) -> None:
        """Raises an `ExportError` if too few outputs are equal.

        Args:
            share: Share of equal outputs.
            of: Name of the outputs, such as `"tokens"`.
            what: Name of the export.
        """
        if self.min_agreement is not None and not share >= self.min_agreement:
            raise ExportError(
                f"{what}: {100 * share:.1f} % of the {of} equal those of the model in memory, but "
                f"`min_agreement` requires {100 * self.min_agreement:g} %. The export was not kept."
            )

    def compare_quality(self, ours, theirs, what) -> dict[str, dict[str, float]]:
        """Compares metrics of an export with those of the model in memory.

        Args:
            ours: Dictionary of metrics of the model in memory. Higher is better.
            theirs: Dictionary of the same metrics of the export.
            what: Name of the export.

        Returns:
            For each metric a dictionary of `in_memory`, `exported` and `difference`, which is
            negative for a loss.

        Raises:
            ExportError: If a quantised export loses more than `max_loss`.
        """
        for name in ours:
            # Because of rounding, the BLEU of a perfect text is 100 + 4e-14.
            if not self.is_exact and not theirs[name] >= ours[name] - self.max_loss - 1e-9:
                raise ExportError(
                    f"{what}: {NAMES.get(name, f'the {name}')} falls from {ours[name]:.1f} to "
                    f"{theirs[name]:.1f}, by more than the {self.max_loss:g} that `max_loss` "
                    "allows. The export was not kept."
                )
        return {
            name: {
                "in_memory": ours[name],
                "exported": theirs[name],
                "difference": theirs[name] - ours[name],
            }
            for name in ours
        }
