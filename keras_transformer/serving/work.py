"""Work that a request wants from the model: settings, and a function of its inputs."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Work:
    """Work on an input. Inputs of equal works are answered in one batch.

    Args:
        languages: Codes of the source and the target language; `None` for the model's own.
        search: The search. `None`: the model's own.
        settings: Pairs of the name and the value of settings of answers.
    """

    languages: tuple[str | None, str | None] = (None, None)
    search: Any = None
    settings: tuple[tuple[str, Any], ...] = ()

    def model(self, model: Any) -> Any:
        """Returns the `Answering` with these settings.

        Raises:
            ValueError: If it does not have one of them.
        """
        if any(self.languages):
            model = model.with_languages(*self.languages)
        if self.search is not None:
            model = model.with_search(self.search)
        return model.with_settings(**dict(self.settings)) if self.settings else model

    def answer(self, model: Any, inputs: list, numbers: list[int], batch_size: int) -> list:
        """Returns the result of each input.

        Args:
            model: Result of `model`.
            inputs: List of at most `batch_size` inputs, of one request or of several.
            numbers: Index of each input in its request, by which samples differ.
            batch_size: Maximum number of texts to compute at a time.

        Raises:
            ValueError, TypeError: If an input is bad.
        """
        options = {"numbers": numbers} if model.generates else {}
        return model.answer(inputs, batch_size=len(inputs), **options)


@dataclasses.dataclass(frozen=True)
class DocumentWork(Work):
    """Translation of documents, whose sentences are the model's inputs.

    Args:
        format: Name of the format; see `Documents`.
        sentence_language: Code of the language whose abbreviations end no sentence. `None`: that
            of the model, or English.
    """

    format: str = "html"
    sentence_language: str | None = None

    def model(self, model: Any) -> Any:
        """Returns the `Documents` around the `Answering` with these settings."""
        from keras_transformer.documents.documents import Documents
        from keras_transformer.documents.sentences import SentenceSplitter

        splitter = SentenceSplitter(self.sentence_language) if self.sentence_language else None
        return Documents(super().model(model), self.format, splitter)

    def answer(self, model: Any, inputs: list, numbers: list[int], batch_size: int) -> list:
        """Returns the `Document` of each input."""
        return model.answer(inputs, batch_size=batch_size)
