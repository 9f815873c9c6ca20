"""SQuAD's format 1.1: passages, questions and the positions of answers, in JSON."""

import json
import zlib
from pathlib import Path

from keras_transformer.text.lines import open_binary
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.data.sources.memory import MemoryData

KINDS = {str: "a string", int: "a whole number", list: "a list"}
NAMES = {"data": "article", "paragraphs": "paragraph", "qas": "question", "answers": "answer"}


def open_squad(settings) -> MemoryData:
    """Reads the files that a `[data]` section names.

    Args:
        settings: The section, a `SquadData`, or an object with its attributes.

    Returns:
        A `Source` of the columns of `QuestionAnsweringTask`.

    Raises:
        ValueError: If a file cannot be read or has another format, a field is missing, a question
            has no answer, or an answer is not at its position in the passage. One line, which names
            the file and the place in it.
    """
    examples = {}
    for split in SPLITS:
        files = getattr(settings, split)
        files = [files] if isinstance(files, str) else files or []
        examples[split] = [example for file in files for example in read_squad(file)]
    return MemoryData(examples, f"the SQuAD files beside {settings.train[0]}")


def read_squad(path) -> list[tuple]:
    """Returns the examples of one file, tuples: see `open_squad`."""
    path = Path(path)
    try:
        with open_binary(path) as file:
            content = json.loads(file.read().decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be JSON in UTF-8: {error}.") from None
    examples = [
        _example(passage, question)
        for article in _Place(content, str(path)).members("data")
        for paragraph in article.members("paragraphs")
        for passage in [paragraph.field("context", str)]
        for question in paragraph.members("qas")
    ]
    if not examples:
        raise ValueError(f"{path} must contain at least one question. Received: none.")
    return examples


class _Place:
    """A value in a JSON file, with its place for errors.

    Args:
        value: The value.
        name: The file, and the path to the value in it.
    """

    def __init__(self, value, name):
        self.value, self.name = value, name

    def field(self, key, kind):
        """Returns the value of a field, which must be an instance of `kind`."""
        if not isinstance(self.value, dict):
            raise ValueError(
                f"{self.name}: must be an object, as in SQuAD's format 1.1. "
                f"Received: {_shown(self.value)}."
            )
        if key not in self.value:
            raise ValueError(
                f"{self.name}: must have the field `{key}`, as in SQuAD's format 1.1. "
                f"Received: {', '.join(self.value) or 'no field'}."
            )
        value = self.value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(
                f"{self.name}: `{key}` must be {KINDS[kind]}. Received: {_shown(value)}."
            )
        return value

    def members(self, key):
        """Yields the members of a list in a field, as `_Place`s."""
        for number, value in enumerate(self.field(key, list), start=1):
            yield _Place(value, f"{self.name}, {NAMES[key]} {number}")


def _example(passage, question):
    """Returns the columns of a question; the model learns the first answer."""
    text = question.field("question", str)
    if "id" in question.value:
        question.name += f" ({question.value['id']})"
    answers = [_answer(passage, answer) for answer in question.members("answers")]
    if question.value.get("is_impossible") or not answers:
        raise ValueError(
            f"{question.name}: must have an answer. Received: none. Questions without an answer, "
            "as in SQuAD 2.0, are not supported: use version 1.1, or remove them from the file."
        )
    byte = len(passage[: answers[0][1]].encode())
    return text, passage, byte, [text for text, _ in answers]


def _answer(passage, answer):
    """Returns the text of an answer, and the index of its first character."""
    text, begin = answer.field("text", str), answer.field("answer_start", int)
    inside = passage[begin : begin + len(text)] if begin >= 0 else ""
    if not text.strip() or inside != text:
        where = f", where the passage has {inside!r}" if inside else ""
        raise ValueError(
            f"{answer.name}: `text` must be in the passage at `answer_start`, and not be empty. "
            f"Received: {_shown(text)} at {begin}{where}."
        )
    return text, begin


def _shown(value):
    """Returns a value formatted for an error: on one line, and truncated if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
