"""The best validation so far, and whether it is time to stop."""

import math


class Best:
    """The best validation so far, and how many there were since.

    A validation that equals the best one is not an improvement, nor is one that is NaN.

    Args:
        figures: What a validation measures, a dictionary from names to `Metric`s.
        by: Which of them decides. `None`: no validation is the best one.
        patience: Validations without improvement after which the training stops, or `None`.
    """

    def __init__(self, figures, by=None, patience=None):
        self.by = by
        self.higher_is_better = by is not None and figures[by].higher_is_better
        self.patience = patience
        self.update, self.figures = None, None
        self.waited = 0

    @property
    def exhausted(self):
        """Whether the training should stop."""
        return self.patience is not None and self.waited >= self.patience

    def see(self, update, figures):
        """Takes the figures of the validation after an update into account."""
        if self.by is None:
            return
        if self._improved(figures[self.by]):
            self.update, self.figures, self.waited = update, figures, 0
        else:
            self.waited += 1

    def state(self):
        """Returns what a checkpoint has to hold, as a dictionary of plain values."""
        return {"update": self.update, "figures": self.figures, "waited": self.waited}

    def restore(self, state):
        """Goes back to what `state` returned."""
        self.update, self.figures = state["update"], state["figures"]
        self.waited = state["waited"]

    def forget(self):
        """Takes it that there was no best validation; what was waited counts on."""
        self.update, self.figures = None, None

    def reason(self):
        """Says why the training stops, without a dot."""
        since = "" if self.update is None else f" since update {self.update:,}"
        return f"{self.by} has not improved{since}, {self.waited} validations in a row"

    def _improved(self, value):
        if not math.isfinite(value):
            return False
        if self.figures is None:
            return True
        best = self.figures[self.by]
        return value > best if self.higher_is_better else value < best
