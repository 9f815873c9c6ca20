"""Series for pretraining: discharge that the conceptual model simulates from resampled weather."""

import csv
import datetime

import numpy as np
from conceptual import simulate

FIRST = datetime.date(1901, 9, 1)
YEAR = 365
MONTHS = 13  # of 30 days, the last one shorter


def resampled_weather(weather, years, rng):
    """Returns the weather of random years, `[years * 365, 3]`, in random order and changed.

    Each month is changed for itself and each year as a whole: precipitation by random factors
    (lognormal, 0.3 and 0.2), temperature by random differences (normal, 1.2 and 0.8 degrees), and
    potential evapotranspiration by 3 % per degree.

    Args:
        weather: List of arrays `[at least 365, 3]`, one for each year to draw from: precipitation,
            temperature and potential evapotranspiration.
        years: Number of years to generate.
        rng: NumPy generator.
    """
    days = np.repeat(np.arange(MONTHS), 30)[:YEAR]
    generated = []
    for _ in range(years):
        year = np.array(weather[rng.integers(len(weather))][:YEAR], np.float64)
        wetter = rng.normal(0, 0.2) + rng.normal(0, 0.3, MONTHS)[days]
        warmer = rng.normal(0, 0.8) + rng.normal(0, 1.2, MONTHS)[days]
        year[:, 0] *= np.exp(wetter)
        year[:, 1] += warmer
        year[:, 2] *= np.maximum(1 + 0.03 * warmer, 0)
        generated.append(year)
    return np.concatenate(generated)


def write_simulated(path, names, weather, parameters, climate, date="date"):
    """Writes a CSV file of weather and simulated discharge, and returns its periods.

    In the first year, in which the stores of the conceptual model fill, the discharge is unknown.

    Args:
        path: The file.
        names: Names of the four columns beside the date.
        weather: `[years * 365, 3]`, at least three years.
        parameters: See `simulate`.
        climate: See `simulate`.
        date: Name of the column of dates.

    Returns:
        First and last date for training, and those for validation, which is the last year.
    """
    (discharge,) = simulate(weather, parameters, climate)
    dates = [FIRST + datetime.timedelta(day) for day in range(len(weather))]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([date, *names])
        for number, (day, row) in enumerate(zip(dates, weather, strict=True)):
            known = f"{discharge[number]:.6f}" if number >= YEAR else ""
            writer.writerow([day.isoformat(), *(f"{value:.4f}" for value in row), known])
    return (dates[YEAR], dates[-YEAR - 1]), (dates[-YEAR], dates[-1])
