"""The conceptual model of the runoff benchmark: equal to a reference, and calibrated."""

import math

import numpy as np
import pytest

DAYS = 211


def weather():
    """Returns two seasons: precipitation, temperature below and above 0, and evaporation."""
    rng = np.random.default_rng(0)
    warmth = 8 * np.sin(np.arange(DAYS) / 30) + rng.normal(0, 3, DAYS)
    return np.stack([rng.gamma(0.4, 12, DAYS), warmth, rng.uniform(0, 5, DAYS)], axis=1)


SETS = {
    "production": (97.0, 350.0, 41.0),
    "exchange": (0.9, -1.3, 0.0),
    "routing": (61.0, 210.0, 7.0),
    "time_base": (1.3, 4.7, 0.6),
    "inertia": (0.8, 0.1, 0.5),
    "degree_day": (3.1, 6.2, 1.7),
    "spread": (2.5, 7.0, 4.0),
}


def snow_reference(fallen, temperature, own):
    """CemaNeige in one set of zones, one day and one zone at a time."""
    water = [0.0] * len(fallen)
    warmer = [own["spread"] * place for place in (-1, -0.5, 0, 0.5, 1)]
    wetter = [math.exp(-0.00041 * offset / 0.0065) for offset in warmer]
    for offset, factor in zip(warmer, wetter, strict=True):
        rain = [p * factor / (sum(wetter) / 5) for p in fallen]
        solid = [
            min(max((3 - t - offset) / 4, 0), 1) * p for p, t in zip(rain, temperature, strict=True)
        ]
        threshold = 0.9 * sum(solid) / len(solid) * 365.25
        snow = state = 0.0
        for day, t in enumerate(temperature):
            snow += solid[day]
            state = min(own["inertia"] * state + (1 - own["inertia"]) * (t + offset), 0)
            melt = 0.0
            if state == 0 and t + offset > 0:
                melt = min(snow, own["degree_day"] * (t + offset))
            melt *= 0.9 * min(snow / threshold, 1) + 0.1
            snow -= melt
            water[day] += (rain[day] - solid[day] + melt) / 5
    return water


def gr4j_reference(water, evaporation, own):
    """GR4J as in Perrin et al. (2003), Eqs. 1 to 22, one day at a time."""
    x1, x2, x3, x4 = (own[name] for name in ("production", "exchange", "routing", "time_base"))
    half = lambda t: min(t / x4, 1) ** 2.5  # noqa: E731
    full = lambda t: 0.5 * (t / x4) ** 2.5 if t < x4 else 1 - 0.5 * max(2 - t / x4, 0) ** 2.5  # noqa: E731
    slow, fast, flows = [0.0] * 60, [0.0] * 60, []
    store, routed = 0.3 * x1, 0.5 * x3
    for p, e in zip(water, evaporation, strict=True):
        if p >= e:
            scaled = math.tanh((p - e) / x1)
            gain = x1 * (1 - (store / x1) ** 2) * scaled / (1 + store / x1 * scaled)
            store, excess = store + gain, p - e - gain
        else:
            scaled = math.tanh((e - p) / x1)
            store -= store * (2 - store / x1) * scaled / (1 + (1 - store / x1) * scaled)
            excess = 0.0
        percolation = store * (1 - (1 + (4 / 9 * store / x1) ** 4) ** -0.25)
        store, excess = store - percolation, excess + percolation
        for later in range(30):
            slow[later] += 0.9 * excess * (half(later + 1) - half(later))
            fast[later] += 0.1 * excess * (full(later + 1) - full(later))
        exchanged = x2 * (routed / x3) ** 3.5
        routed = max(0.0, routed + slow.pop(0) + exchanged)
        flow = routed * (1 - (1 + (routed / x3) ** 4) ** -0.25)
        routed -= flow
        flows.append(flow + max(0.0, fast.pop(0) + exchanged))
        slow.append(0.0)
        fast.append(0.0)
    return flows


def test_the_model_equals_the_reference():
    from conceptual import simulate

    given = weather()
    simulated = simulate(given, {name: np.array(values) for name, values in SETS.items()})
    assert simulated.shape == (3, DAYS)
    for number, row in enumerate(simulated):
        own = {name: values[number] for name, values in SETS.items()}
        water = snow_reference(given[:, 0].tolist(), given[:, 1].tolist(), own)
        expected = gr4j_reference(water, given[:, 2].tolist(), own)
        assert np.std(expected) > 0.2
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_every_parameter_has_an_effect(name):
    from conceptual import simulate

    sets = {other: np.array(values[:1]) for other, values in SETS.items()}
    changed = {**sets, name: np.array(SETS[name][1:2])}
    assert np.abs(simulate(weather(), sets) - simulate(weather(), changed)).max() > 0.01


def test_the_past_does_not_depend_on_the_future():
    from conceptual import simulate

    sets = {name: np.array(values) for name, values in SETS.items()}
    given = weather()
    other = given.copy()
    other[100:, 2] *= 2
    first, second = simulate(given, sets), simulate(other, sets)
    np.testing.assert_array_equal(first[:, :100], second[:, :100])
    assert np.abs(first - second).max() > 0.01


def test_the_snow_cover_depends_on_the_climate_of_the_calibration_only():
    """So a simulation does not depend on its own future through the mean snowfall."""
    from conceptual import simulate

    sets = {name: np.array(values) for name, values in SETS.items()}
    given = weather()
    other = given.copy()
    other[100:, 0] *= 3
    first, second = (simulate(days, sets, climate=given) for days in (given, other))
    np.testing.assert_array_equal(first[:, :100], second[:, :100])
    np.testing.assert_array_equal(first, simulate(given, sets))
    assert np.abs(simulate(other, sets)[:, :100] - first[:, :100]).max() > 1e-3


def test_calibration_finds_the_parameters_of_a_simulation():
    from conceptual import calibrate, simulate

    given = weather()
    truth = simulate(given, {name: np.array(values[:1]) for name, values in SETS.items()})[0]
    score = lambda flow: -float(np.mean((flow - truth) ** 2) / np.var(truth))  # noqa: E731
    found, best = calibrate(given, score, seed=1, candidates=20, generations=40)
    assert score(simulate(given, found)[0]) == best > -0.05
