"""DINOv2 in an ONNX file, written as Hugging Face's ViT with the layer scales in the weights."""

import json

import numpy as np
import onnx_file
import safetensors.numpy

HEADS = 6  # of the small model
SIDE = 224  # pixels of the images for vectors
# The nodes that read the positions of the class token and of the patches.
POSITIONS = ("/backbone/embeddings/Concat_6", "/backbone/embeddings/Reshape_1")
STATISTICS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
NORMS = {"norm1": "layernorm_before", "norm2": "layernorm_after"}
EMBEDDED = ("cls_token", "patch_embeddings.projection.weight", "patch_embeddings.projection.bias")


def read(path):
    """Returns the weights by the names of the PyTorch module; matrices are `[out, in]`."""
    graph = onnx_file.values(memoryview(path.read_bytes()), onnx_file.GRAPH)[0]
    stored = dict(map(onnx_file.tensor, onnx_file.values(graph, onnx_file.INITIALIZER)))
    found, positions = {}, []
    for node in onnx_file.values(graph, onnx_file.NODE):
        inputs = [bytes(name).decode() for name in onnx_file.values(node, onnx_file.NODE_INPUT)]
        name = onnx_file.text(node, onnx_file.NODE_NAME)
        if name in POSITIONS:
            positions.append(stored[inputs[0]])
        elif onnx_file.text(node, onnx_file.NODE_TYPE) == "MatMul" and inputs[1] in stored:
            module = name.removesuffix("/MatMul").strip("/").replace("/", ".")
            found[f"{module}.weight"] = stored[inputs[1]].T
    found |= {name: value for name, value in stored.items() if name.startswith("backbone.")}
    found = {name.removeprefix("backbone."): value for name, value in found.items()}
    positions.sort(key=lambda values: values.shape[1])
    return {**found, "positions": np.concatenate(positions, axis=1)}


def tensors_of(stored):
    """Returns the weights of an encoder under the names of Hugging Face's ViT, in float32."""
    found = {f"embeddings.{name}": stored[f"embeddings.{name}"] for name in EMBEDDED}
    found["embeddings.position_embeddings"] = stored["positions"]
    for kind in ("weight", "bias"):
        found[f"layernorm.{kind}"] = stored[f"layernorm.{kind}"]
        for number in range(layers(stored)):
            place = f"encoder.layer.{number}"
            parts = {name: stored[f"{place}.{theirs}.{kind}"] for theirs, name in NORMS.items()}
            for name in ("query", "key", "value"):
                name = f"attention.attention.{name}"
                parts[name] = stored[f"{place}.{name}.{kind}"]
            parts["intermediate.dense"] = stored[f"{place}.mlp.fc1.{kind}"]
            scaled = {"attention.output.dense": "attention.output.dense", "output.dense": "mlp.fc2"}
            for scale, (name, theirs) in enumerate(scaled.items(), 1):
                values = stored[f"{place}.{theirs}.{kind}"]
                factors = stored[f"{place}.layer_scale{scale}.lambda1"]
                parts[name] = (values.T * factors).T  # a row of the matrix for each output
            found |= {f"{place}.{name}.{kind}": values for name, values in parts.items()}
    return {f"vit.{name}": np.ascontiguousarray(v, np.float32) for name, v in found.items()}


def write_vectors(folder, stored):
    """Writes `Dinov2Model`, whose images are resized and cropped to 224 x 224 pixels."""
    settings = settings_of(stored, ["-"])
    for name in ("intermediate_size", "id2label"):
        del settings[name]
    settings |= {"model_type": "dinov2", "architectures": ["Dinov2Model"], "mlp_ratio": 4}
    tensors = {name: values for name, values in stored.items() if name != "positions"}
    tensors["embeddings.position_embeddings"] = stored["positions"]
    tensors = {name: np.ascontiguousarray(v, np.float32) for name, v in tensors.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    images = {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 256},
        "crop_size": {"height": SIDE, "width": SIDE},
        "resample": 3,
        "rescale_factor": 1 / 255,
        **STATISTICS,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "preprocessor_config.json").write_text(json.dumps(images))


def layers(stored):
    return len([name for name in stored if name.endswith(".norm1.bias")])


def settings_of(stored, labels):
    """The content of config.json."""
    kernel = stored["embeddings.patch_embeddings.projection.weight"]
    side = round((stored["positions"].shape[1] - 1) ** 0.5)
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "hidden_size": len(kernel),
        "num_hidden_layers": layers(stored),
        "num_attention_heads": HEADS,
        "intermediate_size": len(stored["encoder.layer.0.mlp.fc1.bias"]),
        "image_size": side * kernel.shape[-1],
        "patch_size": kernel.shape[-1],
        "num_channels": kernel.shape[1],
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-6,
        "qkv_bias": True,
        "id2label": {str(number): label for number, label in enumerate(labels)},
    }


def write_hugging_face(folder, tensors, settings):
    """Writes a classifier; its images are resized to the size of its positions."""
    tensors = {name: np.ascontiguousarray(v, np.float32) for name, v in tensors.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    size = settings["image_size"]
    images = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "resample": 3,
        "size": {"height": size, "width": size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        **STATISTICS,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
