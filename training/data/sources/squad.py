"""SQuAD's format 1.1: passages, questions about them, and the places of the answers, in JSON."""

import json
from pathlib import Path

from keras_transformer.text.lines import open_binary
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.data.sources.memory import MemoryData

# One byte for one: a place in the text stays what it is.
_ONE_LINE = str.maketrans(dict.fromkeys("\t\n\v\f\r", " "))


def open_squad(settings):
    """Reads the files that a `[data]` section names.

    Args:
        settings: The section, a `SquadData`, or anything with its attributes.

    Returns:
        A `Source` of questions with passages, and of answers: see `QuestionAnsweringTask`.

    Raises:
        ValueError: If a file cannot be read or is something else, or a question has no answer, or
            one that is not where the file has it. One line, which names the file and the question.
    """
    examples = {}
    for split in SPLITS:
        files = getattr(settings, split)
        files = [files] if isinstance(files, str) else files or []
        examples[split] = [example for file in files for example in read_squad(file)]
    return MemoryData(examples, f"the SQuAD files beside {settings.train[0]}")


def read_squad(path):
    """Returns the examples of one file, pairs of strings: see `open_squad`."""
    path = Path(path)
    try:
        with open_binary(path) as file:
            content = json.loads(file.read().decode("utf-8-sig"))
        examples = [
            _example(path, paragraph["context"], question)
            for article in content["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}.") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} must be in SQuAD's format 1.1: {error!r} in it.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be JSON in UTF-8: {error}.") from None
    if not examples:
        raise ValueError(f"{path} must hold at least one question. Received: none.")
    return examples


def _example(path, passage, question):
    """A pair of strings; the answer that a training learns is the first."""
    where = f"{path}, question {question['id']}"
    answers = question["answers"]
    if question.get("is_impossible") or not answers:
        raise ValueError(
            f"{where}: must have an answer. Received: none; questions without one, of SQuAD 2.0, "
            "are not supported: leave them out."
        )
    for answer in answers:
        text, begin = answer["text"], answer["answer_start"]
        if not text or passage[begin : begin + len(text)] != text:
            raise ValueError(
                f"{where}: the answer must stand at its `answer_start`. Received: {text!r} at "
                f"{begin}, where the passage has {passage[begin : begin + len(text)]!r}."
            )
    byte = len(passage[: answers[0]["answer_start"]].encode())
    texts = (answer["text"].translate(_ONE_LINE) for answer in answers)
    line = f"{question['question'].translate(_ONE_LINE)}\t{passage.translate(_ONE_LINE)}"
    return line, "\t".join([str(byte), *texts])
