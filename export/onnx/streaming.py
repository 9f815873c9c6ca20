"""Contents of an .onnx file that returns one token of a text a call, for streams and chats."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.next_token import NextToken, control_specs
from keras_transformer.export.onnx.generated import OnnxGeneration
from keras_transformer.export.onnx.kernels import KERNELS
from keras_transformer.export.onnx.streamed import OnnxStreamer, present_name
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.export.streaming import about_streaming, check_streamed, past_name

SPECS = (
    tf.TensorSpec([1, None], tf.int32, name="text"),
    tf.TensorSpec([1], tf.int32, name="limit"),
    *control_specs(),
)


class OnnxStreaming(OnnxGeneration):
    """The next token of a language model, after keys and values that the program keeps.

    Args:
        pipeline: A `TextGenerator` in float32.
        samples, limits, progress, options, left_out: See `OnnxGeneration`.

    Raises:
        ValueError: If the search is a `Beam`, or see `NextToken`.
    """

    def __init__(self, pipeline, samples, limits, progress, options, left_out):
        super().__init__(pipeline, samples, limits, progress, options, left_out)
        check_streamed(self._search)
        self._nothing = NextToken(pipeline.model, pipeline.max_length).nothing

    def function(self) -> Callable[..., dict]:  # noqa: D102
        pipeline = copy_pipeline(self.pipeline, KERNELS)
        step = NextToken(pipeline.model, pipeline.max_length)
        names = [spec.name for spec in control_specs()]

        def next_token(text, limit, **others):
            past = [others[past_name(number)] for number in range(len(self._nothing))]
            controls = {name: others[name] for name in names}
            token, score, heads = step(text, past, limit, controls)
            present = {present_name(number): part for number, part in enumerate(heads)}
            return {"token": token, "score": score, **present}

        return next_token

    def specs(self) -> dict[str, tf.TensorSpec]:  # noqa: D102
        heads = [
            tf.TensorSpec([*part.shape[:2], None, part.shape[3]], part.dtype, past_name(number))
            for number, part in enumerate(self._nothing)
        ]
        return {spec.name: spec for spec in (*SPECS, *heads)}

    def about(self) -> dict[str, Any]:  # noqa: D102
        return {**super().about(), **about_streaming(self.pipeline, self._nothing, self._search)}

    def opened(self, model) -> Any:  # noqa: D102
        return OnnxStreamer(model)
