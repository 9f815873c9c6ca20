"""Training of speech recognition: features, limits, masks, and a run from data to answers."""

import json
import os
import signal
import types

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from pipelines import speech_recognizer, tokenizer
from small_runs import At, assert_same_end, run_quietly

from keras_transformer import Greedy
from keras_transformer.cli.main import cli
from keras_transformer.decoding import BestPath
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.models import SpeechTransformerConfig
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.run import Run
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.metrics import error_rates
from keras_transformer.training.data import encoding
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tasks.speech_recognition.files import SpeechFiles, find_recordings
from keras_transformer.training.tasks.speech_recognition.recordings import Recordings
from keras_transformer.training.tasks.speech_recognition.training import SpeechRecognitionTraining
from keras_transformer.training.validator import Validator

CONFIG = """
[task]
kind = "speech_recognition"

[model]
num_layers = 1
d_model = 16
d_ff = 24
num_heads = 2
dropout = 0.1
max_length = 30
max_seconds = 5.0
window_length = 128
hop_length = 100
num_mel_filters = 8

[data]
source = "morse_demo"
sample_rate = 4000
max_seconds = 3.0
examples = 100
max_length = 30
batch_frames = 900
time_masks = 1
frequency_masks = 1
max_frequency_mask = 2

[vocabulary]
size = 60

[schedule]
warmup_steps = 1
peak = 0.01

[training]
updates = 6
validate_every = 3
validate_sentences = 0
checkpoint_every = 1
"""
TASK = TASKS["speech_recognition"]
TEXTS = ("a cat", "the big dog", "a dog and a cat")


def samples(length, seed=0):
    return (0.3 * np.random.default_rng(seed).normal(size=length)).astype("float32")


def training(**changes):
    config = speech_recognizer().model.config
    if changes:
        config = SpeechTransformerConfig(**{**config.to_flat(), **changes})
    return SpeechRecognitionTraining(tokenizer(), config)


def corpus(rows, kind=None, **settings):
    rows = [(audio.tolist(), text) for audio, text in rows]
    audio = tf.ragged.constant([row[0] for row in rows], tf.float32)
    data = tf.data.Dataset.from_tensor_slices((audio, [row[1] for row in rows]))
    source = types.SimpleNamespace(
        rows=lambda split: data, count=lambda split: len(rows), weights=lambda split: None
    )
    options = types.SimpleNamespace(**{"max_length": 9, **settings})
    return (kind or training()).corpus(source, "train", options)


