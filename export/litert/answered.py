"""Contents of a .tflite file whose model answers in one pass."""

import itertools
from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_choice
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.attention import attend
from keras_transformer.export.litert.apart import engines_for
from keras_transformer.export.litert.contents import FixedContents
from keras_transformer.export.litert.convert import (
    ROWS,
    convert_copy,
    finish,
    search_kernels,
)
from keras_transformer.export.litert.kernels import Positions
from keras_transformer.export.litert.packed import FURTHER, FixedSignature
from keras_transformer.export.litert.searches import with_integers
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.layers.kernels import Kernels


class LiteRTAnswers(FixedContents):
    """Signatures of a model that answers in one pass, one for each input length and batch size.

    Args:
        pipeline: A `SinglePass` in float32.
        samples, limits, options, progress: See `Contents`.
    """

    def __init__(self, pipeline, samples, limits, options, progress):
        self._codec = codec = pipeline.codec
        check_choice("quantize", limits.quantize, codec.max_score_loss)
        super().__init__(pipeline, samples, limits, options, progress)
        self._agreement = AnswerAgreement(
            codec, samples, pipeline.answer(samples), limits, pipeline.log_probabilities
        )
        self.signatures = [
            FixedSignature(self._name(rows, length), rows, length)
            for length, rows in itertools.product(self.lengths, self.batch_sizes)
        ]
        self._further = {
            name: [
                FixedSignature(f"{codec.verb}_{name}_{rows}", rows, self.lengths[-1])
                for rows in self.batch_sizes
            ]
            for name in codec.further_signatures
        }

    @property
    def longest(self) -> int | None:  # noqa: D102
        return self._codec.longest

    def usual_lengths(self) -> list[int]:  # noqa: D102
        return self._codec.usual_lengths() or super().usual_lengths()

    def _name(self, rows, length):
        shape = rows if self._codec.longest is None else f"{rows}x{length}"
        return f"{self._codec.verb}_{shape}"

    def convert(self, path) -> bytes | bytearray:  # noqa: D102
        count = len(self.signatures) + sum(map(len, self._further.values()))
        self.progress(f"converting {count} signatures")
        quantize, tables = self.quantize, self.pipeline.model.embeddings

        def kernels_of(code_of):
            if self.pipeline.search is not None:
                return search_kernels(self.pipeline.model, quantize, None, True, code_of)
            chosen = {"attend": attend, "positions": Positions()}
            if quantize in ROWS:
                rows = ROWS[quantize]([layer.table for layer in tables], code_of=code_of)
                chosen["look_up"] = rows.look_up
            return Kernels(**chosen)

        def functions_of(pipeline, within):
            _, of_inputs, *others = pipeline.signatures()
            function = tf.function(within(with_integers(of_inputs.lenient)), autograph=False)
            for signature in self.signatures:
                yield signature.name, function.get_concrete_function(**self._specs(signature))
            for other in others:
                function = tf.function(within(with_integers(other.lenient)), autograph=False)
                for signature in self._further.get(other.name, ()):
                    specs = with_rows(other.inputs, signature.batch_size)
                    yield signature.name, function.get_concrete_function(**specs)

        content = convert_copy(self.converter, self.pipeline, quantize, kernels_of, functions_of)
        return finish(content, quantize)

    def _specs(self, signature):
        length = None if self._codec.longest is None else signature.source_length
        return self._codec.input_specs(signature.batch_size, length)

    def about(self) -> dict[str, Any]:  # noqa: D102
        about = self._codec.metadata()
        further = [vars(one) for several in self._further.values() for one in several]
        return {**about, FURTHER: further} if further else about

    def check(self, draft, path) -> dict[str, Any]:
        """Compares the answers; the examples are divided among the signatures so that all run."""
        self.progress(f"answering {len(self.samples)} examples with every signature")
        with engines_for(self.pipeline.model) as engines:
            loaded = LiteRTSinglePass(draft, engines=engines)
            for name in self._further:
                self._agreement.judge(loaded.answer_by(name, self.samples), f"{path}, {name}")
            results = self._results(loaded)
        return self._agreement.judge(results, path)

    def _results(self, loaded):
        results, turns = [], itertools.cycle(loaded.signatures)
        for sample, signature in zip(self.samples, turns, strict=False):
            inputs, _ = loaded.codec.encode(**loaded.codec.request([sample]))
            fits = max(loaded.codec.lengths(inputs)) <= signature.source_length
            results += loaded.answer_batch([sample], signature if fits else None)
        return results

    def open(self, draft) -> None:  # noqa: D102
        with engines_for(self.pipeline.model) as engines:
            LiteRTSinglePass(draft, engines=engines).answer_batch(self.samples[:1])


def with_rows(specs, rows) -> dict[str, tf.TensorSpec]:
    """Returns `tf.TensorSpec`s, of which only the batch is unknown, for a number of rows."""
    return {
        name: tf.TensorSpec([rows, *spec.shape[1:]], spec.dtype, name=name)
        for name, spec in specs.items()
    }
