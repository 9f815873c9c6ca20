"""Folders of images and the digits: splits, sizes, and one line for every mistake."""

import builtins
import collections
import re
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.installation import install_hint
from keras_transformer.tasks.image_classification.task import ImageClassificationTask
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tasks.image_classification.source import stratified
from keras_transformer.training.tasks.images import shifted

STEPS = {"image_size": None, "interpolation": None, "resize_to": None}


def draw(height=5, width=7, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels)).astype("uint8")


def write(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    keras.utils.save_img(path, image, scale=False)


def settings(folder, **changes):
    paths = {split: str(folder / split) for split in ("train", "validation")}
    values = {"test": None, "channels": 3, **STEPS, **paths, **changes}
    return types.SimpleNamespace(source="images", **values)


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(("train/b/1.png", "train/a/2.PNG", "validation/a/3.png")):
        write(tmp_path / name, draw(seed=seed))
    return tmp_path


def examples(source, split):
    return [(image, label.decode()) for image, label in source.rows(split).as_numpy_iterator()]


def test_folder_names_are_labels(folder):
    (folder / "train" / "a" / "notes.txt").write_text("no image")
    source = open_source(settings(folder))
    assert source.splits == ("train", "validation") and source.count("train") == 2
    (first, one), (second, two) = examples(source, "train")
    assert (one, two) == ("a", "b") and not any(source.metadata().values())
    np.testing.assert_array_equal(first, draw(seed=1))
    np.testing.assert_array_equal(second, draw(seed=0))


def test_a_jpeg_is_read(folder):
    write(folder / "train" / "c" / "4.jpeg", np.full((5, 7, 3), 200, "uint8"))
    image, label = examples(open_source(settings(folder)), "train")[2]
    assert label == "c" and np.abs(image.astype(int) - 200).max() < 4


def test_images_are_converted_to_grey(folder):
    ((image, _),) = examples(open_source(settings(folder, channels=1)), "validation")
    assert image.shape == (5, 7, 1)
    grey = draw(seed=2) @ [0.299, 0.587, 0.114]
    assert np.abs(image[..., 0] - grey).max() <= 1.5


def test_images_are_resized_to_a_given_size(folder):
    write(folder / "train" / "a" / "9.png", np.full((20, 10, 3), 77, "uint8"))
    source = open_source(settings(folder, image_size=[4, 6]))
    assert [name for name, value in source.metadata().items() if value] == ["resize"]
    images = [image for image, _ in examples(source, "train")]
    assert {image.shape for image in images} == {(4, 6, 3)}
    assert (images[1] == 77).all()


def test_files_are_resized_and_cropped_once(folder):
    """Rows have gone through the steps; a pipeline, which has the same steps, gets the files."""
    write(folder / "train" / "a" / "9.png", draw(20, 10))
    steps = {"image_size": [4, 6], "interpolation": "bicubic", "resize_to": [9, 8]}
    source = open_source(settings(folder, **steps))
    size = ImageSize(4, 6, 3, True, "bicubic", (9, 8), True)
    assert ImageSize(4, 6, 3, **source.metadata()) == size
    images, labels = read_columns(source, ImageClassificationTask(), "train")
    assert labels == ["a", "a", "b"] and images[1] == str(folder / "train" / "a" / "9.png")
    for (image, _), path in zip(examples(source, "train"), images, strict=True):
        np.testing.assert_array_equal(image, size.read(path))
    plain = open_source(settings(folder, image_size=[4, 6]))
    images, _ = read_columns(plain, ImageClassificationTask(), "train")
    np.testing.assert_array_equal(images, [image for image, _ in examples(plain, "train")])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('interpolation = "box"', "`interpolation` has no effect without `image_size`"),
        ("resize_to = [9]", "`resize_to` has no effect without `image_size`"),
        ("resize_to = [9]\nimage_size = [8, 8]", "`resize_to` needs `interpolation`"),
        ('interpolation = "cubic"', "data.interpolation must be 'nearest', 'box', "),
        (
            'resize_to = [7, 9]\nimage_size = [8, 8]\ninterpolation = "box"',
            "`resize_to` must be .* at least 8 x 8",
        ),
    ],
)
def test_steps_that_do_not_fit_are_refused(tmp_path, lines, message):
    config = tmp_path / "config.toml"
    config.write_text(
        '[task]\nkind = "image_classification"\n[data]\nsource = "images"\n'
        f'train = "a"\nvalidation = "b"\n{lines}\n'
    )
    with pytest.raises(SettingsError, match=message):
        load_settings(config)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train/a/4.png", draw(6, 7), "4.png: must have height x width x channels of 5 x 7 x 3. R"),
        ("validation/a/4.png", draw(5, 8), "4.png: must have .* Received: 5 x 8 x 3."),
        ("train/a/4.png", b"no image", "4.png: is not a readable PNG or JPEG image."),
        ("train/a/4.jpg", b"", "4.jpg: is not a readable PNG or JPEG image."),
    ],
)
def test_a_wrong_file_is_reported(folder, name, content, message):
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        write(folder / name, content)
    with pytest.raises(ValueError, match=message) as error:
        open_source(settings(folder))
    assert "\n" not in str(error.value)


