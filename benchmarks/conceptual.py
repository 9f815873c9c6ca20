"""CemaNeige-GR4J, the conceptual model of snow and runoff to which networks are compared, in NumPy.

`simulate` computes many parameter sets at a time, and `calibrate` finds the best one by
differential evolution. The data do not contain the altitudes of the catchment, so five zones of
equal area replace CemaNeige's, and one parameter more, their spread, is calibrated.

Reference: Perrin et al. (2003), "Improvement of a parsimonious model for streamflow simulation",
Journal of Hydrology 279, for GR4J; Valéry et al. (2014), "'As simple as possible but not simpler':
What is useful in a temperature-based snow-accounting routine?", part 2, Journal of Hydrology 517,
for CemaNeige; Storn and Price (1997) for differential evolution.
"""

import numpy as np

# Lower and upper bounds: capacity of the production store in mm, exchange in mm per day, capacity
# of the routing store in mm, time base of the unit hydrograph in days; inertia of the snow's
# temperature, degree-day factor in mm per degree and day; and, because the data do not contain the
# altitudes of the catchment, the difference between the highest zone and the mean in degrees.
BOUNDS = {
    "production": (10.0, 3000.0),
    "exchange": (-10.0, 10.0),
    "routing": (5.0, 1500.0),
    "time_base": (0.5, 15.0),
    "inertia": (0.0, 1.0),
    "degree_day": (0.5, 12.0),
    "spread": (1.0, 12.0),
}
LOGARITHMIC = ("production", "routing")
ZONES = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # their temperatures, in units of the spread
WETTER = 0.00041 / 0.0065  # rise of precipitation per degree by which a zone is colder, CemaNeige's
LEAST_MELT = 0.1  # share of the potential melt where hardly any snow lies


def simulate(weather, parameters, climate=None):
    """Returns the discharge in mm per day, `[P, N]`, of P parameter sets.

    The first year fills the stores, so its discharge is of little use.

    Args:
        weather: Precipitation in mm, temperature in degrees Celsius and potential
            evapotranspiration in mm of each day, `[N, 3]`.
        parameters: Dictionary with an array `[P]` for each name in `BOUNDS`.
        climate: Weather of the calibration, which determines the mean yearly snowfall. `None`:
            `weather`.
    """
    weather = np.asarray(weather, np.float64)
    climate = weather if climate is None else np.asarray(climate, np.float64)
    zones, share = _zones(parameters["spread"])
    water = _cema_neige(weather, zones, share, _covering(climate, zones, share), parameters)
    effective = _production(water, weather[:, 2], parameters["production"])
    return _routing(effective, parameters).T


def _zones(spread):
    """Returns the temperature and the share of precipitation of each zone, `[P, Z]` both.

    The temperature is the difference to the input; the shares have the mean 1.
    """
    offsets = spread[:, None] * ZONES
    share = np.exp(-WETTER * offsets)
    return offsets, share / share.mean(axis=1, keepdims=True)


def _snowfall(fallen, temperature, offsets, share):
    """Returns the snowfall in mm for precipitation and temperature, `[..., 1, 1]` both."""
    return fallen * share * np.clip((3 - temperature - offsets) / 4, 0, 1)


def _covering(climate, offsets, share):
    """Returns the snow in mm, `[P, Z]`, that covers a zone completely: 0.9 of a year's snowfall."""
    days = climate[:, None, None]  # [N, 1, 1, 3]
    yearly = 365.25 * _snowfall(days[..., 0], days[..., 1], offsets, share).mean(axis=0)
    return np.maximum(0.9 * yearly, 1e-9)


def _cema_neige(weather, offsets, share, covering, parameters):
    """Returns rain and melt of each day, `[N, P]`, as the mean over the zones."""
    inertia, factor = (parameters[name][:, None] for name in ("inertia", "degree_day"))
    snow, state = np.zeros((2, *offsets.shape))  # [P, Z]
    water = np.empty((len(weather), len(inertia)))
    for day, (fallen, temperature, _) in enumerate(weather):
        falls, warmth = _snowfall(fallen, temperature, offsets, share), temperature + offsets
        snow = snow + falls
        state = np.minimum(inertia * state + (1 - inertia) * warmth, 0.0)
        potential = np.minimum(factor * np.maximum(warmth, 0.0), snow) * (state == 0)
        cover = np.minimum(snow / covering, 1.0)
        melt = ((1 - LEAST_MELT) * cover + LEAST_MELT) * potential
        snow = snow - melt
        water[day] = np.mean(fallen * share - falls + melt, axis=1)
    return water


