"""The contents of a .tflite file of a model that answers in one pass."""

import itertools

import tensorflow as tf

from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.litert.compact import share_quantization
from keras_transformer.export.litert.contents import Contents
from keras_transformer.export.litert.convert import convert_functions
from keras_transformer.export.litert.kernels import Int8Rows
from keras_transformer.export.litert.packed import Signature
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.litert.source_ids import screened
from keras_transformer.export.parity import copy_model
from keras_transformer.layers.kernels import Kernels


class Answered(Contents):
    """The outputs of a model, for several lengths of its inputs and sizes of a batch.

    Args:
        pipeline: A `SinglePass`.
        options: The `Options`, of which none has an effect.
        samples, limits, lengths, batch_sizes, progress: See `Contents`.

    Raises:
        ValueError: If an option is wrong, or has no effect.
    """

    def __init__(self, pipeline, samples, limits, lengths, batch_sizes, options, progress):
        options.refuse(pipeline.task)
        self._codec = codec = pipeline.codec
        limits.check(codec.max_score_loss)
        super().__init__(pipeline, samples, limits, lengths, batch_sizes, codec.longest, progress)
        self.signatures = [
            Signature(self._name(rows, length), rows, length)
            for length, rows in itertools.product(self.lengths, self.batch_sizes)
        ]

    def _name(self, rows, length):
        shape = rows if self._codec.longest is None else f"{rows}x{length}"
        return f"{self._codec.verb}_{shape}"

    def begin(self, pipeline):  # noqa: D102
        self.pipeline = pipeline
        expected = pipeline.answer(self.samples)
        self._agreement = AnswerAgreement(self._codec, self.samples, expected, self.limits)

    def convert(self, path):  # noqa: D102
        pipeline, in_int8 = self.pipeline, self.quantize == "int8"
        kernels = Kernels()
        if in_int8:
            tables = (layer.table for layer in pipeline.model.embeddings)
            kernels = Kernels(look_up=Int8Rows(tables).look_up)
        pipeline = pipeline.with_model(copy_model(pipeline.model, kernels))
        functions = {
            signature.name: self._trace(pipeline, signature) for signature in self.signatures
        }
        content = convert_functions(pipeline.model, functions, self.quantize)
        return share_quantization(content) if in_int8 else content

    def _trace(self, pipeline, signature):
        checked = screened(pipeline.predict, self._codec.screen, self._codec.nothing)
        length = None if self._codec.longest is None else signature.source_length
        specs = self._codec.input_specs(signature.batch_size, length)
        return tf.function(checked, autograph=False).get_concrete_function(**specs)

    def about(self):  # noqa: D102
        return self._codec.metadata()

    def check(self, draft, path):
        """Judges the answers with the signatures taking turns, so that none goes unseen."""
        self.progress(f"answering {len(self.samples)} examples with every signature")
        loaded, results = LiteRTSinglePass(draft), []
        for sample, signature in zip(
            self.samples, itertools.cycle(loaded.signatures), strict=False
        ):
            inputs, _ = loaded.codec.encode(**loaded.codec.request([sample]))
            fits = max(loaded.codec.lengths(inputs)) <= signature.source_length
            results += loaded.answer_batch([sample], signature if fits else None)
        return self._agreement.judge(results, path)

    def open(self, draft):  # noqa: D102
        LiteRTSinglePass(draft).answer_batch(self.samples[:1])
