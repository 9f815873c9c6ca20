"""Silence in Whisper: its probability and the mean log-probability of a text, against NumPy."""

import dataclasses
import io
import zlib

import numpy as np
import pytest
import whisper_folders
from click.testing import CliRunner
from pipelines import speech_recognizer, write_run
from test_whisper import allowed_tokens, frames_of, greedy_in_python, opened
from test_whisper_choices import RATE, recordings, write_varied
from whisper_folders import IDS, LANGUAGES, START, TASKS

from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Ensemble, SearchOptions
from keras_transformer.opening.stream import outcomes
from keras_transformer.pipelines import SpeechRecognizer, Transcript
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.codec import SpeechCodec
from keras_transformer.tasks.speech_recognition.long_recordings import joined
from keras_transformer.tasks.speech_recognition.silence import NUMBERS, Silence
from keras_transformer.tasks.speech_recognition.transcript import Window

END, NO_SPEECH = IDS["<|endoftext|>"], IDS["<|nospeech|>"]


def log_softmax(values):
    return values - np.logaddexp.reduce(values)


def expected(output, frames, tensors, settings, generation, prompt):
    """OpenAI's formulas: probability of no speech, and mean log-probability of what may come."""

    def logits_after(tokens):
        target = np.array([[IDS[START], *tokens]])
        return whisper_folders.forward(tensors, settings, frames[None], target)[1][0, -1]

    total, written = 0.0, output[len(prompt) :]
    for place in range(len(prompt), len(output)):
        logits, before = logits_after(output[:place]), output[:place]
        allowed = sorted(allowed_tokens(before, prompt, generation, logits))
        total += dict(zip(allowed, log_softmax(logits[allowed]), strict=True))[output[place]]
    words = [token for token in written if token != END]
    return np.exp(log_softmax(logits_after([])))[NO_SPEECH], total / (len(words) + 1)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("timestamps", [False, True])
def test_a_search_returns_the_numbers_that_tell_silence(timestamps, tmp_path):
    read, *known = opened(tmp_path, timestamps)
    settings, tensors, generation, prompt = known
    frames, pad = frames_of(settings, 3), read.model.config.tokens.pad_id
    assert read.model.config.head.rules.no_speech_id == NO_SPEECH
    for search in (Greedy(), Beam(3, min_length=1, length_penalty=1.0, normalization="power")):
        found = search(read.model, frames, SearchOptions(cache_length=12, confidence=True))
        outputs = [row[row != pad].tolist() for row in found.tokens[:, 0].numpy()]
        for number, (output, row) in enumerate(zip(outputs, frames, strict=True)):
            numbers = expected(output, row, tensors, settings, generation, prompt)
            ours = found.no_speech[number, 0], found.mean_log_probability[number, 0]
            np.testing.assert_allclose(ours, numbers, rtol=0, atol=1e-5)
        plain = search(read.model, frames, SearchOptions(cache_length=12))
        np.testing.assert_array_equal(plain.tokens, found.tokens)
        assert plain.no_speech is None and plain.mean_log_probability is None
    first = greedy_in_python(tensors, settings, generation, frames[0], prompt)
    greedy = Greedy()(read.model, frames, SearchOptions(cache_length=12)).tokens[0, 0].numpy()
    assert greedy[: len(first)].tolist() == first


