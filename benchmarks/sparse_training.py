"""Time and memory of an update of sparse vectors, with and without all logits in memory.

    python benchmarks/sparse_training.py RUN

RUN is a run for sparse vectors whose pooling is `"max"`. A batch has 64 pairs of texts of random
tokens and random lengths. Each way runs `--repeats` times in a process of its own, the two in turn,
on one core. Prints medians as JSON: seconds of processor time for an update, and the largest
memory of the process, in MB, of which TensorFlow's import needs about 700.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import types

PAIRS, UPDATES = 64, 3
WAYS = ("all_logits", "largest_logits")


def measure(run, way, length) -> None:
    """Prints seconds and megabytes of one way."""
    import numpy as np
    import tensorflow as tf

    from keras_transformer.tasks import open_run
    from keras_transformer.training.loop.learner import Learner
    from keras_transformer.training.tasks.sparse_embedding.training import SparseEmbeddingTraining

    tf.config.threading.set_intra_op_parallelism_threads(1)
    pipeline = open_run(run)
    model = pipeline.model
    training = SparseEmbeddingTraining(pipeline.source_tokenizer, model.config)
    forward = training.forward(model) if way == "largest_logits" else None
    learner = Learner(model, training.weigh, forward=forward)
    learner.compile("adam", training.loss(types.SimpleNamespace(updates=UPDATES)), [])
    rng = np.random.default_rng(0)
    tokens = pipeline.source_tokenizer.vocab_size
    ids = rng.integers(10, tokens, (2 * PAIRS, length)).astype("int32")
    for row, words in zip(ids, rng.integers(8, length, 2 * PAIRS), strict=True):
        row[words:] = training.pad_id
    labels = rng.integers(0, 2**30, (PAIRS, 2)).astype("int32")
    update = tf.function(lambda: learner.train_step((tf.constant(ids), tf.constant(labels))))
    update()
    begin = time.process_time()
    for _ in range(UPDATES):
        update()
    seconds = (time.process_time() - begin) / UPDATES
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--length", type=int, default=64, help="tokens of the longest text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        measure(options.run, options.way, options.length)
        return
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    rows = {way: [] for way in WAYS}
    for _ in range(options.repeats):
        for way, own in rows.items():
            command = [sys.executable, __file__, options.run, "--way", way]
            command += ["--length", str(options.length)]
            child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            own.append(json.loads(child.stdout))
    medians = {
        way: [statistics.median(x) for x in zip(*own, strict=True)] for way, own in rows.items()
    }
    names = ("seconds", "megabytes")
    print(
        json.dumps(
            {way: dict(zip(names, own, strict=True)) for way, own in medians.items()}, indent=2
        )
    )


if __name__ == "__main__":
    main()
