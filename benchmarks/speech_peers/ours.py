"""keras_transformer: the folder that `keras-transformer export saved-model` writes."""

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)
from speech_files import path_of
from speech_task import PROMPT, Speech

from speech_peers import Transcriber


def make(order):
    """Loads the SavedModel, whose signature takes samples."""
    speech = Speech(**order["speech"])
    loaded = tf.saved_model.load(str(path_of(order["folder"], "saved-model", "none") / "1"))
    signature = loaded.signatures["samples"]
    samples = speech.samples()
    count = np.array([len(samples)], np.int32)

    def transcribe(loaded=loaded):  # a signature does not keep the variables
        return signature(samples=tf.constant(samples[None]), lengths=tf.constant(count))

    def rows(outputs):
        return outputs["tokens"].numpy()[:, len(PROMPT) :].tolist()

    return Transcriber(transcribe, rows)
