"""Recordings in files and in TensorFlow Datasets, and copies of them at other speeds."""

import os

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from keras_transformer.tasks.speech_recognition.audio.resampling import change_speed
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav, read_wav
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.tasks.speech_recognition import tfds as tfds_speech
from keras_transformer.training.tasks.speech_recognition.settings import (
    SpeechFilesData,
    TfdsSpeechData,
)


def tone(count, seed=0):
    return 0.4 * np.sin(np.arange(count) / (5 + seed))


@pytest.fixture
def folder(tmp_path):
    """Two recordings of different lengths in `train`, one in `validation`."""
    for seed, name in enumerate(("train/b/two", "train/a/one", "validation/three")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".wav").write_bytes(encode_wav(tone(500 + 100 * seed, seed)))
        path.with_suffix(".txt").write_text(f"\ufeffthe  text of\n{path.name}\n")
    return tmp_path


def settings(folder, **changes):
    paths = {split: str(folder / split) for split in ("train", "validation")}
    return SpeechFilesData(source="speech_files", **{**paths, **changes})


def rows(source, split):
    return [(audio.numpy(), text.numpy().decode()) for audio, text in source.rows(split)]


def test_a_folder_of_recordings_and_texts(folder):
    (folder / "train" / "notes.md").write_text("no recording")
    source = open_source(settings(folder))
    assert source.splits == ("train", "validation") and source.count("train") == 2
    (first, one), (second, two) = rows(source, "train")
    assert (one, two) == ("the text of one", "the text of two")
    np.testing.assert_array_equal(first, read_wav(folder / "train/a/one.wav"))
    assert len(first) == 600 and len(second) == 500
    assert source.metadata() == {"sample_rate": 16_000}
    slower = open_source(settings(folder, sample_rate=8000))
    assert len(rows(slower, "train")[0][0]) == 300
    assert slower.identity("train") != source.identity("train")


def test_transcripts_are_known_without_the_recordings(folder):
    source = open_source(settings(folder, speeds=[0.9, 1.0]))
    (folder / "train/a/one.wav").write_bytes(b"")
    texts = [text.numpy().decode() for _, text in source.text_rows("train")]
    assert texts == ["the text of one", "the text of two"]


def test_a_table_is_the_same_data_as_its_folder(folder):
    table = folder / "train.tsv"
    table.write_text("train/a/one.wav\tthe text of one\r\ntrain/b/two.wav\t the text  of two \n")
    ours, theirs = (open_source(settings(folder, train=str(folder / n))) for n in (table, "train"))
    for (samples, text), (other, same) in zip(
        rows(ours, "train"), rows(theirs, "train"), strict=True
    ):
        np.testing.assert_array_equal(samples, other)
        assert text == same


def test_batches_are_ragged_and_changed_files_change_the_identity(folder):
    source = open_source(settings(folder))
    (audio, texts), *_ = source.rows("train").batch(2)
    assert isinstance(audio, tf.RaggedTensor) and audio.row_lengths().numpy().tolist() == [600, 500]
    before = source.identity("train")
    assert (
        open_source(settings(folder)).identity("train") == before != source.identity("validation")
    )
    path = folder / "train/a/one.wav"
    os.utime(path, ns=(1, 1))
    assert open_source(settings(folder)).identity("train") != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train/c.wav", b"", "c.wav: needs its transcript in c.txt beside it"),
        ("train/a/one.txt", b" \n", "one.txt: the transcript is empty"),
        ("train/a/one.txt", b"\xff", "one.txt, line 1: not UTF-8"),
        ("train/a/one.wav", b"no sound", "one.wav: is not a WAV file"),
        ("train.tsv", b"train/a/one.wav", "train.tsv, line 1: must be the path .* 1 columns"),
        ("train.tsv", b"a\tb\tc", "train.tsv, line 1: must be .* Received: 3 columns"),
        ("train.tsv", b"no.wav\ttext", "train.tsv, line 1: there is no file .*no.wav"),
        ("train.tsv", b"train/a/one.wav\t ", "train.tsv, line 1: the transcript is empty"),
        ("train.tsv", b"", "train.tsv: must have at least one recording, a .wav or .flac file"),
        ("empty/a.txt", b"text", "empty: must have at least one recording"),
        ("other", None, "other: is neither a table of recordings nor a folder"),
    ],
)
def test_wrong_files_are_reported_in_one_line(folder, name, content, message):
    path = folder / name
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    train = folder / (name if name in ("train.tsv", "other") else name.partition("/")[0])
    with pytest.raises(ValueError, match=message) as error:
        open_source(settings(folder, train=str(train)))
    assert "\n" not in str(error.value)


def test_a_recording_is_in_one_split(folder):
    """Recordings in a folder may be at any depth: also in the folder of another split."""
    with pytest.raises(ValueError, match=r"a/one.wav: must not be in train and in validation"):
        open_source(settings(folder, validation=str(folder / "train/a")))


