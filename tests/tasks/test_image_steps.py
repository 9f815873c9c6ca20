"""Steps that prepare images, resizing and cropping, against Pillow; refused combinations."""

import dataclasses
import functools
import io
import typing

import numpy as np
import PIL.Image
import pytest
import tensorflow as tf
from marks import slow, slow_except
from support import randomise

from keras_transformer.config.patches import Interpolation, PatchInput
from keras_transformer.models import ImageClassifier, ImageClassifierConfig
from keras_transformer.pipelines import ImageClassificationPipeline
from keras_transformer.tasks.image_classification.codec import ImageCodec
from keras_transformer.tasks.images.files import ImageSize, encode_png
from keras_transformer.tasks.images.resampling import resample

NAMES = typing.get_args(Interpolation)
# Sizes before and after: smaller, larger, one axis only, equal, and one pixel.
PAIRS = [((17, 23), (12, 12)), ((7, 5), (40, 31)), ((30, 50), (30, 20)), ((9, 9), (9, 9))]
PAIRS += [((1, 9), (8, 8)), ((100, 100), (30, 30)), ((13, 37), (20, 11))]
if int(PIL.__version__.split(".")[0]) >= 13:  # earlier versions always resize rows first
    PAIRS += [((50, 33), (25, 38)), ((58, 23), (52, 20)), ((58, 22), (52, 19))]
SIZE = 6, 4  # of the model
STEPS = {
    "resize": {"resize": True, "interpolation": "bicubic"},
    "resize and crop": {"resize_to": (11, 9), "interpolation": "bicubic"},
    "shorter edge": {"resize_to": (7,), "interpolation": "lanczos"},
    "nearest": {"resize_to": (8, 8), "interpolation": "nearest"},
    "crop": {"center_crop": True},
}


def draw(height, width, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels)).astype("uint8")


def pillow(image, size, name):
    """Resizes with Pillow."""
    flat = image[..., 0] if image.shape[-1] == 1 else image
    image = PIL.Image.fromarray(flat).resize(size[::-1], PIL.Image.Resampling[name.upper()])
    return np.asarray(image).reshape(*size, -1)


def prepared(image, resize=False, interpolation=None, resize_to=(), center_crop=False):
    """The steps by Pillow and by slicing."""
    height, width = image.shape[:2]
    if len(resize_to) == 1:
        short = min(height, width)
        resize_to = height * resize_to[0] // short, width * resize_to[0] // short
    if interpolation:
        image = pillow(image, resize_to or SIZE, interpolation)
    top, left = ((image.shape[axis] - SIZE[axis]) // 2 for axis in (0, 1))
    return image[top : top + SIZE[0], left : left + SIZE[1]]


def steps_of(kind):
    steps = STEPS[kind]
    return {**steps, "resize": True, "center_crop": True} if "resize_to" in steps else steps


@functools.cache
def graph_of(kind, channels=3):
    """Returns the steps as a graph, traced once for the files of all formats."""
    size = ImageSize(*SIZE, channels, **steps_of(kind))
    return tf.function(size.decode, autograph=False)


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        slow("nearest", 3),
        slow("box", 3),
        ("bilinear", 3),
        slow("hamming", 3),
        ("bicubic", 3),
        slow("lanczos", 3),
    ],
)
def test_pixels_are_those_of_pillow(name, channels):
    for (height, width), size in PAIRS:
        image = draw(height, width, channels)
        expected = pillow(image, size, name)
        np.testing.assert_array_equal(resample(image, size, (0, 0), size, name), expected)
        begin, part = (size[0] // 4, size[1] // 3), (size[0] // 2, size[1] // 2)
        rows = expected[begin[0] :, begin[1] :][: part[0], : part[1]]
        np.testing.assert_array_equal(resample(image, size, begin, part, name), rows)


@pytest.mark.parametrize("kind", slow_except(STEPS, "shorter edge", "crop"))
def test_steps_are_the_same_for_arrays_files_and_graphs(kind, tmp_path):
    steps = steps_of(kind)
    size = ImageSize(*SIZE, **steps)
    decode = graph_of(kind)
    for seed, (height, width) in enumerate([SIZE, (6, 9), (9, 6), (40, 50)]):
        image = draw(height, width, seed=seed)
        expected, encoded = prepared(image, **steps), encode_png(image)
        (tmp_path / "a.png").write_bytes(encoded)
        read = [size.read(tmp_path / "a.png"), size.from_bytes(encoded, "a")]
        for result in (*read, size.from_array(image, "a"), decode(tf.constant(encoded))):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [("PNG", "RGB"), ("PNG", "L"), ("PNG", "P"), ("PNG", "RGBA"), ("PNG", "LA"), ("PNG", "1")]
    + [("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK")],
)
def test_files_are_decoded_to_the_pixels_of_pillow(suffix, mode):
    """In colour, and in grey."""
    encoded = smooth_file(suffix, mode)
    for channels, name in ((1, "L"), (3, "RGB")):
        expected = np.asarray(PIL.Image.open(io.BytesIO(encoded)).convert(name))
        expected = prepared(expected.reshape(50, 40, channels), **steps_of("shorter edge"))
        size = ImageSize(*SIZE, channels, **steps_of("shorter edge"))
        pixels = size.from_bytes(encoded, "a")
        np.testing.assert_array_equal(pixels, expected)
        decode = graph_of("shorter edge", channels)
        np.testing.assert_array_equal(decode(tf.constant(encoded)), expected)


