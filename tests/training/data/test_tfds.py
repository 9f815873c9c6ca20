"""Translation datasets: found by name, read completely, or refused in one line."""

import contextlib
import os
from types import SimpleNamespace

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from keras_transformer.training.settings.sources import open_source


def settings(name, source=None, target=None, data_dir=None, features=None):
    return SimpleNamespace(
        source="tfds",
        name=name,
        source_language=source,
        target_language=target,
        features=features,
        data_dir=data_dir,
    )


@contextlib.contextmanager
def mocked(examples=7):
    """TFDS without files, in which `train` does not stand for every split."""
    with tfds.testing.mock_data(num_examples=examples, policy=tfds.testing.MockPolicy.USE_CODE):
        yield


def refused(options, match):
    with pytest.raises(ValueError, match=match) as error:
        open_source(options)
    assert "\n" not in str(error.value)


class LocalPairs(tfds.core.GeneratorBasedBuilder):
    """A dataset that is actually written to disk, one file per split."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = tfds.features.Translation(languages=("en", "de"))
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(name) for name in ("train", "validation")}

    def _generate_examples(self, name):
        for n in range(2500):
            yield n, {"en": f"{name} {n}", "de": f"{name} {n} auf Deutsch, größer"}


class LocalTexts(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        text = tfds.features.Text()
        features = {"text": text, "summary": text, "number": tfds.features.Scalar(tf.int64)}
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(name) for name in ("train", "validation")}

    def _generate_examples(self, name):
        for n in range(12):
            yield n, {"text": f"{name} {n} größer", "summary": str(n), "number": n}


class LocalTrainOnly(LocalPairs):
    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples("train")}


class LocalBroken(LocalPairs):
    def _split_generators(self, dl_manager):
        raise ConnectionError("the server is down\nand more lines")


@pytest.mark.parametrize(
    "name, source, target",
    [
        ("wmt14_translate/de-en", "en", "de"),
        ("wmt14_translate/de-en", "de", "en"),
        ("ted_hrlr_translate/pt_to_en", "pt", "en"),
    ],
)
def test_well_known_datasets_are_read_in_either_direction(name, source, target):
    with mocked():
        data = open_source(settings(name, source, target))
        raw = list(tfds.load(name, split="train").as_numpy_iterator())
        assert data.splits == ("train", "validation", "test")
        for split in data.splits:
            pairs = list(data.rows(split).as_numpy_iterator())
            assert pairs == [(example[source], example[target]) for example in raw]
        assert len(raw) == 7
        assert data.count("train") is None  # a mock does not know it
    assert name in data.description


@pytest.mark.parametrize("features", [["article", "highlights"], ["highlights", "id"]])
def test_any_two_texts_of_a_dataset_are_source_and_target(features):
    with mocked():
        data = open_source(settings("cnn_dailymail", features=features))
        raw = list(tfds.load("cnn_dailymail", split="test").as_numpy_iterator())
        pairs = list(data.rows("test").as_numpy_iterator())
        assert pairs == [tuple(example[name] for name in features) for example in raw]
        assert len(raw) == 7 and data.splits == ("train", "validation", "test")


def test_a_prepared_dataset_of_texts_is_read_completely(tmp_path):
    data = open_source(settings("local_texts", features=["text", "summary"], data_dir=tmp_path))
    expected = [(f"validation {n} größer".encode(), f"{n}".encode()) for n in range(12)]
    assert list(data.rows("validation").as_numpy_iterator()) == expected
    assert data.count("train") == 12


@pytest.mark.parametrize(
    ("features", "match"),
    [
        (
            ["text", "sumary"],
            "features of text in local_texts, which has text, summary. .*'sumary'",
        ),
        (["number", "text"], "features of text in local_texts, which .* Received: 'number'"),
    ],
)
def test_features_that_are_not_texts_are_refused(features, match, tmp_path):
    options = settings("local_texts", features=features, data_dir=tmp_path)
    refused(options, f"`features` must be {match}")
    assert not list(tmp_path.iterdir())


def test_a_dataset_without_texts_is_reported(tmp_path):
    options = settings("mnist", features=["image", "label"], data_dir=tmp_path)
    refused(
        options, "`features` must be features of text in mnist, which has none. Received: 'image'"
    )


@pytest.mark.slow
def test_a_prepared_dataset_is_read_as_tfds_reads_it(tmp_path):
    data = open_source(settings("local_pairs", "de", "en", tmp_path))
    builder = tfds.builder("local_pairs", data_dir=tmp_path)
    for split in data.splits:
        expected = builder.as_dataset(split=split, shuffle_files=False).as_numpy_iterator()
        expected = [(example["de"], example["en"]) for example in expected]
        assert list(data.rows(split).as_numpy_iterator()) == expected
        assert data.count(split) == len(expected) == 2500
    assert data.splits == ("train", "validation")
    with pytest.raises(ValueError, match="`split` must be one of train, validation, .*'test'"):
        data.rows("test")


@pytest.mark.parametrize(
    "name, match",
    [
        ("wmt14_translat/de-en", "'wmt14_translat/de-en'. Similar datasets: wmt14_translate"),
        ("wmt14_translate/de-xx", "Similar configurations of wmt14_translate: de-en"),
        ("wmt14_translate/de-en:9.9.9", "wmt14_translate: de-en"),
        ("not a name!", "Received: name='not a name!'. Some datasets: "),
        ("zzzzzzzzzzzz", "Received: name='zzzzzzzzzzzz'. Some datasets: abstract_reasoning"),
    ],
)
def test_an_unknown_name_is_reported_in_one_line_with_similar_ones(name, match, tmp_path):
    refused(settings(name, "en", "de", tmp_path), f"`name` must be a dataset of Tens.*{match}")


def test_a_language_missing_in_a_dataset_is_reported_before_any_download(tmp_path):
    name = "wmt14_translate/de-en"
    refused(
        settings(name, "fr", "de", tmp_path),
        "`source_language` must be one of de, en, .*wmt14_translate/de-en.*source_language='fr'",
    )
    refused(settings(name, "en", "fr", tmp_path), "`target_language` must be one of de, en, .*'fr'")
    refused(settings(name, "en", "en", tmp_path), "must differ. Received: 'en' for both")


def test_a_dataset_of_something_else_is_refused(tmp_path):
    refused(
        settings("mnist", "en", "de", tmp_path),
        "`name` must be a translation dataset.*'mnist', whose features are image, label",
    )


def test_a_dataset_without_validation_is_refused(tmp_path):
    refused(
        settings("local_train_only", "en", "de", tmp_path),
        "with the splits train and validation. .*name='local_train_only', which has train",
    )


def test_errors_while_preparing_are_reported_in_one_line(tmp_path):
    refused(
        settings("local_broken", "en", "de", tmp_path),
        "can prepare here.*'local_broken', and in .*local_broken.*ConnectionError: the server is",
    )
    assert not os.path.exists(tmp_path / "local_broken" / "1.0.0")
