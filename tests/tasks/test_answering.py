"""A question answerer in use: exact parts of passages, windows, metrics of SQuAD."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer, with_larger_weights

from keras_transformer.models import SpanPredictor, SpanPredictorConfig
from keras_transformer.pipelines import QuestionAnswerer
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.question_answering.codec import AnswerCodec
from keras_transformer.tasks.question_answering.lines import parse
from keras_transformer.tasks.question_answering.metrics import answer_metrics, normalized, token_f1
from keras_transformer.tasks.question_answering.passages import cut_windows, read_passages
from keras_transformer.tasks.question_answering.spans import segments_of_rows

TASK = TASKS["question_answering"]
PASSAGES = [
    "the big dog runs", "", "a cat, and a dog.", "é 👩‍🚀  x", "cafe\u0301 ½ km²", "a\u00a0b\u3000c",
    "日本語のabc文 ไทย", "  a  cat  ", "日本 12.5%",
    "the big dog and the cat and a dog and the big cat runs",
]  # fmt: skip

LONG = "the big dog and the cat and a dog and the big cat runs"  # 14 segments
ALONE = "日本語の文ไทย"  # scripts without spaces


@functools.cache
def answerer(**changes):
    config = SpanPredictorConfig(vocab_size=30, **SIZES, max_answer=4, **changes)
    return QuestionAnswerer(with_larger_weights(SpanPredictor(config)), tokenizer())


def segments_by_hand(passage):
    """Splits into runs of letters, marks and digits, and single other characters; no space."""
    import unicodedata

    spans, byte, before = [], 0, ""
    for character in passage:
        size, kind = len(character.encode()), unicodedata.category(character)[0]
        if character.isspace() or kind == "Z":
            before = ""
        elif kind in "LMN" and before == "word" and character not in ALONE:
            spans[-1] = (spans[-1][0], byte + size)
        else:
            spans.append((byte, byte + size))
            before = "word" if kind in "LMN" and character not in ALONE else "other"
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
def test_windows_contain_every_token_and_fit(stride):
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
    """Returns the score of every span of every window, one after the other, in float64."""
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
    scores = {}
    for begin in begins:
        window = pieces[begin : begin + room]
        logits = np.asarray(model(np.array([[*q, 2, *window, 3]]))[0], "float64")[len(q) :]
        kept = [0, *(1 + k for k in range(len(window)) if owner[begin + k] >= 0)]
        logits = (logits - np.log(np.exp(logits[kept]).sum(axis=0)))[1:]
        for s in range(len(window)):
            for e in range(s, min(s + max_answer, len(window))):
                if owner[begin + s] >= 0 and owner[begin + e] >= 0:
                    a, b = spans[owner[begin + s]][0], spans[owner[begin + e]][1]
                    score = logits[s, 0] + logits[e, 1]
                    scores[a, b] = max(score, scores.get((a, b), -np.inf))
    return scores or {(0, 0): 0.0}


@pytest.mark.slow
def test_an_answer_is_the_best_span_of_any_window():
    examples = [(question, passage) for passage in PASSAGES for question in ("a cat", "dog")]
    examples += [("", PASSAGES[0]), (LONG, PASSAGES[2])]
    scores = [by_hand(answerer().model, *example) for example in examples]
    alone = [answerer().answer([example])[0] for example in examples]
    for results in (alone, answerer().answer(examples, batch_size=4), answerer().answer(examples)):
        assert len({result.text for result in results}) > 5
        for (_, passage), result, right in zip(examples, results, scores, strict=True):
            # In float32, probabilities near 1 are equal in two windows.
            assert right[result.begin, result.end] >= max(right.values()) - 1e-6
            assert passage.encode()[result.begin : result.end].decode() == result.text
            assert 0 < result.probability <= 1 and result.numbers.shape[0] == 2
            assert result.score_of(result) == pytest.approx(result.score, abs=1e-4)
        for one, two in zip(results, alone, strict=True):
            np.testing.assert_allclose(one.probabilities, two.probabilities, atol=1e-5)


def answer_of(codec, encoded, first, last):
    """Returns a result, the number of windows, and whether a window shows the whole answer.

    The outputs are those of a model that is sure of two segments wherever it reads both of them,
    and otherwise that there is no answer.
    """
    inputs, rest = encoded
    segment = segments_of_rows(rest, inputs["source"].shape[1]).numpy()
    outputs = {}
    for name, place in (("start", first), ("end", last)):
        whole = (segment == first).any(axis=1) & (segment == last).any(axis=1)
        sure = np.where(whole[:, None], segment == place, inputs["source"].numpy() == 2)
        outputs[name] = np.where(sure, 8, -1).astype("float32")
    answers = codec.answers(outputs, rest)
    (result,) = codec.results({name: value.numpy() for name, value in answers.items()})
    return result, len(segment), whole.any()


def test_every_answer_is_whole_in_some_window(stride=3):
    """Holds for answers up to one segment longer than the overlap of two windows."""
    words, codec = LONG.split(), AnswerCodec(tokenizer(), 9, 30, stride)
    pieces = read_passages(tokenizer(), tf.constant([LONG]))
    first_pieces = [*pieces.first[0].numpy(), len(pieces.pieces[0])]
    room = 9 - 2 - len(tokenizer().encode(["a"])[0][:-1])
    shared = room - (stride or room // 2) + 1
    encoded, seen = codec.encode(tf.constant(["a"]), tf.constant([LONG])), 0
    for first in range(len(words)):
        for last in range(first, min(first + 4, len(words))):
            result, windows, whole = answer_of(codec, encoded, first, last)
            assert windows > 3
            if whole:
                assert result.text == " ".join(words[first : last + 1])
                assert result.probability > 0.9
            else:
                assert first_pieces[last] - first_pieces[first] + 1 > shared
                assert result.probability < 0.01, "every window has the separator's logits"
            seen += whole
    assert seen > len(words)


def test_a_short_passage_fits_into_one_window():
    codec = AnswerCodec(tokenizer(), 99, 30, None)
    encoded = codec.encode(tf.constant(["a"]), tf.constant([LONG]))
    result, windows, _ = answer_of(codec, encoded, 3, 5)
    assert windows == 1 and result.text == "and the cat"


def test_a_long_question_is_truncated():
    short, cut = answerer().answer([("dog", "a cat"), ("the big dog and the cat " * 3, "a cat")])
    assert (short.truncated, cut.truncated) == (False, True)


@pytest.mark.parametrize("wrong", ["a", ["a"], [("a",)], [("a", 3)], 3])
def test_examples_are_pairs_of_strings(wrong):
    with pytest.raises(TypeError, match="must be a list of pairs of strings, question and passage"):
        answerer().answer(wrong)


def test_answers_are_normalised_as_by_squad():
    assert normalized("The  Big, an dog!") == "big dog"
    assert token_f1("the big dog", "dog runs") == pytest.approx(0.5)
    assert token_f1("", "") == 1 and token_f1("the", "dog") == 0
    assert answer_metrics([""], [["the"]]) == {"exact_match": 100.0, "f1": 100.0}
    figures = answer_metrics(["A dog", "cat"], [["x", "dog."], ["big cat"]])
    assert figures == {"exact_match": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}


def words_by_hand(answer):
    """Normalises words character by character, as SQuAD's script compares them.

    Lower case; ASCII punctuation is removed; then articles that stand alone become spaces.
    """
    text = "".join(c for c in answer.lower() if not 32 < ord(c) < 127 or c.isalnum())
    words, word = [], ""
    for character in text + " ":
        if character.isalnum() or character == "_":
            word += character
            continue
        words += ["" if word in ("a", "an", "the") else word, character]
        word = ""
    return "".join(word or " " for word in words).split()


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1"),
    [
        ("The U.S. dollar", "us dollar", 1, 1),
        ("a the an", "", 1, 1),
        ("", "dog", 0, 0),
        ("Thea's theory", "theory", 0, 2 / 3),
        ("5.5 km", "55 km", 1, 1),
        ("New York City", "york, NEW", 0, 4 / 5),
        ("dog dog dog", "dog", 0, 2 / 4),
        ("dog dog cat", "dog dog", 0, 4 / 5),
        ("an Ärger—the end", "ärger— end", 1, 1),
        ("well-known", "well known", 0, 0),
        ("a\u00a0cat", "cat", 1, 1),
    ],
)
def test_exact_match_and_f1_equal_those_of_squad(answer, reference, exact, f1):
    ours, theirs = words_by_hand(answer), words_by_hand(reference)
    left, shared = list(theirs), 0
    for word in ours:
        if word in left:
            left.remove(word)
            shared += 1
    assert normalized(answer).split() == ours
    assert (ours == theirs) == bool(exact)
    by_hand = 2 * shared / (len(ours) + len(theirs)) if ours and theirs else float(ours == theirs)
    assert by_hand == pytest.approx(f1)
    figures = answer_metrics([answer], [["zebra", reference]])
    assert figures == {"exact_match": 100 * exact, "f1": pytest.approx(100 * f1)}


def test_lines_are_questions_and_passages(tmp_path):
    assert parse("a\tb\tc") == ("a", "b\tc") == parse(("a", "b\tc"))
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("a\tb\n\tc\n")
    reference.write_text("1998\tthe year 1998\ndog\n")
    inputs, answers = TASK.read_files(source, reference)
    assert inputs == [("a", "b"), ("", "c")] and answers == [["1998", "the year 1998"], ["dog"]]
    figures = answer_metrics(["1998", "dog"], [["1998", "the year"], ["12"]])
    assert figures == {"exact_match": 50, "f1": 50}
    source.write_text("a\tb\nc\n")
    with pytest.raises(ValueError, match="example 2: must be a question, a tab and a passage"):
        TASK.read_files(source, reference)


def test_columns_are_examples_with_all_correct_answers():
    columns = {"question": ["a", "b"], "passage": ["x", "y"], "begin": [0, 0]}
    # A text file has one answer per example.
    columns["answers"] = [np.array([b"x", b"X"], object), "y"]
    assert TASK.examples(columns) == [[("a", "x"), ("b", "y")], [["x", "X"], ["y"]]]
    with pytest.raises(ValueError, match="at least one question to answer. Received: none"):
        TASK.evaluate(answerer(), [[], []])
    assert answerer().answer([]) == [] == answerer().answer_batch([])


def test_the_attention_of_the_first_window_has_a_row_for_each_token():
    (attention,) = answerer().attention(f"dog\t{LONG}").values()
    row = answerer().codec.encode(tf.constant(["dog"]), tf.constant([LONG]))[0]["source"][0]
    assert attention.weights.shape == (2, 2, len(row), len(row)) and attention.truncated
    assert attention.keys == tokenizer().pieces(row.numpy())
    assert not answerer().attention("dog\ta cat")["encoder"].truncated
    with pytest.raises(ValueError, match="`sentence` must be a question, a tab and a passage"):
        answerer().attention("dog")


@pytest.mark.slow
def test_an_answer_may_be_left_empty_whatever_the_model_says():
    """`no_answer` of a pipeline replaces that of its model, in both directions."""
    questions = [("the dog", passage) for passage in PASSAGES if passage.strip()]
    always, sometimes = answerer(), answerer(no_answer=True)
    given, left_out = always.answer(questions), sometimes.answer(questions)
    assert any(
        result.text == "" != other.text for result, other in zip(left_out, given, strict=True)
    )
    assert always.with_settings(no_answer=True).answer(questions) == left_out
    assert sometimes.with_settings(no_answer=False).answer(questions) == given
    kept = sometimes.with_settings(no_answer=False).with_model(sometimes.model).with_settings()
    assert kept.answer(questions) == given
    with pytest.raises(TypeError, match=r"`no_answer` must be .*Received: no_answer=1"):
        always.with_settings(no_answer=1)
