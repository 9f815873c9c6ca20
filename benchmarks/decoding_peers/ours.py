"""keras_transformer: a SavedModel with its decoding loop, plain or compiled by XLA."""

import tempfile

import numpy as np
import tensorflow as tf
from decoding_files import decode, saved
from decoding_task import Case, Model, build

from decoding_peers.parallel import Parts, fastest, ways
from keras_transformer.export.output_matrix import store_output_matrix


def make(order):
    """Saves the model and loads it again."""
    model, case = Model(**order["model"]), Case(**order["case"])
    transformer = build(model)
    matrix = store_output_matrix(transformer, order["jit_compile"])
    # For every batch and length of source: XLA compiles what it meets.
    spec = tf.TensorSpec([None, None], tf.int32, name="source")

    @tf.function(input_signature=[spec], autograph=False, jit_compile=order["jit_compile"])
    def search(source):
        return decode(transformer, case, source)[0]

    @tf.function(input_signature=[spec], autograph=False)
    def serve(source):
        return {"tokens": search(source)}

    with tempfile.TemporaryDirectory() as folder:
        saved(transformer, serve, folder, matrix)
        loaded = tf.saved_model.load(folder)
    parts = {parts for parts, _ in ways(order["cores"], case.batch_size)}
    candidates = [
        _candidate(loaded, case.sources(model), each, order["cores"]) for each in sorted(parts)
    ]
    return fastest(candidates)


def _candidate(loaded, sources, parts, threads):
    """The parts share TensorFlow's threads, whose number is that of the process."""
    signature = loaded.signatures["decode"]

    def decoder(part):
        part = tf.constant(part)
        # With `loaded`, as a signature does not keep its variables.
        return lambda loaded=loaded: signature(source=part)["tokens"].numpy()

    decoders = [decoder(part) for part in np.array_split(sources, parts)]
    return Parts(decoders, lambda tokens: tokens.tolist(), parts, threads)
