"""keras_transformer: the file that `keras-transformer export litert` writes, run by LiteRT."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from decoding_files import path_of
from decoding_task import Case, Model, without_end

from decoding_peers.parallel import Parts, fastest, ways


def make(order):
    """Loads the file, with the use of threads that is fastest for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = path_of(order["folder"], "litert", order["quantize"])
    return fastest(
        [_candidate(path, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(path, model, case, parts, threads):
    """Returns a candidate with one interpreter for each part of the batch."""
    decoders = [
        _decoder(Interpreter(str(path), num_threads=threads), model, case, sources)
        for sources in np.array_split(case.sources(model), parts)
    ]
    return Parts(decoders, _rows, parts, threads)


def _decoder(interpreter, model, case, sources):
    search = "greedy" if case.beam_size == 1 else f"beam{case.beam_size}"
    runner = interpreter.get_signature_runner(f"{search}_{len(sources)}x{case.source_length}")
    inputs = {"source": sources}
    if case.beam_size > 1:
        inputs["max_length"] = np.full(len(sources), model.max_length, np.int32)
        inputs["length_penalty"] = np.array([0.6], np.float32)

    def decode():
        return runner(**inputs)["tokens"]

    decode.interpreter = interpreter  # a runner does not keep its interpreter alive
    return decode


def _rows(tokens):
    return without_end(tokens.reshape(len(tokens), -1).tolist())  # [B, L] or [B, 1, L]
