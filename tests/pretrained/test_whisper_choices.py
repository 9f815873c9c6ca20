"""Language, task and timestamps as choices of a request, against the rules in NumPy."""

import dataclasses
import itertools
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
import whisper_folders
from click.testing import CliRunner
from documents import blocks
from documents import run as run_blocks
from pipelines import speech_recognizer, write_run
from searching import by_beam, by_greedy
from test_whisper import FIRST, frames_of, greedy_in_python, ids
from whisper_folders import GENERATION, IDS, LANGUAGES, START, TASKS

from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Ensemble, Prompted, score
from keras_transformer.decoding.prompts import DETECTED, NO_TOKEN
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.run import Run
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.choices import Choices
from keras_transformer.tasks.speech_recognition.features import frames_of as features_of
from keras_transformer.tasks.speech_recognition.segments import Segment, joined_segments
from keras_transformer.tasks.speech_recognition.subtitles import subrip
from keras_transformer.tasks.speech_recognition.timestamps import read_segments, segments_in

ROWS = [*itertools.product(LANGUAGES, TASKS, [False, True])]
RATE = 16_000
FACTORS = {"q_proj": 3.0, "encoder_attn.out_proj": 8.0, "embed_tokens": 0.5}


def logits_after_start(settings, tensors, frames):
    begin = np.full([len(frames), 1], IDS[START])
    return whisper_folders.forward(tensors, settings, frames, begin)[1][:, 0]


def recordings(*lengths):
    rng = np.random.default_rng(0)
    for length in lengths:
        tone = np.sin(np.arange(length) * rng.uniform(0.02, 1.0))
        yield (0.4 * tone + 0.05 * rng.normal(size=length)).astype("float32")


def sound_frames(settings, count):
    features = LogMel(num_filters=settings["num_mel_bins"])
    return features(np.array([*recordings(*[2240] * count)])).numpy()


def write_varied(folder, generation=None):
    """Writes a checkpoint whose languages and transcripts depend on the recording."""
    settings, tensors = whisper_folders.write_folder(folder, generation)
    for name, values in tensors.items():
        factor = next((factor for key, factor in FACTORS.items() if key in name), 1.0)
        tensors[name] = factor * values
    # Without what all recordings have in common, the most probable language is not always the same.
    table = tensors["model.decoder.embed_tokens.weight"]
    logits = logits_after_start(settings, tensors, sound_frames(settings, 9))
    common = np.linalg.lstsq(table, logits.T, rcond=None)[0].mean(axis=1)
    for row in ids(*LANGUAGES):
        table[row] -= common * (table[row] @ common) / (common @ common)
    path = folder / "model.safetensors"
    safetensors.numpy.save_file({k: v.astype("float32") for k, v in tensors.items()}, path)
    return settings, tensors


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf")
    settings, tensors = write_varied(folder)
    return read_checkpoint(folder), settings, tensors


@pytest.fixture(scope="module")
def pipeline(opened):
    return SpeechRecognizer.of_checkpoint(opened[0])


SOUNDS = [*recordings(2240, 1000, 1700)]


def prompt_of(language, task, timestamps):
    return ids(language, task, *([] if timestamps else ["notimestamps"]))


def prompts(rows):
    """Prompts `[B, 3]`, in which NO_TOKEN follows the shorter ones."""
    table = np.full([len(rows), 3], NO_TOKEN)
    for row, choice in zip(table, rows, strict=True):
        prompt = prompt_of(*choice)
        row[: len(prompt)] = prompt
    return table


