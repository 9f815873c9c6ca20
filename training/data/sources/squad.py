"""SQuAD's format 1.1: passages, questions about them, and the places of the answers, in JSON."""

import json
import zlib
from pathlib import Path

from keras_transformer.text.lines import open_binary
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.data.sources.memory import MemoryData

KINDS = {str: "a string", int: "a whole number", list: "a list"}
NAMES = {"data": "article", "paragraphs": "paragraph", "qas": "question", "answers": "answer"}


def open_squad(settings):
    """Reads the files that a `[data]` section names.

    Args:
        settings: The section, a `SquadData`, or anything with its attributes.

    Returns:
        A `Source` of the columns of `QuestionAnsweringTask`.

    Raises:
        ValueError: If a file cannot be read or is something else, a field is missing, or a question
            has no answer, or one that is not where the file has it. One line, which names the file
            and the place in it.
    """
    examples = {}
    for split in SPLITS:
        files = getattr(settings, split)
        files = [files] if isinstance(files, str) else files or []
        examples[split] = [example for file in files for example in read_squad(file)]
    return MemoryData(examples, f"the SQuAD files beside {settings.train[0]}")


def read_squad(path):
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
        raise ValueError(f"{path} must hold at least one question. Received: none.")
    return examples


class _Place:
    """A value of a file, and where it is.

    Args:
        value: What JSON has there.
        name: The file, and the way to the value in it.
    """

    def __init__(self, value, name):
        self.value, self.name = value, name

    def field(self, key, kind):
        """Returns a field of an object, which must be of a Python class."""
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
        """Yields the members of a list in a field, each a `_Place`."""
        for number, value in enumerate(self.field(key, list), start=1):
            yield _Place(value, f"{self.name}, {NAMES[key]} {number}")


def _example(passage, question):
    """The columns of a question; the answer that a training learns is the first."""
    text = question.field("question", str)
    if "id" in question.value:
        question.name += f" ({question.value['id']})"
    answers = [_answer(passage, answer) for answer in question.members("answers")]
    if question.value.get("is_impossible") or not answers:
        raise ValueError(
            f"{question.name}: must have an answer. Received: none. Questions without one, as in "
            "SQuAD 2.0, are not supported: take version 1.1, or leave them out of the file."
        )
    byte = len(passage[: answers[0][1]].encode())
    return text, passage, byte, [text for text, _ in answers]


def _answer(passage, answer):
    """The text of an answer, and the character at which it begins."""
    text, begin = answer.field("text", str), answer.field("answer_start", int)
    inside = passage[begin : begin + len(text)] if begin >= 0 else ""
    if not text.strip() or inside != text:
        where = f", where the passage has {inside!r}" if inside else ""
        raise ValueError(
            f"{answer.name}: `text` must stand in the passage at `answer_start`, and not be empty. "
            f"Received: {_shown(text)} at {begin}{where}."
        )
    return text, begin


def _shown(value):
    """A value as an error shows it, on one line, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
