"""Whisper in CTranslate2's format, read without its library and written as Hugging Face does."""

import json
import shutil
import struct

import numpy as np
import safetensors.numpy

TYPES = [np.float32, np.int8, np.int16, np.int32, np.float16]
SIDES = ("encoder", "decoder")
NORMS = {"self_attn_layer_norm": "self_attention", "final_layer_norm": "ffn"}
LAST, CONV = "/ffn/linear_1/bias", "model.encoder.conv1.weight"
CROSS = {**NORMS, "encoder_attn_layer_norm": "attention"}


def tensors(path):
    """Returns the tensors of a `model.bin` by name."""
    data, at = path.read_bytes(), 0

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        length = number("<H")
        at += length
        return data[at - length : at].rstrip(b"\0").decode()

    found = {}
    number("<I"), text(), number("<I")  # the version, the name and the revision of the format
    for _ in range(number("<I")):
        name = text()
        shape = [number("<I") for _ in range(number("<B"))]
        kind, size = TYPES[number("<B")], number("<I")
        found[name] = np.frombuffer(data[at : at + size], kind).reshape(shape)
        at += size
    for _ in range(number("<I")):
        alias = text()
        found[alias] = found[text()]
    return found


def weights(stored):
    """Returns tensors under the names of Hugging Face's Whisper, in float32."""
    found = {}

    def linear(theirs, *ours):
        """A linear layer, or several in one."""
        for kind in ("weight", "bias"):
            parts = np.split(stored[f"{theirs}/{kind}"], len(ours))
            for name, values in zip(ours, parts, strict=True):
                found[f"{name}.{kind}"] = values
        for name in ours:
            if name.endswith("k_proj") and found.pop(f"{name}.bias").any():
                raise ValueError(f"{theirs} has a bias of keys, which Whisper does not have.")

    def norm(theirs, ours):
        found[f"{ours}.weight"] = stored[f"{theirs}/layer_norm/gamma"]
        found[f"{ours}.bias"] = stored[f"{theirs}/layer_norm/beta"]

    for side in SIDES:
        base = f"model.{side}"
        positions = stored[f"{side}/position_encodings/encodings"]
        found[f"{base}.embed_positions.weight"] = positions
        norm(side, f"{base}.layer_norm")
        for layer in range(layers(stored, side)):
            theirs, ours = f"{side}/layer_{layer}", f"{base}.layers.{layer}"
            for name, part in (NORMS if side == "encoder" else CROSS).items():
                norm(f"{theirs}/{part}", f"{ours}.{name}")
            names = [f"{ours}.self_attn.{letter}_proj" for letter in "qkv"]
            linear(f"{theirs}/self_attention/linear_0", *names)
            linear(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn.out_proj")
            if side == "decoder":
                names = [f"{ours}.encoder_attn.{letter}_proj" for letter in "qkv"]
                linear(f"{theirs}/attention/linear_0", names[0])
                linear(f"{theirs}/attention/linear_1", *names[1:])
                linear(f"{theirs}/attention/linear_2", f"{ours}.encoder_attn.out_proj")
            linear(f"{theirs}/ffn/linear_0", f"{ours}.fc1")
            linear(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
    for name in ("conv1", "conv2"):
        linear(f"encoder/{name}", f"model.encoder.{name}")
    found["model.decoder.embed_tokens.weight"] = stored["decoder/embeddings/weight"]
    return {name: np.ascontiguousarray(values, np.float32) for name, values in found.items()}


def layers(stored, side):
    """Returns the number of layers of a side."""
    return len([name for name in stored if name.startswith(f"{side}/") and name.endswith(LAST)])


def write_hugging_face(source, folder):
    """Writes an English Whisper as Hugging Face's folder, with settings that follow from shapes."""
    stored = tensors(source / "model.bin")
    choices = json.loads((source / "config.json").read_text())
    found, heads = weights(stored), int(stored["encoder/num_heads"])
    table = found["model.decoder.embed_tokens.weight"]
    added = json.loads((source / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in added}
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    longest, bands = len(found["model.decoder.embed_positions.weight"]), found[CONV].shape[1]
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    special |= {"decoder_start_token_id": start}
    settings = {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "activation_function": "gelu",
        "d_model": table.shape[1],
        "vocab_size": len(table),
        "num_mel_bins": bands,
        "max_source_positions": len(found["model.encoder.embed_positions.weight"]),
        "max_target_positions": longest,
        "scale_embedding": False,
        **special,
    }
    for side in SIDES:
        settings[f"{side}_layers"] = layers(stored, side)
        settings[f"{side}_attention_heads"] = heads
        settings[f"{side}_ffn_dim"] = len(found[f"model.{side}.layers.0.fc1.bias"])
    generation = {
        **special,
        "begin_suppress_tokens": choices["suppress_ids_begin"],
        "suppress_tokens": [number for number in choices["suppress_ids"] if number >= 0],
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "forced_decoder_ids": [[1, ids["<|notimestamps|>"]]],
        "max_initial_timestamp_index": 50,
        "max_length": longest,
        "is_multilingual": False,
        "return_timestamps": False,
    }
    features = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": bands,
        "sampling_rate": 16_000,
        "n_fft": 400,
        "hop_length": 160,
        "chunk_length": 30,
        "n_samples": 480_000,
        "nb_max_frames": 3000,
        "padding_value": 0.0,
    }
    words = {"tokenizer_class": "WhisperTokenizer", "model_max_length": 1024}
    words |= dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>")
    files = {
        "config": settings,
        "generation_config": generation,
        "preprocessor_config": features,
        "tokenizer_config": words,
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    safetensors.numpy.save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(source / "tokenizer.json", folder)
