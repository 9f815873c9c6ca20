"""Limits of the quality that a quantised export may lose."""

import dataclasses

from keras_transformer.export.errors import ExportError

MAX_LOSS = 1.0  # points of a metric from 0 to 100, such as BLEU, chrF or accuracy
NAMES = {"bleu": "BLEU", "chrf": "chrF"}  # names of metrics in errors


@dataclasses.dataclass(frozen=True)
class Limits:
    """Quantisation of an export, and the loss of quality that it may cause.

    Args:
        quantize: Storage of the weights. `"none"` is float32, which loses nothing.
        min_agreement: Minimum share of equal tokens, or of equal answers, for a quantised model.
            `None`: no limit.
        references: List of the correct outputs for the samples, or `None`.
        max_loss: Maximum loss of a quantised model, in points of a metric from 0 to 100.
        max_score_loss: Maximum loss of the scores, and maximum error of the reported scores, in
            nats. `None`: the default for the kind of model and the quantisation.

    Raises:
        ValueError: If a limit is out of range.
    """

    quantize: str = "none"
    min_agreement: float | None = None
    references: list | None = None
    max_loss: float = MAX_LOSS
    max_score_loss: float | None = None

    def __post_init__(self) -> None:
        if self.min_agreement is not None and not 0 <= self.min_agreement <= 1:
            raise ValueError(
                f"`min_agreement` must be between 0 and 1. Received: {self.min_agreement}."
            )
        for name in ("max_loss", "max_score_loss"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"`{name}` must be at least 0. Received: {limit}.")

    def check(self, quantizations) -> None:
        """Raises a `ValueError` unless `quantize` is one of `quantizations`."""
        if self.quantize not in quantizations:
            raise ValueError(
                f"`quantize` must be one of {', '.join(quantizations)}. "
                f"Received: {self.quantize!r}."
            )

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
