"""Contents of an .onnx file whose model answers in one pass."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_choice
from keras_transformer.decoding.loop import EACH
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.attention import attend
from keras_transformer.export.onnx.contents import GraphContents
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.single_pass import OnnxSinglePass
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.transformer import EncoderDecoderModel


class OnnxAnswers(GraphContents):
    """A model that answers in one pass, from its inputs to the outputs of its codec.

    Args:
        pipeline: A `SinglePass` in float32.
        samples, limits, progress: See `Contents`.
    """

    def __init__(self, pipeline, samples, limits, progress):
        self._codec = codec = pipeline.codec
        check_choice("quantize", limits.quantize, codec.max_score_loss)
        super().__init__(pipeline, samples, limits, progress)
        expected = pipeline.answer(samples)
        self._agreement = AnswerAgreement(
            codec, samples, expected, limits, pipeline.log_probabilities
        )

    def function(self) -> Callable[..., dict]:  # noqa: D102
        searches = isinstance(self.pipeline.model, EncoderDecoderModel)
        # Not `KERNELS`: silence is heard inside a prompt, where a cache has unwritten positions.
        kernels = Kernels(cache_stages=EACH) if searches else Kernels(attend=attend)
        return _signature(copy_pipeline(self.pipeline, kernels)).lenient

    def specs(self) -> dict[str, tf.TensorSpec]:  # noqa: D102
        return _signature(self.pipeline).inputs

    def defaults(self) -> dict[str, Any]:  # noqa: D102
        return _signature(self.pipeline).defaults

    def about(self) -> dict[str, Any]:  # noqa: D102
        return self._codec.metadata()

    def opened(self, model) -> Any:  # noqa: D102
        return OnnxSinglePass(model)

    def check(self, draft, path) -> dict[str, Any]:
        """Compares the answers with those of the model in memory."""
        self.progress(f"answering {len(self.samples)} examples with the file")
        loaded = self.opened(OnnxModel(draft))
        for name in self._codec.further_signatures:
            self._agreement.judge(loaded.answer_by(name, self.samples), f"{path}, {name}")
        return self._agreement.judge(loaded.answer(self.samples), path)


def _signature(pipeline):
    """Returns the signature of the graph: one with inputs that a call may leave out if there is."""
    _, of_inputs, *others = pipeline.signatures()
    return next((one for one in others if one.defaults), of_inputs)
