"""Memory and time that a server needs for a version of a SavedModel.

    python benchmarks/serving.py serving/translator/1 --batch-sizes 1,8,32

Loads the version with TensorFlow's session loader, like TensorFlow Serving, or with
`tf.saved_model.load` (`--loader python`). Then sends batches, filled with one sentence, to two
signatures: `serving_default`, and `n_best`, which uses beam search. Memory is that of the process,
including Python and TensorFlow. A peak is the largest memory during the two calls of its row; all
rows run in the same process. Linux only.
"""

import pathlib
import re
import time

import click
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)
from command import processor_name
from rich.console import Console
from rich.table import Table

SIGNATURES = ("serving_default", "n_best")


def megabytes(field):
    """Returns memory in MB: `VmRSS`, the current one, or `VmHWM`, the peak since `forget_peak`."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1000


def forget_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def load_session(path):
    """Returns a function from the name of a signature and sentences to outputs, in a session."""
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], path)

    def run(name, sentences):
        signature = meta.signature_def[name]
        outputs = {key: info.name for key, info in signature.outputs.items()}
        return session.run(outputs, {signature.inputs["sentences"].name: sentences})

    return run


def load_python(path):
    """Returns the same function as `load_session`, but with `tf.saved_model.load`."""
    signatures = tf.saved_model.load(path).signatures
    return lambda name, sentences: signatures[name](sentences=tf.constant(sentences))


LOADERS = {"session": load_session, "python": load_python}


def seconds(function, *arguments):
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def measure(run, batch_sizes, sentence):
    """Yields the seconds of two calls and the peak in MB, for each signature and batch size."""
    for name in SIGNATURES:
        for size in batch_sizes:
            forget_peak()
            first, second = (seconds(run, name, [sentence] * size) for _ in range(2))
            yield name, size, first, second, megabytes("VmHWM")


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("version", type=click.Path(exists=True, file_okay=False))
@click.option("--loader", type=click.Choice([*LOADERS]), default="session",
              help="Loader: TensorFlow's session loader, or Python's tf.saved_model.load.")
@click.option("--batch-sizes", default="1,8,32", help="Numbers of sentences in a batch.")
@click.option("--sentence", default="in 17 weeks and 12 days",
              help="Sentence to fill the batches with.")
# fmt: on
def main(version, loader, batch_sizes, sentence):
    """Measure memory and seconds of VERSION, the folder of a version."""
    console = Console()
    imported, begin = megabytes("VmRSS"), time.perf_counter()
    run = LOADERS[loader](version)
    loaded = time.perf_counter() - begin
    console.print(processor_name())
    console.print(f"{imported:,.0f} MB with TensorFlow imported")
    console.print(f"{megabytes('VmRSS'):,.0f} MB with the version loaded, in {loaded:.1f} s")
    table = Table("signature", "batch", "first call, s", "second call, s", "peak, MB")
    sizes = [int(size) for size in batch_sizes.split(",")]
    for name, size, first, second, peak in measure(run, sizes, sentence):
        table.add_row(name, str(size), f"{first:.2f}", f"{second:.3f}", f"{peak:,.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
