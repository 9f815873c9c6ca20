"""Loaded .onnx files that return one token of a text a call."""

import numpy as np

from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.streaming import OpenStreamer, ScoredText, past_name


def present_name(number: int) -> str:
    """Returns the name of the output with the heads of all tokens."""
    return f"present_{number}"


class OnnxStreamer(OpenStreamer):
    """A loaded .onnx file that returns one token of a text a call.

    Args:
        model: The `OnnxModel`.

    Raises:
        ValueError: If the file holds another kind of model or is damaged.
    """

    def __init__(self, model: OnnxModel):
        self.path, self.metadata, self.tokenizers = model.path, model.metadata, model.tokenizers
        self._model = model
        self.take_streaming()

    def _empty_text(self):
        nothing = [
            np.zeros([rows, groups, 0, size], np.float32) for rows, groups, size in self.heads
        ]
        return KeptOnnxText(self, self._model, nothing)


class KeptOnnxText(ScoredText):
    """A `KeptText` of an .onnx file.

    Args:
        opened: The `OnnxStreamer`.
        model: The `OnnxModel`.
        nothing: The heads of no token, a list of arrays.
    """

    def __init__(self, opened: OnnxStreamer, model: OnnxModel, nothing: list[np.ndarray]):
        super().__init__(opened, nothing)
        self._model = model

    def _keep_only(self, count):
        ids, heads = self._kept
        if count < len(ids):
            heads = [np.ascontiguousarray(part.numpy()[:, :, :count]) for part in heads]
            self._kept = ids[:count], heads

    def _next(self, inputs, settings):
        _, heads = self._kept
        past = {past_name(place): part for place, part in enumerate(heads)}
        text = np.array([inputs[1:]], np.int32)
        outputs = self._model.run_values({"text": text, **past, **settings})
        self._kept = [*inputs], [outputs[present_name(place)] for place in range(len(heads))]
        return int(outputs["token"].numpy()[0]), float(outputs["score"].numpy()[0])
