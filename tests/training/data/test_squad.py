"""SQuAD's format: positions in bytes, several answers, and mistakes that name the question."""

import json

import pytest

from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.tasks.question_answering.squad import read_squad

PASSAGE = "Köln 🚀 liegt\nam Rhein.\tSeit 50."


def written(folder, answers, passage=PASSAGE, **more):
    question = {"id": "q7", "question": "Wo\tliegt Köln?", "answers": answers, **more}
    content = {"data": [{"paragraphs": [{"context": passage, "qas": [question]}]}]}
    path = folder / "x.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def answer(text, begin=None):
    return {"text": text, "answer_start": PASSAGE.index(text) if begin is None else begin}


def test_positions_are_bytes_and_texts_stay_unchanged(tmp_path):
    path = written(tmp_path, [answer("liegt\nam Rhein"), answer("Rhein")])
    ((question, passage, byte, answers),) = read_squad(path)
    assert question == "Wo\tliegt Köln?" and passage == PASSAGE
    assert answers == ["liegt\nam Rhein", "Rhein"]
    assert passage.encode()[byte:].decode().startswith(answers[0]) and byte == 11


def test_rows_may_have_several_answers():
    rows = [("a", "b c", 0, ["b"]), ("d", "e", 0, ["e", "E"]), ("f", "g", 0, ["g"])]
    data = MemoryData({"train": rows}, "questions").rows("train")
    assert [[a.decode() for a in row[3]] for row in data.as_numpy_iterator()] == [
        row[3] for row in rows
    ]
    (batch,) = data.batch(3)
    assert batch[3].row_lengths().numpy().tolist() == [1, 2, 1]
    assert batch[2].numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("answers", "more", "message"),
    [
        (
            [answer("Rhein"), answer("Rhein", 3)],
            {},
            r"x.json, article 1, paragraph 1, question 1 \(q7\), answer 2: `text` must be in "
            r"the passage at `answer_start`, .*"
            r"Received: 'Rhein' at 3, where the passage has 'n . l'",
        ),
        ([answer("", 3)], {}, "answer 1: .* not be empty. Received: '' at 3"),
        ([answer("Rhein", -4)], {}, "answer 1: .* Received: 'Rhein' at -4[.]"),
        ([answer("Rhein", 99)], {}, "answer 1: .* Received: 'Rhein' at 99[.]"),
        ([answer("Rhein", "3")], {}, "answer 1: `answer_start` must be a whole number. .*'3'"),
        ([answer("Rhein", True)], {}, "answer 1: `answer_start` must be a whole number. .*True"),
        ([{"text": "Rhein"}], {}, "answer 1: must have the field `answer_start`, .*: text[.]"),
        ("Rhein", {}, r"\(q7\): `answers` must be a list. Received: 'Rhein'"),
        ([], {}, r"question 1 \(q7\): must have an answer. Received: none.* SQuAD 2.0, .* remove"),
        ([], {"is_impossible": True}, "must have an answer"),
        ([answer("Rhein")], {"is_impossible": True}, "must have an answer"),
        ([answer("Rhein")], {"question": 3}, "question 1: `question` must be a string. .*: 3[.]"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_question(tmp_path, answers, more, message):
    with pytest.raises(ValueError, match=message) as error:
        read_squad(written(tmp_path, answers, **more))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json must be JSON in UTF-8"),
        (b"\xff", "x.json must be JSON in UTF-8"),
        (b"[" * 100_000, "x.json must be JSON in UTF-8"),
        (b"[]", r"x.json: must be an object, as in SQuAD's format 1.1. Received: \[\]"),
        (b'{"version": 1}', "x.json: must have the field `data`, .* Received: version"),
        (b'{"data": {}}', "x.json: `data` must be a list. Received: {}"),
        (b'{"data": [3]}', "x.json, article 1: must be an object"),
        (b'{"data": [{"paragraphs": [{"qas": []}]}]}', "paragraph 1: must have .*`context`, .*qas"),
        (b'{"data": []}', "x.json must contain at least one question"),
    ],
)
def test_another_file_is_reported_in_one_line(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_squad(path)
    with pytest.raises(ValueError, match="none.json: cannot be read: No such file"):
        read_squad(tmp_path / "none.json")