def test_every_row_has_its_own_language_task_and_timestamps(opened):
    read, settings, tensors = opened
    frames = frames_of(settings, len(ROWS))
    tokens = by_greedy(read.model, Prompted(frames, prompts(ROWS)), cache_length=12)[0]
    for choice, row, output in zip(ROWS, frames, tokens.numpy(), strict=True):
        rules = {**GENERATION, "return_timestamps": choice[2]}
        expected = greedy_in_python(tensors, settings, rules, row, prompt_of(*choice))
        assert output[: len(expected)].tolist() == expected
        assert (output[len(expected) :] == read.model.config.tokens.pad_id).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [Greedy(3), pytest.param(Beam(1, max_length=3), marks=pytest.mark.slow)],
)
def test_a_limit_leaves_every_prompt_as_many_tokens(search, opened, pipeline):
    """The tokens of the prompt, fewer with timestamps, do not count."""
    _, settings, tensors = opened
    chosen = [("de", "transcribe", False), ("fr", "translate", True), ("en", "transcribe", True)]
    names = ("language", "task", "timestamps")
    columns = {name: [row[n] for row in chosen] for n, name in enumerate(names)}
    for limited in (pipeline, pipeline.with_settings(timestamps=True)):
        limited = limited.with_search(search)
        inputs, _ = limited.codec.tensors(SOUNDS, limited.codec.choices.rows(3, **columns))
        tokens = limited.predict(**inputs)["tokens"].numpy()
        frames = features_of(limited.model.config.input, inputs["samples"], inputs["lengths"])
        for choice, row, output in zip(chosen, frames.numpy(), tokens, strict=True):
            rules = {**GENERATION, "return_timestamps": choice[2]}
            prompt = prompt_of(*choice)
            expected = greedy_in_python(tensors, settings, rules, row, prompt)[: len(prompt) + 3]
            assert output[: len(expected)].tolist() == expected
            assert (output[len(expected) :] == limited.model.config.tokens.pad_id).all()
            assert len(expected) == len(prompt) + 3, "or the limit is not reached"


@pytest.mark.long
@pytest.mark.slow
def test_beams_of_rows_are_those_of_the_row_alone(opened):
    read, settings, _ = opened
    chosen = ROWS[::3]
    frames = frames_of(settings, len(chosen))
    how = {"size": 3, "length_penalty": 1.0, "normalization": "power", "cache_length": 12}
    tokens, scores = by_beam(read.model, Prompted(frames, prompts(chosen)), **how)
    single, _ = by_beam(read.model, Prompted(frames, prompts(chosen)), 1, cache_length=12)
    greedy, _ = by_greedy(read.model, Prompted(frames, prompts(chosen)), cache_length=12)
    np.testing.assert_array_equal(single[:, 0], greedy)
    for choice, row, output, value in zip(chosen, frames, tokens, scores, strict=True):
        prompt = np.array([prompt_of(*choice)])
        alone = by_beam(read.model, Prompted(row[None], prompt), **how)
        np.testing.assert_array_equal(output, alone[0][0])
        total = score(read.model, Prompted(row[None], prompt), output)[1]
        length = np.count_nonzero(output[0] != read.model.config.tokens.pad_id) - prompt.shape[1]
        assert float(value[0]) == pytest.approx(float(alone[1][0, 0]), abs=1e-4)
        assert float(value[0]) == pytest.approx(float(total[0]) / length, abs=1e-4)


