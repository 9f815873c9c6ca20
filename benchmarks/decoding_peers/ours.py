"""keras_transformer: a SavedModel with its decoding loop, plain or compiled by XLA."""

import tempfile

import tensorflow as tf
from decoding_files import decode, saved
from decoding_task import Case, Model, build

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
    return SavedModel(loaded, case.sources(model))


class SavedModel:
    """A loaded SavedModel and one batch."""

    def __init__(self, loaded, sources):
        self._loaded = loaded  # a signature does not keep its variables
        self._decode = loaded.signatures["decode"]
        self._sources = tf.constant(sources)
        self.facts = {"tokens": self._tokens().tolist()}

    def _tokens(self):
        return self._decode(source=self._sources)["tokens"].numpy()

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._tokens()
        return {}
