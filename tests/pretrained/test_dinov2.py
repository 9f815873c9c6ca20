"""DINOv2's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
from dinov2_folders import PREPROCESSOR, REGISTERS, SIZES, forward, write_folder
from image_answers import compare
from marks import slow

from keras_transformer.pretrained.read import read_checkpoint

KINDS = {
    "smaller images": {},
    "images of training": {"preprocessor": {**PREPROCESSOR, "crop_size": 20, "size": 20}},
    "larger images": {"preprocessor": {**PREPROCESSOR, "crop_size": 28, "size": 28}},
    "gated": {"use_swiglu_ffn": True},
    "registers": REGISTERS,
    "vectors": {"architectures": ["Dinov2Model"]},
    "registers and larger images": {
        **REGISTERS,
        "preprocessor": {**PREPROCESSOR, "crop_size": 28, "size": 28},
    },
}
BASE = {key: SIZES[key] for key in SIZES if key not in ("model_type", "architectures")}
SHAPES = [(12, 12), (15, 15), (40, 31), (25, 60)]
FAMILIES = {
    "plain": ("Dinov2", {}),
    "registers": ("Dinov2WithRegisters", {"num_register_tokens": 3}),
}
CASES = {
    f"{name} {head}".strip(): {
        "model": (family, f"For{head}" if head else "Model"),
        "config": {**BASE, **options, **more},
        "images": {**PREPROCESSOR, "image_processor_type": None},
        "processor": "Bit",
        "sizes": SHAPES,
    }
    for name, (family, options) in FAMILIES.items()
    for head, more in (("ImageClassification", {"use_swiglu_ffn": True}), ("", {}))
}


@pytest.mark.parametrize(
    "kind",
    [
        "smaller images",
        slow("images of training"),
        slow("larger images"),
        "gated",
        "registers",
        "vectors",
    ]
    + [slow("registers and larger images")],
)
def test_states_and_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, **KINDS[kind])
    model = read_checkpoint(tmp_path).model
    images = np.random.default_rng(0).integers(0, 256, (2, *model.config.input.shape))
    expected, logits = forward(tensors, settings, images)
    pixels = images.astype("float32")
    states = model.encoder(model.parts.input(pixels, training=False), training=False)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-5)
    if kind == "vectors":
        assert logits is None
        logits = expected[:, 0]
    np.testing.assert_allclose(model(pixels, training=False), logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "preprocessor", "message"),
    [
        ({"image_size": 24}, {}, r"position_embeddings must have the shape \[1, 37, 24\]"),
        ({"mlp_ratio": 4}, {}, r"mlp\.fc1\.weight must have the shape \[96, 24\]"),
        ({"use_swiglu_ffn": True}, {}, r"mlp\.weights_in\.weight is missing"),
        ({}, {"crop_size": 14}, "`patch_size` must be a divisor of 14 and 14, the size of images"),
        ({}, {"crop_size": 4000, "size": 4000}, "`crop_size` must be at most 8 times 20 x 20"),
        ({}, {"image_processor_type": "CLIPImageProcessor"}, "a processor of ViT, DeiT or BiT"),
        ({"layerscale_value": "x"}, {}, "`layerscale_value` must be"),
    ],
)
def test_files_that_do_not_fit_are_refused(settings, preprocessor, message, tmp_path):
    write_folder(tmp_path, preprocessor={**PREPROCESSOR, **preprocessor})
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pixels_states_logits_and_answers_of_hugging_face(name):
    compare(CASES, name)
