"""Generated sentences with spans: names, dates and amounts. Nothing is downloaded.

The spans are phrases from Unicode's locale data (CLDR, through Babel): dates, money, countries,
languages, durations and measures, in English sentences. Some sentences also contain numbers and
names that are not spans.
"""

import babel

from keras_transformer.tasks.token_classification.spans import Span, labels_of
from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.data.sources.phrases import PhraseBook
from keras_transformer.training.data.sources.words import Words

HELD_OUT = 1000  # sentences in validation and in test each; at most a tenth of all

# Templates of sentences: a word in capitals is the type of a span, `#` a number that is not a span.
SENTENCES = (
    "The contract of DATE is worth MONEY .",
    "In COUNTRY most people speak LANGUAGE .",
    "A flight to COUNTRY takes DURATION .",
    "They waited DURATION for MEASURE of rice .",
    "On DATE the price rose to MONEY .",
    "She translates from LANGUAGE into LANGUAGE .",
    "The parcel weighs MEASURE and goes to COUNTRY .",
    "COUNTRY and COUNTRY signed a treaty on DATE .",
    "Room # costs MONEY for DURATION .",
    "According to page # the tank holds MEASURE .",
    "The course in LANGUAGE lasts DURATION and costs MONEY .",
    "Since DATE the company also sells in COUNTRY .",
    "He paid MONEY for MEASURE of copper .",
    "Version # was released in LANGUAGE on DATE .",
    "After DURATION the sensor had measured MEASURE .",
    "The minister of COUNTRY spoke LANGUAGE for DURATION .",
    "Its fee is MONEY per night , and breakfast is at # .",
    "The pipe is MEASURE long ; it was laid on DATE .",
    "Order # over MONEY was sent to COUNTRY on DATE .",
    "Bus # takes DURATION from gate # .",
    "Was it MEASURE or MEASURE ?",
    "Between DATE and DATE nobody wrote in LANGUAGE .",
)


class Entities:
    """Generator of phrases of each type.

    Args:
        dice: A `Dice`.
    """

    def __init__(self, dice):
        locales = babel.Locale.parse("en"), babel.Locale.parse("de")
        self._dice, self._book, self._words = dice, PhraseBook(*locales), Words.of(*locales)
        units = self._words.units
        self._durations = [unit for unit in units if unit.startswith("duration-")]
        self._measures = [unit for unit in units if unit not in self._durations]

    def draw(self, kind) -> list[str]:
        """Draws a phrase of a type, a list of words."""
        dice, book, words = self._dice, self._book, self._words
        if kind == "DATE":
            return book.typed(book.date(dice))
        if kind == "MONEY":
            return book.typed(book.money(dice))
        if kind == "COUNTRY":
            return book.typed(dice.pick(words.countries))
        if kind == "LANGUAGE":
            return book.typed(dice.pick(words.languages))
        return book.typed(
            book.measure_of(self._durations if kind == "DURATION" else self._measures, dice)
        )


def draw_sentences(count, seed) -> list[tuple]:
    """Draws sentences, no two of which have the same spans.

    Args:
        count: Number of sentences.
        seed: Random seed; the same seed gives the same sentences in the same order.

    Returns:
        List of pairs: words, and a list of `Span`s.
    """
    dice = Dice(seed)
    entities, seen, sentences = Entities(dice), set(), []
    while len(sentences) < count:
        words, spans = [], []
        for word in dice.pick(SENTENCES).split():
            if word == "#":
                words.append(str(dice.whole(4)))
            elif word.isupper() and len(word) > 1:
                phrase = entities.draw(word)
                spans.append(Span(len(words), len(words) + len(phrase), word))
                words += phrase
            else:
                words.append(word)
        content = tuple(" ".join(words[span.begin : span.end]) for span in spans)
        if content not in seen:
            seen.add(content)
            sentences.append((words, spans))
    return sentences


def open_entities(settings) -> MemoryData:
    """Generates the sentences that a `[data]` section describes.

    No two sentences have the same combination of spans, so that splits do not share any.

    Args:
        settings: The section, an `EntitiesData`, or an object with its attributes.
    """
    examples = [
        (" ".join(words), " ".join(labels_of(spans, len(words), settings.scheme)))
        for words, spans in draw_sentences(settings.examples, settings.seed)
    ]
    held_out = min(HELD_OUT, len(examples) // 10)
    splits = {
        "validation": examples[:held_out],
        "test": examples[held_out : 2 * held_out],
        "train": examples[2 * held_out :],
    }
    return MemoryData(splits, "generated sentences with phrases from Unicode's locale data")
