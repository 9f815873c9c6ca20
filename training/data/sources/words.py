"""Names, units and currencies that two locales have in common, without ambiguous ones."""

import datetime
import functools
from decimal import Decimal

from babel import localedata, numbers, units

_NO_COUNTRY = {"ZZ", "XA", "XB"}  # "unknown region", and two fictitious ones for software tests
_NO_LANGUAGE = {"root", "und"}
_IN_USE = datetime.date(2025, 1, 1)  # day of the currencies; fixed, so that phrases never change
# Numbers that cover the plural classes of all languages.
_PLURALS = (1, 2, 3, 5, 11, 20, 21, 100, 1000000, Decimal("0.5"), Decimal("1.5"), Decimal("2.25"))


class Words:
    """Names, units and currencies in both locales; every source text has only one target text.

    In English, for example, "Nauru" is an island and also its language: the language is left out.

    Args:
        source, target: The two `babel.Locale`s.

    Attributes:
        countries, languages, weekdays, months: Lists of names, pairs (source text, target text).
        units, currencies: Lists of codes.
    """

    def __init__(self, source, target):
        self._locales = source, target
        meanings = {}  # target text of each source text, for all names
        self.countries = self._names(_countries, meanings)
        self.languages = self._names(_languages, meanings)
        self.weekdays = self._names(lambda locale: locale.days["stand-alone"]["wide"], meanings)
        self.months = self._names(lambda locale: locale.months["stand-alone"]["wide"], meanings)
        meanings = {}  # the same for all amounts
        self.units = self._amounts(units.format_unit, source.unit_display_names, meanings)
        in_use = {
            currency
            for country in source.territories
            for currency in numbers.get_territory_currencies(country, _IN_USE, _IN_USE)
        }
        money = functools.partial(numbers.format_currency, format_type="name")
        self.currencies = self._amounts(money, in_use & set(source.currencies), meanings)

    @classmethod
    @functools.lru_cache(maxsize=4)
    def of(cls, source, target) -> "Words":
        """Returns the words of two locales; collecting them takes a third of a second, once."""
        return cls(source, target)

    def known(self, keys, attribute) -> list:
        """Returns a list of the keys that an attribute has in both locales."""
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
                continue  # Babel has the unit or the currency, but not its name
            if all(meanings.get(source, target) == target for source, target in texts):
                meanings.update(texts)
                kept.append(code)
        return kept


def _countries(locale):
    return {code: name for code, name in locale.territories.items() if code not in _NO_COUNTRY}


def _languages(locale):
    """Returns the names of languages with locale data of their own, which readers may know."""
    return {
        code: name
        for code, name in locale.languages.items()
        if code not in _NO_LANGUAGE and localedata.exists(code)
    }
