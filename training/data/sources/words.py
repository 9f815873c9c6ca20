"""The names, units and currencies that both of two locales have, less what would be ambiguous."""

import datetime
import functools
from decimal import Decimal

from babel import localedata, numbers, units

_NO_COUNTRY = {"ZZ", "XA", "XB"}  # "unknown region", and two invented to test software with
_NO_LANGUAGE = {"root", "und"}
_IN_USE = datetime.date(2025, 1, 1)  # for currencies; a fixed day, so that phrases do not age
# Numbers of every plural class of every language.
_PLURALS = (1, 2, 3, 5, 11, 20, 21, 100, 1000000, Decimal("0.5"), Decimal("1.5"), Decimal("2.25"))


class Words:
    """What can be named in both locales. No source text stands for two target texts.

    "Nauru", for example, is an island and, in English, also its language: the language is left out.

    Args:
        source, target: Two `babel.Locale`s.

    Attributes:
        countries, languages, weekdays, months: Names as pairs (source text, target text).
        units, currencies: Codes.
    """

    def __init__(self, source, target):
        self._locales = source, target
        meanings = {}  # target text by source text, of all names
        self.countries = self._names(_countries, meanings)
        self.languages = self._names(_languages, meanings)
        self.weekdays = self._names(lambda locale: locale.days["stand-alone"]["wide"], meanings)
        self.months = self._names(lambda locale: locale.months["stand-alone"]["wide"], meanings)
        meanings = {}  # of all amounts
        self.units = self._amounts(units.format_unit, source.unit_display_names, meanings)
        in_use = {
            currency
            for country in source.territories
            for currency in numbers.get_territory_currencies(country, _IN_USE, _IN_USE)
        }
        money = functools.partial(numbers.format_currency, format_type="name")
        self.currencies = self._amounts(money, in_use & set(source.currencies), meanings)

    def known(self, keys, attribute):
        """Returns those keys that this attribute of both locales has, as a list."""
        return [key for key in keys if all(key in getattr(one, attribute) for one in self._locales)]

    def _names(self, read, meanings):
        source, target = (read(locale) for locale in self._locales)
        keys = sorted(set(source) & set(target))
        pairs = [(source[key], target[key]) for key in keys if source[key] and target[key]]
        return [pair for pair in pairs if meanings.setdefault(*pair) == pair[1]]

    def _amounts(self, render, codes, meanings):
        kept = []
        for code in sorted(codes):
            try:
                texts = [
                    [render(value, code, locale=locale) for locale in self._locales]
                    for value in _PLURALS
                ]
            except units.UnknownUnitError:
                continue
            if any(code in text for pair in texts for text in pair):
                continue  # Babel knows the unit or the currency, but no word for it
            if all(meanings.get(source, target) == target for source, target in texts):
                meanings.update(texts)
                kept.append(code)
        return kept


def _countries(locale):
    return {code: name for code, name in locale.territories.items() if code not in _NO_COUNTRY}


def _languages(locale):
    """The languages that have locale data of their own: those that readers may have heard of."""
    return {
        code: name
        for code, name in locale.languages.items()
        if code not in _NO_LANGUAGE and localedata.exists(code)
    }
