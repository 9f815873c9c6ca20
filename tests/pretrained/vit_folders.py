"""Folders as Hugging Face writes ViT and DeiT, with random weights, and their arithmetic in NumPy.

Nothing here is shared with the package.
"""

import json

import numpy as np
import safetensors.numpy
from bert_in_numpy import ACTIVATIONS, layer_norm, linear

SIZES = {
    "model_type": "vit",
    "architectures": ["ViTForImageClassification"],
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 34,
    "image_size": 12,
    "patch_size": 4,
    "num_channels": 3,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "qkv_bias": True,
    "id2label": {"0": "cat", "1": "dog", "2": "tabby, tabby cat"},
}
PLAIN = {"architectures": ["ViTModel"]}
PREPROCESSOR = {
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "image_processor_type": "ViTImageProcessor",
    "resample": 2,
    "rescale_factor": 0.00392156862745098,
    "size": {"height": 12, "width": 12},
}
TOKENS = {"vit": ["cls_token"], "deit": ["cls_token", "distillation_token"]}
TEACHER = "DeiTForImageClassificationWithTeacher"
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def tensors_of(settings, seed=0):
    """Random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, inner = settings["hidden_size"], settings["intermediate_size"]
    (architecture,) = settings["architectures"]
    base = "" if architecture.endswith("Model") else f"{settings['model_type']}."
    channels, patch = settings["num_channels"], settings["patch_size"]
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = np.prod(shape[1:]) ** -0.5 if scale is None else scale
        tensors[name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    def add_linear(name, outputs, inputs, bias=True):
        add(f"{name}.weight", outputs, inputs)
        if bias:
            add(f"{name}.bias", outputs, scale=0.3)

    def add_norm(name):
        add(f"{name}.weight", width, mean=1.0, scale=0.3)
        add(f"{name}.bias", width, scale=0.3)

    patches = (settings["image_size"] // patch) ** 2
    tokens = TOKENS[settings["model_type"]]
    for token in tokens:
        add(f"{base}embeddings.{token}", 1, 1, width, scale=1.0)
    add(f"{base}embeddings.position_embeddings", 1, len(tokens) + patches, width, scale=0.5)
    add(f"{base}embeddings.patch_embeddings.projection.weight", width, channels, patch, patch)
    add(f"{base}embeddings.patch_embeddings.projection.bias", width, scale=0.3)
    for number in range(settings["num_hidden_layers"]):
        name = f"{base}encoder.layer.{number}"
        for projection in ("query", "key", "value"):
            place = f"{name}.attention.attention.{projection}"
            add_linear(place, width, width, settings["qkv_bias"])
        add_linear(f"{name}.attention.output.dense", width, width)
        add_norm(f"{name}.layernorm_before")
        add_norm(f"{name}.layernorm_after")
        add_linear(f"{name}.intermediate.dense", inner, width)
        add_linear(f"{name}.output.dense", width, inner)
    add_norm(f"{base}layernorm")
    heads = ["classifier"] if base else []
    if architecture == TEACHER:
        heads = ["cls_classifier", "distillation_classifier"]
    for head in heads:
        add_linear(head, len(settings["id2label"]), width)
    if not heads:
        add_linear("pooler.dense", width, width)
    return tensors


def write_folder(folder, more=None, dtype="float32", preprocessor=PREPROCESSOR, **changes):
    """Writes a checkpoint; returns its settings, and its tensors in float64 as the file has them.

    `preprocessor`: content of `preprocessor_config.json`, or `None` for no such file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = {name: values.astype(dtype) for name, values in tensors_of(settings).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if preprocessor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def images_of(settings, count=3, seed=0):
    """Random images, uint8 `[B, H, W, C]`."""
    size, channels = settings["image_size"], settings["num_channels"]
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, size, size, channels)).astype("uint8")


def forward(weights, settings, images, mean=0.5, deviation=0.5):
    """Hidden states `[B, S, D]` and, where there is a classifier, logits `[B, C]`."""
    prefix = f"{settings['model_type']}."
    weights = {name.removeprefix(prefix): values for name, values in weights.items()}
    epsilon, size = settings["layer_norm_eps"], settings["patch_size"]
    pixels = (images / 255 - np.array(mean)) / np.array(deviation)
    name = "embeddings.patch_embeddings.projection"
    kernel, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    rows = []
    for image in pixels:
        tokens = TOKENS[settings["model_type"]]
        patches = [weights[f"embeddings.{token}"][0, 0] for token in tokens]
        for top in range(0, image.shape[0], size):
            for left in range(0, image.shape[1], size):
                patch = image[top : top + size, left : left + size].transpose(2, 0, 1)
                patches.append(np.array([(unit * patch).sum() for unit in kernel]) + bias)
        rows.append(np.array(patches) + weights["embeddings.position_embeddings"][0])
    x = np.array(rows)
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        normed = layer_norm(weights, f"{name}.layernorm_before", x, epsilon)
        x = x + attention(weights, f"{name}.attention", normed, settings["num_attention_heads"])
        normed = layer_norm(weights, f"{name}.layernorm_after", x, epsilon)
        inner = linear(weights, f"{name}.intermediate.dense", normed)
        inner = ACTIVATIONS[settings["hidden_act"]](inner)
        x = x + linear(weights, f"{name}.output.dense", inner)
    x = layer_norm(weights, "layernorm", x, epsilon)
    if "distillation_classifier.weight" in weights:
        first = linear(weights, "cls_classifier", x[:, 0])
        return x, (first + linear(weights, "distillation_classifier", x[:, 1])) / 2
    return x, linear(weights, "classifier", x[:, 0]) if "classifier.weight" in weights else None


def attention(weights, name, x, heads):
    parts = []
    for projection in ("query", "key", "value"):
        layer = f"{name}.attention.{projection}"
        parts.append(x @ weights[f"{layer}.weight"].T + weights.get(f"{layer}.bias", 0.0))
    query, key, value = parts
    size, out = x.shape[-1] // heads, np.zeros_like(x)
    for b, h, t in np.ndindex(x.shape[0], heads, x.shape[1]):
        part = slice(h * size, (h + 1) * size)
        scores = key[b, :, part] @ query[b, t, part] / size**0.5
        scores = np.exp(scores - scores.max())
        out[b, t, part] = scores / scores.sum() @ value[b, :, part]
    return linear(weights, f"{name}.output.dense", out)
