"""keras_transformer: the file that `keras-transformer export litert` writes, run by LiteRT.

A batch is padded to the shortest of the file's lengths that fits.
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from encoder_files import path_of
from encoder_task import PAD_ID, Encoder

from encoder_peers.batches import Batches


def make(order):
    """Loads the file."""
    encoder = Encoder(**order["encoder"])
    path = path_of(order["folder"], order["files"], order["quantize"])
    interpreter = Interpreter(str(path), num_threads=order["cores"])
    lengths = {int(name.rpartition("x")[2]) for name in interpreter.get_signature_list()}

    def answer(ids, mask):
        width = min(length for length in lengths if length >= ids.shape[1])
        source = np.pad(ids, [(0, 0), (0, width - ids.shape[1])], constant_values=PAD_ID)
        runner = interpreter.get_signature_runner(f"{encoder.verb}_{len(ids)}x{width}")
        return runner(source=source)[encoder.output]

    return Batches(answer, order)
