"""A question answerer in use: exact parts of passages, windows, figures of SQuAD."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer, with_larger_weights

from keras_transformer import QuestionAnswerer, SpanPredictor, SpanPredictorConfig
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.question_answering.figures import answer_figures, normalized, token_f1
from keras_transformer.tasks.question_answering.passages import cut_windows, read_passages
from keras_transformer.tasks.question_answering.task import parse, right_answers

TASK = TASKS["question_answering"]
PASSAGES = [
    "the big dog runs", "", "a cat, and a dog.", "é 👩‍🚀  x", "cafe\u0301 ½ km²", "a\u00a0b\u3000c",
    "  a  cat  ", "the big dog and the cat and a dog and the big cat runs", "日本 12.5%",
]  # fmt: skip


@functools.cache
def answerer(**changes):
    config = SpanPredictorConfig(vocab_size=30, **SIZES, max_answer=4, **changes)
    return QuestionAnswerer(with_larger_weights(SpanPredictor(config)), tokenizer())


def segments_by_hand(passage):
    """Letters, marks and digits together, any other character by itself, no white space."""
    import unicodedata

    spans, byte, before = [], 0, ""
    for character in passage:
        size, kind = len(character.encode()), unicodedata.category(character)[0]
        if character.isspace() or kind == "Z":
            before = ""
        elif kind in "LMN" and before == "word":
            spans[-1] = (spans[-1][0], byte + size)
        else:
            spans.append((byte, byte + size))
            before = "word" if kind in "LMN" else "other"
        byte += size
    return spans


def test_segments_are_parts_of_the_bytes():
    read = read_passages(tokenizer(), tf.constant(PASSAGES))
    for row, passage in enumerate(PASSAGES):
        spans = segments_by_hand(passage)
        assert [*zip(read.begins[row].numpy(), read.ends[row].numpy(), strict=True)] == spans
        parts = [passage.encode()[a:b].decode() for a, b in spans]
        pieces = [tokenizer().encode([part]).to_list()[0][:-1] or [1] for part in parts]
        assert read.pieces[row].numpy().tolist() == [x for part in pieces for x in part]
        first = np.cumsum([0, *map(len, pieces)])[:-1].tolist()
        assert read.first[row].numpy().tolist() == first
        numbers = read.segment_of_piece[row].numpy().tolist()
        assert [place for place, number in enumerate(numbers) if number >= 0] == first
        assert [number for number in numbers if number >= 0] == [*range(len(spans))]


@pytest.mark.parametrize("stride", [None, 1, 3, 99])
def test_windows_hold_every_piece_and_fit(stride):
    read = read_passages(tokenizer(), tf.constant(PASSAGES))
    questions = tokenizer().encode(["a cat"] * len(PASSAGES))[:, :-1]
    windows = cut_windows(tokenizer(), questions, read, 11, stride)
    kept = [set() for _ in PASSAGES]
    rows = zip(windows.source.to_list(), windows.example.numpy(), windows.begin.numpy(),
               windows.prefix.numpy(), strict=True)  # fmt: skip
    for row, example, begin, prefix in rows:
        assert len(row) <= 11 and row[prefix - 1] == 2 and row[-1] == 3
        assert row[: prefix - 1] == questions[example].numpy().tolist()
        inside = row[prefix:-1]
        assert inside == read.pieces[example].numpy()[begin : begin + len(inside)].tolist()
        kept[example] |= {*range(begin, begin + len(inside))}
    assert kept == [{*range(len(row))} for row in read.pieces.to_list()]
    assert len(windows.example) > len(PASSAGES), "a passage has several windows"


def by_hand(model, question, passage, longest=11, max_answer=4):
    """Every span of every window, one after the other, in float64."""
    spans = segments_by_hand(passage)
    q = tokenizer().encode([question]).to_list()[0][:-1][: longest // 2]
    pieces, owner = [], []
    for number, (a, b) in enumerate(spans):
        part = passage.encode()[a:b].decode()
        ids = tokenizer().encode([part]).to_list()[0][:-1] or [1]
        pieces += ids
        owner += [number] + [-1] * (len(ids) - 1)
    room = longest - 2 - len(q)
    begins = [0]
    while begins[-1] + room < len(pieces):
        begins.append(begins[-1] + room // 2)
    best = (-np.inf, 0, 0)
    for begin in begins:
        window = pieces[begin : begin + room]
        logits = np.asarray(model(np.array([[*q, 2, *window, 3]]))[0], "float64")[len(q) + 1 :]
        for s in range(len(window)):
            for e in range(s, min(s + max_answer, len(window))):
                if owner[begin + s] >= 0 and owner[begin + e] >= 0:
                    score = logits[s, 0] + logits[e, 1]
                    if score > best[0]:
                        best = (score, owner[begin + s], owner[begin + e])
    return passage.encode()[spans[best[1]][0] : spans[best[2]][1]].decode() if spans else ""


@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_an_answer_is_the_best_part_of_any_window(batch_size):
    examples = [(question, passage) for passage in PASSAGES for question in ("a cat", "dog", "")]
    results = answerer().answer(examples, batch_size)
    assert len({result.text for result in results}) > 5
    for (question, passage), result in zip(examples, results, strict=True):
        assert result.text == by_hand(answerer().model, question, passage)
        assert passage.encode()[result.begin : result.end].decode() == result.text
        assert 0 < result.probability <= 1 and result.numbers.shape[0] == 2
        if passage.strip():
            np.testing.assert_allclose(result.numbers.max(axis=1) > 0, True)
            assert result.score_of(result) == pytest.approx(result.score, abs=1e-4)


def test_a_long_question_is_cut():
    short, cut = answerer().answer([("dog", "a cat"), ("the big dog and the cat " * 3, "a cat")])
    assert (short.truncated, cut.truncated) == (False, True)


@pytest.mark.parametrize("wrong", ["a", ["a"], [("a",)], [("a", 3)], 3])
def test_examples_are_pairs_of_strings(wrong):
    with pytest.raises(TypeError, match="must be a list of pairs of strings, question and passage"):
        answerer().answer(wrong)


def test_answers_are_normalised_as_squad_does():
    assert normalized("The  Big, an dog!") == "big dog"
    assert token_f1("the big dog", "dog runs") == pytest.approx(0.5)
    assert token_f1("", "") == 1 and token_f1("the", "dog") == 0
    figures = answer_figures(["A dog", "cat"], [["x", "dog."], ["big cat"]])
    assert figures == {"exact_match": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}


def test_lines_are_questions_and_passages():
    assert parse("a\tb\tc") == ("a", "b\tc")
    assert right_answers("12\tdog\tthe dog") == ["dog", "the dog"]
    assert right_answers("dog\tcat") == ["dog", "cat"] and right_answers("12") == ["12"]
    with pytest.raises(ValueError, match="example 2: must be a question, a tab and a passage"):
        TASK.evaluate(answerer(), [["a\tb", "c"], ["b", "c"]])
    with pytest.raises(ValueError, match="at least one question to answer. Received: none"):
        TASK.evaluate(answerer(), [[], []])