def test_a_batch_has_the_frames_of_each_recording_and_its_text():
    lengths = (400, 133, 250)
    rows = [(samples(length, length), text) for length, text in zip(lengths, TEXTS, strict=True)]
    (batch,) = corpus(rows).batches(1000)
    inputs, labels = batch
    log_mel = LogMel(**training().config.input.features)
    assert inputs["source"].dtype == tf.float32 and inputs["source"].shape == (3, 50, 6)
    with pytest.raises(
        ValueError, match="`batch_frames` for recordings, must be .* 50. Received: 49"
    ):
        corpus(rows).batches(49)
    for frames, target, label in zip(inputs["source"], inputs["target"], labels, strict=True):
        count = int(np.any(frames != 0, axis=1).sum())
        (audio, text) = next(row for row in rows if len(row[0]) // 8 == count)
        # Stored with 16 bits, in steps of 2**-10 from 1 to 2.
        np.testing.assert_allclose(frames[:count], log_mel(audio[None])[0], atol=1e-3)
        ids = tokenizer().encode([text]).to_list()[0]
        assert label.numpy().tolist()[: len(ids)] == ids
        assert target.numpy().tolist()[: len(ids)] == [2, *ids[:-1]]


@pytest.mark.parametrize("pad_to_max_seconds", [False, True])
def test_long_and_empty_examples_are_left_out_and_counted(pad_to_max_seconds):
    kind = training(pad_to_max_seconds=pad_to_max_seconds)
    rows = [(samples(400), "a cat"), (samples(401), "a dog"), (samples(90), "the big dog " * 9)]
    encoded = corpus(rows, kind)
    assert (encoded.size, encoded.too_long) == (1, 2)
    with pytest.raises(ValueError, match="tokens, and at most 50 frames. Received: 0 empty and 1"):
        corpus(rows[1:2], kind)
    assert corpus([*rows, (samples(7), "a cat"), (samples(0), "a cat")], kind).empty == 2


def test_validation_has_an_empty_transcript_of_a_recording_shorter_than_a_frame():
    pytest.importorskip("jiwer")
    rows = [(samples(0), "a cat"), (samples(7), "a cat"), (samples(400), "the big dog")]
    pipeline = speech_recognizer()
    results = TASKS["speech_recognition"].measure(pipeline, *zip(*rows, strict=True))
    expected = error_rates(["", "", *pipeline([rows[2][0]])], [text for _, text in rows])
    assert results == {name: expected[name] for name in ("wer", "cer")}


def test_errors_of_an_evaluation_name_the_file(tmp_path):
    task, pipeline = TASKS["speech_recognition"], speech_recognizer()
    for name, count in (("a", 400), ("b", 7)):
        path = tmp_path / f"{name}.wav"
        path.write_bytes(encode_wav(samples(count), pipeline.sample_rate))
        path.with_suffix(".txt").write_text("a cat")
    data = SpeechFiles({"train": find_recordings(tmp_path)}, "two files", pipeline.sample_rate)
    columns = read_columns(data, task, "train")
    with pytest.raises(ValueError, match=r"/b\.wav: must have at least 8 samples.* Received: 7"):
        task.evaluate(pipeline, columns)
    pytest.importorskip("jiwer")
    arrays = zip(*data.rows("train").as_numpy_iterator(), strict=True)
    inputs, texts = map(list, arrays)
    texts = [text.decode() for text in texts]
    assert task.measure(pipeline, *columns) == task.measure(pipeline, inputs, texts)


def test_a_text_and_a_prompt_fit_the_model():
    """Or positions above the table of a Whisper checkpoint would be looked up."""
    rows = [(samples(400), "a cat")]
    assert corpus(rows, training(prompt_ids=(7, 9))).size == 1
    with pytest.raises(ValueError, match="`data.max_length` must be at most 8, so .* the 3 tokens"):
        corpus(rows, training(prompt_ids=(7, 9, 11)))


def test_few_recordings_are_in_memory_when_they_are_encoded(monkeypatch):
    """A batch of texts would be 2 GB of samples, and a chunk 10 GB of frames."""
    monkeypatch.setattr(encoding, "CHUNK", 2)
    audio = tf.RaggedTensor.from_uniform_row_length(tf.constant(samples(40 * 16)), 16)
    data = tf.data.Dataset.from_tensor_slices((audio, ["a cat"] * 40))
    encoder = encoding.Encoder(training(), encoding.Limits(9), str)
    weights = np.arange(1.0, 41.0)
    chunks = list(encoder.chunks(data, weights))
    assert [chunk.counts["rows"] for chunk in chunks] == [32, 8]
    assert [*chunks[0].weights, *chunks[1].weights] == weights.tolist(), "each row has its own"
    with pytest.raises(ValueError, match="`weights` must contain a number .* Received: 39 for 40."):
        list(encoder.chunks(data, weights[:39]))


def test_silence_is_stored_up_to_the_maximum():
    kind = training(pad_to_max_seconds=True)
    (batch,) = corpus([(samples(133), "a cat")], kind).batches(1000)
    frames = LogMel(**kind.config.input.features)(np.pad(samples(133), (0, 267))[None])
    np.testing.assert_allclose(batch[0]["source"], frames, atol=1e-3)  # stored with 16 bits


@pytest.mark.slow
def test_masks_depend_on_seed_and_epoch_and_keep_padding():
    rows = [(samples(length, length), TEXTS[0]) for length in (400, 133)]
    settings = {"time_masks": 2, "max_time_mask": 9, "frequency_masks": 1, "max_frequency_mask": 3}
    masked = corpus(rows, **settings)

    def frames(**options):
        ((inputs, _),) = masked.batches(1000, shuffle=True, **options)
        return np.sort(inputs["source"].numpy(), axis=0)

    first = frames(epoch=1)
    np.testing.assert_array_equal(first, frames(epoch=1))
    assert np.abs(first - frames(epoch=2)).max() > 0.01
    ((plain, _),) = masked.batches(1000)
    real = (plain["source"].numpy() != 0).any(axis=2).sum()
    assert (first != 0).any(axis=2).sum() == real == 50 + 16


def test_masks_leave_the_silence_after_a_recording():
    """Masks of a fifth of 30 seconds would hide short recordings, and most would hide silence."""
    kind = training(pad_to_max_seconds=True)
    rows = [(samples(133, seed), TEXTS[0]) for seed in range(40)]
    settings = {"max_time_mask": 50, "frequency_masks": 0, "max_frequency_mask": 1}
    data = corpus(rows, kind, time_masks=1, **settings)
    ((plain, _),) = data.batches(10_000)
    ((masked, _),) = data.batches(10_000, shuffle=True, epoch=1)
    changes = []
    for frames in masked["source"].numpy():  # in another order
        like = min(plain["source"].numpy(), key=lambda one: np.abs(one - frames).sum())
        changes.append((frames != like).any(axis=1))
    assert not np.any(changes, axis=0)[18:].any()  # the window of frame 17 begins before the end
    assert max(map(np.sum, changes)) == 3


def test_identity_has_what_the_frames_depend_on():
    plain = training().identity()
    for changes in (
        *({"hop_length": 10}, {"pad_to_max_seconds": True}, {"num_mel_filters": 7}),
        {"max_seconds": 0.3},  # longer recordings are left out
    ):
        assert training(**changes).identity() != plain
    assert training(conv_stride=3).identity() == plain


def test_a_vocabulary_needs_no_recordings():
    def read(split):
        raise AssertionError("recordings are read")

    source = Recordings({"train": 2}, "x", 8000, read, {}, lambda split: ["a", "b"])
    rows = [(len(audio), text) for audio, text in source.text_rows("train").as_numpy_iterator()]
    assert rows == [(0, b"a"), (0, b"b")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("speech")
    (path / "config.toml").write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def finished(folder):
    figures, _ = run_quietly(load_settings(folder / "config.toml"), folder / "run")
    return folder / "run", figures


@pytest.mark.long
@pytest.mark.slow
def test_a_run_transcribes_evaluates_and_resumes(finished, folder, tmp_path):
    pytest.importorskip("jiwer")
    path, figures = finished
    assert {*figures["validation"]} == {"loss", "perplexity", "token_accuracy"}
    press = At(4, lambda: os.kill(os.getpid(), signal.SIGINT))
    settings = load_settings(folder / "config.toml")
    run_quietly(settings, tmp_path / "run", [press])
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Resuming after update 4 of 6." in shown
    assert_same_end(tmp_path / "run", finished)
    run = SpeechRecognizer.from_run(path)
    assert run.sample_rate == 4000, "which the data determine"
    results = json.loads(CliRunner().invoke(cli, ["evaluate", str(path)]).stdout)
    assert results["recordings"] == 10 and results["cer"] > 0 and results["real_time_factor"] > 0
    assert Run(path).read_metrics()["wer"] == results["wer"]


@pytest.mark.long
@pytest.mark.slow
def test_validation_has_error_rates_and_a_list_of_files_is_evaluated(folder, tmp_path):
    pytest.importorskip("jiwer")
    overrides = ["training.validate_sentences=5", 'training.best_by="cer"', "training.updates=3"]
    figures, _ = run_quietly(load_settings(folder / "config.toml", overrides), tmp_path / "run")
    assert figures["validation"]["cer"] > 0 and figures["validation"]["wer"] > 0
    sound = samples(8000)
    (tmp_path / "a.wav").write_bytes(encode_wav(sound, 8000))
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'a.wav'}\n")
    (tmp_path / "texts.txt").write_text("SOS\n")
    arguments = ["--source", str(tmp_path / "list.txt"), "--reference", str(tmp_path / "texts.txt")]
    done = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "run"), *arguments])
    assert json.loads(done.stdout)["audio_seconds"] == 1.0, done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_validation_measures_the_best_path_of_a_run_with_ctc(finished, folder, tmp_path):
    pytest.importorskip("jiwer")
    overrides = ["training.ctc_weight=0.3", "training.validate_sentences=5"]
    overrides += ['training.best_by="ctc_cer"', "training.updates=3"]
    settings = load_settings(folder / "config.toml", overrides)
    figures, shown = run_quietly(settings, tmp_path / "run")
    measured = figures["validation"]
    assert f"ctc_cer {measured['ctc_cer']:.4g}" in shown
    columns = read_columns(open_source(settings.data, TASK.columns), TASK, "validation", 5)
    recognizer = SpeechRecognizer.from_run(tmp_path / "run")
    for begin, search in {"": Greedy(), "ctc_": BestPath()}.items():
        expected = TASK.measure(recognizer.with_search(search), *columns)
        assert expected == {name: measured[f"{begin}{name}"] for name in expected}
    runs = tmp_path / "run", finished[0]
    headers = [(run / "history.csv").read_text().splitlines()[0] for run in runs]
    assert headers[0].endswith(",validation/cer,validation/ctc_wer,validation/ctc_cer")
    assert headers[1].endswith(",validation/cer")
    drawn = ["plot", "curves", *map(str, runs), "--output", str(tmp_path / "curves.png")]
    done = CliRunner().invoke(cli, drawn)
    assert done.exit_code == 0, done.stderr


