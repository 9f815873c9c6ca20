"""Time and memory for a corpus of millions of pairs: encoding, first update, restart, batches.

Generates pairs with the lengths of WMT14 and trains a small model on them for a few updates, in
separate processes: one that starts the run, which learns a vocabulary and encodes the corpus, one
that resumes it, and one that only reads batches.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import time

import click
import numpy as np
from command import processor_name, versions

WORDS, POOL = 30_000, 100_000  # number of words of each side, and of sentences to draw pairs from
MEAN_WORDS = 19  # about 25 tokens
CONFIG = """
[model]
num_layers = 1
d_model = 32
d_ff = 64
num_heads = 2
[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
batch_tokens = 4096
[vocabulary]
size = 16000
[training]
updates = 100000
progress_seconds = 5
validate_sentences = 0
"""


def write_pairs(folder, pairs):
    """Writes parallel files of a training split and of a small validation split."""
    random = np.random.default_rng(1)
    letters = np.array(list("eeeaaiioourrttnnssllddcmhpgbfvkwz"))
    for side in ("src", "tgt"):
        sizes = random.integers(2, 11, WORDS)
        words = np.array(["".join(random.choice(letters, size)) for size in sizes], object)
        chances = 1 / np.arange(2, WORDS + 2)
        lengths = np.clip(random.gamma(2.5, MEAN_WORDS / 2.5, POOL), 1, 80).astype(int)
        drawn = words[random.choice(WORDS, lengths.sum(), p=chances / chances.sum())]
        ends = np.cumsum(lengths)
        pool = [" ".join(drawn[end - n : end]) for end, n in zip(ends, lengths, strict=True)]
        with open(folder / f"train.{side}", "w", encoding="utf-8") as file:
            for begin in range(0, pairs, POOL):
                numbers = random.integers(0, POOL, min(POOL, pairs - begin))
                file.write("\n".join(map(pool.__getitem__, numbers)) + "\n")
        with open(folder / f"validation.{side}", "w", encoding="utf-8") as file:
            file.write("\n".join(pool[:500]) + "\n")
    (folder / "config.toml").write_text(CONFIG)


def memory():
    """Returns the memory of this process in MB: resident, resident without files, and peak."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    numbers = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    names = {"memory": "VmRSS", "memory_without_files": "RssAnon", "peak_memory": "VmHWM"}
    return {name: int(numbers[key]) // 1000 for name, key in names.items()}


def start(folder, begin):
    """Trains for a few updates; prints the time until the first one was done, and the memory."""
    import keras

    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.training_run import train

    results = {}

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            results.setdefault("first_update_seconds", time.time() - begin)
            if batch == 20:
                results.update(memory())
                print("RESULT " + json.dumps(results), flush=True)
                raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        train(load_settings(folder / "config.toml"), folder / "run", callbacks=[Stop()])


def read(folder, _):
    """Reads batches of the run's store, without training."""
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.data.corpus import Corpus
    from keras_transformer.training.data.store import Store
    from keras_transformer.training.data.stream import endless_batches
    from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining

    training = SourceToTargetTraining(Run(folder / "run").load_tokenizers())
    (path,) = (folder / "run" / "store").glob("train-*")
    corpus = Corpus(Store(path, training.fields), training)
    results = {"size": corpus.size, "tokens": corpus.tokens, "padding": corpus.padding(4096)}
    tokens, shapes = 0, set()
    begin = None
    for number, (inputs, labels) in enumerate(endless_batches(corpus.epochs(4096, seed=1))):
        if number == 100:
            begin = time.perf_counter()
        if begin is not None:
            tokens += int(np.count_nonzero(labels.numpy()))
            shapes.add((tuple(inputs["source"].shape), tuple(labels.shape)))
            if time.perf_counter() - begin > 20:
                break
    results["target_tokens_per_second"] = round(tokens / (time.perf_counter() - begin))
    results["shapes"] = len(shapes)
    print("RESULT " + json.dumps({**results, **memory()}), flush=True)


def measured(phase, folder):
    """Runs a phase in a separate process; returns its results."""
    begin = time.time()
    command = [sys.executable, __file__, str(folder), "--phase", phase, "--begin", str(begin)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    results = {}
    for line in process.stdout:
        if line.startswith("RESULT "):
            results = json.loads(line[7:])
    process.wait()
    return {**results, "seconds": round(time.time() - begin, 1)}


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@click.command()
@click.argument("folder", type=click.Path(path_type=pathlib.Path))
@click.option("--pairs", default=300_000, show_default=True, help="Number of pairs to generate.")
@click.option("--json", "output", type=click.Path(path_type=pathlib.Path), help="File of results.")
@click.option("--keep", is_flag=True, help="Keep the files in FOLDER.")
@click.option("--phase", type=click.Choice(["start", "read"]), hidden=True)
@click.option("--begin", type=float, hidden=True)
def main(folder, pairs, output, keep, phase, begin):
    """Measure the first start, a restart and the batches of a corpus, with files in FOLDER."""
    if phase is not None:
        {"start": start, "read": read}[phase](folder, begin)
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_pairs(folder, pairs)
    results = {"pairs": pairs, "texts_bytes": size_of(folder)}
    for name, kind in (("first", "start"), ("restart", "start"), ("batches", "read")):
        results[name] = measured(kind, folder)
        print(name, json.dumps(results[name]))
    results["store_bytes"] = size_of(folder / "run" / "store")
    print(json.dumps(results, indent=2))
    if output is not None:
        machine = {"processor": processor_name(), "versions": versions(["tensorflow"])}
        output.write_text(json.dumps({**machine, **results}, indent=2) + "\n")
    if not keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
