"""keras_transformer: the file of `keras-transformer export litert`, run as by `translate`."""

import numpy as np
from decoding_files import path_of
from decoding_task import PAD_ID, Case, Model, without_end

from decoding_peers.parallel import Parts, fastest, ways
from keras_transformer.export.litert.engines import COMPILED
from keras_transformer.export.litert.parallel import open_engines


def make(order):
    """Loads the file, with the use of threads that is fastest for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = path_of(order["folder"], "litert", order["quantize"])
    return fastest(
        [_candidate(path, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(path, model, case, parts, threads):
    """Returns a candidate with one engine for each part of the batch."""
    engines = open_engines(path, COMPILED, threads, parts)
    batches = np.array_split(case.sources(model), parts)
    decoders = [
        _decoder(engine, model, case, sources)
        for engine, sources in zip(engines, batches, strict=True)
    ]
    return Parts(decoders, _rows, parts, threads)


def _decoder(engine, model, case, sources):
    search = "greedy" if case.beam_size == 1 else f"beam{case.beam_size}"
    prefix = f"{search}_{len(sources)}x"
    own = [name.removeprefix(prefix) for name in engine.signatures if name.startswith(prefix)]
    length = min(int(name) for name in own if int(name) >= case.source_length)
    signature, padding = f"{prefix}{length}", [(0, 0), (0, length - case.source_length)]
    inputs = {"source": np.pad(sources, padding, constant_values=PAD_ID)}
    if case.beam_size > 1:
        inputs["max_length"] = np.full(len(sources), model.max_length, np.int32)
        inputs["length_penalty"] = np.array([0.6], np.float32)

    def decode():
        return engine.run(signature, **inputs)["tokens"]

    return decode


def _rows(tokens):
    return without_end(tokens.reshape(len(tokens), -1).tolist())  # [B, L] or [B, 1, L]
