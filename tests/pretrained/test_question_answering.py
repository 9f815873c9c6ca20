"""Question answering heads of checkpoints against their arithmetic in NumPy, span by span."""

import bert_folders
import bert_in_numpy
import bert_in_python
import bpe_in_python
import distilbert_folders
import distilbert_in_numpy
import numpy as np
import pytest
import roberta_folders
import tensorflow as tf
from marks import long, slow

from keras_transformer import from_pretrained
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import QuestionAnswerer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.tasks.question_answering.codec import AnswerCodec
from keras_transformer.tokenizers import WordPieceTokenizer
from keras_transformer.training.converted import write_converted

LONGEST = 15
EXAMPLES = [
    ("the dog", "A dog is running, good dog."),
    ("is the film bad", "The  film (bad!) is not very good; dogs run."),
    ("", "cats"),
    ("a cat", ""),
    ("good film", "a good film \u00e9, a very bad film, a good dog and a bad cat " * 2),
    ("good " * 30, "the film is cafe\u0301 \u2603x good"),
]
WHITE = " \t\n\u00a0"


def bert_words(text):
    """Yields each word with its ids and the places of its first and last character."""
    place = 0
    while place < len(text):
        if text[place] in WHITE:
            place += 1
            continue
        end = place + 1
        while end < len(text) and text[end] not in WHITE:
            if any(bert_in_python.is_punctuation(x) for x in text[end - 1 : end + 1]):
                break
            end += 1
        known = {piece: number for number, piece in enumerate(bert_folders.PIECES)}
        yield bert_in_python.ids(text[place:end], known, True)[1:-1], place, end
        place = end


def roberta_words(text):
    place, ranks = 0, {pair: number for number, pair in enumerate(roberta_folders.MERGES)}
    for word in bpe_in_python.words(text):
        ids = [roberta_folders.PIECES.index(x) for x in bpe_in_python.merge(word, ranks)]
        yield ids, place + len(word) - len(word.lstrip(" ")), place + len(word)
        place += len(word)


def bert_row(question, window):
    return [[3, *question, 4, *window, 4]], len(question) + 2


def roberta_row(question, window):
    return [[0, *question, 2, 2, *window, 2]], len(question) + 3


def bert_states(tensors, settings, row, first):
    types = np.array([[int(place >= first) for place in range(len(row[0]))]])
    return bert_in_numpy.forward(tensors, settings, np.array(row), types)[0]


def distilbert_states(tensors, settings, row, first):
    return distilbert_in_numpy.forward(tensors, settings, np.array(row))[0]


def roberta_states(tensors, settings, row, first):
    return roberta_folders.forward(tensors, settings, np.array(row))[0]


FAMILIES = {
    "bert": (bert_folders, "Bert", bert_words, bert_row, bert_states),
    "distilbert": (distilbert_folders, "DistilBert", bert_words, bert_row, distilbert_states),
    "roberta": (roberta_folders, "Roberta", roberta_words, roberta_row, roberta_states),
}


def write(family, folder):
    module, prefix, *others = FAMILIES[family]
    heads = {"architectures": [f"{prefix}ForQuestionAnswering"]}
    return (*module.write_folder(folder, **heads), *others)


