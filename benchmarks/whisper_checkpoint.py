"""Folders like Whisper's in Hugging Face's format, of any size, with random weights."""

import dataclasses
import itertools
import json

from pretrained_weights import Random
from speech_task import END, KERNEL, MEL_FILTERS, SAMPLE_RATE, START, TASKS, special_of

HOP, WINDOW = 160, 400  # samples
TABLE = "model.decoder.embed_tokens.weight"


@dataclasses.dataclass(frozen=True)
class Scales:
    """Standard deviations of random weights; matrices are divided by the root of their inputs.

    Args:
        convolutions, queries, table, positions, biases: Of these tensors. Others have 1.
        endless: Whether outputs never end: the embeddings of special tokens are zero, and so are
            their tied output weights, which leaves them far below the most probable of thousands of
            tokens. The signs of the last normalisation are random, because otherwise every token
            would be followed by itself.
    """

    convolutions: float
    queries: float
    table: float
    positions: float
    biases: float
    endless: bool


@dataclasses.dataclass(frozen=True)
class Shape:
    """A checkpoint of Whisper's architecture.

    Args:
        d_model, num_heads: Sizes; the feed-forward networks are 4 times as wide.
        num_layers: Number of blocks of `encoder` and `decoder`.
        positions: Number of positions of both.
        text_tokens: Number of tokens of text, at least the 256 bytes; others are pairs of them.
        codes: Codes of the languages.
        scales: The `Scales`.
        seed: Seed of the weights.
    """

    d_model: int
    num_heads: int
    num_layers: dict
    positions: dict
    text_tokens: int
    codes: tuple
    scales: Scales
    seed: int = 1

    @property
    def seconds(self):
        """Length of a recording: two frames for each position of the encoder."""
        return self.positions["encoder"] * 2 * HOP // SAMPLE_RATE

    @property
    def ids(self):
        """Ids of the special tokens, which come after those of text."""
        special = special_of(self.codes, self.seconds)
        return {piece: self.text_tokens + number for number, piece in enumerate(special)}

    @property
    def vocab_size(self):
        """Number of all tokens."""
        return self.text_tokens + len(self.ids)


def write(shape, folder):
    """Writes the checkpoint into a new folder."""
    import safetensors.numpy

    from keras_transformer.text.byte_pairs import CHARACTERS

    folder.mkdir(parents=True)
    safetensors.numpy.save_file(tensors_of(shape), folder / "model.safetensors")
    count = shape.text_tokens - len(CHARACTERS)
    merges = list(itertools.islice(itertools.product(CHARACTERS, repeat=2), count))
    pieces = [*CHARACTERS, *(first + second for first, second in merges)]
    lines = "".join(f"{first} {second}\n" for first, second in merges)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{lines}", "utf-8")
    files = {
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "added_tokens": shape.ids, "config": _settings(shape),
        "generation_config": _generation(shape), "preprocessor_config": _features(shape),
        "tokenizer_config": {
            "tokenizer_class": "WhisperTokenizer", "bos_token": END, "eos_token": END,
            "unk_token": END, "pad_token": END,
        },
    }  # fmt: skip
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def _special(shape):
    end = shape.ids[END]
    return {
        "bos_token_id": end, "eos_token_id": end, "pad_token_id": end,
        "decoder_start_token_id": shape.ids[START],
    }  # fmt: skip


def _settings(shape):
    sizes = {
        f"{side}_{name}": size
        for side, layers in shape.num_layers.items()
        for name, size in (
            ("layers", layers), ("attention_heads", shape.num_heads),
            ("ffn_dim", 4 * shape.d_model),
        )
    }  # fmt: skip
    return {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
        "vocab_size": shape.vocab_size, "d_model": shape.d_model, "num_mel_bins": MEL_FILTERS,
        "activation_function": "gelu", "max_source_positions": shape.positions["encoder"],
        "max_target_positions": shape.positions["decoder"],
        "num_hidden_layers": shape.num_layers["encoder"], "scale_embedding": False,
        "tie_word_embeddings": True, **sizes, **_special(shape),
    }  # fmt: skip


def _generation(shape):
    ids = shape.ids
    return {
        **_special(shape), "is_multilingual": True, "max_length": shape.positions["decoder"],
        "lang_to_id": {f"<|{code}|>": ids[f"<|{code}|>"] for code in shape.codes},
        "task_to_id": {task: ids[f"<|{task}|>"] for task in TASKS},
        "no_timestamps_token_id": ids["<|notimestamps|>"], "return_timestamps": False,
        "max_initial_timestamp_index": 50, "suppress_tokens": [], "begin_suppress_tokens": [],
        # Of Whisper tiny; faster-whisper reads them but does not use them here.
        "alignment_heads": [[shape.num_layers["decoder"] - 1, 0]],
    }  # fmt: skip


def _features(shape):
    samples = SAMPLE_RATE * shape.seconds
    return {
        "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MEL_FILTERS,
        "sampling_rate": SAMPLE_RATE, "hop_length": HOP, "n_fft": WINDOW,
        "chunk_length": shape.seconds, "n_samples": samples, "nb_max_frames": samples // HOP,
        "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False,
        "processor_class": "WhisperProcessor",
    }  # fmt: skip


def tensors_of(shape):
    """Returns random weights under the names of the file."""
    random, scales, width = Random(shape.seed), shape.scales, shape.d_model

    def linear(name, outputs, inputs, *kernel, bias=True, scale=1.0):
        size = inputs * (kernel[0] if kernel else 1)
        random.normal(f"{name}.weight", outputs, inputs, *kernel, scale=scale * size**-0.5)
        if bias:
            random.normal(f"{name}.bias", outputs, scale=scales.biases)

    def norm(name, fill=random.ones):
        random.normal(f"{name}.bias", width, scale=scales.biases)
        fill(f"{name}.weight", width)

    for name, inputs in (("conv1", MEL_FILTERS), ("conv2", width)):
        linear(f"model.encoder.{name}", width, inputs, KERNEL, scale=scales.convolutions)
    for side, layers in shape.num_layers.items():
        table = f"model.{side}.embed_positions.weight"
        random.normal(table, shape.positions[side], width, scale=scales.positions)
        for number in range(layers):
            place = f"model.{side}.layers.{number}"
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for which in ("q", "k", "v", "out"):
                    scale = scales.queries if which == "q" else 1.0
                    name = f"{place}.{attention}.{which}_proj"
                    linear(name, width, width, bias=which != "k", scale=scale)
                norm(f"{place}.{attention}_layer_norm")
            linear(f"{place}.fc1", 4 * width, width)
            linear(f"{place}.fc2", width, 4 * width)
            norm(f"{place}.final_layer_norm")
        is_last = side == "decoder" and scales.endless
        norm(f"model.{side}.layer_norm", random.signs if is_last else random.ones)
    random.normal(TABLE, shape.vocab_size, width, scale=scales.table)
    if scales.endless:
        random.tensors[TABLE][shape.text_tokens :] = 0
    return random.tensors
