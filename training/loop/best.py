"""The best validation so far, and early stopping."""

import math
from typing import Any


class Best:
    """Tracker of the best validation, and of the validations without improvement since.

    A validation that equals the best one is not an improvement, nor is one that is NaN, nor a first
    one of 0 if higher values are better. A model that has learned nothing yet is not the best.

    Args:
        metrics: Metrics of a validation, a dictionary from names to `Metric`s.
        by: Name of the metric to compare. `None`: no validation is the best one.
        patience: Number of validations without improvement after which training stops. `None`:
            it does not stop early.

    Attributes:
        update: Update of the best validation, or `None`.
        results: Results of the best validation, or `None`.
        waited: Number of validations without improvement.
    """

    def __init__(self, metrics, by=None, patience=None):
        self.by = by
        self.higher_is_better = by is not None and metrics[by].higher_is_better
        self.patience = patience
        self.update, self.results = None, None
        self.waited = 0

    @property
    def exhausted(self) -> bool:
        """`True` if training must stop."""
        return self.patience is not None and self.waited >= self.patience

    def see(self, update, results) -> None:
        """Records the results of the validation after an update."""
        if self.by is None:
            return
        if self._improved(results[self.by]):
            self.update, self.results, self.waited = update, results, 0
        else:
            self.waited += 1

    def state(self) -> dict[str, Any]:
        """Returns the state for a checkpoint, a dictionary of plain values."""
        return {"update": self.update, "figures": self.results, "waited": self.waited}

    def restore(self, state) -> None:
        """Restores a state that `state` returned."""
        self.update, self.results = state["update"], state["figures"]
        self.waited = state["waited"]

    def forget(self) -> None:
        """Forgets the best validation, but keeps the number of validations without improvement."""
        self.update, self.results = None, None

    def reason(self) -> str:
        """Returns why training stops, a clause without a full stop."""
        since = "" if self.update is None else f" since update {self.update:,}"
        return f"{self.by} has not improved{since}, {self.waited} validations in a row"

    def _improved(self, value):
        if not math.isfinite(value):
            return False
        if self.results is None:
            return value != 0 or not self.higher_is_better
        best = self.results[self.by]
        return value > best if self.higher_is_better else value < best
