"""Error rates of a checkpoint of Whisper before and after fine-tuning on the spoken demo.

The checkpoint has Whisper's architecture and files and random weights, for recordings of up to 6
seconds: it knows nothing, so that everything is learned by fine-tuning. The spoken demo needs the
program eSpeak NG. Both evaluations are of the demo's test split.

    python benchmarks/whisper_tuning.py --folder FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys

import click
from pretrained_weights import Random

WIDTH, HEADS, LAYERS = 128, 4, {"encoder": 3, "decoder": 2}
MEL_FILTERS, KERNEL = 80, 3
SECONDS = 6
POSITIONS = {"encoder": 50 * SECONDS, "decoder": 96}
END, START = "<|endoftext|>", "<|startoftranscript|>"
SPECIAL = [
    END, START, "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
    "<|nospeech|>", "<|notimestamps|>", *(f"<|{n / 50:.2f}|>" for n in range(50 * SECONDS + 1)),
]  # fmt: skip
CONFIG = """
task = {{ kind = "speech_recognition" }}

[model]
start_from = "{run}"

[data]
source = "spoken_demo"
data_dir = "{data}"
store = "{store}"
examples = {examples}
max_length = 90
batch_frames = 6000

[schedule]
kind = "linear"
warmup_steps = {warmup}
peak = 0.003

[training]
ctc_weight = 0.5
updates = {updates}
label_smoothing = 0.0
validate_every = 500
validate_sentences = 100
checkpoint_every = 500
"""


def write_checkpoint(folder):
    """Writes a folder like Whisper's, whose tokens of text are single bytes."""
    import safetensors.numpy

    from keras_transformer.text.byte_pairs import CHARACTERS

    folder.mkdir(parents=True)
    count = len(CHARACTERS)
    ids = {piece: count + number for number, piece in enumerate(SPECIAL)}
    special = {
        "bos_token_id": ids[END], "eos_token_id": ids[END], "pad_token_id": ids[END],
        "decoder_start_token_id": ids[START],
    }  # fmt: skip
    safetensors.numpy.save_file(tensors_of(count + len(ids)), folder / "model.safetensors")
    (folder / "merges.txt").write_text("#version: 0.2\n")
    sizes = {
        f"{side}_{name}": size
        for side, layers in LAYERS.items()
        for name, size in (("layers", layers), ("attention_heads", HEADS), ("ffn_dim", 4 * WIDTH))
    }
    files = {
        "vocab": {piece: number for number, piece in enumerate(CHARACTERS)},
        "added_tokens": ids,
        "config": {
            "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
            "vocab_size": count + len(ids), "d_model": WIDTH, "num_mel_bins": MEL_FILTERS,
            "activation_function": "gelu", "max_source_positions": POSITIONS["encoder"],
            "max_target_positions": POSITIONS["decoder"], **sizes, **special,
        },
        "generation_config": {
            "is_multilingual": True, "lang_to_id": {"<|en|>": ids["<|en|>"]},
            "task_to_id": {task: ids[f"<|{task}|>"] for task in ("translate", "transcribe")},
            "no_timestamps_token_id": ids["<|notimestamps|>"], "return_timestamps": False,
            "max_length": POSITIONS["decoder"], "suppress_tokens": [],
            "begin_suppress_tokens": [], **special,
        },
        "preprocessor_config": {
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MEL_FILTERS,
            "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400, "chunk_length": SECONDS,
        },
    }  # fmt: skip
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def tensors_of(vocab_size):
    """Returns random weights under the names of the file."""
    random = Random(1)

    def linear(name, outputs, *inputs, bias=True, gain=1.0):
        size = inputs[0] * (inputs[1] if len(inputs) > 1 else 1)
        random.normal(f"{name}.weight", outputs, *inputs, scale=gain * size**-0.5)
        if bias:
            random.normal(f"{name}.bias", outputs, scale=0.0)

    def norm(name):
        random.ones(f"{name}.weight", WIDTH)
        random.normal(f"{name}.bias", WIDTH, scale=0.0)

    for name, inputs in (("conv1", MEL_FILTERS), ("conv2", WIDTH)):
        linear(f"model.encoder.{name}", WIDTH, inputs, KERNEL, gain=2**0.5)
    for side, layers in LAYERS.items():
        # Positions as large as Whisper's would hide the sound, whose layers are not trained yet.
        random.normal(f"model.{side}.embed_positions.weight", POSITIONS[side], WIDTH, scale=0.1)
        for number in range(layers):
            place = f"model.{side}.layers.{number}"
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for which in ("q", "k", "v", "out"):
                    linear(f"{place}.{attention}.{which}_proj", WIDTH, WIDTH, bias=which != "k")
                norm(f"{place}.{attention}_layer_norm")
            linear(f"{place}.fc1", 4 * WIDTH, WIDTH)
            linear(f"{place}.fc2", WIDTH, 4 * WIDTH)
            norm(f"{place}.final_layer_norm")
        norm(f"model.{side}.layer_norm")
    random.normal("model.decoder.embed_tokens.weight", vocab_size, WIDTH, scale=WIDTH**-0.5)
    return random.tensors


def command(*arguments, quiet=False):
    """Runs a command of the package; returns what it prints on stdout."""
    line = [sys.executable, "-m", "keras_transformer", *map(str, arguments)]
    stderr = subprocess.DEVNULL if quiet else None
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, stderr=stderr).stdout


def write_test(folder, data):
    """Writes the paths and the texts of the demo's test split into files of lines."""
    table = max(data.glob("spoken_demo/*/test.tsv"), key=os.path.getmtime)
    rows = [line.split("\t") for line in table.read_text("utf-8").splitlines()]
    paths, texts = folder / "recordings.txt", folder / "texts.txt"
    paths.write_text("".join(f"{table.parent / path}\n" for path, _ in rows), "utf-8")
    texts.write_text("".join(f"{text}\n" for _, text in rows), "utf-8")
    return paths, texts


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=pathlib.Path),
    required=True,
    help="New folder for the checkpoint, the recordings and both runs.",
)
@click.option("--updates", type=click.IntRange(2), default=2500, show_default=True)
@click.option("--examples", type=click.IntRange(10), default=10_000, show_default=True)
def main(folder, updates, examples):
    """Fine-tune a random checkpoint of Whisper, and print its error rates before and after."""
    folder = folder.resolve()
    if folder.exists():
        raise click.UsageError(f"{folder} exists: --folder is a new folder.")
    write_checkpoint(folder / "checkpoint")
    before, after, data = folder / "whisper", folder / "tuned", folder / "data"
    command("convert", "hf", folder / "checkpoint", before, "--license", "none",
            "--source-language", "en")  # fmt: skip
    (folder / "config.toml").write_text(
        CONFIG.format(
            run=before, data=data, store=folder / "store", examples=examples, updates=updates,
            warmup=max(1, min(150, updates // 10)),
        )
    )  # fmt: skip
    command("train", folder / "config.toml", "--output", after)
    paths, texts = write_test(folder, data)
    for name, run in (("before", before), ("after", after)):
        printed = command("evaluate", run, "--source", paths, "--reference", texts, quiet=True)
        results = json.loads(printed)
        click.echo(f"{name}: WER {results['wer']:.3f}, CER {results['cer']:.3f}")


if __name__ == "__main__":
    main()
