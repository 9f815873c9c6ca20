"""keras_transformer: the folder that `keras-transformer export saved-model` writes."""

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)
from speech_files import path_of
from speech_task import PROMPT, Speech

from speech_peers import Transcriber, inputs_of


def make(order):
    """Loads the SavedModel, whose signature takes samples."""
    speech = Speech(**order["speech"])
    loaded = tf.saved_model.load(str(path_of(order["folder"], "saved-model", "none") / "1"))
    signature = loaded.signatures["samples"]
    inputs = inputs_of(speech, signature.structured_input_signature[1])

    def transcribe(loaded=loaded):  # a signature does not keep the variables
        return signature(**{name: tf.constant(values) for name, values in inputs.items()})

    def rows(outputs):
        return outputs["tokens"].numpy()[:, len(PROMPT) :].tolist()

    return Transcriber(transcribe, rows)
