"""Training of question answering: positions of answers, windows, and wrong examples."""

import json
import os
import signal

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import slow
from pipelines import SIZES, tokenizer
from small_runs import At, assert_same_end, run_quietly

from keras_transformer.cli.main import cli
from keras_transformer.models import SpanPredictorConfig
from keras_transformer.pipelines import QuestionAnswerer
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.question_answering.passages import Windows, read_passages
from keras_transformer.tasks.run import Run
from keras_transformer.tokenizers import WordPieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.evaluate import evaluate_files
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings
from keras_transformer.training.tasks import training_class
from keras_transformer.training.tasks.question_answering.squad import read_squad
from keras_transformer.training.tasks.question_answering.training import (
    chosen_windows,
    ends_in_windows,
)

SHORT = [("a cat", "the dog, runs", "dog, runs"), ("dog", "a cat", "a"), ("", "é x", "x")]
LONG = "the big dog and the cat and a dog and the big cat runs"
LIMIT = SIZES["max_length"]


def training(max_length=LIMIT):
    config = SpanPredictorConfig(vocab_size=30, **{**SIZES, "max_length": max_length})
    return training_class(TASKS["question_answering"])(tokenizer(), config)


def columns(examples):
    """Returns the columns of examples, with each answer at its first position."""
    questions, passages, answers = zip(*examples, strict=True)
    places = [len(passage[: passage.index(answer)].encode()) for _, passage, answer in examples]
    answers = [[answer, "another"] for answer in answers]
    return {
        "question": tf.constant(questions),
        "passage": tf.constant(passages),
        "begin": tf.constant(places),
        "answers": tf.ragged.constant(answers),
    }


def encoded(examples, limit):
    """Returns the rows and the positions of the answers."""
    encoded = training(limit).encode(columns(examples))
    return encoded["tokens"], encoded["answers"]


def pieces_of(passage):
    return read_passages(tokenizer(), tf.constant([passage])).pieces[0].numpy().tolist()


def test_ends_are_the_first_tokens_of_their_segments():
    rows, ends = encoded(SHORT, 99)
    for row, (first, last), (question, passage, answer) in zip(
        rows.to_list(), ends.numpy(), SHORT, strict=True
    ):
        asked = tokenizer().encode([question]).to_list()[0][:-1]
        assert row == [*asked, 2, *pieces_of(passage), 3]
        before = passage[: passage.index(answer)]
        assert row[len(asked) + 1 : first] == pieces_of(before)
        *_, segment = read_passages(tokenizer(), tf.constant([answer])).first[0].numpy()
        assert last - first == segment


