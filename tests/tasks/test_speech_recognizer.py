"""A recognizer of speech in use: the search over its own frames, windows, and bad recordings."""

import functools
import io
import pathlib
import shutil
import types
import weakref

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from documents import ROOT, unrun_examples
from pipelines import speech_recognizer, tokenizer, write_run
from searching import by_greedy

from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.cli.sound_stream import transcribe_stream
from keras_transformer.decoding import Sample, SearchOptions
from keras_transformer.pipelines import SpeechRecognizer, Transcript
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.speech_recognition import long_recordings, reading
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.transcript import read_transcripts

TASK = TASKS["speech_recognition"]
RATE = 1000


def recording(length, seed=0):
    rng = np.random.default_rng(seed)
    pitch = rng.uniform(20, 300)
    sound = np.sin(2 * np.pi * pitch * np.arange(length) / RATE) + 0.1 * rng.normal(size=length)
    return (0.4 * sound).astype("float32")


RECORDINGS = [recording(length, seed) for seed, length in enumerate((400, 133, 8, 250, 377))]


@functools.cache
def expected(pipeline, number, search=Greedy()):
    """The search over the frames of one recording, without the pipeline's graph."""
    samples = RECORDINGS[number]
    config = pipeline.model.config
    frames = LogMel(**config.input.features)(samples[None])
    found = search(pipeline.model, frames, SearchOptions(cache_length=config.max_length))
    ids = np.asarray(found.tokens)[0, 0]
    text = tokenizer().decode([ids[len(config.head.rules.prompt_ids) :]]).numpy()[0].decode()
    return text, float(found.scores[0, 0])


