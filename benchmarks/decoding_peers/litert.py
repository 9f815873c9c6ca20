"""keras_transformer: a .tflite file of fixed shape, run by LiteRT alone."""

import pathlib

from ai_edge_litert.interpreter import Interpreter
from decoding_task import Case, Model


def make(order):
    """Loads the file."""
    model, case = Model(**order["model"]), Case(**order["case"])
    path = pathlib.Path(order["folder"], f"{order['quantize']}.tflite")
    interpreter = Interpreter(str(path), num_threads=order["cores"])
    return LiteRT(interpreter, case.sources(model))


class LiteRT:
    """An interpreter and one batch."""

    def __init__(self, interpreter, sources):
        self._interpreter = interpreter  # a runner does not keep it
        self._decode = interpreter.get_signature_runner("decode")
        self._sources = sources
        self.facts = {"tokens": self._decode(source=sources)["tokens"].tolist()}

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._decode(source=self._sources)
        return {}
