"""One .tflite file of a model that answers in one pass: for phones and browsers, and for Python."""

import itertools

import numpy as np
import tensorflow as tf

from keras_transformer.export.litert.compact import share_quantization
from keras_transformer.export.litert.convert import convert_functions
from keras_transformer.export.litert.kernels import Int8Rows
from keras_transformer.export.litert.packed import Signature, facts_of, figures_of, pack
from keras_transformer.export.litert.plan import plan
from keras_transformer.export.litert.runtime import LiteRTFile, check_lengths, load_interpreter
from keras_transformer.export.litert.source_ids import screened
from keras_transformer.export.parity import copy_model, in_float32
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space
from keras_transformer.export.runtime import rule
from keras_transformer.export.shapes import check_shapes, default_lengths
from keras_transformer.export.single_pass_agreement import MAX_LOSS, SinglePassAgreement
from keras_transformer.layers.kernels import Kernels
from keras_transformer.tasks.single_pass.pipeline import SinglePass

QUANTIZATIONS = ("none", "float16", "int8")


class LiteRTSinglePass(LiteRTFile):
    """A .tflite file of a model that answers in one pass; nothing else is needed.

    Args:
        path, num_threads, num_parallel_calls: See `LiteRTFile`.

    Raises:
        ValueError: As `LiteRTFile`.
    """

    answers = SinglePass

    def __init__(self, path, num_threads=None, num_parallel_calls=1):
        super().__init__(path, num_threads=num_threads, num_parallel_calls=num_parallel_calls)
        self.path = path
        self.codec = self.pipeline.codec_class.from_facts(self.facts, self.tokenizers)

    def answer_batch(self, examples, signature=None):
        """Returns a `Result` for each of a list of examples.

        Args:
            examples: List of what the task takes, such as strings.
            signature: The `Signature` to run. `None`: for each row the shortest that holds it.

        Raises:
            ValueError: If one of them is refused, an image of another size, say.
        """
        request = self.codec.request(self.codec.check(examples))
        try:
            inputs, rest = self.codec.encode(**request)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(f"{self.path}: {rule(error)}") from error
        answers = self.codec.answers(self.run(signature, **inputs), rest)
        return self.codec.results({name: np.asarray(value) for name, value in answers.items()})

    def run(self, signature=None, **inputs):
        """Runs the model on its inputs.

        Args:
            signature: The `Signature` to run. `None`: for each row the shortest that holds it.
            **inputs: Arrays `[R, ...]`, R at least 1, by their names in the file.

        Returns:
            Dictionary of the outputs, arrays `[R, ...]`; where rows differ in length, they are
            padded with what the file gives for a wrong row.

        Raises:
            ValueError: If a row is longer than every signature.
        """
        inputs = {name: np.asarray(value) for name, value in inputs.items()}
        signatures, lengths = self._choices(signature), self.codec.lengths(inputs)
        check_lengths(lengths, signatures)
        rows = [None] * len(lengths)
        for signature, chosen in plan(lengths, signatures):
            batch = self._batch(signature, inputs, chosen)
            outputs = self.run_signature(signature.name, **batch)
            for place, number in enumerate(chosen):
                rows[number] = {name: output[place] for name, output in outputs.items()}
        return {
            name: _stacked([row[name] for row in rows], self.codec.nothing.get(name, 0))
            for name in rows[0]
        }

    def _batch(self, signature, inputs, chosen):
        """The inputs of a full batch; what is missing to one is filled with its first row."""
        numbers = (chosen + chosen[:1] * signature.batch_size)[: signature.batch_size]
        specs = self.codec.input_specs(signature.batch_size, signature.source_length)
        batch = {}
        for name, spec in specs.items():
            padding = self.codec.padding.get(name, 0)
            batch[name] = np.full(spec.shape, padding, spec.dtype.as_numpy_dtype)
            for row, number in zip(batch[name], numbers, strict=True):
                values = inputs[name][number]
                row[: len(values)] = values[: len(row)]
        return batch


def _stacked(rows, padding):
    """Arrays that may differ in length as one, `[R, ...]`."""
    shape = np.max([np.shape(row) for row in rows], axis=0).astype(int)
    stacked = np.full((len(rows), *shape), padding, rows[0].dtype)
    for number, row in enumerate(rows):
        stacked[(number, *map(slice, np.shape(row)))] = row
    return stacked


