"""Metrics of hydrology for the agreement of a simulated with an observed series."""

import math

import numpy as np


def nash_sutcliffe(observed, simulated) -> float:
    """Returns the Nash-Sutcliffe efficiency: `1 - sum((s - o)^2) / sum((o - mean(o))^2)`.

    1 is perfect; the mean of the observed series has 0.

    Args:
        observed, simulated: Values at the same steps, `[N]`.

    Reference: Nash and Sutcliffe (1970), Eq. 3.
    """
    observed, simulated = _pair(observed, simulated)
    variation = np.sum((observed - observed.mean()) ** 2)
    return float(1 - np.sum((simulated - observed) ** 2) / variation) if variation else math.nan


def kling_gupta(observed, simulated) -> float:
    """Returns the modified Kling-Gupta efficiency KGE'.

    `1 - sqrt((r - 1)^2 + (beta - 1)^2 + (gamma - 1)^2)` with the correlation `r`, the ratio of the
    means `beta = mean(s) / mean(o)` and the ratio of the coefficients of variation
    `gamma = (std(s) / mean(s)) / (std(o) / mean(o))`. 1 is perfect.

    Args:
        observed, simulated: Values at the same steps, `[N]`.

    Reference: Kling et al. (2012), "Runoff conditions in the upper Danube basin under an ensemble
        of climate change scenarios", Eq. 1.
    """
    observed, simulated = _pair(observed, simulated)
    deviations = simulated.std() * observed.std()
    if not deviations or not observed.mean() or not simulated.mean():
        return math.nan
    covariance = np.mean((observed - observed.mean()) * (simulated - simulated.mean()))
    beta = simulated.mean() / observed.mean()
    gamma = simulated.std() / observed.std() / beta
    distance = (covariance / deviations - 1) ** 2 + (beta - 1) ** 2 + (gamma - 1) ** 2
    return float(1 - math.sqrt(distance))


def _pair(observed, simulated):
    observed, simulated = (np.asarray(side, np.float64) for side in (observed, simulated))
    if observed.shape != simulated.shape or observed.ndim != 1 or not len(observed):
        raise ValueError(
            "`observed` and `simulated` must have the same length and not be empty. Received: "
            f"shapes {observed.shape} and {simulated.shape}."
        )
    return observed, simulated
