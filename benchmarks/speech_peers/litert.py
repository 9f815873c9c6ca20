"""keras_transformer: the file of `keras-transformer export litert`, run as by `predict`."""

from speech_files import path_of
from speech_task import PROMPT, Speech

from keras_transformer.export.litert.engines import CompiledEngine
from speech_peers import Transcriber, inputs_of


def make(order):
    """Loads the file, which has one signature."""
    speech = Speech(**order["speech"])
    path = path_of(order["folder"], "litert", order["quantize"])
    engine = CompiledEngine(path, order["cores"])
    (name,) = engine.signatures
    inputs = inputs_of(speech, engine.inputs_of(name))

    def transcribe():
        return engine.run(name, **inputs)

    def rows(outputs):
        return outputs["tokens"][:, len(PROMPT) :].tolist()

    return Transcriber(transcribe, rows)
