"""Generated stories, whose answers a second simulation finds, and bAbI's format."""

import collections
import re
import types

import pytest

from keras_transformer.training.demos.stories import (
    LENGTHS,
    NUMBERS,
    PEOPLE,
    TESTED,
    draw_questions,
    open_stories,
)
from keras_transformer.training.tasks.story_questions.babi import open_babi, read_babi

KINDS = ("one_fact", "two_facts", "three_facts", "yes_no", "counting")
FACTS = {"one_fact": {1}, "two_facts": {2}, "three_facts": {3}, "yes_no": {1}}


def replayed(sentences):
    """Follows a story word by word: the places of people and things, in order, and owners."""
    people, things, held = (collections.defaultdict(list), collections.defaultdict(list), {})
    for sentence in sentences:
        person, _, *_ = words = re.findall(r"\w+", sentence)
        if words[2] == "to":
            people[person].append(words[-1])
            for thing, owner in held.items():
                if owner == person:
                    things[thing].append(words[-1])
            continue
        thing = next(word for word in words[::-1] if word in ("lamp", "ticket", "basket"))
        if "put" in words or "left" in words:
            assert held.pop(thing) == person
        else:
            assert thing not in held
            here = people[person][-1]
            assert not things[thing] or things[thing][-1] == here  # nobody takes it from elsewhere
            if not things[thing]:
                things[thing].append(here)
            held[thing] = person
    return people, things, held


def answer_of(question, sentences):
    people, things, held = replayed(sentences)
    words = re.findall(r"\w+", question)
    if words[0] == "How":
        return NUMBERS[[*held.values()].count(words[4])]
    if words[0] == "Is":
        return "yes" if people[words[1]][-1] == words[-1] else "no"
    if words[1] == "was":
        places = things[words[3]]
        assert places.count(words[-1]) == 1  # one answer
        return places[places.index(words[-1]) - 1]
    return people[words[-1]][-1] if words[-1] in PEOPLE else things[words[-1]][-1]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_follow_from_stories(kind):
    for story, question, answer, named, support in draw_questions(kind, 400, seed=3):
        sentences = story.split("\n")
        assert named == kind and len(sentences) <= LENGTHS[kind]
        assert answer_of(question, sentences) == answer
        numbers = [int(number) for number in support.split()]
        assert numbers == sorted({*numbers}) and 1 <= numbers[0] <= numbers[-1] <= len(sentences)
        assert len(numbers) in FACTS.get(kind, {len(numbers)})


@pytest.mark.parametrize("kind", ["one_fact", "yes_no", "two_facts"])
def test_supporting_sentences_are_enough(kind):
    """The answer follows from the supporting sentences alone."""
    for story, question, answer, _, support in draw_questions(kind, 200, seed=4):
        sentences = story.split("\n")
        kept = [sentences[int(number) - 1] for number in support.split()]
        if kind == "two_facts":
            assert any(answer in sentence for sentence in kept)
            thing = re.findall(r"\w+", question)[-1]
            assert sum(thing in sentence for sentence in kept) == 1
        else:
            assert answer_of(question, kept) == answer


def test_a_seed_gives_the_same_questions_and_splits_share_none():
    settings = types.SimpleNamespace(kinds=["yes_no", "counting"], questions=100, seed=7)
    one, other = (open_stories(settings) for _ in range(2))
    splits = ("train", "validation", "test")
    assert [one.count(split) for split in splits] == [180, 20, 2 * TESTED]
    assert [one.identity(split) for split in splits] == [other.identity(split) for split in splits]
    rows = [[*map(tuple, one.rows(split).as_numpy_iterator())] for split in splits]
    texts = [row[:2] for split in rows for row in split]
    assert len({*texts}) == len(texts)
    answers = collections.Counter(row[2] for row in rows[2] if row[3] == b"yes_no")
    assert min(answers.values()) > 0.4 * TESTED
    assert {row[2] for row in rows[1]} <= {row[2] for row in rows[0]}


