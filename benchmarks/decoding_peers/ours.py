"""keras_transformer: the folder that `keras-transformer export saved-model` writes.

With or without --jit. Uses the signatures from token ids to token ids, which all peers measure.
"""

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)
from decoding_files import path_of
from decoding_task import Case, Model, without_end

from decoding_peers.parallel import Parts, fastest, ways


def make(order):
    """Loads the SavedModel."""
    model, case = Model(**order["model"]), Case(**order["case"])
    how = "jit" if order["jit_compile"] else "none"
    loaded = tf.saved_model.load(str(path_of(order["folder"], "saved-model", how) / "1"))
    numbers = {parts for parts, _ in ways(order["cores"], case.batch_size)}
    return fastest(
        [_candidate(loaded, model, case, parts, order["cores"]) for parts in sorted(numbers)]
    )


def _candidate(loaded, model, case, parts, threads):
    """Returns a candidate whose parts share the threads of TensorFlow in this process."""
    signature = loaded.signatures["tokens" if case.beam_size == 1 else "beam_tokens"]

    def decoder(sources):
        sources = tf.constant(sources)
        # The default argument keeps `loaded` alive: a signature does not keep its variables.
        return lambda loaded=loaded: signature(source=sources)["tokens"].numpy()

    def rows(tokens):
        return without_end(tokens.reshape(len(tokens), -1).tolist())  # [B, L] or [B, 1, L]

    decoders = [decoder(sources) for sources in np.array_split(case.sources(model), parts)]
    return Parts(decoders, rows, parts, threads)
