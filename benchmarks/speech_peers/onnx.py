"""keras_transformer: the file of `keras-transformer export onnx`, run by ONNX Runtime."""

import onnxruntime
from speech_files import path_of
from speech_task import PROMPT, Speech

from speech_peers import Transcriber, inputs_of


def make(order):
    """Opens a session, whose graph takes samples."""
    speech = Speech(**order["speech"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = order["cores"], 1
    path = path_of(order["folder"], "onnx", order["quantize"])
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    inputs = inputs_of(speech, [tensor.name for tensor in session.get_inputs()])

    def transcribe():
        return session.run(["tokens"], inputs)

    def rows(outputs):
        return outputs[0][:, len(PROMPT) :].tolist()

    return Transcriber(transcribe, rows)
