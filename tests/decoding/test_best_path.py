"""The best path of CTC: against TensorFlow's decoder and a loop in Python, for every limit."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import slow
from pipelines import generator, speech_recognizer, tokenizer, write_run
from searching import by_best_path
from tasks.test_speech_recognizer import RATE, RECORDINGS

from keras_transformer.cli.main import cli
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import (
    BestPath,
    Ensemble,
    Predictor,
    Prompted,
    SearchOptions,
    Vocabulary,
)
from keras_transformer.decoding.stored import as_dict, from_dict
from keras_transformer.pipelines import Run
from keras_transformer.tasks import open_run
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

PAD, BOS, EOS = 0, 2, 3
LENGTH = 12


class Given(Predictor):
    """A predictor with given log-probabilities of labels and a given number of positions."""

    def __init__(self, log_probs, positions, **vocabulary):
        super().__init__(
            Vocabulary(log_probs.shape[2], PAD, BOS, EOS, rules=OutputRules(**vocabulary)), LENGTH
        )
        self.log_probs, self.positions = log_probs, np.asarray(positions)

    def begin(self, inputs, length, width=1):
        raise NotImplementedError

    def step(self, tokens, state, index):
        raise NotImplementedError

    def label_log_probs(self, inputs):
        padding_mask = np.arange(self.log_probs.shape[1]) < self.positions[:, None]
        return tf.constant(self.log_probs), tf.constant(padding_mask)


def given(seed=0, rows=6, positions=15, size=7, **vocabulary):
    """A predictor whose labels are often blank or repeated."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(rows, positions, size)).astype("float32")
    logits[:, :, PAD] += 1
    logits[:, 1::2] += 0.7 * logits[:, ::2][:, : positions // 2]  # equal labels in a row
    counts = rng.integers(1, positions + 1, rows)
    counts[:2] = positions, 1
    return Given(tf.nn.log_softmax(logits).numpy(), counts, **vocabulary)


def path_of(predictor, row, never=(BOS, EOS)):
    """The tokens of one row and the score of its path, one position after the other."""
    labels, score = [], 0.0
    for values in predictor.log_probs[row, : predictor.positions[row]]:
        best = max((v for v in range(len(values)) if v not in never), key=lambda v: values[v])
        labels.append(best)
        score += float(values[best])
    return [label for label, _ in itertools.groupby(labels) if label != PAD], score


@pytest.mark.parametrize("compiled", [False, slow(True)], ids=["eager", "xla"])
@pytest.mark.parametrize("limit", [None, 1, 2, 3, 4, 5, 40])
def test_equal_labels_become_one_token_and_blanks_none(limit, compiled):
    predictor = given()
    decode = tf.function(by_best_path, jit_compile=True) if compiled else by_best_path
    tokens, scores = decode(predictor, None, limit, LENGTH)
    assert tokens.shape == (6, LENGTH) and tokens.dtype == tf.int32
    longest = LENGTH if limit is None else min(limit, LENGTH)
    lengths = set()
    for row in range(6):
        expected, score = path_of(predictor, row)
        lengths.add(len(expected))
        ended = [*expected, EOS][:longest]
        assert tokens[row].numpy().tolist() == ended + [PAD] * (LENGTH - len(ended))
        assert float(scores[row]) == pytest.approx(score, abs=1e-4)
    assert len(lengths) > 3 and max(lengths) > 5


def test_each_output_may_have_a_limit_of_its_own():
    limits = [1, 2, 3, 4, 5, 40]
    found = BestPath(tf.constant(limits))(
        given(), tf.zeros([6, 1]), SearchOptions(cache_length=LENGTH)
    )
    for row, limit in enumerate(limits):
        one = BestPath(limit)(given(), tf.zeros([6, 1]), SearchOptions(cache_length=LENGTH))
        np.testing.assert_array_equal(found.tokens[row], one.tokens[row])


def test_tokens_are_those_of_tensorflows_decoder():
    predictor = given(seed=1)
    predictor.log_probs[:, :, [BOS, EOS]] = -50.0
    order = [*range(1, 7), PAD]  # TensorFlow's blank is the last label
    decoded, _ = tf.nn.ctc_greedy_decoder(
        tf.transpose(tf.gather(predictor.log_probs, order, axis=2), [1, 0, 2]),
        tf.constant(predictor.positions, tf.int32),
    )
    theirs = tf.sparse.to_dense(decoded[0], default_value=-1).numpy() + 1  # 0 is padding
    ours = by_best_path(predictor, None)[0].numpy()
    for row, other in zip(ours, theirs, strict=True):
        assert [token for token in row if token not in (PAD, EOS)] == [t for t in other if t]


def test_tokens_that_are_never_emitted_are_no_labels():
    free, bound = given(2), given(2, banned_ids=(5,), suppressed_ids=(4,))
    tokens = by_best_path(bound, None)[0].numpy()
    assert {4, 5} <= {*by_best_path(free, None)[0].numpy().ravel()}
    assert not {4, 5} & {*tokens.ravel()}
    for row in range(6):
        expected = [*path_of(bound, row, (BOS, EOS, 4, 5))[0], EOS]
        assert tokens[row, : len(expected)].tolist() == expected


def frames(pipeline, rows):
    log_mel = LogMel(**pipeline.model.config.input.features)
    length = max(map(len, rows))
    samples = np.stack([np.pad(row, (0, length - len(row))) for row in rows])
    return log_mel(samples, lengths=[len(row) for row in rows])


def test_the_search_reads_the_encoder_of_a_model_and_of_an_ensemble():
    models = [speech_recognizer().model, speech_recognizer(d_ff=20).model]
    pipeline = speech_recognizer()
    rows = [RECORDINGS[0], RECORDINGS[1]]
    found = BestPath()(models[0], frames(pipeline, rows), SearchOptions(cache_length=50))
    alone = BestPath()(models[0], frames(pipeline, rows[1:]), SearchOptions(cache_length=50))
    np.testing.assert_array_equal(found.tokens[1], alone.tokens[0])
    np.testing.assert_allclose(found.scores[1], alone.scores[0], atol=1e-4)
    both, probabilities = Ensemble(models), []
    for model in models:
        memory, padding_mask = model.encode(frames(pipeline, rows))
        probabilities.append(tf.nn.softmax(model.output_weights.project(memory)).numpy())
    positions = padding_mask.numpy()[:, 0].sum(axis=1)
    expected = Given(np.log(np.mean(probabilities, axis=0)), positions)
    found = BestPath()(both, frames(pipeline, rows), SearchOptions(cache_length=50))
    for row in range(2):
        tokens, score = path_of(expected, row)
        assert [t for t in found.tokens[row, 0].numpy() if t not in (PAD, EOS)] == tokens
        assert float(found.scores[row, 0]) == pytest.approx(score, abs=1e-3)


def test_models_without_labels_are_refused():
    with pytest.raises(TypeError, match="CTC needs a model with an encoder and a decoder"):
        BestPath()(generator().model, [[5, 6]], SearchOptions(cache_length=4))
    pipeline = speech_recognizer(prompt_ids=(7, 9))
    with pytest.raises(ValueError, match=r"without a prompt only. .* prompt_ids=\[7, 9\]"):
        pipeline.with_search(BestPath())
    with pytest.raises(ValueError, match="`n_best` must be 1"):
        BestPath()(speech_recognizer().model, None, SearchOptions(n_best=2))
    with pytest.raises(ValueError, match="`max_length` must be an integer of at least 1"):
        BestPath(max_length=0)
    with pytest.raises(ValueError, match="`cache_length` must be at least 1, or None. Received"):
        by_best_path(given(), None, cache_length=0)


def test_what_only_the_decoder_knows_is_refused():
    pipeline = speech_recognizer()
    inputs = frames(pipeline, RECORDINGS[:1])
    with pytest.raises(ValueError, match="Received: inputs with a prompt"):
        BestPath()(pipeline.model, Prompted(inputs, [[7]]))
    with pytest.raises(ValueError, match="`alignment` has no effect with `BestPath`"):
        BestPath()(pipeline.model, inputs, SearchOptions(alignment=(-1, None)))


def test_a_run_may_have_the_search_as_its_own(tmp_path):
    search = BestPath(max_length=5)
    assert from_dict(as_dict(search)) == search and str(search) == "CTC, best path"
    folder = write_run(speech_recognizer(), tmp_path / "run")
    Run(folder).write_search(search)
    pipeline = open_run(folder)
    assert pipeline.search == search
    texts = pipeline([RECORDINGS[0], RECORDINGS[1]])
    found = BestPath(5)(pipeline.model, frames(pipeline, RECORDINGS[:2]))
    ids = [[token for token in row[0] if token > EOS] for row in found.tokens.numpy().tolist()]
    decoded = tokenizer().decode(tf.ragged.constant(ids, tf.int32))
    assert texts == [text.decode() for text in decoded.numpy()]


@pytest.mark.slow
def test_the_command_searches_runs_with_ctc_only(tmp_path):
    (tmp_path / "a.wav").write_bytes(encode_wav(RECORDINGS[0], RATE))

    def call(run, *options):
        arguments = ["predict", str(run), str(tmp_path / "a.wav"), *options]
        return CliRunner().invoke(cli, arguments)

    pipeline = speech_recognizer()
    without = write_run(pipeline, tmp_path / "without")
    done = call(without, "--ctc")
    assert done.exit_code == 2
    assert "--ctc needs a run that was trained with training.ctc_weight, which" in done.stderr
    run = write_run(pipeline, tmp_path / "run", "[training]\nctc_weight = 0.3\n")
    done = call(run, "--ctc")
    expected = pipeline.with_search(BestPath())([RECORDINGS[0]])
    assert (done.exit_code, done.stdout.splitlines()) == (0, expected), done.stderr
    short = call(run, "--ctc", "--max-output", "2")
    expected = pipeline.with_search(BestPath(2))([RECORDINGS[0]])
    assert (short.exit_code, short.stdout.splitlines()) == (0, expected) and expected[0]
    assert done.stdout.startswith(expected[0]) and done.stdout != short.stdout
    assert "an output reached its maximum length" in short.stderr
    for others in (["--beam", "2"], ["--sample"], ["--n-best", "2"]):
        assert f"{others[0]} has no effect with --ctc." in call(run, "--ctc", *others).stderr
    assert "--ctc has no effect with --greedy." in call(run, "--ctc", "--greedy").stderr
