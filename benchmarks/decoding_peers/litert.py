"""keras_transformer: a .tflite file of fixed shape, run by LiteRT alone."""

import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from decoding_task import Case, Model


def make(order):
    """Loads the file."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = pathlib.Path(order["folder"], f"{order['quantize']}.tflite")
    interpreter = Interpreter(str(path), num_threads=order["cores"])
    inputs = {"source": case.sources(model)}
    if case.beam_size > 1:
        inputs["max_length"] = np.full(case.batch_size, case.length, np.int32)
        inputs["length_penalty"] = np.array([0.6], np.float32)
    return LiteRT(interpreter, inputs)


class LiteRT:
    """An interpreter and one batch."""

    def __init__(self, interpreter, inputs):
        self._interpreter = interpreter  # a runner does not keep it
        self._decode = interpreter.get_signature_runner("decode")
        self._inputs = inputs
        tokens = self._decode(**inputs)["tokens"]  # [B, L] or [B, 1, L]
        self.facts = {"tokens": tokens.reshape(len(tokens), -1).tolist()}

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._decode(**self._inputs)
        return {}
