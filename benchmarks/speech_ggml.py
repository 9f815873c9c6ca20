"""Files in the format of whisper.cpp, from weights in Hugging Face's format."""

import struct

import numpy as np
from speech_task import MEL_FILTERS, POSITIONS

# Whisper's own names of the layers of a block, by those of Hugging Face.
LAYERS = {
    "self_attn": "attn", "encoder_attn": "cross_attn", "self_attn_layer_norm": "attn_ln",
    "encoder_attn_layer_norm": "cross_attn_ln", "final_layer_norm": "mlp_ln", "fc1": "mlp.0",
    "fc2": "mlp.2", "q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "out",
    "embed_tokens": "token_embedding",
}  # fmt: skip
# Types of tensors and of files in the format of whisper.cpp, which cannot run float32 here: its
# convolutions need kernels in float16.
TYPES = {"none": 0, "float16": 1, "int8": 8}
FILE_TYPES = {"float16": 1, "int8": 2000 + 7}  # version 2 of quantisation, Q8_0
MAGIC, ROW = 0x67676D6C, 32  # numbers of a block of Q8_0


def write_ggml(path, speech, filters, pieces, tensors, how):
    """Writes sizes, mel filters, vocabulary and tensors.

    Args:
        path: Path of the file.
        speech: A `Speech`.
        filters: Mel filters `[window / 2 + 1, F]`.
        pieces: Tokens of text in the order of their ids.
        tensors: Arrays by their names in Hugging Face's format.
        how: A key of `FILE_TYPES`.
    """
    sizes = speech.d_model, speech.num_heads, speech.num_layers
    header = (
        *(MAGIC, speech.vocab_size, POSITIONS["encoder"], *sizes, POSITIONS["decoder"], *sizes),
        *(MEL_FILTERS, FILE_TYPES[how]),
    )
    filters = np.ascontiguousarray(filters.T, "float32")  # [F, window / 2 + 1]
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(header)}i", *header))
        file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        file.write(struct.pack("<i", len(pieces)))
        for piece in pieces:  # the texts of tokens do not matter here
            file.write(struct.pack("<I", len(piece.encode())) + piece.encode())
        for name, values in tensors.items():
            _write_tensor(file, _whispers_name(name), values, how)


def _whispers_name(name):
    parts = [LAYERS.get(part, part) for part in name.removeprefix("model.").split(".")]
    name = ".".join("blocks" if part == "layers" else part for part in parts)
    for theirs, own in (
        ("encoder.layer_norm", "encoder.ln_post"), ("decoder.layer_norm", "decoder.ln"),
        ("embed_positions.weight", "positional_embedding"),
    ):  # fmt: skip
        name = name.replace(theirs, own)
    return name


def _write_tensor(file, name, values, how):
    if "conv" in name and values.ndim == 1:
        values = values[:, None]
    kind = how
    if "weight" not in name or values.ndim == 1:
        kind = "none"
    elif values.ndim == 3 and how == "int8":  # its convolutions have 16 bits then
        kind = "float16"
    data = {"none": lambda: values, "float16": lambda: values.astype("float16")}
    content = data[kind]().tobytes() if kind in data else rounded(values)
    name = name.encode()
    file.write(struct.pack("<3i", values.ndim, len(name), TYPES[kind]))
    file.write(struct.pack(f"<{values.ndim}i", *reversed(values.shape)) + name + content)


def rounded(values):
    """Returns the bytes of an array in Q8_0: blocks of a scale in float16 and 32 integers."""
    blocks = values.reshape(-1, ROW)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / 127  # [blocks, 1]
    whole = np.rint(blocks / np.where(scales == 0, 1, scales)).astype(np.int8)
    scales = scales.astype(np.float16).view(np.int8).reshape(-1, 2)
    return np.concatenate([scales, whole], axis=1).tobytes()