@pytest.mark.slow
def test_the_detected_language_is_the_most_probable_one(opened, size=3):
    read, settings, tensors = opened
    frames, languages = sound_frames(settings, 9), np.array(ids(*LANGUAGES))
    logits = logits_after_start(settings, tensors, frames)
    expected = languages[logits[:, languages].argmax(1)]
    assert len({*expected}) > 1, "or the test could not fail"
    chosen = prompts([("en", "translate", False)] * 9)
    detected = np.where(np.arange(3) == 0, DETECTED, chosen)
    known = np.concatenate([expected[:, None], chosen[:, 1:]], axis=1)
    assert read.model.config.head.rules.detect_language

    def search(inputs):
        if size == 1:
            return by_greedy(read.model, inputs, cache_length=6)
        return by_beam(read.model, inputs, size, 2, cache_length=6)

    ours, theirs = (search(Prompted(frames, prompt)) for prompt in (detected, known))
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=1e-4)
    known[:, 1] = ids("transcribe")
    own, same = (search(inputs)[0].numpy() for inputs in (frames, Prompted(frames, known)))
    np.testing.assert_array_equal(own, same)
    own = own.reshape(9, -1, 6)[:, 0]
    of_output = score(read.model, frames, own)[1]
    given = score(read.model, Prompted(frames, known), own)[1]
    np.testing.assert_allclose(of_output, given, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_an_ensemble_detects_the_language_of_the_mean(opened, tmp_path):
    read, settings, tensors = opened
    frames = sound_frames(settings, 9)
    write_varied(tmp_path)
    other = read_checkpoint(tmp_path).model
    other.target_embedding.table.assign(other.target_embedding.table[:, ::-1])
    changed = dict(tensors)
    changed["model.decoder.embed_tokens.weight"] = tensors["model.decoder.embed_tokens.weight"][
        :, ::-1
    ]
    languages = list(ids(*LANGUAGES))
    both = [logits_after_start(settings, one, frames)[:, languages] for one in (tensors, changed)]
    choices = [row.argmax(1) for row in both]
    probabilities = [np.exp(x) / np.exp(x).sum(1, keepdims=True) for x in both]
    expected = np.array(languages)[sum(probabilities).argmax(1)]
    assert (choices[0] != choices[1]).any(), "or the test could not fail"
    for search in (by_greedy, lambda *inputs, **how: by_beam(*inputs, 2, **how)):
        tokens = search(Ensemble([read.model, other]), frames, cache_length=5)[0].numpy()
        np.testing.assert_array_equal(tokens.reshape(9, 5)[:, 0], expected)


def check_same(one, other):
    """Transcripts that are equal but for their scores, whose sums batches round differently."""
    assert one == dataclasses.replace(other, log_probability=one.score)
    assert one.score == pytest.approx(other.score, rel=1e-5, abs=1e-4)


@pytest.mark.slow
def test_recordings_have_choices_of_their_own(pipeline):
    chosen = [("de", "transcribe", True), ("fr", "translate", False), ("en", "transcribe", True)]
    names = ("language", "task", "timestamps")
    columns = {name: [choice[n] for choice in chosen] for n, name in enumerate(names)}
    results = pipeline.transcribe(SOUNDS, **columns)
    assert [result.language for result in results] == columns["language"]
    assert [bool(result.segments) for result in results] == columns["timestamps"]
    other = pipeline.with_settings(language="fr", task="translate")
    (alone,) = other.transcribe(SOUNDS[1:2])
    check_same(alone, results[1])
    assert len({result.text for result in results}) > 1
    texts = [result.text for result in pipeline.transcribe(SOUNDS, language="de")]
    assert pipeline(SOUNDS, language="de") == texts


@pytest.mark.slow
def test_all_windows_of_a_recording_have_the_language_of_the_first(pipeline):
    pipeline = pipeline.with_settings(windows="overlap")
    long = np.concatenate([*recordings(*[2240] * 6)])
    windows = pipeline._long_recordings.windows(long)
    alone = [result.language for result in pipeline.transcribe(windows)]
    assert len({*alone}) > 1, "or the test could not fail"
    (result, short) = pipeline.transcribe([long, SOUNDS[0]])
    assert result.language == alone[0]
    check_same(result, pipeline.transcribe([long], language=alone[0])[0])
    check_same(short, pipeline.transcribe([SOUNDS[0]])[0])
    stream = pipeline.stream()
    words = [*stream.add(long), *stream.finish()]
    german = pipeline.with_settings(language=alone[0]).stream()
    assert words == [*german.add(long), *german.finish()]


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"language": "dutch"}, ValueError, "`language` must be one of the 3 languages of the mod"),
        ({"language": ["de", "x", None]}, ValueError, "such as en, de, fr. Received: 'x'"),
        (
            {"language": "Germn"},
            ValueError,
            r"such as german \(de\), en, de, fr. Received: 'Germn'",
        ),
        ({"language": ["de"]}, ValueError, "`language` must have one value for each recording. "),
        ({"task": "sing"}, ValueError, "`task` must be 'translate' or 'transcribe'. Received: ta"),
        ({"timestamps": 1}, TypeError, "`timestamps` must be a boolean. Received: timestamps=1"),
    ],
)
def test_wrong_choices(choices, error, message, pipeline):
    with pytest.raises(error, match=message):
        pipeline.transcribe(SOUNDS, **choices)