def test_outputs_with_a_prompt_have_no_best_path():
    settings = types.SimpleNamespace(training=types.SimpleNamespace(ctc_weight=0.3))
    assert [*TASK.validated(speech_recognizer(), settings)] == ["", "ctc_"]
    assert [*TASK.validated(speech_recognizer(prompt_ids=(7, 9)), settings)] == [""]
    settings.training.ctc_weight = 0.0
    assert [*TASK.validated(speech_recognizer(), settings)] == [""]
    validator = types.SimpleNamespace(of_answers=["wer", "cer"])
    Validator._check_best(validator, "cer", TASK.metrics)
    with pytest.raises(ValueError, match=r"answers that the model has, one of wer, cer\. Received"):
        Validator._check_best(validator, "ctc_cer", TASK.metrics)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('training.best_by="ctc_cer"', "needs `training.ctc_weight` and `training.validate_sent"),
        ("training.simcut=1.0", "`training.simcut` has no effect on speech_recognition"),
        ("training.subword_sampling=0.1", "`training.subword_sampling` has no effect"),
        ("data.max_length=31", "`data.max_length` must not exceed `model.max_length`"),
        ("model.hop_length=200", "`window_length` must be even and at least `hop_length`"),
        ("model.sample_rate=8000", "sample_rate"),
        ('model.vectors="x.vec"', "`model.vectors` has no effect on speech_recognition"),
        ("vocabulary.shared=false", "needs a source and a target"),
    ],
)
def test_settings_without_effect(folder, override, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(folder / "config.toml", [override])


def test_other_kinds_of_data_are_refused(folder):
    text = CONFIG[: CONFIG.index("[data]")] + '[data]\nsource = "cldr"\n'
    (folder / "cldr.toml").write_text(text)
    with pytest.raises(SettingsError, match='needs audio and text, `data.source = "speech_files"`'):
        load_settings(folder / "cldr.toml")


@pytest.mark.parametrize("name", ["marian", "ctranslate2"])
def test_formats_for_texts_refuse_it(name):
    with pytest.raises(ExportError, match=f"no export to {name} of a model for speech_recogn"):
        FORMATS[name].options_of(speech_recognizer())
