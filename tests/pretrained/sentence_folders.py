"""Folders as sentence-transformers writes them around a checkpoint, with all kinds of modules."""

import json

import llama_folders
import numpy as np
import safetensors.numpy

KIND = "sentence_transformers.models."
POOLINGS = ("mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens", "lasttoken")
CONFIG = "config_sentence_transformers.json"
PROMPTS = {"query": "the film ", "document": ""}


def add_modules(folder, width, pooling="mean_tokens", modules=(), **of_all):
    """Adds the files of a sentence encoder to the folder of its encoder.

    `modules`: pairs of a name such as `"Dense"` and the settings of the module, or `None` for a
    module without files. Returns the tensors of each, in float64.
    """
    rng, tensors = np.random.default_rng(5), []
    modules = [("Transformer", None), ("Pooling", None), *modules]
    rows = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": KIND + kind}
        for n, (kind, _) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    flags = {f"pooling_mode_{name}": name == pooling for name in POOLINGS}
    place = folder / "1_Pooling"
    place.mkdir(exist_ok=True)
    flags |= {"word_embedding_dimension": width, "include_prompt": True}
    (place / "config.json").write_text(json.dumps(flags))
    for row, (kind, settings) in zip(rows[2:], modules[2:], strict=True):
        place = folder / row["path"]
        place.mkdir(exist_ok=True)
        values = {}
        if kind == "Dense":
            shape = settings["out_features"], settings["in_features"]
            values = {"linear.weight": rng.normal(size=shape) / shape[1] ** 0.5}
            if settings.get("bias", True):
                values["linear.bias"] = rng.normal(size=shape[0]) / 3
        if kind == "LayerNorm":
            size = settings["dimension"]
            values = {"norm.weight": rng.normal(1, 0.3, size), "norm.bias": rng.normal(size=size)}
        values = {name: value.astype("float32") for name, value in values.items()}
        if settings is not None:
            (place / "config.json").write_text(json.dumps(settings))
            safetensors.numpy.save_file(values, place / "model.safetensors")
        tensors.append({name: value.astype("float64") for name, value in values.items()})
    (folder / CONFIG).write_text(json.dumps(of_all))
    return tensors


def after_pooling(rows, modules, tensors):
    """The vectors `[B, N]` after all modules, one text at a time, in float64."""
    result = []
    for row in rows:
        for (kind, settings), values in zip(modules, tensors, strict=True):
            if kind == "Dense":
                weights, biases = values["linear.weight"], values.get("linear.bias")
                row = np.array([sum(w * x for w, x in zip(line, row, strict=True))
                                for line in weights])  # fmt: skip
                row = row if biases is None else row + biases
                name = settings["activation_function"].rpartition(".")[2]
                row = {"Tanh": np.tanh, "Identity": lambda x: x}[name](row)
            elif kind == "LayerNorm":
                row = (row - row.mean()) / np.sqrt(((row - row.mean()) ** 2).mean() + 1e-5)
                row = row * values["norm.weight"] + values["norm.bias"]
            else:
                row = row / sum(x * x for x in row) ** 0.5
        result.append(row)
    return np.array(result)


def tanh(inputs, outputs, **more):
    name = "torch.nn.modules.activation.Tanh"
    return {"in_features": inputs, "out_features": outputs, "activation_function": name, **more}


def write_decoder(folder, kind="qwen3", after=llama_folders.END, **changes):
    """A language model whose tokenizer puts a token after a text, as that of Qwen3-Embedding."""
    end = len(llama_folders.PIECES) - 1
    ids = {"bos_token_id": end, "eos_token_id": end}
    result = llama_folders.write_folder(folder, kind, prefix="", **{**ids, **changes})
    content = llama_folders.tokenizer_json(llama_folders.KINDS[kind]["pattern"])
    for token in content["added_tokens"]:
        token |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content["post_processor"] = {
        "type": "Sequence",
        "processors": [
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
             "use_regex": False},
            template(after),
        ],
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))
    options = {"pad_token": llama_folders.END, "eos_token": llama_folders.END}
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    return result


def template(after):
    """The part of `tokenizer.json` that puts a token after a text; `None`: no token."""
    single = [{"Sequence": {"id": "A", "type_id": 0}}]
    special = {}
    if after is not None:
        number = llama_folders.PIECES.index(after)
        single.append({"SpecialToken": {"id": after, "type_id": 0}})
        special[after] = {"id": after, "ids": [number], "tokens": [after]}
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    parts = {"single": single, "pair": pair, "special_tokens": special}
    return {"type": "TemplateProcessing", **parts}