def by_hand(example, settings, tensors, words, make_row, states, longest=21):
    """Returns the probability of every answer by its ends, and of none, for all windows."""
    question = [number for ids, *_ in words(example[0]) for number in ids][: longest // 2]
    passage = [(number, a, b) for ids, a, b in words(example[1]) for number in ids]
    marks = len(make_row([], [])[0][0])
    space = longest - marks - len(question)
    begins, scores, none = [0], {}, 1.0
    while begins[-1] + space < len(passage):
        begins.append(begins[-1] + space // 2)
    for begin in begins:
        window = passage[begin : begin + space]
        row, first = make_row(question, [number for number, *_ in window])
        hidden = states(tensors, settings, row, first)[0]
        logits = hidden @ tensors["qa_outputs.weight"].T + tensors["qa_outputs.bias"]
        kept = logits[[0, *range(first, first + len(window))]]
        shares = np.exp(kept - kept.max(axis=0))
        shares /= shares.sum(axis=0)
        none = min(none, shares[0].prod())
        for start, end in np.ndindex(len(window), len(window)):
            if 0 <= end - start < LONGEST:
                key, score = (window[start][1], window[end][2]), shares[1:][start, 0]
                scores[key] = max(scores.get(key, 0), score * shares[1:][end, 1])
    return scores or {(0, 0): 1.0}, none


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", long("distilbert"), long("roberta")])
def test_answers_are_the_best_spans_of_the_checkpoint(family, tmp_path):
    settings, tensors, *others = write(family, tmp_path / "hf")
    answerer = from_pretrained(tmp_path / "hf")
    assert isinstance(answerer, QuestionAnswerer)
    results = answerer.answer(EXAMPLES)
    assert len({result.text for result in results}) > 3
    for example, found in zip(EXAMPLES, results, strict=True):
        scores, none = by_hand(example, settings, tensors, *others)
        (begin, end), best = max(scores.items(), key=lambda item: item[1])
        assert found.text == example[1][begin:end]
        assert example[1].encode()[found.begin : found.end].decode() == found.text
        assert found.probability == pytest.approx(best, abs=1e-5)
        assert found.no_answer == pytest.approx(none, abs=1e-5)
        assert found.truncated == (len(example[0]) > 100)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(EXAMPLES) == [result.text for result in results]


@pytest.mark.parametrize("layout", [slow("bert"), "separator"])
def test_a_passage_may_have_no_answer(layout):
    """The answer is empty if that is more probable than every span, in every window."""
    known, rng = WordPieceTokenizer(bert_folders.PIECES), np.random.default_rng(0)
    codecs = [AnswerCodec(known, 13, 4, None, layout, no_answer) for no_answer in (False, True)]
    texts = ["a dog", "a dog is running", "a film, a dog and a cat " * 3, ""] * 9
    inputs, rest = codecs[0].encode(tf.constant(["a", "the dog", "is"] * 12), tf.constant(texts))
    shape = inputs["source"].shape
    outputs = {name: (rng.normal(size=shape) * 2).astype("float32") for name in ("start", "end")}
    answers = [codec.answers(outputs, rest) for codec in codecs]
    other, ours = (AnswerCodec.results({k: v.numpy() for k, v in a.items()}) for a in answers)
    empty = 0
    for number, (text, one, two) in enumerate(zip(texts, other, ours, strict=True)):
        shares = []
        for row in np.flatnonzero(rest["example"] == number):
            begin, end = int(rest["prefix"][row]), int(rest["eos"][row])
            kept = [int(rest["none"][row]), *range(begin, end)]
            logits = np.stack([outputs[name][row][kept] for name in ("start", "end")], axis=1)
            exp = np.exp(logits.astype("float64"))
            shares.append((exp[0] / exp.sum(axis=0)).prod())
        if layout == "bert":
            assert one.no_answer == pytest.approx(min(shares), abs=1e-6)
        if one.no_answer > one.probability or not text:
            assert (two.text, two.begin, two.end) == ("", 0, 0)
            if text:
                assert two.probability == one.no_answer and two.segments == (-1, -1)
                assert two.score_of(two) == pytest.approx(two.score, abs=1e-5)
                empty += 1
        else:
            assert one == two
    assert 1 < empty < 24


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_rows_of_other_layouts_are_screened(family, tmp_path):
    write(family, tmp_path)
    codec = from_pretrained(tmp_path).codec
    bos, eos, pad = codec.tokenizer.bos_id, codec.tokenizer.eos_id, codec.tokenizer.pad_id
    between = [eos] * (1 + (family == "roberta"))
    good = [bos, 7, *between, 8, 9, eos, pad, pad]
    bad = [
        [7, bos, *between, 8, 9, eos, pad, pad],
        [bos, 7, *between, 8, bos, eos, pad, pad],
        [bos, 7, *between, 8, 9, pad, eos, pad],
        [bos, 7, *between, 8, eos, eos, pad, pad],
        [bos, 7, 8, 9, 7, 8, 9, eos, pad][: len(good)],
        [bos, eos, 7, 8, *between[1:], 9, 9, eos] if family == "roberta" else [pad] * len(good),
    ]
    rows = [(row + [pad] * 9)[: len(good)] for row in [good, *bad]]
    valid, inputs = codec.screen(tf.constant(rows, tf.int32))
    assert valid.numpy().tolist() == [True] + [False] * len(bad)
    assert inputs["source"][0].numpy().tolist() == good
    served = tf.constant([[*good[:-2], 5, 5]], tf.int32)
    assert codec.checked(served)["source"].numpy().tolist() == [good[:-2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"must end each row in the id {eos}"):
        codec.checked(tf.constant([[bos, 7, *between, 8]], tf.int32))


def test_a_limit_that_is_too_small_for_the_marks_is_refused(tmp_path):
    write("roberta", tmp_path)
    answerer = from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="`max_length` must be at least 9, for a question"):
        QuestionAnswerer(answerer.model, answerer.tokenizers, max_length=8)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_exports_answer_as_the_checkpoint(family, tmp_path):
    """Exports are only kept if they answer as the model in memory does."""
    write(family, tmp_path / "hf")
    answerer = from_pretrained(tmp_path / "hf")
    assert export_saved_model(answerer, tmp_path / "saved", EXAMPLES)["agreement"] == 1
    assert "the id" in (tmp_path / "saved/1/README.md").read_text()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        questions, passages = zip(*EXAMPLES, strict=True)
        feed = {
            signature.inputs["question"].name: [text.encode() for text in questions],
            signature.inputs["passage"].name: [text.encode() for text in passages],
        }
        answers = session.run(signature.outputs["answer"].name, feed)
    assert [answer.decode() for answer in answers] == answerer(EXAMPLES)
    assert export_litert(answerer, tmp_path / "m.tflite", EXAMPLES)["agreement"] == 1