@pytest.mark.slow
def test_an_ensemble_has_the_mean_of_the_probabilities(tmp_path):
    read, settings, *_ = opened(tmp_path, False)
    frames, how = frames_of(settings, 2), {"cache_length": 8, "confidence": True}
    both = Greedy()(Ensemble([read.model, read.model]), frames, SearchOptions(**how))
    alone = Greedy()(read.model, frames, SearchOptions(**how))
    np.testing.assert_allclose(both.no_speech, alone.no_speech, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def recognizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf")
    write_varied(folder)
    return SpeechRecognizer.of_checkpoint(read_checkpoint(folder, source_language="de"))


@pytest.mark.slow
@pytest.mark.long
def test_silence_has_no_text(recognizer):
    sounds = [*recordings(2240, 2000, 1800)]
    before = recognizer.transcribe(sounds)
    assert all(result.text for result in before)
    assert all(0 < result.no_speech < 1 and result.windows == () for result in before)
    changed = recognizer.with_settings(compression_ratio_threshold=0.1)
    assert all(result.repeats for result in changed.transcribe(sounds))
    probable, mean = (np.median([getattr(one, name) for one in before]) for name in NUMBERS)
    thresholds = {"no_speech_threshold": float(probable), "log_probability_threshold": float(mean)}
    strict = {"no_speech_threshold": 0.0, "log_probability_threshold": 0.0}
    for changes in (thresholds, strict, {"no_speech_threshold": 1.0}):
        changed = recognizer.with_settings(**changes)
        known = {"no_speech_threshold": 0.6, "log_probability_threshold": -1.0, **changes}
        for one, other in zip(before, changed.transcribe(sounds), strict=True):
            is_silent = one.no_speech > known["no_speech_threshold"]
            is_silent &= one.mean_log_probability < known["log_probability_threshold"]
            assert other.text == ("" if is_silent else one.text)
            numbers = [(each.no_speech, each.mean_log_probability) for each in (one, other)]
            assert numbers[0] == pytest.approx(numbers[1])
    timed = recognizer.with_settings(timestamps=True)
    assert all(result.segments for result in timed.transcribe(sounds))
    assert not any(one.segments for one in timed.with_settings(**strict).transcribe(sounds))


@pytest.mark.slow
def test_a_long_recording_has_the_numbers_of_its_windows(recognizer):
    (sound,) = recordings(5000)
    (result,) = recognizer.with_settings(windows="overlap").transcribe([sound])
    assert len(result.windows) > 2
    assert (result.windows[0].start, result.windows[-1].end) == (0, 5000 / RATE)
    for window in result.windows:
        begin, end = (round(RATE * time) for time in (window.start, window.end))
        (alone,) = recognizer.transcribe([sound[begin:end]])
        assert window.text == alone.text
        assert window.no_speech == pytest.approx(alone.no_speech, abs=1e-5)
        assert window.mean_log_probability == pytest.approx(alone.mean_log_probability, abs=1e-4)
    assert result.no_speech == min(window.no_speech for window in result.windows)
    means = [window.mean_log_probability for window in result.windows]
    assert min(means) <= result.mean_log_probability <= max(means)


def always(result):
    return lambda *_: [[result]]


def test_a_text_that_repeats_itself_is_reported():
    text = "and so on " * 30
    content = text.encode()
    looped = Transcript(text, -1.0, 90)
    assert looped.compression_ratio == len(content) / len(zlib.compress(content)) > 2.4
    assert looped.repeats and not Transcript("A cat runs to the big dog.", -1.0, 9).repeats
    assert not Transcript("", -1.0, 2).repeats
    ratio = looped.compression_ratio
    for threshold in (ratio - 0.1, ratio + 0.1):
        changed = Transcript(text, -1.0, 90, compression_ratio_threshold=threshold)
        assert changed.repeats == (threshold < ratio)
    windows = Window(0.0, 1.0, "a cat"), Window(1.0, 2.0, text)
    assert Transcript("a cat", -1.0, 9, windows=windows).repeats
    warnings = []
    for result in (looped, Transcript("a cat", -1.0, 4)):
        [*outcomes(always(result), io.BytesIO(b"a.wav\n"), warnings.append)]
    assert len(warnings) == 1 and warnings[0].startswith("line 1: the text repeats itself")
    assert warnings[0].endswith(f"its compression ratio is {ratio:.1f}, above 2.4")


def test_transcripts_know_the_threshold_of_repetition():
    """Transcripts of a codec, of the metadata of a SavedModel and of a long recording know it."""
    answers = {"transcript": [b"ab" * 9], "score": [-1.0], "length": [9], "truncated": [False]}
    answers["complete"] = [True]
    speech = speech_recognizer().codec
    codec = SpeechCodec.of(
        speech.speech, speech.tokenizers, 9, None, Silence(compression_ratio_threshold=1.5)
    )
    loaded = SpeechCodec.of_lines(codec.line_metadata())
    file = SpeechCodec.from_metadata(codec.metadata(), speech.tokenizers)
    assert SpeechCodec.of_lines({}) is SpeechCodec and speech.line_metadata() == {}
    changed = codec.changed(compression_ratio_threshold=1.7)
    for kind, expected in ((speech, 2.4), (codec, 1.5), (loaded, 1.5), (file, 1.5), (changed, 1.7)):
        (result,) = kind.results(answers)
        assert result.compression_ratio_threshold == expected
        whole = joined([result, result], [(0.0, 1.0), (0.5, 1.5)])
        assert whole.compression_ratio_threshold == expected
    with pytest.raises(ValueError, match="`repeated` must be above 0 and finite. Received: repea"):
        SpeechCodec.of_lines({"repeated": 0})
    with pytest.raises(ValueError, match="`compression_ratio_threshold` must be above 0 and finit"):
        codec.changed(compression_ratio_threshold=0.0)


@pytest.mark.parametrize(
    ("given", "thresholds"),
    [
        pytest.param({}, (0.6, -1.0), marks=pytest.mark.slow),
        pytest.param(
            {"no_speech_threshold": 0.3, "logprob_threshold": -0.5},
            (0.3, -0.5),
            marks=pytest.mark.slow,
        ),
        ({"no_speech_threshold": None, "logprob_threshold": 0.5}, (0.6, 0.5)),
        ({"compression_ratio_threshold": 1.35}, (0.6, -1.0, 1.35)),
    ],
)
def test_thresholds_of_a_checkpoint(given, thresholds, tmp_path):
    whisper_folders.write_folder(tmp_path, given)
    read = read_checkpoint(tmp_path)
    assert read.model.config.head.rules.no_speech_id == NO_SPEECH
    found = Silence.of(read.model.config)
    assert dataclasses.astuple(found)[: len(thresholds)] == thresholds


def test_errors_of_thresholds(recognizer, tmp_path):
    whisper_folders.write_folder(tmp_path, {"no_speech_threshold": 2})
    with pytest.raises(
        ValueError, match="`no_speech_threshold` must be a probability, from 0 to 1"
    ):
        read_checkpoint(tmp_path)
    whisper_folders.write_folder(tmp_path, {"compression_ratio_threshold": 0})
    with pytest.raises(ValueError, match="`compression_ratio_threshold` must be positive"):
        read_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="`no_speech_threshold` must be from 0 to 1. Received"):
        recognizer.with_settings(no_speech_threshold=1.5)
    with pytest.raises(ValueError, match="`log_probability_threshold` must be finite. Received"):
        recognizer.with_settings(log_probability_threshold=float("nan"))
    plain = speech_recognizer()
    assert plain.settings == ("voice_activity",) and plain.codec.silence is None
    with pytest.raises(ValueError, match="`no_speech_threshold` is not a choice of the model"):
        plain.with_settings(no_speech_threshold=0.5)
    with pytest.raises(
        ValueError, match="must be None for a model that does not compute the proba"
    ):
        type(plain)(plain.model, plain.tokenizers, no_speech_threshold=0.5)
    with pytest.raises(ValueError, match=r"`no_speech_id` must be one of the 30 token ids"):
        dataclasses.replace(plain.model.config, no_speech_id=30)