def test_grey_levels_of_16_bits_become_8():
    """By their higher byte; Pillow makes all levels above 255 white."""
    levels = np.random.default_rng(0).integers(0, 2**16, (5, 4, 1)).astype("uint16")
    encoded = tf.io.encode_png(levels).numpy()
    for options in ({}, {"resize": True, "interpolation": "nearest"}):
        pixels = ImageSize(5, 4, 1, **options).from_bytes(encoded, "a")
        np.testing.assert_array_equal(pixels, levels >> 8)


def test_a_file_with_an_axis_of_frames_is_refused_before_a_batch():
    """TensorFlow decodes WebP to `[frames, H, W, C]`."""
    size, encoded = ImageSize(*SIZE, **steps_of("resize")), smooth_file("WEBP", "RGB")
    for read in (size.check, size.from_bytes):
        with pytest.raises(ValueError, match="a.webp: is not a readable PNG or JPEG image"):
            read(encoded, "a.webp")


def smooth_file(suffix, mode):
    """Returns an image of 50 x 40 pixels without sharp edges as the bytes of a file."""
    small = PIL.Image.fromarray(draw(5, 4))
    image = small.resize((40, 50), PIL.Image.Resampling.BICUBIC).convert(mode)
    file = io.BytesIO()
    image.save(file, suffix)
    return file.getvalue()


def test_the_shorter_edge_of_a_long_image_needs_little_memory():
    """The resized image would have a gigabyte; only the part that is used is computed."""
    size = ImageSize(
        *SIZE, resize=True, interpolation="bilinear", resize_to=(99,), center_crop=True
    )
    image = np.full((1, 60_000, 3), 7, "uint8")
    assert (size.from_array(image, "a") == 7).all()


def test_configurations_without_the_options_resize_as_before():
    image = draw(13, 9)
    exact = tf.image.resize(image, SIZE, antialias=True)
    expected = np.clip(np.round(exact), 0, 255).astype("uint8")
    size = ImageSize.from_metadata({"height": 6, "width": 4, "channels": 3, "resize": True})
    np.testing.assert_array_equal(size.from_array(image, "a"), expected)
    old = {"image_height": 6, "image_width": 4, "channels": 3, "resize": True, "patch_size": 2}
    config = ImageClassifierConfig(**dataclasses.asdict(PatchInput.from_dict(old)))
    assert ImageSize.of(config) == size and config.input.interpolation is None


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"interpolation": "cubic"}, "`interpolation` must be one of nearest, box, "),
        ({"interpolation": "box", "resize": False}, "`interpolation` has no effect without `res"),
        ({"center_crop": True}, "`center_crop` has no effect on images that have the size"),
        ({"resize_to": (9, 9), "center_crop": True}, "`resize_to` needs `interpolation` and `ce"),
        ({"resize_to": (9, 9), "interpolation": "box"}, "`resize_to` needs .* `center_crop`"),
        ({"resize_to": 9}, "`resize_to` must be a tuple of integers. Received: "),
        ({"resize_to": (5, 9)}, "`resize_to` must be .* at least 6 x 4 and at most 65535 pixels"),
        ({"resize_to": (5,)}, "`resize_to` must be a height and a width, or the shorter edge, of"),
        ({"resize_to": (9, 9, 9)}, "`resize_to` must be .* Received: .*resize_to=.9, 9, 9."),
        ({"resize_to": (70_000,)}, "`resize_to` must be .* at most 65535 pixels"),
    ],
)
def test_steps_without_effect_are_refused(steps, message):
    sized = {"interpolation": "box", "center_crop": True} if {*steps} == {"resize_to"} else {}
    fields = {"image_height": 6, "image_width": 4, "resize": True, **sized, **steps}
    with pytest.raises((TypeError, ValueError), match=message) as error:
        PatchInput(**fields)
    assert "\n" not in str(error.value)


