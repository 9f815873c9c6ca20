"""Short reports on orders and their summaries: generated, with exactly one right summary each.

A report is a few sentences in any order. Some tell what a summary keeps: where an order is from,
what it costs, when it is due. The others are beside the point, but have values of the same kinds,
so that a summary has to choose by what a sentence says. Names and values are Unicode's (CLDR,
through Babel), in English.
"""

import datetime
import functools

import babel
import tensorflow_datasets as tfds
from babel import dates, numbers, units

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.generated import held_out, open_generated
from keras_transformer.training.data.sources.words import Words

REPORT, SUMMARY = "report", "summary"  # the features
LOCALE = "en"

PLACE = ("The customer is from {}.", "The goods are sent to {}.")
PRICE = ("The price is {}.", "All of it costs {}.")
DAY = ("It is due on {}.", "It must arrive by {}.")
OTHER_PLACE = ("An earlier customer was from {}.", "The goods are made in {}.")
OTHER_PRICE = ("A competitor asks for {}.", "Last year it was {}.")
OTHER_DAY = ("The office is closed on {}.", "The letter was written on {}.")
LANGUAGE = ("The papers are in {}.", "Somebody has to speak {}.")
WEIGHT = ("It weighs {}.", "There is room for {}.")

_SHARE = 0.85  # of the reports that name a price, and of those that name a day
_MOST_OTHERS = 3  # sentences beside the point
_FIRST_DAY, _DAYS = datetime.date(2000, 1, 1), 36525


class Reports:
    """Draws reports."""

    def __init__(self):
        self._locale = babel.Locale(LOCALE)
        self._words = Words(self._locale, self._locale)
        self._others = (
            (OTHER_PLACE, self.place), (OTHER_PRICE, self.price), (OTHER_DAY, self.day),
            (LANGUAGE, self.language), (WEIGHT, self.weight),
        )  # fmt: skip

    def draw(self, dice):
        """Returns a report and its summary.

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

    def pairs(self, count, seed):
        """Returns `count` pairs of a report and its summary; no summary is there twice.

        Args:
            count: How many.
            seed: The same seed gives the same pairs in the same order.
        """
        dice, drawn = Dice(seed), {}
        while len(drawn) < count:  # there are billions of them
            report, summary = self.draw(dice)
            drawn.setdefault(summary, report)
        return [(report, summary) for summary, report in drawn.items()]

    # The values

    def place(self, dice):
        """A country."""
        return dice.pick(self._words.countries)[0]

    def language(self, dice):
        """A language."""
        return dice.pick(self._words.languages)[0]

    def price(self, dice):
        """An amount of money: "1,250 Swiss francs"."""
        currency = dice.pick(self._words.currencies)
        return numbers.format_currency(
            dice.whole(4), currency, locale=self._locale, format_type="name", currency_digits=False
        )

    def day(self, dice):
        """A date: "March 4, 2025"."""
        day = _FIRST_DAY + datetime.timedelta(dice.below(_DAYS))
        return dates.format_date(day, "long", self._locale)

    def weight(self, dice):
        """A weight: "30 kilograms"."""
        return units.format_unit(dice.whole(4), "mass-kilogram", locale=self._locale)


class ReportsConfig(tfds.core.BuilderConfig):
    """Which reports: how many, and the seed. The name holds both, and Babel's version."""

    def __init__(self, examples=40_000, seed=1):
        self.examples, self.seed = examples, seed
        super().__init__(name=f"{examples}-seed{seed}-babel{babel.__version__}")


class CldrReports(tfds.core.GeneratorBasedBuilder):
    """Reports on orders and their summaries, in English.

    No summary is in more than one of the splits, and so is no report. `validation` and `test` hold
    2,000 pairs each, or a tenth of the examples where that is less; `train` holds the others.
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


def open_reports(settings):
    """Builds the reports that a `[data]` section describes, unless they have been built before.

    They are kept as those of `open_cldr` are.

    Raises:
        ValueError: If the folder cannot be written.
    """
    config = ReportsConfig(settings.examples, settings.seed)
    builder = functools.partial(CldrReports, config=config)
    return open_generated(builder, (REPORT, SUMMARY), settings)