def numbered(monkeypatch, pipeline):
    """Replaces the model: the words of a window are the numbers of its blocks of 10 samples."""

    def transcribe(rows, choices):
        firsts = [round(float(row[0]) * 1000) for row in rows]
        words = [
            range(-(-first // 10), (first + len(row)) // 10)
            for first, row in zip(firsts, rows, strict=True)
        ]
        return [Transcript(" ".join(map(str, spoken)), -1.0, len(spoken)) for spoken in words]

    monkeypatch.setattr(pipeline, "_of_batch", transcribe)


def test_a_transcript_is_the_search_over_the_frames_of_the_recording(batch_size=64):
    pipeline = speech_recognizer()
    results = pipeline.transcribe(RECORDINGS, batch_size)
    assert len({result.text for result in results}) > 1, "or the tests here could not fail"
    for number, result in enumerate(results):
        text, score = expected(pipeline, number)
        assert isinstance(result, Transcript) and not result.truncated
        assert result.text == result.transcript == text
        assert result.score == pytest.approx(score, abs=1e-4)
    assert pipeline(RECORDINGS) == [result.text for result in results]
    assert pipeline([]) == []


@pytest.mark.parametrize(
    "search",
    [pytest.param(Beam(3, length_penalty=0.6), marks=pytest.mark.slow), Greedy(max_length=4)],
)
def test_other_searches(search):
    pipeline = speech_recognizer().with_search(search)
    for number, result in enumerate(pipeline.transcribe(RECORDINGS[:2])):
        text, score = expected(pipeline, number, search)
        assert (result.text, result.score) == (text, pytest.approx(score, abs=1e-4))


@pytest.mark.slow
def test_a_prompt_is_not_part_of_the_text():
    pipeline = speech_recognizer(prompt_ids=(7, 9))
    (result,) = pipeline.transcribe(RECORDINGS[:1])
    assert result.text == expected(pipeline, 0)[0]
    prompt = tokenizer().decode([[7, 9]]).numpy()[0].decode()
    assert prompt


def test_a_prompt_leaves_tokens_for_a_text():
    pipeline = speech_recognizer(prompt_ids=(7, 9))
    SpeechRecognizer(pipeline.model, pipeline.tokenizers, 3)
    with pytest.raises(ValueError, match="`max_length` must be above 2, the number of tokens of"):
        SpeechRecognizer(pipeline.model, pipeline.tokenizers, 2)


def test_the_limit_of_a_search_counts_the_tokens_after_the_prompt():
    model = speech_recognizer(prompt_ids=(7, 9)).model
    frames = LogMel(**model.config.input.features)(RECORDINGS[0][None])
    whole = Greedy()(model, frames).tokens[0, 0]
    for limited in (Greedy(1), Beam(1, max_length=1, extra_length=None)):
        tokens = limited(model, frames).tokens[0, 0]
        np.testing.assert_array_equal(tokens[:3], whole[:3])
        assert not np.any(tokens[3:])
    assert np.any(whole[3:])


@pytest.mark.slow
def test_silence_up_to_the_maximum_in_place_of_a_mask():
    pipeline = speech_recognizer(pad_to_max_seconds=True)
    short = RECORDINGS[1]
    silent = np.pad(short, (0, 400 - len(short)))
    (result, same) = pipeline.transcribe([short, silent])
    assert result.text == same.text and result.score == pytest.approx(same.score, abs=1e-4)
    frames = LogMel(**pipeline.model.config.input.features)(silent[None])
    tokens, _ = by_greedy(pipeline.model, frames, 11)
    assert result.text == tokenizer().decode(tokens).numpy()[0].decode()


def test_files_bytes_and_arrays_are_the_same_recording(tmp_path):
    pipeline = speech_recognizer()
    samples = np.round(RECORDINGS[0] * 32768).astype("int16")
    content = encode_wav(samples / 32768, RATE)
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    texts = pipeline([samples, content, path, str(path), samples / np.float32(32768)])
    assert len(set(texts)) == 1
    graph = pipeline.signatures()[0].strict(**pipeline.codec.request([path, content]))
    assert [text.decode() for text in graph["transcript"].numpy()] == texts[:2]
    assert not graph["truncated"].numpy().any()


def test_another_sample_rate_is_converted():
    pipeline, samples = speech_recognizer(), RECORDINGS[0]
    twice = np.repeat(samples, 2)
    assert pipeline.codec.read(encode_wav(twice, 2 * RATE), "x").shape == samples.shape


def test_a_long_recording_is_read_in_overlapping_windows(monkeypatch):
    """Words are replaced by sample numbers, so that seams are seen."""
    pipeline = speech_recognizer()
    long = np.arange(1000, dtype=np.float32) / 1000
    numbered(monkeypatch, pipeline)
    windows = pipeline._long_recordings.windows(long)
    assert len(windows) > 3 and max(map(len, windows)) == 400
    results = pipeline.transcribe([long, long[:400]])
    assert results[0].text.split() == [str(number) for number in range(100)]
    assert results[1].text.split() == [str(number) for number in range(40)]


def test_batches_are_limited_in_seconds(monkeypatch):
    pipeline = speech_recognizer()
    before = pipeline(RECORDINGS)
    monkeypatch.setattr(long_recordings, "BATCH_SECONDS", 0.5)
    assert pipeline(RECORDINGS) == before


@pytest.mark.parametrize(("padded", "sizes"), [(False, [5, 15]), (True, [5, 5, 5, 5])])
def test_a_batch_has_two_minutes_of_sound_with_padding(padded, sizes, monkeypatch):
    pipeline = speech_recognizer(pad_to_max_seconds=padded)
    seconds = pipeline.codec.longest / pipeline.sample_rate
    monkeypatch.setattr(long_recordings, "BATCH_SECONDS", 5 * seconds)
    batches, transcribe = [], pipeline._of_batch

    def counted(rows, choices):
        batches.append(len(rows))
        return transcribe(rows, choices)

    monkeypatch.setattr(pipeline, "_of_batch", counted)
    short, long = pipeline.codec.longest // 3, pipeline.codec.longest
    pipeline([RECORDINGS[0][:short]] * 15 + [np.resize(RECORDINGS[0], long)] * 5)
    assert batches == sizes


def test_recordings_are_held_in_memory_for_a_limited_time(monkeypatch):
    """As many as fit, in order; an error comes before anything is computed."""
    pipeline, held, computed = speech_recognizer(), [], []
    expected = pipeline(RECORDINGS)
    codec, long = pipeline.codec, pipeline._long_recordings

    def read(recording, name):
        held.append(name)
        return codec.read(recording, name)

    groups = [*reading.in_groups(RECORDINGS, read, 500)]
    assert [len(group) for group in groups] == [1, 3, 1]  # 400; 133, 8 and 250; 377 samples
    assert held == [f"recording {number}" for number in (1, 2, 3, 4, 5, 2, 3, 4, 5)]
    held.clear()
    assert [len(group) for group in reading.in_groups(RECORDINGS, read, 5000)] == [5]
    assert len(held) == 5 and [*reading.in_groups([], read, 500)] == []
    monkeypatch.setattr(reading, "HELD_SECONDS", 0.2)
    assert pipeline(RECORDINGS) == expected
    monkeypatch.setattr(type(long), "__call__", lambda *arguments: computed.append(1))
    with pytest.raises(ValueError, match="recording 6: samples must be finite"):
        pipeline([*RECORDINGS, np.full(9, np.nan)])
    assert not computed


def test_rows_that_break_the_rules_have_no_output():
    pipeline = speech_recognizer()
    inputs, _ = pipeline.codec.tensors([RECORDINGS[1]] * 6)
    samples = inputs["samples"].numpy()
    samples[[1, 4, 5], 3] = np.nan, 20_000, -np.inf
    lengths = np.array([133, 133, 7, 134, 133, 133], "int32")
    signature = pipeline.signatures()[1]
    outputs = signature.lenient(samples=samples, lengths=lengths)
    alone = signature.lenient(samples=samples[:1], lengths=lengths[:1])
    np.testing.assert_array_equal(outputs["tokens"][:1], alone["tokens"])
    assert (np.asarray(outputs["tokens"])[1:] == 0).all()
    assert list(np.asarray(outputs["length"])[1:]) == [0] * 5
    for row in (1, 4, 5):
        message = "`samples` must be from -1 to 1; divide integers of 16 bits by 32768"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            signature.strict(samples=samples[[0, row]], lengths=lengths[[0, row]])


@pytest.mark.slow
def test_samples_after_the_end_are_ignored_whatever_they_are():
    pipeline = speech_recognizer()
    inputs, _ = pipeline.codec.tensors([RECORDINGS[0], RECORDINGS[1]])
    samples = inputs["samples"].numpy()
    samples[1, len(RECORDINGS[1]) :] = np.nan
    signature = pipeline.signatures()[1]
    expected = signature.strict(**inputs)
    for call in (signature.strict, signature.lenient):
        outputs = call(samples=tf.constant(samples), lengths=inputs["lengths"])
        np.testing.assert_array_equal(outputs["tokens"], expected["tokens"])
        np.testing.assert_allclose(outputs["score"], expected["score"], atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (7, TypeError, "`recordings` must be a list of recordings. Received: 7"),
        ([np.zeros(9, "int32")], TypeError, "recording 1: samples must be floating"),
        (
            [RECORDINGS[0], np.zeros((9, 2), "float32")],
            ValueError,
            "recording 2: samples must have",
        ),
        ([np.full(9, np.nan, "float32")], ValueError, "recording 1: samples must be finite"),
        ([np.full(9, 99.0)], ValueError, "recording 1: samples must be from -1 to 1; .*: 99"),
        ([np.zeros(7, "float32")], ValueError, "recording 1: must have at least 8 samples"),
        ([b"RIFF"], ValueError, "recording 1: is not a WAV file"),
        (["nowhere.wav"], ValueError, "nowhere.wav: cannot be read: No such file"),
    ],
)
def test_wrong_recordings(wrong, error, message):
    with pytest.raises(error, match=message):
        speech_recognizer()(wrong)


def test_requests_are_files():
    with pytest.raises(TypeError, match="`recordings` must be paths or the bytes of WAV files"):
        speech_recognizer().codec.request([RECORDINGS[0]])
    with pytest.raises(TypeError, match="must be a `Greedy`"):
        speech_recognizer().with_search(Sample())


def test_exports_are_checked_with_recordings_that_they_read(tmp_path):
    """They neither convert files nor divide long recordings into windows."""
    pipeline, path = speech_recognizer(), tmp_path / "a.wav"
    path.write_bytes(encode_wav(RECORDINGS[0], RATE))
    long, fast = np.tile(RECORDINGS[0], 3), encode_wav(RECORDINGS[1], 2 * RATE)
    kept, *changed = pipeline.check_samples([path, long, encode_wav(long, RATE), fast])
    assert kept is path
    assert changed[:2] == [path.read_bytes()] * 2
    assert pipeline.codec.read(changed[2], "x") == pytest.approx(
        pipeline.codec.read(fast, "x"), abs=1e-4
    )
    assert not any(pipeline.codec.encode(**pipeline.codec.request(changed))[1]["truncated"])


def test_evaluation_counts_errors_and_time(monkeypatch):
    pytest.importorskip("jiwer")
    pipeline = speech_recognizer()
    texts = pipeline(RECORDINGS)
    ticks = iter([100.0, 102.5])
    clock = types.SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("keras_transformer.tasks.speech_recognition.task.time", clock)
    results = TASK.evaluate(pipeline, [RECORDINGS, [f"{text} more" for text in texts]])
    words = sum(len(text.split()) for text in texts)
    assert results["wer"] == pytest.approx(len(texts) / (words + len(texts)))
    assert results["audio_seconds"] == pytest.approx(sum(map(len, RECORDINGS)) / RATE, abs=1e-3)
    audio = sum(map(len, RECORDINGS)) / RATE
    assert results["seconds"] == 2.5
    assert results["real_time_factor"] == pytest.approx(2.5 / audio, abs=1e-4)
    assert results["recordings"] == 5 and results["search"] == "greedy"
    flags, numbers = [result.complete for result in pipeline.transcribe(RECORDINGS)], []
    ticks = iter([100.0, 102.5])
    results = TASK.evaluate(pipeline, [RECORDINGS, texts], report_incomplete=numbers.append)
    assert numbers == [number for number, flag in enumerate(flags, start=1) if not flag]
    assert results["incomplete"] == len(numbers)


def test_evaluation_holds_recordings_in_memory_for_a_limited_time(monkeypatch, tmp_path):
    pytest.importorskip("jiwer")
    pipeline, held, most = speech_recognizer(), [0], [0]
    paths = [tmp_path / f"{number}.wav" for number in range(len(RECORDINGS))]
    for path, samples in zip(paths, RECORDINGS, strict=True):
        path.write_bytes(encode_wav(samples, RATE))
    references = [f"{text} more" for text in pipeline(paths)]
    timed = {"seconds": None, "real_time_factor": None}
    expected = {**TASK.evaluate(pipeline, [paths, references]), **timed}
    read = pipeline.codec.read

    def release(length):
        held[0] -= length

    def counted(recording, name):
        samples = read(recording, name)
        if isinstance(recording, pathlib.Path):
            most[0] = max(most[0], held[0])
            held[0] += len(samples)
            weakref.finalize(samples, release, len(samples))
        return samples

    monkeypatch.setattr(pipeline.codec, "read", counted)
    monkeypatch.setattr(reading, "HELD_SECONDS", 0.4)  # of 1.168
    assert {**TASK.evaluate(pipeline, [paths, references]), **timed} == expected
    assert 400 <= most[0] < 700 and held == [0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(speech_recognizer(), tmp_path_factory.mktemp("run") / "run")


@pytest.mark.slow
def test_the_example_of_the_docstring_runs(run, tmp_path, monkeypatch):
    shutil.copytree(run, tmp_path / "runs" / "morse_demo")
    (tmp_path / "message.wav").write_bytes(encode_wav(RECORDINGS[0], RATE))
    monkeypatch.chdir(tmp_path)
    path = ROOT / "keras_transformer" / "tasks" / "speech_recognition" / "pipeline.py"
    ((name, code),) = unrun_examples(path)
    assert name == "SpeechRecognizer" and "runs/morse_demo" in code
    exec(compile(code, str(path), "exec"), {})


@pytest.mark.long
@pytest.mark.slow
def test_predict_reads_files_on_the_command_line_and_on_stdin(run, tmp_path):
    paths = [tmp_path / f"{number}.wav" for number in range(2)]
    for path, samples in zip(paths, RECORDINGS, strict=False):
        path.write_bytes(encode_wav(samples, RATE))
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    texts = open_run(run)(paths)
    named = CliRunner().invoke(cli, ["predict", str(run), *map(str, paths)])
    assert named.exit_code == 0 and named.stdout.splitlines() == texts
    lines = f"{paths[0]}\n{tmp_path / 'bad.wav'}\n{paths[1]}\n".encode()
    done = CliRunner().invoke(cli, ["predict", str(run)], input=lines)
    assert done.stdout.splitlines() == [texts[0], "", texts[1]]
    assert "line 2: " in done.stderr and "bad.wav: is not a WAV file" in done.stderr
    beam = CliRunner().invoke(cli, ["predict", str(run), str(paths[0]), "--beam", "3"])
    expected = SpeechRecognizer.from_run(run).with_search(Beam(3))(paths[:1])
    assert beam.exit_code == 0 and beam.stdout.splitlines() == expected


@pytest.mark.parametrize(("length", "step"), [(1000, 1), (1000, 170), (930, 930), (400, 7), (7, 2)])
def test_a_stream_has_the_words_of_the_whole_recording(monkeypatch, length, step):
    pipeline = speech_recognizer()
    numbered(monkeypatch, pipeline)
    recording, stream, words = np.arange(length, dtype=np.float32) / 1000, pipeline.stream(), []
    for begin in range(0, length, step):
        added = stream.add(recording[begin : begin + step])
        before = min(begin + step, length) - 400  # a window comes before a word is final
        assert not added or int(added[-1]) * 10 < max(0, before)
        words += added
    assert "".join([*words, *stream.finish()]).split() == [
        str(number) for number in range(length // 10)
    ]
    assert stream.finish() == []


def test_a_stream_takes_integers_of_16_bits():
    samples = np.round(np.tile(RECORDINGS[0], 2) * 32768).astype("int16")
    words = []
    for kind in (samples, samples.astype("float32") / 32768):
        stream = speech_recognizer().stream()
        words.append([*stream.add(kind), *stream.finish()])
    assert words[0] == words[1]
    with pytest.raises(ValueError, match="the recording: samples must be from -1 to 1"):
        stream.add(samples.astype("float32"))


@pytest.mark.slow
def test_predict_reads_raw_samples_from_stdin(run):
    samples = np.round(np.tile(RECORDINGS[0], 3)[:1100] * 32768).astype("<i2")
    pipeline, words = open_run(run), []
    stream = pipeline.stream()
    words = [*stream.add(samples.astype(np.float32) / 32768), *stream.finish()]
    data = samples.tobytes() + b"x"
    done = CliRunner().invoke(cli, ["predict", str(run), "--stream"], input=data)
    assert done.exit_code == 0 and done.stdout == "".join(words).strip() + "\n"
    assert "the last sample has one byte instead of two and is ignored" in done.stderr


@pytest.mark.parametrize("magic", [b"RIFF", b"fLaC", b"OggS", b"ID3\x04"])
def test_a_file_is_not_taken_for_raw_samples(magic):
    """Not even if its first bytes arrive one by one."""
    arriving = io.BytesIO(magic + bytes(3000))
    arriving.read1 = lambda size: arriving.read(1)
    with pytest.raises(
        ValueError, match="but --stream reads raw samples. .* -f s16le -ac 1 -ar 1000 -"
    ):
        transcribe_stream(speech_recognizer(), arriving, io.BytesIO(), None)


@pytest.mark.parametrize("data", [b"", bytes(14), b"RIF"])
def test_a_stream_without_sound_is_reported(data):
    output, warnings = io.BytesIO(), []
    transcribe_stream(speech_recognizer(), io.BytesIO(data), output, warnings.append)
    assert output.getvalue() == b"\n"
    assert warnings[-1] == f"stdin has {len(data) // 2} samples, too few for a transcript"


def test_an_interrupted_stream_ends_with_all_of_its_words(monkeypatch):
    """As after Ctrl-C, which also ends the program that records."""
    samples = np.round(np.tile(RECORDINGS[0], 3)[:1100] * 32768).astype("<i2")
    outputs = []
    for ends in (False, True):
        source, output = io.BytesIO(samples.tobytes()), io.BytesIO()
        read = source.read1

        def interrupted(size, read=read, ends=ends):
            block = read(size)
            if not block and ends:
                raise KeyboardInterrupt(15)
            return block

        source.read1 = interrupted
        if ends:
            with pytest.raises(KeyboardInterrupt, match="15"):
                transcribe_stream(speech_recognizer(), source, output, print)
        else:
            transcribe_stream(speech_recognizer(), source, output, print)
        outputs.append(output.getvalue())
    assert outputs[0] == outputs[1] != b"\n"


def test_an_output_that_reaches_its_limit_is_not_complete():
    """Its text is not the whole one, or the model repeats itself."""
    long = np.tile(RECORDINGS[0], 3)
    for limit in (None, 3):
        pipeline = speech_recognizer().with_search(Greedy(limit))
        windows = [*RECORDINGS, *pipeline._long_recordings.windows(long)]
        tokens = pipeline.predict(**pipeline.codec.tensors(windows)[0])["tokens"].numpy()
        ends = (tokens == pipeline.model.config.tokens.eos_id).any(axis=1).tolist()
        results = pipeline.transcribe([*RECORDINGS, long])
        assert [result.complete for result in results] == [*ends[:5], all(ends[5:])]


@pytest.mark.slow
def test_predict_warns_of_an_output_that_reaches_its_limit(run, tmp_path):
    path, long = tmp_path / "a.wav", np.tile(RECORDINGS[0], 3)
    path.write_bytes(encode_wav(long, RATE))
    options = ["--beam", "2", "--max-output", "1"]
    done = CliRunner().invoke(cli, ["predict", str(run), str(path), *options])
    assert "line 1: an output reached its maximum length: text is missing, or" in done.stderr
    raw = np.round(long * 32768).astype("<i2").tobytes()
    options = ["--stream", *options]
    done = CliRunner().invoke(cli, ["predict", str(run), *options], input=raw)
    assert "Warning: an output reached its maximum length" in done.stderr, done.stderr
    assert "reading 1,000 samples of 16 bits a second" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.png"], "x.png is not an input of the model, which reads files .wav, .flac"),
        (["x.mp3"], "x.mp3 is not an input of the model, which reads files .wav, .flac"),
        (["x.wav", "--n-best", "2"], "--n-best"),
        (["x.wav", "--input", __file__], "has no effect with FILEs after MODEL"),
        (["x.wav", "--stream"], "--stream reads stdin: x.wav has no effect"),
        (["--stream", "--scores"], "has no effect with --stream, which reads one recording"),
    ],
)
def test_options_without_effect(run, arguments, message):
    done = CliRunner().invoke(cli, ["predict", str(run), *arguments])
    assert done.exit_code and message in done.stderr


def test_transcripts_of_an_export_that_does_not_know_complete_are_refused():
    with pytest.raises(ValueError, match="exported by an earlier version. Export it again."):
        read_transcripts({"transcript": [b""], "score": [0], "length": [1], "truncated": [False]})


def test_none_is_the_models_own_threshold():
    recognizer = speech_recognizer(no_speech_id=7)
    changed = recognizer.with_settings(no_speech_threshold=0.2)
    assert changed.codec.silence.no_speech_threshold == 0.2
    own = changed.with_settings(no_speech_threshold=None)
    assert own.codec.silence == recognizer.codec.silence


@pytest.mark.slow
@pytest.mark.parametrize("limit", [8, 9, 10, None])
def test_naming_the_models_own_language_changes_nothing(limit):
    recognizer = speech_recognizer(
        prompt_ids=(4, 6), language_ids=(4, 5), no_speech_id=7
    ).with_search(Greedy(limit))
    (own,) = recognizer.transcribe(RECORDINGS[:1])
    language, _ = recognizer.codec.choices.languages
    (named,) = recognizer.transcribe(RECORDINGS[:1], language=language)
    assert (named.text, named.length) == (own.text, own.length)
    assert own.length == min(recognizer.max_length, 2 + (limit or 99)), "it ends at the limit"
