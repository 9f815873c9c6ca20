"""Checkpoints of Whisper's shapes with random weights, and the files of the other libraries.

`checkpoint` is a folder in Hugging Face's format, which `keras-transformer convert hf` turns into
our run. `ctranslate2` is made of it by CTranslate2's own converter, and `whisper-cpp` is a file in
the format of whisper.cpp; both are written by the peers' Python.

Outputs never end: the embeddings of special tokens are zero, and so are their tied output weights,
which leaves them far below the most probable of thousands of tokens.
"""

import itertools
import json
import pathlib

from pretrained_weights import Random
from speech_ggml import FILE_TYPES, write_ggml
from speech_task import (
    END,
    KERNEL,
    MEL_FILTERS,
    POSITIONS,
    PROMPT,
    SAMPLE_RATE,
    SECONDS,
    SPECIAL,
    START,
    TASKS,
    Speech,
)

CHECKPOINT = "checkpoint"  # the folder
RECORDING, RECORDINGS = "recording.wav", "recordings.txt"  # the file, and a list of it
# Random weights have no quality to lose; the report has the fraction of equal tokens.
LENIENT = ["--max-score-loss", "1000"]
HOP, WINDOW = 160, 400  # samples
TABLE = "model.decoder.embed_tokens.weight"


class Written:
    """Result of `make`: nothing to run."""

    facts = {}


def make(order):
    """Writes what the order names, a key of `WRITERS`."""
    speech, folder = Speech(**order["speech"]), pathlib.Path(order["folder"])
    WRITERS[order["kind"]](speech, folder)
    return Written()


def path_of(folder, kind, how):
    """Returns the path of a file or folder of a peer."""
    ending = {"litert": ".tflite", "whisper-cpp": ".bin"}.get(kind, "")
    return pathlib.Path(folder, CHECKPOINT if kind == CHECKPOINT else f"{kind}_{how}{ending}")


def commands(speech, folder, kinds):
    """Returns the commands that write our files, as lists of arguments, and their paths.

    Args:
        speech: A `Speech`.
        folder: Folder with the checkpoint.
        kinds: Pairs of a kind of export, `saved-model` or `litert`, and a quantisation, `none` or
            `int8`.
    """
    run = folder / "run"
    convert = ["convert", "hf", str(folder / CHECKPOINT), str(run), "--license", "none"]
    lines = [([*convert, "--source-language", "en"], run)]
    for kind, how in kinds:
        options, path = ["--sentences", str(folder / RECORDINGS)], path_of(folder, kind, how)
        options += ["--max-length", str(len(PROMPT) + speech.tokens)]
        if how != "none":
            options += ["--quantize", how, *LENIENT]
        lines.append((["export", kind, str(run), str(path), *options], path))
    return lines


