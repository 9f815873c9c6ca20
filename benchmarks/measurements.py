"""Statistics of measurements, checks of peers, and comparisons between them."""

import statistics
import time

# Relative change of a loss that shows dropout: rounding changes it by less than 1e-6, dropout in a
# small model by more than 1e-3.
NOISE = 1e-4


class BenchmarkError(Exception):
    """Error if a benchmark cannot run or its results would be wrong; the message is one line."""


def spread(values):
    """Returns a dictionary of the median and the quartiles of a list, and the list itself."""
    lower, median, upper = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return {"median": median, "lower": lower, "upper": upper, "all": list(values)}


def check_parameters(parameters, tolerance=0.01):
    """Checks that all peers have as many parameters as the first one.

    Args:
        parameters: Dictionary from a peer to its number of parameters.
        tolerance: Largest relative difference.

    Raises:
        BenchmarkError: If a peer has another number of parameters, so that it is another model.
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
    """Checks that the loss decreases in the first steps on one batch.

    Raises:
        BenchmarkError: If the last loss is not below the first one.
    """
    if not losses[-1] < losses[0]:
        listed = ", ".join(f"{loss:.3f}" for loss in losses)
        raise BenchmarkError(
            f"{peer} does not learn: its loss on one repeated batch goes {listed}. Fix the peer, "
            "or lower its learning rate, before you measure it."
        )


def check_dropout(peer, rate, losses):
    """Checks dropout by the losses of a few steps on one batch with a learning rate of 0.

    Args:
        peer: Name of the peer.
        rate: Its dropout rate.
        losses: Losses of the steps.

    Raises:
        BenchmarkError: If the losses differ without dropout, or are equal with dropout.
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
    """Compares our speed with that of the fastest peer in each repeat.

    The two measurements of a repeat are seconds apart, so a longer disturbance of the machine
    affects both and cancels out.

    Args:
        speeds: Dictionary from a peer to its speed in every repeat.
        own: Name of our own peer.

    Returns:
        The name of the other peer with the highest median speed, and the `spread` of the ratios;
        `None` if there is nothing to compare.
    """
    others = {peer: values for peer, values in speeds.items() if peer != own}
    if own not in speeds or not others:
        return None
    fastest = max(others, key=lambda peer: statistics.median(others[peer]))
    pairs = zip(speeds[own], others[fastest], strict=True)
    return {"fastest_peer": fastest, "ratio": spread([mine / other for mine, other in pairs])}


def shortest(call, trials=5):
    """Returns the shortest of several times of a call, in seconds; for choices, not for reports."""
    times = []
    for _ in range(trials):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
