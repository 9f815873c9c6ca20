"""Checkpoints of Whisper's shapes with random weights, and the files of the other libraries.

`checkpoint` is a folder in Hugging Face's format, which `keras-transformer convert hf` turns into
our run. `ctranslate2` is made of it by CTranslate2's own converter, and `whisper-cpp` is a file in
the format of whisper.cpp; both are written by the peers' Python.

Outputs never end.
"""

import json
import pathlib

import whisper_checkpoint
from speech_ggml import FILE_TYPES, write_ggml
from speech_task import CODES, POSITIONS, PROMPT, SAMPLE_RATE, Speech

CHECKPOINT = "checkpoint"  # the folder
RECORDING, RECORDINGS = "recording.wav", "recordings.txt"  # the file, and a list of it
# Random weights have no quality to lose; the report has the fraction of equal tokens.
LENIENT = ["--max-score-loss", "1000"]
# Attention to few positions, so that its outputs are not the same at every step.
SCALES = whisper_checkpoint.Scales(
    convolutions=1.0, queries=3.0, table=0.5, positions=0.4, biases=0.02, endless=True
)


class Written:
    """Result of `make`: nothing to run."""

    metadata = {}


def make(order):
    """Writes what the order names, a key of `WRITERS`."""
    speech, folder = Speech(**order["speech"]), pathlib.Path(order["folder"])
    WRITERS[order["kind"]](speech, folder)
    return Written()


def path_of(folder, kind, how):
    """Returns the path of a file or folder of a peer."""
    ending = {"litert": ".tflite", "onnx": ".onnx", "whisper-cpp": ".bin"}.get(kind, "")
    return pathlib.Path(folder, CHECKPOINT if kind == CHECKPOINT else f"{kind}_{how}{ending}")


def commands(speech, folder, kinds):
    """Returns the commands that write our files, as lists of arguments, and their paths.

    Args:
        speech: A `Speech`.
        folder: Folder with the checkpoint.
        kinds: Pairs of a kind of export, `saved-model`, `litert` or `onnx`, and a quantisation,
            `none` or `int8`.
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
    from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

    shape = whisper_checkpoint.Shape(
        speech.d_model, speech.num_heads, dict.fromkeys(POSITIONS, speech.num_layers), POSITIONS,
        speech.text_tokens, CODES, SCALES, speech.seed,
    )  # fmt: skip
    whisper_checkpoint.write(shape, folder / CHECKPOINT)
    (folder / RECORDING).write_bytes(encode_wav(speech.samples(), SAMPLE_RATE))
    (folder / RECORDINGS).write_text(f"{folder / RECORDING}\n", "utf-8")


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