def test_speeds_copy_the_training_recordings_only(folder):
    plain = open_source(settings(folder))
    source = open_source(settings(folder, speeds=[0.9, 1.0, 1.1]))
    assert source.count("train") == 6 and source.count("validation") == 1
    copies, recordings = rows(source, "train"), rows(plain, "train")
    assert [text for _, text in copies] == 3 * [text for _, text in recordings]
    for number, speed in enumerate((0.9, 1.0, 1.1)):
        for (ours, _), (original, _) in zip(copies[2 * number :], recordings, strict=False):
            np.testing.assert_allclose(ours, change_speed(original, speed), atol=1e-6)
    assert [len(samples) for samples, _ in copies] == [667, 556, 600, 500, 546, 455]
    (audio, _), *_ = source.rows("train").batch(6)
    assert audio.shape[0] == 6
    assert source.identity("train") != plain.identity("train")
    assert source.identity("validation") == plain.identity("validation")
    assert rows(source, "validation")[0][1] == "the text of three"
    assert source.metadata() == plain.metadata() and source.weights("train") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speeds": [1.0, 1.0]}, "`speeds` must be different numbers"),
        ({"speeds": [3.0]}, "less than or equal to 2"),
        ({"validation": "x", "train": "x"}, "`train`, `validation` and `test` must be different"),
    ],
)
def test_wrong_settings_are_refused(folder, changes, message):
    with pytest.raises(ValueError, match=message):
        settings(folder, **changes)


class LocalSpeech(tfds.core.GeneratorBasedBuilder):
    """Sound of 8,000 samples per second, written to disk."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {
            "speech": tfds.features.Audio(sample_rate=8000, dtype=np.int16),
            "text": tfds.features.Text(),
            "title": tfds.features.Text(),
            "number": tfds.features.Scalar(tf.int64),
        }
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(name) for name in ("train", "more", "dev")}

    def _generate_examples(self, name):
        for n in range(3):
            samples = np.rint(tone(50 + n) * 32768).astype(np.int16)
            yield n, {"speech": samples, "text": f"{name}  {n}", "title": "A", "number": n}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("tfds")
    LocalSpeech(data_dir=data_dir).download_and_prepare()
    return data_dir


def speech(data_dir, **changes):
    options = {"train": "train+more", "validation": "dev", "test": None, **changes}
    return TfdsSpeechData(
        source="tfds_speech", **{"name": "local_speech", "data_dir": str(data_dir), **options}
    )


def test_a_dataset_of_sound_and_text(local):
    source = open_source(speech(local))
    assert source.splits == ("train", "validation") and source.count("train") == 6
    examples = rows(source, "train")
    assert [text for _, text in examples] == [
        f"{n} {i}" for n in ("train", "more") for i in (0, 1, 2)
    ]
    assert [len(samples) for samples, _ in examples[:3]] == [100, 102, 104]
    plain = open_source(speech(local, sample_rate=8000, speeds=[2.0]))
    np.testing.assert_allclose(rows(plain, "validation")[1][0], tone(51), atol=2e-5)
    assert source.identity("train") != plain.identity("train")


def test_transcripts_of_a_dataset_are_read_without_its_sound(local, monkeypatch):
    source = open_source(speech(local))
    monkeypatch.setattr(tfds_speech, "at_rate", None)
    texts = [text.numpy().decode() for _, text in source.text_rows("train")]
    assert texts == [f"{n} {i}" for n in ("train", "more") for i in (0, 1, 2)]


def test_the_identity_of_a_dataset_has_its_features_and_files(local):
    before = open_source(speech(local)).identity("train")
    other = open_source(speech(local, features=["speech", "title"])).identity("train")
    assert other != before == open_source(speech(local)).identity("train")
    (file,) = local.glob("local_speech/*/*-more.tfrecord*")
    os.utime(file, ns=(1, 1))
    assert open_source(speech(local)).identity("train") != before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": ["text", "text"]}, "no feature of audio named 'text'; it has speech"),
        ({"features": ["speech", "number"]}, "of text named 'number'; it has text, title"),
        ({"validation": "test"}, "`data.validation` must be splits of local_speech.*: dev, more,"),
        ({"name": "no_such_speech"}, "`name` must be a dataset of TensorFlow Datasets"),
    ],
)
def test_a_wrong_dataset_is_reported_in_one_line(local, changes, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(speech(local, **changes))
    assert "\n" not in str(error.value)


def test_librispeech_has_the_features_and_the_rate_of_the_defaults():
    builder = tfds.builder("librispeech")
    defaults = TfdsSpeechData(source="tfds_speech")
    sound, text = (builder.info.features[name] for name in defaults.features)
    assert sound.sample_rate == defaults.sample_rate == 16_000
    assert isinstance(text, tfds.features.Text)
