"""keras_transformer: the file that `keras-transformer export litert` writes, run by LiteRT.

A batch is divided into calls by the plan of `LiteRTSinglePass`, here without TensorFlow: its texts
are padded to the lengths of the file's signatures.
"""

import types

import numpy as np
from encoder_files import path_of
from encoder_task import PAD_ID, Encoder

from encoder_peers.batches import Batches
from keras_transformer.export.litert.engines import CompiledEngine
from keras_transformer.export.litert.plan import answer_cost, plan


def _shape(name):
    """Returns a signature with the attributes that a plan needs."""
    rows, length = name.rpartition("_")[2].split("x")
    return types.SimpleNamespace(name=name, batch_size=int(rows), source_length=int(length))


def make(order):
    """Loads the file."""
    encoder = Encoder(**order["encoder"])
    path = path_of(order["folder"], order["files"], order["quantize"])
    engine = CompiledEngine(path, order["cores"])
    signatures = [_shape(name) for name in engine.signatures]

    def answer(ids, mask):
        rows = [None] * len(ids)
        for signature, chosen in plan(mask.sum(1).tolist(), signatures, answer_cost):
            shape = signature.batch_size, signature.source_length
            source = np.full(shape, PAD_ID, np.int32)
            source[:, : ids.shape[1]] = ids[
                (chosen + chosen[:1] * shape[0])[: shape[0]], : shape[1]
            ]
            output = engine.run(signature.name, source=source)[encoder.output]
            for number, row in zip(chosen, output, strict=False):
                rows[number] = row
        return np.array(rows)

    return Batches(answer, order)
