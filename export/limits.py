"""The limits of a quantised export: what it may lose beside the model in memory."""

import dataclasses

from keras_transformer.export.errors import ExportError

MAX_LOSS = 1.0  # of a metric from 0 to 100, such as BLEU, chrF or accuracy
NAMES = {"bleu": "BLEU", "chrf": "chrF"}  # of metrics, in an error


@dataclasses.dataclass(frozen=True)
class Limits:
    """Storage of an export, and the loss that a quantised one may have.

    Args:
        quantize: How its weights are stored; `"none"` is float32, which loses nothing.
        min_agreement: Smallest share of equal tokens, or answers, of a quantised model. `None`: no
            limit.
        references: List of the right outputs for the samples, or `None`.
        max_loss: Most that a quantised model may lose of a metric from 0 to 100.
        max_score_loss: Most that its scores may be worse, or wrong, in nats. `None`: what is usual
            for its kind of model and its quantisation.

    Raises:
        ValueError: If a limit is out of range.
    """

    quantize: str = "none"
    min_agreement: float | None = None
    references: list | None = None
    max_loss: float = MAX_LOSS
    max_score_loss: float | None = None

    def __post_init__(self):
        if self.min_agreement is not None and not 0 <= self.min_agreement <= 1:
            raise ValueError(
                f"`min_agreement` must be between 0 and 1. Received: {self.min_agreement}."
            )
        for name in ("max_loss", "max_score_loss"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"`{name}` must be at least 0. Received: {limit}.")

    def check(self, quantizations):
        """Raises a `ValueError` unless `quantize` is one of those that a format has."""
        if self.quantize not in quantizations:
            raise ValueError(
                f"`quantize` must be one of {', '.join(quantizations)}. "
                f"Received: {self.quantize!r}."
            )

    def check_references(self, samples):
        """Raises a `ValueError` unless each sample has a reference."""
        if self.references is not None and len(self.references) != len(samples):
            raise ValueError(
                "`references` must have one for each of the samples. Received: "
                f"{len(samples)} samples, {len(self.references)} references."
            )

    @property
    def is_exact(self):
        """Whether the export must be the model in memory, but for rounding."""
        return self.quantize == "none"

    def score_loss(self, usual):
        """Returns the limit of the scores; `usual` are those by quantisation, a dictionary."""
        return usual[self.quantize] if self.max_score_loss is None else self.max_score_loss

    def require_agreement(self, share, of, what):
        """Raises an `ExportError` if too few `of` the outputs, such as tokens, are the same.

        Args:
            share: The share of equal ones.
            of: What is counted.
            what: Name of the export.
        """
        if self.min_agreement is not None and not share >= self.min_agreement:
            raise ExportError(
                f"{what}: {100 * share:.1f} % of the {of} are those of the model in memory, "
                f"{100 * self.min_agreement:g} % are asked for. The export was not kept."
            )

    def compare_quality(self, ours, theirs, what):
        """Returns metrics of the model in memory beside those of an export.

        Args:
            ours: Dictionary of metrics of the model in memory, higher is better.
            theirs: The same of the export.
            what: Name of the export.

        Returns:
            For each metric a dictionary of `in_memory`, `exported` and `difference`; a difference
            below 0 is a loss.

        Raises:
            ExportError: If a quantised export loses more than `max_loss`.
        """
        for name in ours:
            # BLEU of a perfect text is 100 + 4e-14.
            if not self.is_exact and not theirs[name] >= ours[name] - self.max_loss - 1e-9:
                raise ExportError(
                    f"{what}: {NAMES.get(name, f'the {name}')} falls from {ours[name]:.1f} to "
                    f"{theirs[name]:.1f}, by more than the {self.max_loss:g} that are allowed. "
                    "The export was not kept."
                )
        return {
            name: {
                "in_memory": ours[name],
                "exported": theirs[name],
                "difference": theirs[name] - ours[name],
            }
            for name in ours
        }
