"""bAbI's format: numbered sentences of stories, and questions with answers and supporting facts.

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary?<tab>bathroom<tab>1

A story begins at the number 1. The sentences before a question are its story; questions are not.

Reference: Weston et al. (2015), "Towards AI-Complete Question Answering: A Set of Prerequisite Toy
    Tasks".
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_transformer.text.lines import read_lines
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.tasks.story_questions.answers import with_known_answers

NUMBER = re.compile(r"[0-9]{1,9}")
SPLIT = re.compile(r"_(train|valid|test)$")


class Question(NamedTuple):
    """A question about a story; the fields are the columns of `StoryQuestionsTask`.

    Attributes:
        story: The sentences before the question, one on each line.
        question: The question.
        answer: Its answer; several words of a list are one answer.
        kind: Kind of the question.
        support: Numbers of the sentences of the story that support the answer, counted from 1, with
            spaces between them.
    """

    story: str
    question: str
    answer: str
    kind: str
    support: str


def open_babi(settings) -> MemoryData:
    """Reads the files that a `[data]` section names.

    Args:
        settings: The section, a `BabiData`, or an object with its attributes.

    Raises:
        ValueError: If a file cannot be read or a line has another format. One line, which names
            the file and the line.
    """
    examples: dict[str, list[tuple]] = {}
    for split in ("train", "validation", "test"):
        files = [[*read_babi(file)] for file in getattr(settings, split) or []]
        if split == "train" and settings.validation is None:
            cuts = [len(file) - len(file) // 10 for file in files]
            pairs = list(zip(files, cuts, strict=True))
            last = [one for file, cut in pairs for one in file[cut:]]
            first = [one for file, cut in pairs for one in file[:cut]]
            first, examples["validation"] = with_known_answers(first, last)
            files = [first]
        if files:
            examples[split] = [one for file in files for one in file]
    if not examples.get("validation"):
        raise ValueError(
            f"{settings.train[0]} must contain at least 10 questions, of which the last tenth is "
            "for validation, or `data.validation` must name other files."
        )
    return MemoryData(examples, f"the stories in bAbI's format beside {settings.train[0]}")


def read_babi(path) -> Iterator[Question]:
    """Yields the questions of a file, in order: see `open_babi`."""
    path, count = Path(path), 0
    kind = SPLIT.sub("", path.name.removesuffix(".gz").removesuffix(".txt"))
    story = _Story()
    try:
        lines = read_lines(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}.") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            story, question = story.followed_by(line, kind)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if question is not None:
            count += 1
            yield question
    if not count:
        raise ValueError(f"{path} must contain at least one question. Received: none.")


class _Story(NamedTuple):
    """The lines of a story so far.

    Attributes:
        last: Number of the last line.
        sentences: The sentences, by their numbers.
    """

    last: int = 0
    sentences: tuple = ()

    def followed_by(self, line, kind):
        """Returns the story with one more line, and the `Question` in it or `None`."""
        number, space, content = line.strip().partition(" ")
        if not NUMBER.fullmatch(number) or not space or not content.strip():
            raise ValueError(
                f"must be a number, a space and a sentence or a question. Received: {line[:80]!r}."
            )
        number, story = int(number), self
        if number == 1:
            story = _Story()
        elif number != self.last + 1:
            raise ValueError(
                f"the number must be 1, where a story begins, or {self.last + 1}, after the last "
                f"line. Received: {number}."
            )
        if "\t" in content:
            return story._replace(last=number), story.question(content.split("\t"), kind)
        sentence = " ".join(content.split())
        return _Story(number, (*story.sentences, (number, sentence))), None

    def question(self, columns, kind):
        """Returns the `Question` in the columns of a line."""
        columns = [column.strip() for column in columns]
        if len(columns) not in (2, 3) or not all(columns[:2]):
            raise ValueError(
                "a question must be followed by a tab, its answer, and possibly a tab and the "
                f"numbers of supporting sentences. Received: {len(columns)} columns."
            )
        question, answer = columns[:2]
        places = {str(number): place for place, (number, _) in enumerate(self.sentences, start=1)}
        support = columns[2].split() if len(columns) == 3 else []
        for number in support:
            if number not in places:
                raise ValueError(
                    "a supporting sentence must be an earlier sentence of the story. "
                    f"Received: {number[:80]!r}."
                )
        story = "\n".join(sentence for _, sentence in self.sentences)
        supported = " ".join(str(places[number]) for number in support)
        return Question(story, " ".join(question.split()), answer, kind, supported)