def test_images_that_are_too_small_for_a_crop_are_refused():
    size = ImageSize(*SIZE, center_crop=True)
    with pytest.raises(ValueError, match="small.png: must have height x .* Received: 5 x 4 x 3"):
        size.from_array(draw(5, 9), "small.png")
    with pytest.raises(tf.errors.InvalidArgumentError, match="an image must have 6 x 4 pixels"):
        size.decode(encode_png(draw(5, 9)))


@pytest.mark.parametrize("steps", [{}, {"center_crop": True}])
def test_the_check_of_the_size_is_a_part_of_an_optimized_graph(steps):
    """TensorFlow's optimizer removes an assertion that must hold by the shapes it infers."""
    decode = tf.function(ImageSize(*SIZE, **steps).decode, autograph=False)
    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match="an image must have 6 x 4 pixels"):
            decode(encode_png(draw(5, 9)))
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})


def test_a_codec_without_a_graph_names_the_image():
    """As for LiteRT; TensorFlow's error of a loop would only say "in user code"."""
    codec = ImageCodec(ImageSize(*SIZE, **steps_of("resize")), ("a", "b"))
    images = [draw(9, 9), draw(*SIZE, seed=1)]
    pixels = codec.encode(**codec.request(images))[0]["pixels"]
    expected = [prepared(image, **steps_of("resize")) for image in images]
    assert pixels.dtype == tf.float32
    np.testing.assert_array_equal(pixels, expected)
    for bad in (b"no image", smooth_file("WEBP", "RGB")):
        with pytest.raises(ValueError, match="^image 2: is not a readable PNG or JPEG image.$"):
            codec.encode(**codec.request([images[0], bad]))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (None, "An image must have 6 x 4 pixels; one of another size is an error."),
        ("resize", "An image of another size is resized to 6 x 4 pixels with a bicubic filter."),
        (
            "resize and crop",
            "An image is resized to 11 x 9 pixels with a bicubic filter, and the 6 x 4 pixels at "
            "its centre are used.",
        ),
        (
            "shorter edge",
            "An image is resized to a shorter edge of 7 pixels with a lanczos filter, and the 6 x "
            "4 pixels at its centre are used.",
        ),
        (
            "crop",
            "Of an image, the 6 x 4 pixels at its centre are used; a smaller one is an error.",
        ),
    ],
)
def test_files_describe_the_steps(kind, sentence):
    size = ImageSize(*SIZE, **(steps_of(kind) if kind else {}))
    codec = ImageCodec(size, ("a", "b"))
    assert sentence in codec.guide(draw(*SIZE)).notes
    metadata = codec.metadata()
    assert (sentence in metadata["pixels"]) == (kind is not None)
    assert type(metadata["image"]["resize_to"]) is list
    assert ImageCodec.from_metadata(metadata, None).image_size == size


def test_an_image_classifier_prepares_every_image_once():
    """Also one that has the size of the model already."""
    steps = steps_of("resize and crop")
    sizes = {"image_height": 6, "image_width": 4, "patch_size": 2, "labels": ("a", "b", "c")}
    small = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 6}
    image_classifier = ImageClassificationPipeline(
        randomise(ImageClassifier(**sizes, **small, **steps))
    )
    images = [draw(*SIZE), draw(20, 9, seed=1)]
    pixels = np.array([prepared(image, **steps) for image in images])
    logits = image_classifier.model(pixels.astype("float32"), training=False)
    expected = tf.nn.softmax(logits).numpy()
    for form in (images, [encode_png(image) for image in images]):
        found = [result.probabilities for result in image_classifier.classify(form)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    shown = image_classifier.attention(images[1])["class"]
    np.testing.assert_array_equal(shown.pixels, pixels[1])
    assert shown.label == image_classifier([images[1]])[0]
