"""keras_transformer: a .tflite file of fixed shape, run by LiteRT alone."""

import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from decoding_task import Case, Model

from decoding_peers.parallel import Parts, fastest, ways


def make(order):
    """Loads the file, with the threads that are the best for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = pathlib.Path(order["folder"], f"{order['quantize']}.tflite")
    return fastest(
        [_candidate(path, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(path, model, case, parts, threads):
    """An interpreter for each part."""
    decoders = [
        _decoder(Interpreter(str(path), num_threads=threads), case, part)
        for part in np.array_split(case.sources(model), parts)
    ]
    return Parts(decoders, _rows, parts, threads)


def _decoder(interpreter, case, sources):
    runner = interpreter.get_signature_runner(f"decode_{len(sources)}")
    inputs = {"source": sources}
    if case.beam_size > 1:
        inputs["max_length"] = np.full(len(sources), case.length, np.int32)
        inputs["length_penalty"] = np.array([0.6], np.float32)

    def decode():
        return runner(**inputs)["tokens"]

    decode.interpreter = interpreter  # a runner does not keep it
    return decode


def _rows(tokens):
    return tokens.reshape(len(tokens), -1).tolist()  # [B, L] or [B, 1, L]
