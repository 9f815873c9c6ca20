"""Medians and quartiles, and what is made of the figures of several peers."""

import statistics
import time

NOISE = 1e-4  # of a loss: rounding is below 1e-6, dropout in a small model above 1e-3


class BenchmarkError(Exception):
    """A benchmark that cannot be trusted or cannot run; the message is one line."""


def spread(values):
    """Returns the median and the quartiles of a list, and the list itself."""
    lower, median, upper = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return {"median": median, "lower": lower, "upper": upper, "all": list(values)}


def check_parameters(parameters, tolerance=0.01):
    """Compares the peers' numbers of parameters with the first one's.

    Args:
        parameters: Dictionary from a peer to its number of parameters.
        tolerance: Largest relative difference.

    Raises:
        BenchmarkError: If a peer is not the same model.
    """
    first, *others = parameters
    for other in others:
        if abs(parameters[other] / parameters[first] - 1) > tolerance:
            raise BenchmarkError(
                f"{other} has {parameters[other]:,} parameters and {first} "
                f"{parameters[first]:,}: they differ by more than {tolerance:.0%}, so they are "
                "not the same model. Fix the peer before you compare it."
            )


def check_learning(peer, losses):
    """Looks at the losses of the first steps on one batch.

    Raises:
        BenchmarkError: If the last one is not below the first one.
    """
    if not losses[-1] < losses[0]:
        listed = ", ".join(f"{loss:.3f}" for loss in losses)
        raise BenchmarkError(
            f"{peer} does not learn: its loss on one repeated batch goes {listed}. Fix the peer, "
            "or lower its learning rate, before you measure it."
        )


def check_dropout(peer, rate, losses):
    """Looks at the losses of a few steps on one batch at a learning rate of 0.

    Args:
        peer: Its name.
        rate: Of the dropout that it was given.
        losses: Those of its steps.

    Raises:
        BenchmarkError: If they differ at rate 0, or do not differ above it.
    """
    listed = ", ".join(f"{loss:.6f}" for loss in losses)
    varies = max(losses) - min(losses) > NOISE * abs(losses[0])
    if rate and not varies:
        raise BenchmarkError(
            f"{peer} trains without dropout: at a rate of {rate:g} its loss on one batch is the "
            f"same in every step, {listed}. Fix the peer before you compare it."
        )
    if varies and not rate:
        raise BenchmarkError(
            f"{peer} is random without dropout: at a rate of 0 its loss on one batch goes "
            f"{listed}. Fix the peer before you compare it."
        )


def ratio_to_fastest(speeds, own="ours"):
    """Compares our own speed with the fastest peer's, repeat by repeat.

    The two figures of a repeat are measured seconds apart, so what disturbs the machine for
    longer than that disturbs both and cancels out.

    Args:
        speeds: Dictionary from a peer to its speed in every repeat.
        own: Which peer is compared with the others.

    Returns:
        The name of the peer with the highest median, and the `spread` of the ratios; `None` if
        there is nothing to compare.
    """
    others = {peer: values for peer, values in speeds.items() if peer != own}
    if own not in speeds or not others:
        return None
    fastest = max(others, key=lambda peer: statistics.median(others[peer]))
    pairs = zip(speeds[own], others[fastest], strict=True)
    return {"fastest_peer": fastest, "ratio": spread([mine / other for mine, other in pairs])}


def shortest(call, trials=5):
    """Returns the shortest of a few times of a call, in seconds: to choose by, not to report."""
    times = []
    for _ in range(trials):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
