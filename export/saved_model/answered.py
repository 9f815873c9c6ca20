"""Contents of a SavedModel whose model answers in one pass."""

import dataclasses
import gc
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.attention import attend
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.packing import RealTokens
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.export.saved_model.apart import loaders_for
from keras_transformer.export.saved_model.guide import Page, text_operations
from keras_transformer.export.saved_model.inputs import with_checked_shapes
from keras_transformer.export.saved_model.kernels import output_kernels
from keras_transformer.export.saved_model.metadata import write_codec, write_task
from keras_transformer.export.saved_model.warmup import Request
from keras_transformer.layers.kernels import DEFAULT as DEFAULT_KERNELS
from keras_transformer.models.transformer import EncoderDecoderModel
from keras_transformer.tasks.signatures import DEFAULT, OPTIONS
from keras_transformer.tasks.strings import map_sorted

BATCH_SIZE = 64


class SavedModelAnswers:
    """Signatures of a model that answers in one pass.

    One signature takes a request and returns the answers. If the codec names another, that one
    takes the inputs of the model and returns its outputs.

    Args:
        pipeline: A `SinglePass` in float32.
        samples: List of examples.
        progress, references: See `export_saved_model`.

    Attributes:
        weights, functions, names, requests, modules: See `SavedModelGeneration`.
    """

    def __init__(self, pipeline, samples, progress, references):
        self._pipeline, self._codec, self._progress = pipeline, pipeline.codec, progress
        limits = Limits(references=references)
        expected = pipeline.answer(samples)
        self._agreement = AnswerAgreement(pipeline.codec, samples, expected, limits)
        self._guide = pipeline.codec.guide(samples[0])
        kernels, matrix = _kernels(pipeline.model)
        pipeline = copy_pipeline(pipeline, kernels)
        self.functions = {
            signature.name: tf.function(
                with_checked_shapes(signature.strict, signature.inputs), autograph=False
            ).get_concrete_function(**signature.inputs)
            for signature in pipeline.signatures()
            if signature.name is not None
        }
        self.names = list(self.functions)
        calls_text = text_operations(self.functions[DEFAULT])
        self.modules = self._guide.modules if calls_text else {}
        self.weights = _read_by(self.functions.values(), pipeline.weights + matrix)
        request = {k: v.numpy() for k, v in pipeline.codec.request(samples[:1]).items()}
        self.requests = [Request(DEFAULT, request)]

    def page(self, model) -> Page:
        """Returns the `Page` about the model, which is served under the name `model`."""
        guide = self._guide
        constants = {name: f"tf.constant({value})" for name, value in guide.request.items()}
        request = ", ".join(f'"{name}": {value}' for name, value in guide.request.items())
        return Page(
            purpose=guide.purpose,
            functions=self.functions,
            axes=lambda signature, name, spec: guide.axes.get(name, "B"),
            notes="".join(f"- {note}\n" for note in guide.notes),
            requests={DEFAULT: f"{{{request}}}"},
            modules=self.modules,
            arguments={**constants, **guide.arguments},
            files=guide.files,
            output=self._pipeline.output,
        )

    def write_metadata(self, draft) -> None:
        """Writes the task and the metadata of the codec into the folder of a version."""
        write_task(draft, self._pipeline.task, self._codec)
        if self._codec.is_stored:
            write_codec(draft, self._codec, self._pipeline.tokenizers)

    def release(self) -> None:
        """Frees the weights and graphs that have been written: the check needs the memory."""
        del self.weights, self.functions
        gc.collect()

    def _to_check(self):
        """Returns the names of the signatures to call, that of the first part for all parts."""
        others = self._codec.parts[1:]
        return [name for name in self.names if name not in others]

    def verify(self, draft, name) -> dict[str, Any]:
        """Checks every signature through both loaders; returns the results of the first one.

        Raises:
            ExportError: If a signature does not agree with the model in memory.
        """
        reports = []
        for load, program in loaders_for(self._pipeline.model):
            self._progress(f"calling every signature as {program} loads it")
            with load(draft) as model:
                for signature in self._to_check():
                    results = _results(model, signature, self._codec, self._agreement.examples)
                    reports.append(self._agreement.judge(results, f"{name}, {signature}"))
        return reports[0]


def _kernels(model):
    """Returns the `Kernels` for a copy of a model, and a list of the variables that they add."""
    searches = isinstance(model, EncoderDecoderModel)
    kernels, matrix = output_kernels(model) if searches else (DEFAULT_KERNELS, [])
    return dataclasses.replace(kernels, attend=attend, packing=RealTokens()), matrix


def _read_by(functions, variables):
    """Returns the variables that functions read; the best path of CTC reads none of the decoder."""
    read = {id(tensor) for function in functions for tensor in function.captured_inputs}
    return [variable for variable in variables if id(variable.handle) in read]


def _results(model, signature, codec, examples):
    """Returns the answers of a signature to examples, as `Result`s."""

    def answer(batch):
        request = codec.request(batch)
        if signature in (DEFAULT, OPTIONS):
            options = codec.options(batch) if signature == OPTIONS else {}
            return codec.results(_arrays(model.run(signature, **request, **options)))
        if signature in codec.parts:
            requests = codec.part_requests(batch).items()
            answers = {part: _arrays(model.run(part, **request)) for part, request in requests}
            return codec.results(_arrays(codec.joined(answers)))
        inputs, rest = codec.encoded(signature, batch)
        outputs = _arrays(model.run(signature, **inputs))
        for output, names in _arrays(codec.named(outputs)).items():
            if not np.array_equal(names, outputs[output], equal_nan=names.dtype.kind == "f"):
                raise ExportError(f"{signature}: `{output}` does not match the model's numbers.")
        return codec.results(_arrays(codec.answers(outputs, rest)))

    return map_sorted(answer, examples, codec.most or BATCH_SIZE, codec.size)


def _arrays(tensors):
    return {name: np.asarray(value) for name, value in tensors.items()}
