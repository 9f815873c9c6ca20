"""Lines of text as stories and questions."""

import json


def parse(line) -> tuple[str, str]:
    """Returns the story and the question in a line; a pair is returned unchanged.

    A line has the sentences of the story and the question, separated by tabs; or it is an object in
    JSON, `{"story": ["...", "..."], "question": "..."}`.

    Raises:
        ValueError: If it is neither. The error is the end of a sentence about the line.
    """
    if not isinstance(line, str):
        return line
    if line.lstrip().startswith("{"):
        return _of_json(line)
    *sentences, question = line.split("\t")
    if not sentences:
        raise ValueError(
            "must be the sentences of a story and a question, separated by tabs. Received: no tab."
        )
    return "\n".join(sentences), question


def _of_json(line):
    rule = "must be JSON with `story`, a list of sentences, and `question`, a string"
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{rule}: {error}.") from None
    if {*content} != {"story", "question"}:
        raise ValueError(f"{rule}. Received: {', '.join(content) or 'no field'}.")
    try:
        return pair_of([content["story"], content["question"]])
    except TypeError as error:
        raise ValueError(f"{rule}. {error}") from None


def pair_of(example) -> tuple[str, str]:
    """Returns an example as two strings, the story with a sentence on each line and the question.

    Args:
        example: Pair of a story, a list of sentences or such a string, and a question.

    Raises:
        TypeError: If it is something else.
    """
    if is_pair(example):
        story, question = example
        return story if isinstance(story, str) else "\n".join(map(_one_line, story)), question
    raise TypeError(f"Received: {example!r}.")


def is_pair(example) -> bool:
    """Returns whether a value is a story, a list of sentences or a string, and a question."""
    if not isinstance(example, (list, tuple)) or len(example) != 2:
        return False
    story, question = example
    sentences = story if isinstance(story, (list, tuple)) else [story]
    return all(isinstance(text, str) for text in (*sentences, question))


def _one_line(sentence):
    return " ".join(sentence.split("\n"))
