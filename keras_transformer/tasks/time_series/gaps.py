"""Gaps of a series: missing steps or values, filled from their neighbours."""

import numpy as np

from keras_transformer.tasks.time_series.steps import DAY


def steps_since(before, after, step, where, fill=None, limit=0) -> int:
    """Returns the number of steps between two consecutive lines: 1, or more after a gap.

    Args:
        before, after: `Moment`s of both lines.
        step: The `TimeStep`.
        where: Name of the second line in errors.
        fill: Method of filling gaps. `None`: gaps are refused.
        limit: Maximum number of steps in a gap that is filled.

    Raises:
        ValueError: If the second line is too early, or follows a gap that is not filled.
    """
    if (before.offset is None) != (after.offset is None):
        raise ValueError(
            f"{where}: either all dates must have an offset from UTC, such as +01:00, or none. "
            f"Received: {after} after {before}."
        )
    count = step.between(before, after)
    if count is None or count < 1 or (count > 1 and fill is None):
        hint = ""
        if count is not None and count > 1:
            hint = " `data.fill` fills gaps."
        elif count is not None and before.offset is None and step.length % DAY:
            hint = " Where a clock is set back, dates need their offset from UTC, such as +01:00."
        raise ValueError(
            f"{where}: every line must be {step} after the previous one, here "
            f"{step.after(before)}. Received: {after}.{hint}"
        )
    if count - 1 > limit and count > 1:
        raise ValueError(
            f"{where}: {count - 1} steps are missing before it, and `data.fill_limit` is {limit}."
        )
    return count


def fill_gaps(values, method, limit) -> np.ndarray:
    """Fills unknown values.

    Args:
        values: `[N, F]`, NaN if unknown.
        method: `"forward"`: the last known value is repeated. `"linear"`: linear interpolation
            between the values before and after the gap.
        limit: Maximum number of steps in a gap. Longer gaps are not filled, nor are gaps at the
            beginning of the series and, with `"linear"`, at its end.

    Returns:
        The filled values, `[N, F]`.
    """
    steps = np.arange(len(values))
    filled = values.copy()
    for number, column in enumerate(values.T):
        known = np.flatnonzero(np.isfinite(column))
        if len(known) in (0, len(steps)):
            continue
        before = np.searchsorted(known, steps, side="right") - 1  # [N], -1: none
        after = np.searchsorted(known, steps, side="left")  # [N], len(known): none
        begin = known[np.maximum(before, 0)]
        end = np.append(known, len(steps))[after]  # one step after the gap
        fits = (before >= 0) & (end - begin - 1 <= limit)
        if method == "linear":
            fits &= after < len(known)
            filled[fits, number] = np.interp(steps[fits], known, column[known])
        else:
            filled[fits, number] = column[begin[fits]]
    return filled
