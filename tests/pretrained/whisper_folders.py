"""Whisper as Hugging Face writes it, with random weights, and its arithmetic in NumPy.

Nothing here is shared with the package.
"""

import json

import bpe_in_python
import marian_in_numpy
import numpy as np
import safetensors.numpy
from roberta_folders import MERGES

END, START, LANGUAGES = "<|endoftext|>", "<|startoftranscript|>", ("en", "de", "fr")
TASKS = ("translate", "transcribe")
TIMES = [f"<|{number / 50:.2f}|>" for number in range(51)]


def pieces_of(languages):
    """The vocabulary with the tokens of some languages."""
    return [
        *bpe_in_python.vocabulary(MERGES, []),
        *(END, START, *(f"<|{code}|>" for code in languages), *(f"<|{task}|>" for task in TASKS)),
        *("<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>", *TIMES),
    ]


PIECES = pieces_of(LANGUAGES)
IDS = {piece: number for number, piece in enumerate(PIECES)}
SPACE = IDS["Ġ"]
SIZES = {
    "model_type": "whisper",
    "architectures": ["WhisperForConditionalGeneration"],
    "vocab_size": len(PIECES),
    "num_mel_bins": 5,
    "d_model": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 17,
    "decoder_ffn_dim": 17,
    "activation_function": "gelu",
    "max_source_positions": 7,
    "max_target_positions": 13,
    "pad_token_id": IDS[END],
    "bos_token_id": IDS[END],
    "eos_token_id": IDS[END],
    "decoder_start_token_id": IDS[START],
}
FEATURES = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 5,
    "sampling_rate": 16_000,
    "hop_length": 160,
    "n_fft": 400,
    "chunk_length": 0.14,
}


def generation_of(pieces, languages):
    """The settings of real checkpoints, with the ids of a vocabulary."""
    ids = {piece: number for number, piece in enumerate(pieces)}
    tasks = {task: ids[f"<|{task}|>"] for task in TASKS}
    silent = [START, "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"]
    return {
        "is_multilingual": True,
        "lang_to_id": {f"<|{code}|>": ids[f"<|{code}|>"] for code in languages},
        "task_to_id": tasks,
        "forced_decoder_ids": [[1, None], [2, tasks["transcribe"]]],
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "return_timestamps": False,
        "max_initial_timestamp_index": 1,
        "max_length": SIZES["max_target_positions"],
        "begin_suppress_tokens": [SPACE, ids[END]],
        "suppress_tokens": [1, 9, *tasks.values(), *(ids[piece] for piece in silent)],
    }


GENERATION = generation_of(PIECES, LANGUAGES)


def tensors_of(settings, seed=0):
    """Random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, tensors = settings["d_model"], {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = np.prod(shape[1:]) ** -0.5 if scale is None else scale
        tensors[name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    def linear(name, outputs, *shape, bias=True):
        add(f"{name}.weight", outputs, *shape)
        if bias:
            add(f"{name}.bias", outputs, scale=0.3)

    def norm(name):
        add(f"{name}.weight", width, mean=1.0, scale=0.3)
        add(f"{name}.bias", width, scale=0.3)

    linear("model.encoder.conv1", width, settings["num_mel_bins"], 3)
    linear("model.encoder.conv2", width, width, 3)
    for side, rows in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        add(f"model.{side}.embed_positions.weight", settings[rows], width, scale=0.5)
        for number in range(settings[f"{side}_layers"]):
            name = f"model.{side}.layers.{number}"
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for which in ("q", "k", "v", "out"):
                    linear(f"{name}.{attention}.{which}_proj", width, width, bias=which != "k")
                norm(f"{name}.{attention}_layer_norm")
            linear(f"{name}.fc1", settings[f"{side}_ffn_dim"], width)
            linear(f"{name}.fc2", width, settings[f"{side}_ffn_dim"])
            norm(f"{name}.final_layer_norm")
        norm(f"model.{side}.layer_norm")
    add("model.decoder.embed_tokens.weight", settings["vocab_size"], width, scale=0.7)
    if not settings.get("tie_word_embeddings", True):
        add("proj_out.weight", settings["vocab_size"], width, scale=0.7)
    return tensors


def write_vocabulary(folder, count=None):
    """Writes `vocab.json`, `merges.txt` and `added_tokens.json`, as in older releases.

    `count`: only the ids below it are written.
    """
    first = IDS[END]
    ids = {piece: number for piece, number in IDS.items() if number < first}
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    pairs = "".join(f"{' '.join(pair)}\n" for pair in MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{pairs}", "utf-8")
    last = len(IDS) if count is None else count
    added = {piece: number for piece, number in IDS.items() if first <= number < last}
    (folder / "added_tokens.json").write_text(json.dumps(added))


def write_folder(folder, generation=None, features=None, **changes):
    """Writes a checkpoint; returns its settings and its tensors, in float64."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = tensors_of(settings)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    generation = {**GENERATION, **(generation or {})}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    features = {**FEATURES, **(features or {})}
    (folder / "preprocessor_config.json").write_text(json.dumps(features))
    write_vocabulary(folder)
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def convolution(weights, name, x, stride):
    """One row `[S, F]`: windows of three positions, with zeros beyond both ends."""
    kernel, padded = weights[f"{name}.weight"], np.pad(x, [(1, 1), (0, 0)])
    rows = [
        sum(kernel[:, :, offset] @ padded[place + offset] for offset in range(3))
        for place in range(0, len(x), stride)
    ]
    return marian_in_numpy.activate("gelu", np.array(rows) + weights[f"{name}.bias"])


def forward(weights, settings, frames, target):
    """Encoder states `[B, S, D]` and logits `[B, T, V]` of frames `[B, 2 * S, F]`."""
    how = {**settings, "normalize_before": True, "add_final_layer_norm": True}
    x = []
    for row in frames.astype("float64"):
        for name, stride in (("conv1", 1), ("conv2", 2)):
            row = convolution(weights, f"model.encoder.{name}", row, stride)
        x.append(row + weights["model.encoder.embed_positions.weight"])
    everywhere = np.ones((len(x), 1, len(x[0])), bool)
    states = marian_in_numpy.stack(weights, how, "encoder", np.array(x), everywhere)
    table = weights["model.decoder.embed_tokens.weight"]
    y = table[target] + weights["model.decoder.embed_positions.weight"][: target.shape[1]]
    past = np.tril(np.ones((target.shape[1],) * 2, bool))[None]
    y = marian_in_numpy.stack(weights, how, "decoder", y, past, states, everywhere)
    return states, y @ weights.get("proj_out.weight", table).T
