"""The report of an export of any format: all results, and a line that sums them up."""

import dataclasses
from typing import Any

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
NUMBERS = "number_difference"  # largest difference of the numbers in a vector or a series


@dataclasses.dataclass(frozen=True)
class Report:
    """The report of an export.

    Args:
        path: Path of the export.
        results: Dictionary that the exporter has returned, with `agreement`.
        checked_with: Origin of the sentences that the export was checked with.
        seconds: Duration of the export with its check.
    """

    path: Any
    results: dict[str, Any]
    checked_with: str
    seconds: float

    def fields(self) -> dict[str, Any]:
        """Returns everything that is known about the export, as a dictionary."""
        seconds = round(self.seconds, 1)
        return {**self.results, "checked_with": self.checked_with, "seconds": seconds}

    def summary(self) -> str:
        """Returns path, size, agreement and time, such as `x.onnx: 6.1 MB, 9 of 9 ..., 41 s`."""
        path = self.results.get("path", self.path)
        parts = [self._size(), self._agreement(), _duration(self.seconds)]
        return f"{path}: {', '.join(part for part in parts if part)}"

    @property
    def has_differences(self) -> bool:
        """`True` if an output differs from the run's, which a quantised model's may."""
        return self.results["agreement"] < 1

    def _size(self):
        size = self.results.get("bytes")
        if size is None:
            return ""
        for factor, unit in UNITS:
            if size >= factor:
                return f"{size / factor:.{0 if size >= 100 * factor else 1}f} {unit}"
        return f"{size} bytes"

    def _agreement(self):
        identical, count = self.results.get("identical"), self.results.get("sentences")
        if identical is None or count is None:
            return f"{100 * self.results['agreement']:.1f} % of the outputs identical to the run's"
        largest = self.results.get(NUMBERS)
        if largest is not None and identical < count:  # of a vector, no number need be identical
            outputs = "one output" if count == 1 else f"{count} outputs"
            return f"the numbers of {outputs} differ from the run's by at most {largest:.2g}"
        text = f"{identical} of {count} outputs identical to the run's"
        tokens = self.results.get("token_agreement", 1)
        return text if tokens == 1 else f"{text} ({100 * tokens:.1f} % of the tokens)"


def _duration(seconds):
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