def test_an_unreadable_folder_is_reported_like_an_unreadable_image(folder):
    (folder / "train" / "a" / "4.png").mkdir()
    with pytest.raises(ValueError, match="4.png: cannot be read: Is a directory."):
        open_source(settings(folder))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "nowhere: is not a folder; it must contain"),
        ("train/a", "a: must contain a folder for"),
    ],
)
def test_a_wrong_folder_is_reported(folder, name, message):
    with pytest.raises(ValueError, match=message):
        open_source(settings(folder, test=str(folder / name)))


@pytest.mark.parametrize("second", ["validation", "test"])
def test_one_folder_for_two_splits_is_refused(tmp_path, second):
    config = tmp_path / "config.toml"
    splits = {"train": "a", "validation": "b", "test": "c", second: "a"}
    lines = "".join(f'{split} = "{folder}"\n' for split, folder in splits.items())
    config.write_text(f'[task]\nkind = "image_classification"\n[data]\nsource = "images"\n{lines}')
    message = "`train`, `validation` and `test` must be different folders"
    with pytest.raises(SettingsError, match=message):
        load_settings(config)
    config.write_text(config.read_text().replace(f'{second} = "a"', f'{second} = "d"'))
    assert load_settings(config).data.train == str(tmp_path / "a")


def test_splits_have_the_same_share_of_every_label():
    labels = np.repeat([0, 1, 2], [100, 50, 30])
    parts = stratified(labels, seed=4)
    joined = np.concatenate(list(parts.values()))
    assert sorted(joined) == list(range(180))
    assert {s: np.bincount(labels[n]).tolist() for s, n in parts.items()} == {
        "train": [70, 35, 21],
        "validation": [10, 5, 3],
        "test": [20, 10, 6],
    }
    assert (parts["test"] == stratified(labels, seed=4)["test"]).all()
    assert (parts["test"] != stratified(labels, seed=5)["test"]).any()


def test_digits_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.datasets")
    source = open_source(types.SimpleNamespace(source="digits", seed=1))
    digits = sklearn.load_digits()
    expected = sorted(
        (np.rint(pixels * 255 / 16).astype("uint8").tobytes(), str(digit))
        for pixels, digit in zip(digits.images, digits.target, strict=True)
    )
    splits = {
        split: [(image.tobytes(), label) for image, label in examples(source, split)]
        for split in source.splits
    }
    # All of them occur once: the images differ, so no two splits share one.
    assert len({image for image, _ in expected}) == len(expected) == len(digits.target)
    assert sorted(row for rows in splits.values() for row in rows) == expected
    # The settings page states "Decides which fifth is the test split and which tenth validates;
    # each has the same share of every digit", to the nearest image.
    whole = collections.Counter(digits.target.tolist())
    for split, share, most in (("test", 0.2, 0.5), ("validation", 0.1, 0.5), ("train", 0.7, 1.0)):
        assert source.count(split) == len(splits[split])
        own = collections.Counter(int(label) for _, label in splits[split])
        assert all(abs(own[digit] - share * count) <= most for digit, count in whole.items())


def test_without_scikit_learn_there_is_one_line(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    message = f"need the package scikit-learn. Install it with: {install_hint('digits')}"
    with pytest.raises(ValueError, match=re.escape(message)):
        open_source(types.SimpleNamespace(source="digits", seed=1))


def test_images_are_shifted_and_their_edges_repeated():
    image = np.arange(20, dtype="uint8").reshape(1, 4, 5, 1)
    for down in range(-2, 3):
        for right in range(-2, 3):
            draws = [[(down + 2.5) / 5, (right + 2.5) / 5]]
            moved = shifted(tf.constant(draws), tf.constant(image), limit=2)
            for y, x in np.ndindex(4, 5):
                before = min(max(y - down, 0), 3), min(max(x - right, 0), 4)
                assert moved[0, y, x, 0] == image[(0, *before, 0)]
