"""keras_transformer: the file of `keras-transformer export litert`, run as by `predict`."""

import numpy as np
from speech_files import path_of
from speech_task import PROMPT, Speech

from keras_transformer.export.litert.engines import CompiledEngine
from speech_peers import Transcriber


def make(order):
    """Loads the file, which has one signature."""
    speech = Speech(**order["speech"])
    engine = CompiledEngine(path_of(order["folder"], "litert", order["quantize"]), order["cores"])
    samples = speech.samples()[None]
    lengths = np.array([samples.shape[1]], np.int32)

    def transcribe():
        return engine.run(f"transcribe_1x{samples.shape[1]}", samples=samples, lengths=lengths)

    def rows(outputs):
        return outputs["tokens"][:, len(PROMPT) :].tolist()

    return Transcriber(transcribe, rows)