def test_a_language_has_names(pipeline):
    choices = pipeline.codec.choices
    for name in ("de", "DE", "German", " german ", "<|de|>"):
        assert choices.replaced(language=name) == choices.replaced(language="de")
        assert choices.for_languages(name, "German") == {"language": "de", "task": "transcribe"}
    assert choices.replaced(language="Auto").language == "auto"
    assert choices.for_languages(None, "English") == {"task": "translate"}
    rows = choices.rows(3, language=["French", None, "auto"])["language"]
    assert rows.tolist() == [IDS["<|fr|>"], -1, -1]


def test_models_without_choices_refuse_them(tmp_path):
    with pytest.raises(ValueError, match="`language` is not a choice of the model. Received: lang"):
        speech_recognizer().transcribe([], language="de")


@pytest.mark.slow
def test_a_model_of_english_chooses_timestamps_alone(tmp_path):
    whisper_folders.write_folder(tmp_path, {"is_multilingual": False, "forced_decoder_ids": None})
    english = SpeechRecognizer.of_checkpoint(read_checkpoint(tmp_path))
    thresholds = "no_speech_threshold", "log_probability_threshold", "compression_ratio_threshold"
    of_recordings = "windows", "temperatures", "words", "voice_activity"
    assert sorted(english.settings) == sorted(["timestamps", *thresholds, *of_recordings])
    with pytest.raises(ValueError, match="`task` is not a choice of the model"):
        english.with_settings(task="translate")
    (timed,) = english.transcribe(SOUNDS[:1], timestamps=True)
    assert timed.segments and timed.language is None
    assert not english.transcribe(SOUNDS[:1])[0].segments


def test_segments_are_texts_between_timestamps(opened):
    tokenizer = opened[0].tokenizers.target
    dog, a = (tokenizer.tokenize([text]).to_list()[0] for text in (" a dog", "a"))
    times = [FIRST + number for number in (0, 20, 20, 50)]
    end, pad = tokenizer.eos_id, tokenizer.pad_id
    rows = [
        [*ids("de"), times[0], *dog, times[1], times[2], *a, times[3], end],
        [*ids("de"), times[1], *a, end],  # cut, or the end of the recording
        [*ids("de"), *dog, end],
        [times[0], end],
    ]
    table = np.full([4, 14], pad, "int32")
    for to, row in zip(table, rows, strict=True):
        to[: len(row)] = row
    seconds = np.array([1.0, 0.9, 0.1, 0.5], "float32")
    found = segments_in(tf.constant(table), FIRST, 0.02, tf.constant(seconds), tokenizer)
    starts, ends, texts = (value.numpy() for value in found.values())
    np.testing.assert_allclose(starts, [[0, 0.4], [0.4, -1], [-1, -1], [0, -1]], atol=1e-6)
    np.testing.assert_allclose(ends, [[0.4, 1.0], [0.9, -1], [-1, -1], [0.5, -1]], atol=1e-6)
    assert texts.tolist() == [[b"a dog", b"a"], [b"a", b""], [b"", b""], [b"", b""]]


