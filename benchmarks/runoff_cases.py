"""Runs of the runoff benchmark: their data, pretraining, and simulated and observed discharge."""

import csv
import datetime
import functools
import io

import numpy as np
from conceptual import calibrate
from conceptual import simulate as simulate_conceptual
from conceptual_series import resampled_weather, write_simulated

INPUTS = ("precipitation_mm", "temperature_c", "potential_evapotranspiration_mm")
YEARS = range(2000, 2005)  # of the calibration period; each begins in September
LEFT_OUT = "left out"
GENERATED_YEARS = 60
PRETRAIN = (
    "data.scored=180", "data.stride=15", "training.updates=700", "training.validate_every=350",
    "training.checkpoint_every=700", "schedule.peak=0.004", "model.dropout=0.1",
)  # fmt: skip
FINE_TUNE = (
    "training.updates=150", "training.validate_every=75", "training.checkpoint_every=150",
    "schedule.warmup_steps=20", "schedule.peak=0.001",
)  # fmt: skip


def settings_of(encoder, seed, overrides):
    """Returns the settings of a run."""
    from keras_transformer.training.settings.toml import load_settings

    return load_settings(f"runoff_{encoder}", [f"training.seed={seed}", *overrides])


def train_run(folder, encoder, seed, overrides):
    """Trains one run, unless it is finished; returns its settings."""
    import keras
    import rich.console

    from keras_transformer.training.training_run import train

    keras.backend.clear_session()
    settings = settings_of(encoder, seed, overrides)
    train(settings, folder, console=rich.console.Console(file=io.StringIO()))
    return settings


def read_split(settings, split):
    """Returns the weather of a split and of the year before it, and the observed discharge.

    Returns:
        Inputs of all steps, `[steps, F]`; discharge of the days of the split, `[days]`, NaN where
        it is unknown.
    """
    from keras_transformer.training.evaluate import read_columns
    from keras_transformer.training.settings.sources import open_source

    inputs, observed = read_columns(open_source(settings.data), settings.task.get(), split)
    return np.array(inputs), np.array(observed[-len(dates_of(settings, split)) :])


def simulate(folder, settings, split):
    """Returns the discharge that a run simulates in a split, `[days]`."""
    from keras_transformer.pipelines import SeriesSimulator

    inputs, observed = read_split(settings, split)
    return SeriesSimulator.from_run(folder)(inputs)[-len(observed) :]


def dates_of(settings, split):
    """Returns the days of a split."""
    first, last = getattr(settings.data, split)
    return [first + datetime.timedelta(day) for day in range((last - first).days + 1)]


def year_of(date):
    """Returns the year in which a hydrological year begins, in September."""
    return date.year - (date.month < 9)


class Case:
    """Data to train with, the conceptual model calibrated on them, and the days to compare.

    Args:
        output: Folder of the runs and of files that are written here.
        year: Year of the calibration period that is left out. `None`: none.
        overrides: Overrides of the settings of all runs.

    Raises:
        ValueError: If the overrides change the inputs.
    """

    def __init__(self, output, year, overrides):
        self.output, self.year = output.resolve(), year
        self.suffix = "" if year is None else f"-without-{year}"
        self.complete = settings_of("lstm", 1, overrides)
        if tuple(self.complete.data.inputs) != INPUTS:
            raise ValueError(
                f"`data.inputs` must be {', '.join(INPUTS)}, which the conceptual model reads in "
                f"this order. Received: {', '.join(self.complete.data.inputs)}."
            )
        self.overrides = [*overrides, *([] if year is None else self._without())]

    def _without(self):
        """Writes the data without the discharge of the year that is left out.

        Returns:
            Overrides for this file, with a validation split of which the discharge is known.
        """
        path, data = self.output / f"river{self.suffix}.csv", self.complete.data
        with open(data.file, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            if year_of(datetime.date.fromisoformat(row[data.date_column])) == self.year:
                row[data.target] = ""
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        shown = max(year for year in YEARS if year != self.year)
        return [f"data.file={path}", f"data.validation=[{shown}-09-01, {shown + 1}-08-31]"]

    def days(self, split):
        """Returns the split to simulate, and which of its days to compare, a boolean `[days]`."""
        if split != LEFT_OUT:
            return split, np.ones(len(dates_of(self.complete, split)), bool)
        years = [year_of(date) for date in dates_of(self.complete, "train")]
        return "train", np.array(years) == self.year

    def observed(self, split):
        """Returns the observed discharge of the days to compare."""
        split, days = self.days(split)
        return read_split(self.complete, split)[1][days]

    @functools.cached_property
    def calibrated(self):
        """Parameters of the conceptual model, and the weather for which they were calibrated."""
        from keras_transformer.tasks.time_series.metrics import kling_gupta

        weather, observed = read_split(settings_of("lstm", 1, self.overrides), "train")
        known = np.isfinite(observed)

        def score(flow):
            return kling_gupta(observed[known], flow[-len(observed) :][known])

        return calibrate(weather, score)[0], weather

    def conceptual(self, split):
        """Returns the discharge that the conceptual model simulates."""
        split, days = self.days(split)
        weather, parameters = read_split(self.complete, split)[0], self.calibrated[0]
        return simulate_conceptual(weather, parameters, self.calibrated[1])[0][-len(days) :][days]

    @functools.cached_property
    def generated(self):
        """Overrides that replace the data by a simulation of the conceptual model."""
        parameters, weather = self.calibrated
        data, path = self.complete.data, self.output / f"generated{self.suffix}.csv"
        recent = weather[-len(dates_of(self.complete, "train")) :]
        years = np.array([year_of(date) for date in dates_of(self.complete, "train")])
        drawn = [recent[years == year] for year in YEARS if year != self.year]
        made = resampled_weather(drawn, GENERATED_YEARS, np.random.default_rng(1))
        columns = [*data.inputs, data.target]
        train, last = write_simulated(path, columns, made, parameters, weather, data.date_column)
        periods = {"train": train, "validation": last, "test": last}
        return [
            f"data.file={path}",
            *(f"data.{split}=[{first}, {end}]" for split, (first, end) in periods.items()),
        ]

    def run(self, encoder, seed, pretrain):
        """Trains a run, unless it is finished; returns its folder and its settings."""
        folder, overrides = self.output / f"{encoder}-{seed}{self.suffix}", self.overrides
        if pretrain:
            before = self.output / f"{encoder}-{seed}-pretrained{self.suffix}"
            train_run(before, encoder, seed, [*PRETRAIN, *overrides, *self.generated])
            overrides = [f"model.start_from={before}", *FINE_TUNE, *overrides]
        return folder, train_run(folder, encoder, seed, overrides)

    def simulated(self, encoder, seed, pretrain, splits):
        """Returns a dictionary from splits to the discharge that a run simulates."""
        folder, settings = self.run(encoder, seed, pretrain)
        chosen = {split: self.days(split) for split in splits}
        return {name: simulate(folder, settings, s)[days] for name, (s, days) in chosen.items()}
