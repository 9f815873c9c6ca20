"""The spoken demo with a program in place of eSpeak NG, which takes the same arguments."""

import pathlib
import shutil

import fake_espeak
import numpy as np
import pytest

from keras_transformer.tasks.speech_recognition.audio.wav import read_wav
from keras_transformer.training.demos import spoken
from keras_transformer.training.demos.settings import VOICES, SpokenDemoData
from keras_transformer.training.demos.spoken import draw_utterances
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.tasks.speech_recognition.files import find_recordings


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return fake_espeak.write(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def on_path(program, monkeypatch):
    """The program, which is the only one on the search path."""
    monkeypatch.setenv("PATH", str(program.parent))
    program.with_name("log").unlink(missing_ok=True)
    return program


def settings(folder, **changes):
    """Settings of few examples, fewer than the schema allows."""
    checked = SpokenDemoData(source="spoken_demo", **{"data_dir": str(folder), **changes})
    return checked.model_copy(update={"examples": 20})


def test_sentences_and_one_voice_are_held_out(tmp_path):
    own = settings(tmp_path, voices=["a", "b", "c"], unseen_voice="d", pitch=[40, 42])
    splits = draw_utterances(own)
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 16, "validation": 2, "test": 2, "unseen_voice": 2
    }  # fmt: skip
    texts = [{one.text for one in splits[name]} for name in ("train", "validation", "test")]
    assert len(set.union(*texts)) == 20
    assert [one.text for one in splits["unseen_voice"]] == [one.text for one in splits["test"]]
    assert {one.voice for one in splits.pop("unseen_voice")} == {"d"}
    everything = sum(splits.values(), [])
    assert {one.voice for one in everything} == {"a", "b", "c"}
    assert {one.pitch for one in everything} == {40, 41, 42}
    assert {130 <= one.words_per_minute <= 200 for one in everything} == {True}
    assert draw_utterances(own) == draw_utterances(own)


def test_recordings_are_made_once(tmp_path, on_path):
    own = settings(tmp_path)
    source = open_source(own)
    lines = on_path.with_name("log").read_text().splitlines()
    utterances = draw_utterances(own)
    probes = [line for line in lines if line.startswith("The quick brown fox")]
    assert [line.split("\t")[1] for line in probes] == [*VOICES, "en+f5"]
    lines = [line for line in lines if line not in probes]
    assert sorted(lines) == sorted(
        f"{one.text}\t{one.voice}\t{one.words_per_minute}\t{one.pitch}"
        for split in utterances.values()
        for one in split
    )
    for split in source.splits:
        spoken = [(audio.numpy(), text.numpy().decode()) for audio, text in source.rows(split)]
        assert [text for _, text in spoken] == [one.text for one in utterances[split]]
        assert {len(samples) for samples, _ in spoken} == {3200}  # at 16,000 per second
    assert open_source(own).identity("train") == source.identity("train")
    assert len(on_path.with_name("log").read_text().splitlines()) == len(lines) + 6
    (folder,) = (tmp_path / "spoken_demo").iterdir()
    unseen = find_recordings(folder / "unseen_voice.tsv")
    assert [text for _, text in unseen] == [one.text for one in utterances["test"]]
    assert np.abs(read_wav(unseen[0][0])).max() > 0.2


def test_a_missing_program_is_reported_with_its_package(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "needs the program espeak-ng.* On Debian and Ubuntu: sudo apt-get install espeak-ng$"
    with pytest.raises(ValueError, match=message) as error:
        open_source(settings(tmp_path))
    assert "\n" not in str(error.value)


def test_an_error_of_the_program_is_reported_and_leaves_nothing(tmp_path, on_path):
    own = settings(tmp_path, voices=["nobody"])
    message = "espeak-ng failed with exit status 1, voice 'nobody': Error: The specified .* exist.$"
    with pytest.raises(ValueError, match=message):
        open_source(own)
    assert not list(tmp_path.iterdir())


def test_voices_that_sound_the_same_are_refused(tmp_path, on_path):
    """As with eSpeak NG, which ignores variants that it does not know."""
    message = "must sound different. espeak-ng speaks 'en-gb' like 'en'; it ignores a variant"
    with pytest.raises(ValueError, match=message):
        open_source(settings(tmp_path, voices=["en", "en-us"], unseen_voice="en-gb"))


def test_a_program_that_fails_later_leaves_no_folder(tmp_path, on_path, monkeypatch):
    monkeypatch.setattr(spoken, "_check_voices", lambda program, voices: None)
    with pytest.raises(ValueError, match="voice 'nobody'"):
        open_source(settings(tmp_path, voices=["nobody"]))
    assert not list((tmp_path / "spoken_demo").iterdir())


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, on_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="`data_dir` must be a folder that can be written"):
        open_source(settings(tmp_path / "file"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unseen_voice": "en-us"}, "`unseen_voice` must not be one of `voices`"),
        ({"pitch": [50, 100]}, "`pitch` must be .* of steps from 0 to 99"),
        ({"words_per_minute": [300, 200]}, "`words_per_minute` must be a smaller and a larger"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        settings(tmp_path, **changes)


@pytest.mark.slow
def test_espeak_ng_itself_speaks(tmp_path):
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")
    source = open_source(settings(tmp_path))
    lengths = [len(audio) for audio, _ in source.rows("train")]
    assert min(lengths) > 4000 and pathlib.Path(tmp_path, "spoken_demo").is_dir()