def write_checkpoint(speech, folder):
    """Writes a folder like Whisper's, and the recording."""
    import safetensors.numpy

    from keras_transformer.audio.wav import encode_wav
    from keras_transformer.text.byte_pairs import CHARACTERS

    place = folder / CHECKPOINT
    place.mkdir()
    safetensors.numpy.save_file(tensors_of(speech), place / "model.safetensors")
    count = speech.text_tokens - len(CHARACTERS)
    merges = list(itertools.islice(itertools.product(CHARACTERS, repeat=2), count))
    pieces = [*CHARACTERS, *(first + second for first, second in merges)]
    lines = "".join(f"{first} {second}\n" for first, second in merges)
    (place / "merges.txt").write_text(f"#version: 0.2\n{lines}", "utf-8")
    added = {piece: speech.id_of(piece) for piece in SPECIAL}
    files = {
        "vocab": {piece: number for number, piece in enumerate(pieces)}, "added_tokens": added,
        "config": _settings(speech), "generation_config": _generation(speech),
        "preprocessor_config": {
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MEL_FILTERS,
            "sampling_rate": SAMPLE_RATE, "hop_length": HOP, "n_fft": WINDOW,
            "chunk_length": SECONDS, "n_samples": SAMPLE_RATE * SECONDS,
            "nb_max_frames": SAMPLE_RATE * SECONDS // HOP, "padding_side": "right",
            "padding_value": 0.0, "return_attention_mask": False,
            "processor_class": "WhisperProcessor",
        },
        "tokenizer_config": {
            "tokenizer_class": "WhisperTokenizer", "bos_token": END, "eos_token": END,
            "unk_token": END, "pad_token": END,
        },
    }  # fmt: skip
    for name, value in files.items():
        (place / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    (folder / RECORDING).write_bytes(encode_wav(speech.samples(), SAMPLE_RATE))
    (folder / RECORDINGS).write_text(f"{folder / RECORDING}\n", "utf-8")


def _ids(speech):
    end = speech.id_of(END)
    return {
        "bos_token_id": end, "eos_token_id": end, "pad_token_id": end,
        "decoder_start_token_id": speech.id_of(START),
    }  # fmt: skip


def _settings(speech):
    sizes = {
        f"{side}_{name}": size
        for side in POSITIONS
        for name, size in (
            ("layers", speech.num_layers), ("attention_heads", speech.num_heads),
            ("ffn_dim", speech.d_ff),
        )
    }  # fmt: skip
    return {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
        "vocab_size": speech.vocab_size, "d_model": speech.d_model, "num_mel_bins": MEL_FILTERS,
        "activation_function": "gelu", "max_source_positions": POSITIONS["encoder"],
        "max_target_positions": POSITIONS["decoder"], "num_hidden_layers": speech.num_layers,
        "scale_embedding": False, "tie_word_embeddings": True, **sizes, **_ids(speech),
    }  # fmt: skip


def _generation(speech):
    return {
        **_ids(speech), "is_multilingual": True, "max_length": POSITIONS["decoder"],
        "lang_to_id": {
            piece: speech.id_of(piece) for piece in SPECIAL[2 : SPECIAL.index("<|translate|>")]
        },
        "task_to_id": {task: speech.id_of(f"<|{task}|>") for task in TASKS},
        "no_timestamps_token_id": speech.id_of("<|notimestamps|>"), "return_timestamps": False,
        "max_initial_timestamp_index": 50, "suppress_tokens": [], "begin_suppress_tokens": [],
        # Of Whisper tiny; faster-whisper reads them but does not use them here.
        "alignment_heads": [[speech.num_layers - 1, 0]],
    }  # fmt: skip


def tensors_of(speech):
    """Returns random weights under the names of the file."""
    random, width = Random(speech.seed), speech.d_model
    for name, inputs in (("conv1", MEL_FILTERS), ("conv2", width)):
        place = f"model.encoder.{name}"
        random.normal(f"{place}.weight", width, inputs, KERNEL, scale=(KERNEL * inputs) ** -0.5)
        random.normal(f"{place}.bias", width, scale=0.02)
    for side, rows in POSITIONS.items():
        random.normal(f"model.{side}.embed_positions.weight", rows, width, scale=0.4)
        for number in range(speech.num_layers):
            _add_block(random, speech, f"model.{side}.layers.{number}", side)
        random.normal(f"model.{side}.layer_norm.bias", width, scale=0.02)
    random.ones("model.encoder.layer_norm.weight", width)
    # Otherwise every token would be followed by itself.
    random.signs("model.decoder.layer_norm.weight", width)
    random.normal(TABLE, speech.vocab_size, width, scale=0.5)
    random.tensors[TABLE][speech.text_tokens :] = 0
    return random.tensors


def _add_block(random, speech, name, side):
    """Adds the tensors of a block."""
    width = speech.d_model
    for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
        for which in ("q", "k", "v", "out"):
            # Attention to few positions, so that its outputs are not the same at every step.
            scale = 3.0 if which == "q" else 1.0
            place = f"{name}.{attention}.{which}_proj"
            random.normal(f"{place}.weight", width, width, scale=scale * width**-0.5)
            if which != "k":
                random.normal(f"{place}.bias", width, scale=0.02)
        random.ones(f"{name}.{attention}_layer_norm.weight", width)
        random.normal(f"{name}.{attention}_layer_norm.bias", width, scale=0.02)
    for which, outputs, inputs in (("fc1", speech.d_ff, width), ("fc2", width, speech.d_ff)):
        random.normal(f"{name}.{which}.weight", outputs, inputs, scale=inputs**-0.5)
        random.normal(f"{name}.{which}.bias", outputs, scale=0.02)
    random.ones(f"{name}.final_layer_norm.weight", width)
    random.normal(f"{name}.final_layer_norm.bias", width, scale=0.02)


def write_whisper_cpp(speech, folder, how):
    """Writes the file of whisper.cpp from the tensors of the checkpoint."""
    import safetensors.numpy
    import transformers

    checkpoint = folder / CHECKPOINT
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(checkpoint)
    pieces = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    place = path_of(folder, "whisper-cpp", how)
    write_ggml(place, speech, extractor.mel_filters, pieces, tensors, how)


def write_ctranslate2(speech, folder, how):
    """Converts the checkpoint by CTranslate2's converter, with the files for faster-whisper."""
    import ctranslate2
    import transformers

    place = path_of(folder, "ctranslate2", how)
    quantization = None if how == "none" else how
    converter = ctranslate2.converters.TransformersConverter(
        str(folder / CHECKPOINT), copy_files=["preprocessor_config.json"]
    )
    converter.convert(str(place), quantization=quantization)
    tokenizer = transformers.WhisperTokenizer.from_pretrained(folder / CHECKPOINT)
    tokenizer.save_pretrained(place)


WRITERS = {
    CHECKPOINT: write_checkpoint,
    **{
        f"{kind}_{how}": lambda speech, folder, write=write, how=how: write(speech, folder, how)
        for kind, write, hows in (
            ("ctranslate2", write_ctranslate2, ("none", "int8")),
            ("whisper-cpp", write_whisper_cpp, tuple(FILE_TYPES)),
        )
        for how in hows
    },
}