def test_no_segment_is_later_than_the_end_of_the_recording(opened):
    """Whisper pads recordings with silence, and may emit timestamps of the silence."""
    tokenizer = opened[0].tokenizers.target
    (a,) = tokenizer.tokenize(["a"]).to_list()
    times = [FIRST + number for number in (0, 30, 40, 45)]  # 0, 0.6, 0.8 and 0.9 seconds
    rows = [
        [times[0], *a, times[1], times[1], *a, times[2], times[2], times[3]],
        [times[0], *a, times[1], times[2], *a, times[3]],
    ]
    table = np.full([2, 14], tokenizer.pad_id, "int32")
    for to, row in zip(table, rows, strict=True):
        to[: len(row)] = row
    found = segments_in(tf.constant(table), FIRST, 0.02, tf.constant([0.7, 0.5]), tokenizer)
    assert read_segments({name: value.numpy() for name, value in found.items()}) == [
        (Segment(0.0, 0.6, "a"), Segment(0.6, 0.7, "a")),
        (Segment(0.0, 0.5, "a"), Segment(0.5, 0.5, "a")),
    ]


def test_segments_of_windows_are_joined_where_their_words_agree():
    parts = [
        [Segment(0.0, 4.0, "one two three"), Segment(4.0, 9.0, "four five six seven ei")],
        [Segment(0.0, 3.0, "ve six seven eight"), Segment(3.5, 8.0, "nine")],
    ]
    assert joined_segments(parts, [0.0, 5.0]) == (
        Segment(0.0, 4.0, "one two three"),
        Segment(4.0, 6.5, "four five six"),
        Segment(6.5, 8.0, "seven eight"),
        Segment(8.5, 13.0, "nine"),
    )
    assert joined_segments([[], []], [0.0, 5.0]) == ()


def test_joined_segments_keep_the_time_of_silence():
    parts = [
        [Segment(0.0, 4.0, "a b"), Segment(4.0, 9.0, "")],
        [Segment(0.0, 5.0, " "), Segment(6.0, 8.0, "c"), Segment(8.0, 10.0, "")],
        [Segment(0.0, 2.0, ""), Segment(2.5, 3.0, "d"), Segment(3.0, 3.0, "")],
    ]
    assert joined_segments(parts, [0.0, 5.0, 11.0]) == (
        Segment(0.0, 4.0, "a b"),
        Segment(4.0, 9.0, ""),
        Segment(9.0, 10.0, ""),
        Segment(11.0, 13.0, "c"),
        Segment(13.0, 13.5, ""),  # the next window has words from here
        Segment(13.5, 14.0, "d"),
        Segment(14.0, 15.0, ""),
    )
    silence = [[Segment(0.0, 30.0, "")], [Segment(0.0, 28.0, "")]]
    whole = (Segment(0.0, 30.0, ""), Segment(30.0, 53.0, ""))
    assert joined_segments(silence, [0.0, 25.0]) == whole


def test_times_of_joined_segments_never_decrease():
    """One window hears a long segment, the other short ones, or other times for a word."""
    one, many = "a b c d e f g h i j k l", ["a b c", "d e f", "g h i", "j k l m"]
    rng = np.random.default_rng(0)
    cases = [np.array([0, 13, 13, 19, 19, 24, 25, 29])]  # in the 30 seconds of the first window
    cases += [np.sort(rng.integers(0, 31, 8)) for _ in range(50)]
    for times in cases:
        right = [Segment(*pair, text) for pair, text in zip(times.reshape(4, 2), many, strict=True)]
        for begin in (1, 5, 25):
            joined = joined_segments([[Segment(0.0, 30.0, one)], right], [0, begin])
            assert " ".join(segment.text for segment in joined) == f"{one} m"
            ends = [time for segment in joined for time in (segment.start, segment.end)]
            assert ends == sorted(ends), (times, begin)
    late = [Segment(0.0, 10.0, "a b c"), Segment(28.0, 30.0, "d e f")]
    joined = joined_segments([late, [Segment(0.0, 1.0, "d e f g")]], [0, 20])
    assert joined[1:] == (Segment(28.0, 28.0, "d"), Segment(28.0, 28.0, "e f g"))


