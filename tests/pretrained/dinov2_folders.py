"""Folders as Hugging Face writes DINOv2, with random weights, and their arithmetic in NumPy.

Nothing here is shared with the package.
"""

import json
import math

import numpy as np
import safetensors.numpy
from bert_in_numpy import ACTIVATIONS, layer_norm, linear
from vit_folders import IMAGENET, attention

SIZES = {
    "model_type": "dinov2",
    "architectures": ["Dinov2ForImageClassification"],
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "mlp_ratio": 3,
    "image_size": 20,
    "patch_size": 4,
    "num_channels": 3,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-6,
    "layerscale_value": 0.5,
    "qkv_bias": True,
    "id2label": {"0": "cat", "1": "dog", "2": "tabby, tabby cat"},
}
PREPROCESSOR = {
    "image_processor_type": "BitImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": 15},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 12, "width": 12},
    "do_rescale": True,
    "rescale_factor": 0.00392156862745098,
    "do_normalize": True,
    "do_convert_rgb": True,
    **IMAGENET,
}
REGISTERS = {
    "model_type": "dinov2_with_registers",
    "architectures": ["Dinov2WithRegistersForImageClassification"],
    "num_register_tokens": 4,
}


def tensors_of(settings, seed=0):
    """Random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, inner = settings["hidden_size"], settings["hidden_size"] * settings["mlp_ratio"]
    base = f"{settings['model_type']}." if "For" in settings["architectures"][0] else ""
    channels, patch = settings["num_channels"], settings["patch_size"]
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = np.prod(shape[1:]) ** -0.5 if scale is None else scale
        tensors[base + name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    def add_linear(name, outputs, inputs):
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs, scale=0.3)

    def add_norm(name):
        add(f"{name}.weight", width, mean=1.0, scale=0.3)
        add(f"{name}.bias", width, scale=0.3)

    add("embeddings.cls_token", 1, 1, width, scale=1.0)
    add("embeddings.mask_token", 1, width, scale=1.0)
    if "num_register_tokens" in settings:
        add("embeddings.register_tokens", 1, settings["num_register_tokens"], width, scale=1.0)
    patches = (settings["image_size"] // patch) ** 2
    add("embeddings.position_embeddings", 1, 1 + patches, width, scale=0.5)
    add("embeddings.patch_embeddings.projection.weight", width, channels, patch, patch)
    add("embeddings.patch_embeddings.projection.bias", width, scale=0.3)
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        for projection in ("query", "key", "value"):
            add_linear(f"{name}.attention.attention.{projection}", width, width)
        add_linear(f"{name}.attention.output.dense", width, width)
        for place in ("1", "2"):
            add_norm(f"{name}.norm{place}")
            add(f"{name}.layer_scale{place}.lambda1", width, mean=0.5, scale=0.3)
        if settings.get("use_swiglu_ffn"):
            gated = math.ceil(int(inner * 2 / 3) / 8) * 8
            add_linear(f"{name}.mlp.weights_in", 2 * gated, width)
            add_linear(f"{name}.mlp.weights_out", width, gated)
        else:
            add_linear(f"{name}.mlp.fc1", inner, width)
            add_linear(f"{name}.mlp.fc2", width, inner)
    add_norm("layernorm")
    if base:
        base = ""
        add_linear("classifier", len(settings["id2label"]), 2 * width)
    return tensors


def write_folder(folder, preprocessor=PREPROCESSOR, **changes):
    """Writes a checkpoint; returns its settings, and its tensors in float64."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = tensors_of(settings)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if preprocessor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def forward(weights, settings, images):
    """Hidden states `[B, S, D]` and, where there is a classifier, logits `[B, C]`."""
    prefix = f"{settings['model_type']}."
    weights = {name.removeprefix(prefix): values for name, values in weights.items()}
    epsilon, size = settings["layer_norm_eps"], settings["patch_size"]
    pixels = (images / 255 - np.array(IMAGENET["image_mean"])) / np.array(IMAGENET["image_std"])
    kernel = weights["embeddings.patch_embeddings.projection.weight"]
    bias = weights["embeddings.patch_embeddings.projection.bias"]
    is_smooth = "embeddings.register_tokens" in weights
    registers = weights["embeddings.register_tokens"][0] if is_smooth else np.zeros((0, len(bias)))
    rows = []
    for image in pixels:
        grid = image.shape[0] // size, image.shape[1] // size
        first, positions = np.split(weights["embeddings.position_embeddings"][0], [1])
        first = first + weights["embeddings.cls_token"][0]
        positions = resized(positions, grid, is_smooth)
        patches = []
        for top in range(0, image.shape[0], size):
            for left in range(0, image.shape[1], size):
                patch = image[top : top + size, left : left + size].transpose(2, 0, 1)
                patches.append(np.array([(unit * patch).sum() for unit in kernel]) + bias)
        rows.append(np.concatenate([first, registers, np.array(patches) + positions]))
    x = np.array(rows)
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        normed = layer_norm(weights, f"{name}.norm1", x, epsilon)
        change = attention(weights, f"{name}.attention", normed, settings["num_attention_heads"])
        x = x + weights[f"{name}.layer_scale1.lambda1"] * change
        normed = layer_norm(weights, f"{name}.norm2", x, epsilon)
        if settings.get("use_swiglu_ffn"):
            both = linear(weights, f"{name}.mlp.weights_in", normed)
            gate, inner = np.split(both, 2, axis=-1)
            change = linear(weights, f"{name}.mlp.weights_out", gate / (1 + np.exp(-gate)) * inner)
        else:
            inner = ACTIVATIONS[settings["hidden_act"]](linear(weights, f"{name}.mlp.fc1", normed))
            change = linear(weights, f"{name}.mlp.fc2", inner)
        x = x + weights[f"{name}.layer_scale2.lambda1"] * change
    x = layer_norm(weights, "layernorm", x, epsilon)
    if "classifier.weight" not in weights:
        return x, None
    both = np.concatenate([x[:, 0], x[:, 1 + len(registers) :].mean(1)], axis=-1)
    return x, linear(weights, "classifier", both)


def resized(positions, grid, is_smooth):
    """Positions `[rows * columns, D]` of a square grid for another grid, in plain loops."""
    side = round(len(positions) ** 0.5)
    if grid == (side, side):
        return positions
    square = positions.reshape(side, side, -1)
    result = np.zeros((*grid, square.shape[-1]))
    for row, column in np.ndindex(*grid):
        total = 0.0
        for i, down in _neighbors(row, side, grid[0], is_smooth):
            for j, right in _neighbors(column, side, grid[1], is_smooth):
                result[row, column] += down * right * square[i, j]
                total += down * right
        result[row, column] /= total
    return result.reshape(-1, square.shape[-1])


def _neighbors(place, side, new_side, is_smooth):
    """Pairs of an index and its weight: 4 of them, or with smoothing all within the filter."""
    step = side / new_side
    center = (place + 0.5) * step - 0.5
    if not is_smooth:
        first = math.floor(center) - 1
        around = range(first, first + 4)
        return [(min(max(i, 0), side - 1), _cubic(center - i, -0.75)) for i in around]
    return [(i, _cubic((center - i) / max(step, 1.0), -0.5)) for i in range(side)]


def _cubic(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0
