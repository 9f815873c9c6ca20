"""Languages of a served model, by the codes that requests use."""

import dataclasses
from typing import Any

from keras_transformer.options import LANGUAGES
from keras_transformer.serving.refusal import Refusal

AUTO = "auto"
UNNAMED = (
    "the languages of the model have no names: start the server with --source-language and "
    "--target-language, such as en and de."
)


def with_languages_of_data(options: Any, model: Any, run: Any) -> Any:
    """Returns options with the languages of a run's data, for a model of one pair of languages.

    Args:
        options: The `ServerOptions`; languages that they have are kept.
        model: The `Answering`.
        run: The `Run`, whose `data.source_language` and `data.target_language` are read.
    """
    if model.task != "translation" or model.has_languages:
        return options
    names = {name: getattr(options, name) or run.read_setting("data", name) for name in LANGUAGES}
    return dataclasses.replace(options, **names)


@dataclasses.dataclass(frozen=True)
class ServedLanguages:
    """The pairs of languages that a model translates.

    Args:
        codes: Codes of all languages, if requests choose among them; empty for a fixed pair.
        source, target: The fixed pair, or the defaults. `None`: no name, or no default.
        of_source: Whether requests choose the source language as well.
    """

    codes: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    of_source: bool = True

    @classmethod
    def of(cls, model: Any, options: Any) -> "ServedLanguages":
        """Returns the languages of an `Answering`, by its tokens or by the options of the server.

        Args:
            model: The `Answering`.
            options: The `ServerOptions`.
        """
        chosen = options.source_language, options.target_language
        languages = getattr(model.tokenizers, "languages", None)
        if not model.has_languages or languages is None:
            return cls((), *chosen)
        codes = tuple(languages.ids)
        return cls(codes, languages.source, languages.target, languages.of_source)

    @property
    def are_named(self) -> bool:
        """`False` if requests cannot name the fixed pair."""
        return bool(self.codes) or None not in (self.source, self.target)

    def chosen(self, source: str, target: str) -> tuple[str | None, str | None]:
        """Returns the languages for `Work`; `None` keeps one.

        Raises:
            Refusal: If the model does not translate between them, or does not detect one.
        """
        if not self.codes:
            self._check_pair(source, target)
            return None, None
        if source == AUTO and self.of_source:
            raise Refusal(400, "this server does not detect languages: name the `source`.")
        for name, code in (("source", source), ("target", target)):
            if code not in self.codes and not (name == "source" and not self.of_source):
                raise Refusal(400, f"{code} is not supported as `{name}`.")
        return (source if self.of_source else None), target

    def _check_pair(self, source, target):
        if not self.are_named:
            raise Refusal(400, UNNAMED)
        if source not in (self.source, AUTO) or target != self.target:
            raise Refusal(
                400,
                f"{source} to {target} is not supported: the model translates {self.source} to "
                f"{self.target}.",
            )

    def listed(self) -> list[tuple[str, list[str]]]:
        """Returns each source language, and the targets into which it is translated."""
        if self.codes:
            return [(code, [one for one in self.codes if one != code]) for code in self.codes]
        if self.source is None or self.target is None:
            return []
        return [(self.source, [self.target])]
