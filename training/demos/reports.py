"""Generated short reports on orders, each with exactly one correct summary.

A report consists of a few sentences in random order. Some contain the content of the summary:
origin, price and due date of an order. The others are irrelevant but have values of the same kinds,
so that a summary must select sentences by their meaning. Names and values are from Unicode's locale
data (CLDR, through Babel), in English.
"""

import datetime
import functools

import babel
import tensorflow_datasets as tfds
from babel import dates, numbers, units

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.generated import held_out, open_generated
from keras_transformer.training.data.sources.tfds import TfdsData
from keras_transformer.training.data.sources.words import Words

REPORT, SUMMARY = "report", "summary"  # names of the features
LOCALE = "en"

PLACE = ("The customer is from {}.", "The goods are sent to {}.")
PRICE = ("The price is {}.", "All of it costs {}.")
DAY = ("It is due on {}.", "It must arrive by {}.")
OTHER_PLACE = ("An earlier customer was from {}.", "The goods are made in {}.")
OTHER_PRICE = ("A competitor asks for {}.", "Last year it was {}.")
OTHER_DAY = ("The office is closed on {}.", "The letter was written on {}.")
LANGUAGE = ("The papers are in {}.", "Somebody has to speak {}.")
WEIGHT = ("It weighs {}.", "There is room for {}.")

_SHARE = 0.85  # share of reports with a price, and of reports with a due date
_MOST_OTHERS = 3  # maximum number of irrelevant sentences
_FIRST_DAY, _DAYS = datetime.date(2000, 1, 1), 36525


class Reports:
    """Generator of reports."""

    def __init__(self):
        self._locale = babel.Locale(LOCALE)
        self._words = Words.of(self._locale, self._locale)
        self._others = (
            (OTHER_PLACE, self.place), (OTHER_PRICE, self.price), (OTHER_DAY, self.day),
            (LANGUAGE, self.language), (WEIGHT, self.weight),
        )  # fmt: skip

    def draw(self, dice) -> tuple[str, str]:
        """Draws a report and its summary.

        Args:
            dice: The `Dice`.
        """
        place, summary = self.place(dice), "An order from {}"
        sentences = [dice.pick(PLACE).format(place)]
        values = [place]
        for templates, value, phrase in (
            (PRICE, self.price, " for {}"),
            (DAY, self.day, ", due on {}"),
        ):
            if dice.random() < _SHARE:
                values.append(value(dice))
                sentences.append(dice.pick(templates).format(values[-1]))
                summary += phrase
        for templates, value in dice.some(self._others, dice.below(_MOST_OTHERS + 1)):
            sentences.append(dice.pick(templates).format(value(dice)))
        return " ".join(dice.some(sentences, len(sentences))), f"{summary}.".format(*values)

    def pairs(self, count, seed) -> list[tuple[str, str]]:
        """Draws pairs of a report and its summary; all summaries are different.

        Args:
            count: Number of pairs.
            seed: Random seed; the same seed gives the same pairs in the same order.
        """
        dice, drawn = Dice(seed), {}
        while len(drawn) < count:  # there are billions of summaries
            report, summary = self.draw(dice)
            drawn.setdefault(summary, report)
        return [(report, summary) for summary, report in drawn.items()]

    # Values

    def place(self, dice) -> str:
        """Draws a country."""
        return dice.pick(self._words.countries)[0]

    def language(self, dice) -> str:
        """Draws a language."""
        return dice.pick(self._words.languages)[0]

    def price(self, dice) -> str:
        """Draws an amount of money: "1,250 Swiss francs"."""
        currency = dice.pick(self._words.currencies)
        return numbers.format_currency(
            dice.whole(4), currency, locale=self._locale, format_type="name", currency_digits=False
        )

    def day(self, dice) -> str:
        """Draws a date: "March 4, 2025"."""
        day = _FIRST_DAY + datetime.timedelta(dice.below(_DAYS))
        return dates.format_date(day, "long", self._locale)

    def weight(self, dice) -> str:
        """Draws a weight: "30 kilograms"."""
        return units.format_unit(dice.whole(4), "mass-kilogram", locale=self._locale)


class ReportsConfig(tfds.core.BuilderConfig):
    """Choice of reports: their number and the random seed. The name also has Babel's version."""

    def __init__(self, examples=40_000, seed=1):
        self.examples, self.seed = examples, seed
        super().__init__(name=f"{examples}-seed{seed}-babel{babel.__version__}")


class CldrReports(tfds.core.GeneratorBasedBuilder):
    """Reports on orders and their summaries, in English.

    Every report and every summary is in one split. `validation` and `test` contain 2,000 pairs
    each, or a tenth of the examples if that is less; `train` contains the others.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, config=None, **options):
        super().__init__(config=config or ReportsConfig(), **options)

    def _info(self):
        texts = {REPORT: tfds.features.Text(), SUMMARY: tfds.features.Text()}
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.FeaturesDict(texts),
            homepage="https://cldr.unicode.org",
            disable_shuffling=True,  # they are drawn in random order
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        splits = held_out(Reports().pairs(config.examples, config.seed), config.seed + 1)
        return {name: self._generate_examples(split) for name, split in splits.items()}

    def _generate_examples(self, pairs):
        for key, pair in enumerate(pairs):
            yield key, dict(zip((REPORT, SUMMARY), pair, strict=True))


def open_reports(settings) -> TfdsData:
    """Builds the reports that a `[data]` section describes, unless they have been built before.

    They are stored in the same folder as the phrases of `open_cldr`.

    Raises:
        ValueError: If the folder cannot be written.
    """
    config = ReportsConfig(settings.examples, settings.seed)
    builder = functools.partial(CldrReports, config=config)
    return open_generated(builder, (REPORT, SUMMARY), settings)