@pytest.mark.slow
def test_numbers_outside_of_the_choices_are_invalid_rows(pipeline):
    sounds, codec = [SOUNDS[0]] * 4, pipeline.codec
    inputs, _ = codec.tensors(sounds, codec.choices.rows(4, language="fr"))
    wrong = {
        "language": np.array([IDS["<|fr|>"], 5, -1, IDS["<|fr|>"]], "int32"),
        "task": np.array([IDS["<|transcribe|>"]] * 3 + [IDS["<|fr|>"]], "int32"),
        "timestamps": np.array([0, 0, 2, 0], "int32"),
    }
    of_samples = pipeline.signatures()[1]
    outputs = of_samples.lenient(**{**inputs, **wrong})
    expected = of_samples.strict(**inputs)["tokens"][0]
    np.testing.assert_array_equal(outputs["tokens"][0], expected)
    assert outputs["length"].numpy()[1:].tolist() == [0, 0, 0]
    for name, message in (
        ("language", "`language` must be the id of a language, or -1"),
        ("task", "`task` must be the id of a task"),
        ("timestamps", "`timestamps` must be 0 or 1"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            of_samples.strict(**{**inputs, name: wrong[name]})
    rule = codec.metadata()["samples"]
    assert "-1: it is detected" in rule and "`timestamps` must be 0 or 1" in rule
    again = json.loads(json.dumps(codec.choices.to_dict()))
    assert Choices.from_dict(again) == codec.choices


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": [[5]]}, "ids must be integers of at least 0"),
        ({"prompt": []}, "`prompt` must begin with the id of one of `languages`"),
        ({"languages": {"de": "six"}}, "ids must be integers of at least 0"),
        ({"languages": ["de"]}, "is not a mapping"),
        ({"language": "nl"}, "`language` must be one of `languages`, or auto"),
        ({"task": None}, "`task` must be one of `tasks`"),
        ({"tasks": {"transcribe": 1}}, "`prompt` must contain the id of one of `tasks`"),
        ({"timestamp_id": None}, "`no_timestamps_id` needs `timestamp_id`"),
        ({"timestamps": 1}, "`timestamps` must be true or false"),
        ({"language_ids": [7]}, "unexpected keyword argument 'language_ids'"),
    ],
    ids=repr,
)
def test_choices_of_damaged_metadata_are_refused(changes, message, opened):
    read, _, _ = opened
    choices = Choices.of(read.model.config, read.tokenizers.target)
    fields = json.loads(json.dumps(choices.replaced(timestamps=np.True_).to_dict()))
    assert Choices.from_dict(fields) == choices.replaced(timestamps=True)
    with pytest.raises((TypeError, ValueError), match=message):
        Choices.from_dict({**fields, **changes})