def _production(water, evaporation, capacity):
    """Returns the water that reaches the unit hydrographs, `[N, P]`."""
    level = 0.3 * capacity
    effective = np.empty_like(water)
    for day, (arrives, demand) in enumerate(zip(water, evaporation, strict=True)):
        net, share = arrives - demand, level / capacity
        rain = np.tanh(np.maximum(net, 0.0) / capacity)
        dry = np.tanh(np.maximum(-net, 0.0) / capacity)
        stored = capacity * (1 - share**2) * rain / (1 + share * rain)
        lost = level * (2 - share) * dry / (1 + (1 - share) * dry)
        level = level + stored - lost
        leaking = level * (1 - (1 + (level / capacity / 2.25) ** 4) ** -0.25)
        level = level - leaking
        effective[day] = leaking + np.maximum(net, 0.0) - stored
    return effective


def _routing(effective, parameters):
    """Returns the discharge, `[N, P]`, from the routing store and the direct branch."""
    exchange, capacity, base = (parameters[name] for name in ("exchange", "routing", "time_base"))
    slow = 0.9 * _delayed(effective, base, _half_curve)
    direct = 0.1 * _delayed(effective, base, _full_curve)
    level = 0.5 * capacity
    discharge = np.empty_like(effective)
    for day in range(len(effective)):
        gain = exchange * (level / capacity) ** 3.5
        level = np.maximum(level + slow[day] + gain, 0.0)
        flow = level * (1 - (1 + (level / capacity) ** 4) ** -0.25)
        level = level - flow
        discharge[day] = flow + np.maximum(direct[day] + gain, 0.0)
    return discharge


def _half_curve(time, base):
    """Returns the share of water that the unit hydrograph of the routing store has released."""
    return np.clip(time / base, 0, 1) ** 2.5


def _full_curve(time, base):
    """Returns the share of water that the unit hydrograph of the direct branch has released."""
    rising, falling = np.clip(time / base, 0, 1), np.clip(2 - time / base, 0, 1)
    return np.where(time <= base, 0.5 * rising**2.5, 1 - 0.5 * falling**2.5)


def _delayed(water, base, curve):
    """Returns water after a unit hydrograph, `[N, P]`."""
    out = np.zeros_like(water)
    for day in range(int(np.ceil(2 * base.max()))):
        ordinate = curve(day + 1.0, base) - curve(float(day), base)  # [P]
        out[day:] += ordinate * water[: len(water) - day]
    return out


def calibrate(weather, score, seed=1, candidates=40, generations=80):
    """Finds the parameters with the highest score by differential evolution.

    Args:
        weather: See `simulate`.
        score: Function from a simulated discharge, `[N]`, to a number.
        seed: Random seed.
        candidates: Number of parameter sets in a generation.
        generations: Number of generations.

    Returns:
        Dictionary with an array `[1]` for each name in `BOUNDS`, and the score.
    """
    rng = np.random.default_rng(seed)

    def scores(points):
        return np.array([score(flow) for flow in simulate(weather, _parameters(points))])

    points = rng.random((candidates, len(BOUNDS)))
    best = scores(points)
    for _ in range(generations):
        trial = _moved(points, points[np.argmax(best)], rng)
        reached = scores(trial)
        better = reached > best
        points[better], best[better] = trial[better], reached[better]
    place = np.argmax(best)
    return _parameters(points[place : place + 1]), float(best[place])


def _moved(points, leader, rng):
    """Returns new candidates: differences of others are added to a point, or to one closer to the
    leader; coordinates outside the unit cube are drawn again.
    """
    one, two = (points[rng.permutation(len(points))] for _ in range(2))
    scale, follows = rng.uniform(0.4, 0.9, (len(points), 1)), rng.integers(0, 2, (len(points), 1))
    moved = points + scale * (follows * (leader - points) + one - two)
    moved = np.where(rng.random(points.shape) < 0.9, moved, points)
    return np.where((moved < 0) | (moved > 1), rng.random(points.shape), moved)


def _parameters(points):
    """Returns the parameter sets of points of the unit cube, `[P, parameters]`."""
    sets = {}
    for (name, (low, high)), value in zip(BOUNDS.items(), points.T, strict=True):
        logarithmic = name in LOGARITHMIC
        sets[name] = low * (high / low) ** value if logarithmic else low + (high - low) * value
    return sets
