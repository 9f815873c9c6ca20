"""keras_transformer: the file of `keras-transformer export onnx`, run as by `translate`."""

import numpy as np
from decoding_files import path_of
from decoding_task import Case, Model, without_end

from decoding_peers.parallel import Parts, fastest, ways
from keras_transformer.export.onnx.model import OnnxModel


def make(order):
    """Loads the file, with the use of threads that is fastest for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = path_of(order["folder"], "onnx", order["quantize"], case.beam_size)
    return fastest(
        [_candidate(path, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(path, model, case, parts, threads):
    """Returns a candidate in which several threads call one session, each with a part."""
    loaded = OnnxModel(path, num_threads=threads)
    batches = np.array_split(case.sources(model), parts)
    return Parts([_decoder(loaded, model, case, rows) for rows in batches], _rows, parts, threads)


def _decoder(loaded, model, case, sources):
    inputs = {"source": sources}
    if case.beam_size > 1:
        inputs["max_length"] = np.full(len(sources), model.max_length, np.int32)
        inputs["length_penalty"] = np.array([0.6], np.float32)
    return lambda: loaded.run(**inputs)["tokens"]


def _rows(tokens):
    return without_end(tokens.reshape(len(tokens), -1).tolist())  # [B, L] or [B, 1, L]