@pytest.mark.slow
def test_one_graph_serves_all_numbers(recognizer, monkeypatch):
    """Recognisers that differ in a limit, a language, a task or a threshold share a graph.

    The model's own language and task are not inputs of a graph, which is a second one.
    """
    traces, sound = [], [*recordings(1000)]
    predict, prompt = SpeechRecognizer.predict, len(recognizer.model.config.head.rules.prompt_ids)

    def counted(self, *arguments, **named):
        traces.append(named)
        return predict(self, *arguments, **named)

    monkeypatch.setattr(SpeechRecognizer, "predict", counted)
    for number in range(100):
        search = Greedy(max_length=4 + number)
        languages = {"language": LANGUAGES[number % 3], "task": TASKS[number % 2]}
        changed = recognizer.with_search(search)
        changed = changed.with_settings(no_speech_threshold=number / 100, **languages)
        (result,) = changed.transcribe(sound)
        assert result.language == languages["language"]
        assert result.length <= prompt + search.max_length
    assert len(traces) <= 2  # other tests may have traced them


@pytest.mark.slow
@pytest.mark.long
def test_options_of_predict(tmp_path):
    run, (sound,) = tmp_path / "run", recordings(2240)
    write_varied(tmp_path / "hf")
    made = ["convert", "hf", str(tmp_path / "hf"), str(run), "--source-language", "de"]
    assert CliRunner().invoke(cli, made).exit_code == 0
    (tmp_path / "a.wav").write_bytes(encode_wav(sound, RATE))
    lines = []
    for options in ([], ["--no-speech-threshold", "0", "--log-probability-threshold", "0"]):
        result = CliRunner().invoke(cli, ["predict", str(run), str(tmp_path / "a.wav"), *options])
        assert result.exit_code == 0, result.output
        lines.append(result.stdout)
    assert lines[0].strip() and lines[1] == "\n"
    words = ["predict", str(run), str(tmp_path / "a.wav"), "--compression-ratio-threshold", "0.1"]
    assert "the text repeats itself: its compress" in CliRunner().invoke(cli, words).stderr
    plain = write_run(speech_recognizer(), tmp_path / "plain")
    refused = ["predict", str(plain), "--no-speech-threshold", "0.5"]
    result = CliRunner().invoke(cli, refused)
    assert result.exit_code and "--no-speech-threshold has no effect on" in result.stderr