LINES = (
    "1 Mary moved to the bathroom.\n2 John went to the hallway.\n"
    "3 Where is Mary? \tbathroom\t1\n4 Daniel went back to the hallway.\n"
    "5 Sandra moved to the garden.\n6 Where is Daniel? \thallway\t4\n"
    "1 Sandra travelled to the office.\n2 What is Sandra carrying?\tmilk,apple\t1\n"
)


def test_babi_s_format(tmp_path):
    path = tmp_path / "qa1_single-supporting-fact_train.txt"
    path.write_text(LINES)
    first, second, third = read_babi(path)
    kind = "qa1_single-supporting-fact"
    story = "Mary moved to the bathroom.\nJohn went to the hallway."
    assert first == (story, "Where is Mary?", "bathroom", kind, "1")
    later = "\nDaniel went back to the hallway.\nSandra moved to the garden."
    # Its fourth line is the third sentence: questions are not sentences.
    assert second == (story + later, "Where is Daniel?", "hallway", kind, "3")
    assert third == ("Sandra travelled to the office.", "What is Sandra carrying?", "milk,apple",
                     kind, "1")  # fmt: skip


def test_the_last_tenth_is_for_validation(tmp_path):
    path = tmp_path / "qa7_train.txt"
    path.write_text(LINES * 10)
    files = types.SimpleNamespace(train=[str(path)], validation=None, test=[str(path)])
    data = open_babi(files)
    assert [data.count(split) for split in data.splits] == [27, 3, 30]
    path.write_text(LINES * 10 + "1 Mary moved to the attic.\n2 Where is Mary?\tattic\t1\n")
    data = open_babi(files)
    assert [data.count(split) for split in data.splits] == [28, 3, 31]
    rows = {split: [*data.rows(split).as_numpy_iterator()] for split in data.splits}
    assert sorted(rows["train"] + rows["validation"]) == sorted(rows["test"])
    assert b"attic" in {row[2] for row in rows["train"]}, "the model has an output for it"
    path.write_text(LINES)
    with pytest.raises(ValueError, match="must contain at least 10 questions, of which the last"):
        open_babi(files)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Mary moved.", "must be a number, a space and a sentence or a question. Received: 'Mary"),
        ("3", "must be a number, a space and a sentence"),
        ("-3 Mary moved.", "must be a number, a space and a sentence"),
        ("99999999999999999999 Mary moved.", "must be a number, a space and a sentence"),
        ("²  Mary moved.", "must be a number, a space and a sentence"),
        ("5 Mary moved.", "the number must be 1, where a story begins, or 3, after the last"),
        ("2 Mary moved.", "the number must be 1, where a story begins, or 3"),
        ("3 Where is Mary?\t\t1", "a question must be followed by a tab, its answer, and"),
        ("3 \tbathroom\t1", "a question must be followed by a tab, its answer, and"),
        (
            "3 Where?\ta\t1\t2",
            "possibly a tab and the numbers of supporting sentences.*: 4 c",
        ),
        ("3 Where?\ta\t3", "a supporting sentence must be an earlier sentence of the story"),
        ("3 Where?\ta\tone", "a supporting sentence must be an earlier sentence.*Received: 'one'"),
        ("3 Where\xff?\ta", "UTF-8"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(tmp_path, line, reason):
    path = tmp_path / "qa.txt"
    good = "1 Mary moved to the bathroom.\n2 John went to the hallway.\n"
    path.write_bytes(good.encode() + line.encode("latin-1" if "\xff" in line else "utf-8"))
    with pytest.raises(ValueError, match=reason) as error:
        list(read_babi(path))
    assert "line 3" in str(error.value) and "\n" not in str(error.value)


def test_a_file_needs_a_question(tmp_path):
    path = tmp_path / "qa.txt"
    path.write_text("1 Mary moved.\n")
    with pytest.raises(ValueError, match="must contain at least one question. Received: none"):
        list(read_babi(path))
    with pytest.raises(ValueError, match="missing.txt: cannot be read"):
        list(read_babi(tmp_path / "missing.txt"))