def export_single_pass(
    pipeline,
    path,
    examples,
    quantize="none",
    *,
    lengths=None,
    batch_sizes=(1,),
    min_agreement=None,
    references=None,
    max_loss=MAX_LOSS,
    max_score_loss=None,
    license=None,
    progress=None,
):
    """Writes a .tflite file that runs with LiteRT's builtin operators alone.

    For each length and batch size it has a signature of fixed shape, such as `classify_1x16`, and
    where inputs have no length for each batch size one, such as `classify_1`: from the inputs of
    the model to the outputs of the pipeline's `Codec`, whose facts say what rows must be. Of a
    classifier: `source`, int32 `[1, 16]`, ids that end in `eos_id` and then padding; to
    `probabilities`, float32 `[1, C]`, and `label`, int32 `[1]`, the place of the most probable of
    the `labels` in the facts. Vocabulary and facts lie after the model as in a ZIP archive: see
    `export_litert`.

    The file appears at `path` when it has answered `examples` as the model in memory does.

    Args:
        pipeline: A `SinglePass`, such as a `Classifier`.
        path: The file. An older .tflite file is replaced.
        examples: List of real examples to check the export with.
        quantize: `"none"`, `"float16"` or `"int8"`: see `export_litert`.
        lengths: Lengths in tokens; the last one is the pipeline's `max_length`. `None`: see
            `default_lengths`.
        batch_sizes: Rows at a time: for each length there is a signature of each size.
        min_agreement, references, max_loss, max_score_loss: See `SinglePassAgreement`.
        license: Under which the model may be used, a string for the facts.
        progress: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures` and the figures of a
        `SinglePassAgreement`.

    Raises:
        ExportError: If the answers differ, or something else is at `path`.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong.
    """
    load_interpreter()
    examples = pipeline.codec.check_samples(examples)
    path = check_place_of_file(path)
    lengths = _lengths(lengths, pipeline.codec)
    check_shapes(quantize, QUANTIZATIONS, lengths, list(batch_sizes), pipeline.codec.longest or 1)
    check_space(path, pipeline, quantize)
    progress = progress or silent
    pipeline = in_float32(pipeline)
    agreement = SinglePassAgreement(
        pipeline.codec,
        examples,
        pipeline.answer(examples),
        quantize,
        min_agreement,
        references,
        max_loss,
        max_score_loss,
    )
    signatures = [
        Signature(_name(pipeline.codec, rows, length), rows, length)
        for length, rows in itertools.product(lengths, batch_sizes)
    ]

    def write(draft):
        progress(f"converting {len(signatures)} signatures")
        content = _convert(pipeline, signatures, quantize)
        facts = facts_of(pipeline, signatures, quantize, pipeline.codec.facts())
        facts["license"] = license
        pack(draft, content, pipeline.tokenizers, facts)
        progress(f"answering {len(examples)} examples with every signature")
        report = agreement.judge(_results(draft, examples), path)
        pack(draft, content, pipeline.tokenizers, {**facts, "agreement": figures_of(report)})
        LiteRTSinglePass(draft).answer_batch(examples[:1])
        return report

    report = place_file(path, write)
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": quantize,
        "signatures": [signature.name for signature in signatures],
        **report,
    }


def _lengths(lengths, codec):
    """The lengths of the signatures, a list; 1 stands for inputs that have none."""
    if codec.longest is None:
        if lengths is not None:
            raise ValueError(
                f"`lengths` must be None for a model whose inputs have no length. "
                f"Received: {lengths}."
            )
        return [1]
    return list(default_lengths(codec.longest) if lengths is None else lengths)


def _name(codec, rows, length):
    return f"{codec.verb}_{rows}" if codec.longest is None else f"{codec.verb}_{rows}x{length}"


def _convert(pipeline, signatures, quantize):
    kernels = Kernels()
    if quantize == "int8":
        tables = (layer.table for layer in pipeline.model.embeddings)
        kernels = Kernels(look_up=Int8Rows(tables).look_up)
    pipeline = pipeline.with_model(copy_model(pipeline.model, kernels))
    functions = {signature.name: _trace(pipeline, signature) for signature in signatures}
    content = convert_functions(pipeline.model, functions, quantize)
    return share_quantization(content) if quantize == "int8" else content


def _trace(pipeline, signature):
    codec = pipeline.codec
    checked = screened(pipeline.predict, codec.screen, codec.nothing)
    length = None if codec.longest is None else signature.source_length
    specs = codec.input_specs(signature.batch_size, length)
    return tf.function(checked, autograph=False).get_concrete_function(**specs)


def _results(draft, examples):
    """The file's answers, with the signatures taking turns, so that none goes unseen."""
    loaded = LiteRTSinglePass(draft)
    results = []
    for example, signature in zip(examples, itertools.cycle(loaded.signatures), strict=False):
        inputs, _ = loaded.codec.encode(**loaded.codec.request([example]))
        fits = max(loaded.codec.lengths(inputs)) <= signature.source_length
        results += loaded.answer_batch([example], signature if fits else None)
    return results
