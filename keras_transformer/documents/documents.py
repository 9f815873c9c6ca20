"""`Documents`: a model that translates sentences, as one that translates documents."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from keras_transformer.checks import check_choice
from keras_transformer.documents.block import Parts, TextBlock
from keras_transformer.documents.html_format import read_html
from keras_transformer.documents.keep import keep_pattern, with_passages
from keras_transformer.documents.markdown_format import read_markdown
from keras_transformer.documents.plain import read_plain, read_wrapped
from keras_transformer.documents.sentences import SentenceSplitter, Span
from keras_transformer.documents.split import SplitBlock, passages_of, translate
from keras_transformer.documents.xml_format import read_xml
from keras_transformer.tasks.answering import Progress, TextAnswering
from keras_transformer.tasks.results import Translation

READERS: dict[str, Callable[[str], Parts]] = {
    "text": read_plain,
    "wrapped": read_wrapped,
    "html": read_html,
    "xml": read_xml,
    "markdown": read_markdown,
}
FORMATS = tuple(READERS)
PER_TOKEN = 12  # characters; a sentence with more for each token of the limit is divided at once
LONGEST = 4000  # characters of a sentence for a model whose limit is not known


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a document.

    Args:
        source: The sentence as the model reads it.
        translation: Its `Translation`.
        is_part: Whether it is a part of a sentence that is longer than the model's limit.
    """

    source: str
    translation: Translation
    is_part: bool = False


@dataclasses.dataclass(frozen=True)
class Document:
    """A translated document.

    Args:
        text: The translation.
        sentences: The `Sentence`s that were translated, in order.
        placed_by_order: Number of sentences whose marks are placed by equal words and by order,
            because the model does not align.
    """

    text: str
    sentences: list[Sentence]
    placed_by_order: int = 0


@dataclasses.dataclass(frozen=True)
class Documents:
    """A model or an export that translates sentences, as one that translates documents.

    Everything between sentences is kept: white space, line ends, and the markup of the format. The
    sentences of all documents of a call are translated together, in batches. Markup inside a
    sentence is placed by the attention of the model if it `aligns` and its search is greedy,
    otherwise by equal words and by order. A sentence that the model would truncate is divided.

    Args:
        answering: A `Translator`, or an opened export of one.
        format: Name of the format of the documents: `"text"`, whose lines are paragraphs;
            `"wrapped"`, text whose paragraphs are wrapped into lines; `"html"`, `"xml"` or
            `"markdown"`.
        splitter: Function from a text to the ranges of its sentences, such as a
            `SentenceSplitter`. `None`: that of the source language of the model, or of English.
        keep: Regular expressions of passages that are copied, in addition to addresses and
            placeholders such as `{name}` and `%s`; `"numbers"` stands for numbers.

    Raises:
        ValueError: If the model does not translate, or an argument is out of range.

    Example:
        import keras_transformer
        from keras_transformer.pipelines import Documents
        documents = Documents(keras_transformer.open("runs/demo"), format="html")
        documents("<p>See <b>17 weeks</b>.</p>")
    """

    answering: Any
    format: str = "text"
    splitter: Callable[[str], list[Span]] | None = None
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("format", self.format, FORMATS)
        if not self.suits(self.answering):
            raise ValueError(
                "`answering` must translate: the sentences of a document are answered one by one. "
                f"Received: a model for {getattr(self.answering, 'task', self.answering)}."
            )
        keep_pattern(self.keep)

    @staticmethod
    def suits(answering: Any) -> bool:
        """Returns whether something translates, so that documents can be translated with it."""
        is_text = isinstance(answering, TextAnswering) and answering.has_source
        return is_text and issubclass(answering.result, Translation)

    def __call__(self, documents: str | Sequence[str], **how: Any) -> Any:
        """Returns the translation of a document, a string, or of each of a list of documents.

        Args:
            documents: The documents.
            **how: See `answer`.

        Raises:
            TypeError, ValueError: See `answer`.
        """
        results = self.answer(documents, **how)
        return results.text if isinstance(documents, str) else [one.text for one in results]

    def answer(
        self,
        documents: str | Sequence[str],
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
    ) -> Any:
        """Returns a `Document` for a document, or a list of them for a list of documents.

        Args:
            documents: A string, or a list of strings.
            search, batch_size: See `Answering.answer`.
            progress: Function that is called with the number of sentences translated so far.

        Raises:
            TypeError: If a document is not a string.
            ValueError: If it contains half of a surrogate pair.
        """
        one = isinstance(documents, str)
        documents = [documents] if one else list(documents)
        for document in documents:
            _check(document)
        answering = self.answering if search is None else self.answering.with_search(search)
        read = [self._read(document) for document in documents]
        passages = [one for parts in read for part in parts for one in passages_of(part)]
        translate(answering, passages, batch_size, progress)
        results = [_written(parts) for parts in read]
        return results[0] if one else results

    def _read(self, document):
        """Returns the parts of a document, with its blocks divided into sentences."""
        pattern = keep_pattern(self.keep)
        splitter = self.splitter or SentenceSplitter(_language(self.answering))
        longest = PER_TOKEN * self.answering.max_length if self.answering.max_length else LONGEST
        parts = []
        for part in READERS[self.format](document):
            if isinstance(part, TextBlock):
                part = SplitBlock.of(with_passages(part, pattern), splitter, longest)
            parts.append(part)
        return parts


def _language(answering):
    """Returns the source language of a model, or `None` if it is not known."""
    languages = getattr(answering.tokenizers, "languages", None)
    return getattr(languages, "source", None)


def _check(document):
    """Raises unless a document is a string that can be written as UTF-8."""
    if not isinstance(document, str):
        raise TypeError(f"`documents` must be a string or a list of them. Received: {document!r}.")
    try:
        document.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "`documents` must not contain half of a surrogate pair. "
            f"Received: {document[error.start]!r} at character {error.start}."
        ) from None


def _written(parts):
    """Returns the `Document` of translated parts."""
    texts = [part if isinstance(part, str) else part.written() for part in parts]
    leaves = [leaf for part in parts for one in passages_of(part) for leaf in one.leaves()]
    sentences = [Sentence(leaf.text, leaf.translation, leaf.is_part) for leaf in leaves]
    by_order = sum(leaf.has_marks and leaf.alignment is None for leaf in leaves)
    return Document("".join(texts), sentences, by_order)