@pytest.mark.parametrize(("layout", "between"), [slow("bert", 1), ("roberta", 2)])
def test_ends_are_the_outer_tokens_of_words_in_other_layouts(layout, between):
    """The answer's first and last token, or twice the first of a row without the answer."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog", "##s", "##run", "cat", "."]
    config = SpanPredictorConfig(
        **{**SIZES, "vocab_size": 10, "max_length": 11, "pair_layout": layout, "bos_id": 2}
    )
    known = WordPieceTokenizer(pieces)
    trained = training_class(TASKS["question_answering"])(known, config)
    passage = "a Dogs, dogsrun . a cats"
    examples = [("a", passage[:7], "Dogs"), ("cat", "dogsrun.", "dogsrun"), ("a", "a cat", "a cat")]
    batch = trained.encode(columns(examples))
    rows, prefix = batch["tokens"].to_list(), 2 + between
    passages = [[4, 5, 6, 1], [5, 6, 7, 9], [4, 8]]
    questions = [4, 8, 4]
    assert rows == [
        [2, question, *[3] * between, *ids, 3]
        for question, ids in zip(questions, passages, strict=True)
    ]
    assert (batch["answers"].numpy() - prefix).tolist() == [[1, 2], [0, 2], [0, 1]]
    long = [(f"{'a ' * n}dog", passage, "cats") for n in range(4)]
    batch = trained.encode(columns(long))
    ends = batch["answers"].numpy().tolist()
    for row, (first, last) in zip(batch["tokens"].to_list(), ends, strict=True):
        assert len(row) <= 11 and row[0] == 2 and row[-1] == 3
        assert (first, last) == (0, 0) or row[first : last + 1] == [8, 6]
    assert [0, 0] in ends and max(ends) > [0, 0]


def test_training_reads_one_window_of_a_long_passage():
    """Its labels are the answer's, or the separator if the window does not contain the answer."""
    words = LONG.split()
    examples = [(question, LONG, words[1]) for question in ["a", "cat", "dog", "big dog", "runs a"]]
    examples += [(f"{number} a", LONG, "big cat runs") for number in "abcdefghij"]
    rows, ends = encoded(examples, LIMIT)
    whole = 0
    for row, (first, last), (question, _, answer) in zip(
        rows.to_list(), ends.numpy(), examples, strict=True
    ):
        separator, right = row.index(2), pieces_of(answer)
        assert len(row) <= LIMIT and row[-1] == 3
        assert row[:separator] == tokenizer().encode([question]).to_list()[0][:-1][: LIMIT // 2]
        if (first, last) == (separator, separator):
            continue
        whole += 1
        # The first token of its last segment must be in the window.
        read = row[first:-1][: len(right)]
        offset = read_passages(tokenizer(), tf.constant([answer])).first[0].numpy()[-1]
        assert read == right[: len(read)] and separator < first
        assert last - first == offset < len(read)
    assert 0 < whole < len(examples), "windows with an answer, and others"


def test_every_second_passage_is_read_at_its_answer():
    """With windows of 10 tokens, 5 apart, the one from 15 has most context for 17 and 18."""
    passages, count, size, step = 60, 7, 10, 5
    total = passages * count
    windows = Windows(
        tf.RaggedTensor.from_row_lengths([7] * total * (size + 3), [size + 3] * total),
        tf.repeat(tf.range(passages, dtype=tf.int64), count),
        tf.fill([total], tf.constant(2, tf.int64)),
        tf.tile(step * tf.range(count, dtype=tf.int64), [passages]),
        tf.fill([total], tf.constant(1, tf.int64)),
    )
    lines = tf.constant([f"line {number}" for number in range(passages)])
    ends = [tf.fill([passages], tf.constant(place, tf.int64)) for place in (17, 18)]
    row = chosen_windows(windows, ends, lines).numpy()
    number, chosen = np.divmod(row, count)
    np.testing.assert_array_equal(number, range(passages))
    assert (chosen == 3).sum() >= 20 and len(set(chosen)) == count
    first, last = (place.numpy() for place in ends_in_windows(windows, row, ends))
    inside = (chosen == 2) | (chosen == 3)
    np.testing.assert_array_equal(first, np.where(inside, 17 - step * chosen + 2, 1))
    np.testing.assert_array_equal(last, np.where(inside, 18 - step * chosen + 2, 1))


def test_the_loss_is_the_mean_of_two_cross_entropies():
    places = np.array([[1, 3], [0, 0], [2, 4]])
    logits = np.random.default_rng(0).normal(size=(3, 5, 2))
    loss = training().loss(None).call(tf.constant(places), tf.constant(logits, tf.float32))
    for row, (first, last) in enumerate(places):
        log_p = logits[row] - np.log(np.exp(logits[row]).sum(axis=0))
        assert float(loss[row]) == pytest.approx(-(log_p[first, 0] + log_p[last, 1]) / 2, abs=1e-5)
    (metric,) = training().metrics()
    logits[0, 1, 0], logits[0, 3, 1], logits[2, 0, 0] = 9, 9, 9
    metric.update_state(places, logits.astype("float32"), sample_weight=[1.0, 0.0, 1.0])
    assert float(metric.result()) == 0.5


def test_padding_rows_have_no_weight():
    weights = training().weigh(tf.constant([[5, 2, 6, 3], [0, 0, 0, 0]]), None)
    np.testing.assert_array_equal(weights, [1, 0])


WRONG = [
    (3, "dog"), (4, "dogs"), (4, ""), (99999, "dog"), (-4, "dog"), (3, " "), (-1, "dog"),
]  # fmt: skip
WRONG_TEXTS = ["", "x", "4\t", "-4", "4.0", " 4", "12345678901"]


@pytest.mark.long
@pytest.mark.slow
def test_an_answer_missing_in_its_passage_is_reported_in_one_line():
    begin, answers = zip(*WRONG, (4, "dog"), strict=True)
    texts = {"question": ["a"] * len(begin), "passage": ["the dog"] * len(begin)}
    texts = {name: tf.constant(values) for name, values in texts.items()}
    columns = {**texts, "begin": tf.constant(begin), "answers": tf.constant(answers)}
    ends = training().encode(columns)["answers"]
    np.testing.assert_array_equal(ends[:-1], -1)
    assert (ends[-1] > 0).numpy().all()
    columns |= {"begin": tf.constant([*WRONG_TEXTS, "4"]), "answers": tf.constant(["dog"] * 8)}
    ends = training().encode(columns)["answers"]
    np.testing.assert_array_equal(ends[:-1], -1)
    assert (ends[-1] > 0).numpy().all()
    rows = (["a"] * 2, ["the dog"] * 2, [4, 4], ["dog", "dogs"])
    message = (
        "train split of the data, example 2: `answers` must be a span of the text that begins at "
        "the given position. Received: 'dogs'.$"
    )
    with pytest.raises(ValueError, match=message):
        Corpus.from_rows(tf.data.Dataset.from_tensor_slices(rows), training(), LIMIT)


def squad_file(path, seed):
    rng, paragraphs = np.random.default_rng(seed), []
    for number in range(12):
        words = [str(word) for word in rng.choice(LONG.split(), rng.integers(3, 20))]
        context, begin = " ".join(words), len(" ".join(words[:1])) + 1
        answers = [{"text": words[1], "answer_start": begin}]
        qas = [{"id": f"q{number}", "question": f"{words[0]}?", "answers": answers}]
        paragraphs.append({"context": context, "qas": qas})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))


