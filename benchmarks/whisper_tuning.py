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
import whisper_checkpoint

# Positions as large as Whisper's would hide the sound, whose layers are not trained yet.
SCALES = whisper_checkpoint.Scales(
    convolutions=2**0.5, queries=1.0, table=128**-0.5, positions=0.1, biases=0.0, endless=False
)
SHAPE = whisper_checkpoint.Shape(
    d_model=128, num_heads=4, num_layers={"encoder": 3, "decoder": 2},
    positions={"encoder": 300, "decoder": 96}, text_tokens=256, codes=("en",), scales=SCALES,
)  # fmt: skip
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
    whisper_checkpoint.write(SHAPE, folder / "checkpoint")
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