@pytest.fixture(scope="module")
def run(pipeline, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    write_run(pipeline, folder)
    Run(folder).write_search(pipeline.search)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{number}.wav" for number in range(2)]
    for path, sound in zip(paths, SOUNDS, strict=False):
        path.write_bytes(encode_wav(sound, RATE))
    return [*map(str, paths)]


def predict(model, *arguments):
    done = CliRunner().invoke(cli, ["predict", str(model), *map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def check_predict(model, pipeline, files):
    """The command with a model, a run or an export, against the pipeline."""
    chosen = ["--source-language", "fr", "--target-language", "en"]
    expected = pipeline(files, language="fr", task="translate")
    assert predict(model, *files, *chosen) == expected != pipeline(files)
    chosen = ["--source-language", "French", "--target-language", "english"]
    assert predict(model, *files, *chosen) == expected
    assert predict(model, *files) == pipeline(files)
    same = ["--source-language", "de", "--target-language", "de", "--timestamps"]
    assert predict(model, *files, *same) == [
        f"{number}\t{part.start:.2f}\t{part.end:.2f}\t{part.text}"
        for number, result in enumerate(
            pipeline.transcribe(files, language="de", task="transcribe", timestamps=True), start=1
        )
        for part in result.segments
    ]
    check_subtitles(model, pipeline, files)


def check_subtitles(model, pipeline, files):
    expected = [subrip(one.segments) for one in pipeline.transcribe(files, timestamps=True)]
    assert all(expected) and len({*expected}) > 1
    assert predict(model, files[0], "--subtitles", "srt") == expected[0].splitlines()
    folder = pathlib.Path(files[0]).parent / model.name
    folder.mkdir()
    assert not predict(model, *files, "--subtitles", "srt", "--output", folder)
    assert [path.name for path in sorted(folder.iterdir())] == ["0.srt", "1.srt"]
    assert [path.read_text("utf-8") for path in sorted(folder.iterdir())] == expected


@pytest.mark.long
@pytest.mark.slow
def test_predict_takes_languages_and_writes_timestamps(run, pipeline, files):
    check_predict(run, pipeline, files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source-language", "dutch"], "`language` must be one of the 3 languages of the model"),
        (
            ["--target-language", "fr"],
            "--target-language must be the source language, for transcri",
        ),
        (["--timestamps", "--scores"], "--scores has no effect with --timestamps"),
        (["--timestamps", "--subtitles", "srt"], "--timestamps has no effect with --subtitles"),
        (["--subtitles", "srt"], "--subtitles srt of 2 recordings needs --output with a folder"),
        (["--subtitles", "srt", "--output", "x.vtt"], "x.vtt must end in .srt"),
    ],
)
def test_wrong_languages_of_the_command(arguments, message, run, files):
    done = CliRunner().invoke(cli, ["predict", str(run), *files, *arguments])
    assert done.exit_code and message in done.stderr


def test_a_run_without_choices_refuses_them(tmp_path):
    folder = write_run(speech_recognizer(), tmp_path / "run")
    for options, message in (
        (["--source-language", "de"], "--source-language has no effect on"),
        (["--timestamps"], "--timestamps has no effect on"),
        (["--subtitles", "vtt"], "--subtitles has no effect on"),
    ):
        done = CliRunner().invoke(cli, ["predict", str(folder), "x.wav", *options])
        assert done.exit_code and message in done.stderr


@pytest.mark.slow
def test_the_example_of_the_page(run, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RUN").symlink_to(run)
    for name, path in zip(("a.wav", "b.wav"), files, strict=True):
        (tmp_path / name).symlink_to(path)
    for page in ("docs/speech.md", "docs/speech_reference.md"):
        run_blocks([block for block in blocks(page) if block.needs == "whisper"])
    language, *segments = capsys.readouterr().out.splitlines()
    assert language in LANGUAGES and segments
    assert (tmp_path / "a.vtt").read_text("utf-8").startswith("WEBVTT\n\n00:00:00.")


@pytest.mark.long
@pytest.mark.slow
def test_predict_with_exports_takes_languages_and_writes_timestamps(pipeline, files, tmp_path):
    pytest.importorskip("ai_edge_litert")
    export_saved_model(pipeline, tmp_path / "served", files)
    export_litert(pipeline, tmp_path / "m.tflite", files)
    for model in (tmp_path / "served", tmp_path / "m.tflite"):
        check_predict(model, pipeline, files)
        for options, message in (
            (["--source-language", "dutch"], "`language` must be one of the 3 languages of the m"),
            (["--beam", "3"], "--beam has no effect on"),
        ):
            done = CliRunner().invoke(cli, ["predict", str(model), *files, *options])
            assert done.exit_code and message in done.stderr
    page = (tmp_path / "served" / "1" / "README.md").read_text()
    assert "| `options` |" in page and "`language` of the signature `options`: en, de, fr" in page