CONFIG = """
[task]
kind = "question_answering"
[model]
num_layers = 1
d_model = 16
d_ff = 24
num_heads = 2
dropout = 0.2
max_length = 20
[data]
source = "squad"
train = "train.json"
validation = "validation.json"
max_length = 20
batch_tokens = 60
[vocabulary]
size = 25
[schedule]
warmup_steps = 1
peak = 0.01
[training]
updates = 6
label_smoothing = 0.0
validate_every = 3
checkpoint_every = 1
"""


@pytest.fixture
def settings(tmp_path):
    for split, seed in (("train", 0), ("validation", 1)):
        squad_file(tmp_path / f"{split}.json", seed)
    (tmp_path / "qa.toml").write_text(CONFIG)
    return load_settings(tmp_path / "qa.toml")


@pytest.mark.slow
@pytest.mark.long
def test_a_resumed_run_ends_like_an_uninterrupted_one(settings, tmp_path):
    figures, _ = run_quietly(settings, tmp_path / "whole")
    assert {"loss", "accuracy", "exact_match", "f1"} <= set(figures["validation"])
    press = At(4, lambda: os.kill(os.getpid(), signal.SIGINT))
    stopped, shown = run_quietly(settings, tmp_path / "run", [press])
    assert stopped is None and "Stopped after update 4 of 6" in shown
    run_quietly(settings, tmp_path / "run")
    assert_same_end(tmp_path / "run", (tmp_path / "whole", figures))


@pytest.mark.parametrize("name", ["label_smoothing", "r_drop", "subword_sampling"])
def test_settings_that_do_not_fit_are_refused(settings, tmp_path, name):
    with pytest.raises(SettingsError, match=f"`training.{name}` must be 0 for question_answering"):
        load_settings(tmp_path / "qa.toml", [f"training.{name}=0.1"])


@pytest.mark.slow
@pytest.mark.long
def test_text_files_can_be_trained_evaluated_and_answered(settings, tmp_path):
    """Uses a SQuAD file, a file of lines, and lines to answer and to compare with."""
    for split in ("train", "validation"):
        rows = read_squad(tmp_path / f"{split}.json")
        lines = ["\t".join([*map(str, row[:3]), row[3][0]]) for row in rows]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "questions.tsv").write_text("".join("\t".join(row[:2]) + "\n" for row in rows))
    (tmp_path / "answers.txt").write_text("".join("\t".join(row[3]) + "\n" for row in rows))
    config = CONFIG.replace('"squad"', '"text"')
    config = config.replace(".json", ".tsv")
    (tmp_path / "text.toml").write_text(config)
    whole, figures = tmp_path / "whole", run_quietly(settings, tmp_path / "whole")[0]
    run_quietly(load_settings(tmp_path / "text.toml"), tmp_path / "run")
    one, two = (Run(folder).load_model() for folder in (whole, tmp_path / "run"))
    for ours, theirs in zip(one.weights, two.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    files = (tmp_path / "questions.tsv", tmp_path / "answers.txt")
    results = evaluate_files(whole, *files)
    assert results["questions"] == 12 and results["truncated"] == 0
    for name in ("exact_match", "f1"):
        assert results[name] == pytest.approx(figures["validation"][name], abs=1e-3)
    done = CliRunner().invoke(cli, ["predict", str(whole), "--input", str(files[0])])
    assert done.exit_code == 0, done.stderr
    examples = [tuple(line.split("\t")) for line in files[0].read_text().splitlines()]
    assert done.stdout.splitlines() == QuestionAnswerer.from_run(whole)(examples)
    done = CliRunner().invoke(cli, ["evaluate", str(whole), "--split", "validation"])
    assert json.loads(done.stdout)["f1"] == results["f1"]


def test_lines_without_answers_are_not_evaluated(settings, tmp_path):
    save_settings(settings, tmp_path / "config.toml")
    message = "have questions with passages and answers: evaluation needs two files.$"
    with pytest.raises(ValueError, match=message):
        evaluate_files(tmp_path, tmp_path / "questions.tsv")
