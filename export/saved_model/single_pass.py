"""A SavedModel of a model that answers in one pass, for TensorFlow Serving."""

import string

import numpy as np
import tensorflow as tf

from keras_transformer.export.parity import ExportError, in_float32
from keras_transformer.export.place import place_version, save, silent
from keras_transformer.export.place_checks import check_place_of_versions, check_space
from keras_transformer.export.saved_model.facts import write_facts
from keras_transformer.export.saved_model.guide import README, model_name
from keras_transformer.export.saved_model.inputs import of_these_shapes
from keras_transformer.export.saved_model.loaders import LOADERS
from keras_transformer.export.saved_model.warmup import PATH, Request, write_requests
from keras_transformer.export.single_pass_agreement import SinglePassAgreement
from keras_transformer.tasks.strings import map_sorted

DEFAULT = "serving_default"
BATCH_SIZE = 64
TEXT = string.Template("""\
# $model

$purpose, under TensorFlow Serving. Written by `keras-transformer export saved-model`; neither a
server nor a client needs that package.

| signature | inputs | outputs |
|---|---|---|
$signatures

$notes

## Start the server

In the folder of this file:

```sh
docker run -p 8500:8500 -p 8501:8501 \\
  -v "$$(dirname "$$PWD"):/models/$model" -e MODEL_NAME=$model \\
  tensorflow/serving
```

## Ask it over REST

```sh
curl http://localhost:8501/v1/models/$model:predict -d \\
  '{"inputs": {$request}}'
```

## Load it in Python
$needs
In the folder of this file:

```python
import tensorflow as tf
$imports
answer = tf.saved_model.load(".").signatures["serving_default"]
print(answer($arguments)["$output"][0].numpy()$decode)
```
""")
NEEDS = """
It needs the operations of the package `tensorflow-text`, of TensorFlow's version.
"""


def export_single_pass(pipeline, directory, examples, *, references=None, progress=None):
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    Its signature `serving_default` is from a request to the answers of the pipeline's `Codec`. If
    that has a `signature` of its own, such as `tokens`, there is one of that name from the inputs
    of the model to its outputs. Beside the model lie a request with which TensorFlow Serving warms
    it up, a `README.md` and, if the codec needs them, its facts.

    The version appears in `directory` when it is complete and all signatures have answered
    `examples` as the model in memory does, loaded in both ways that TensorFlow has.

    Args:
        pipeline: A `SinglePass`, such as a `Classifier`.
        directory: Folder of the versions, as TensorFlow Serving expects it; made if missing.
        examples: List of real examples to check the export with.
        references: List of their right answers, for the report. `None`: they are not known.
        progress: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `signatures`, `python_needs` and the figures of a
        `SinglePassAgreement`.

    Raises:
        ExportError: If the answers differ, or `directory` holds something else.
        OSError: If it cannot be written.
    """
    examples = pipeline.codec.check_samples(examples)
    directory = check_place_of_versions(directory)
    pipeline = in_float32(pipeline)
    check_space(directory, pipeline)
    progress = progress or silent
    agreement = SinglePassAgreement(
        pipeline.codec, examples, pipeline.answer(examples), references=references
    )
    functions = _signatures(pipeline)
    guide = pipeline.codec.guide(examples[0])

    def write(draft):
        progress("writing the graphs")
        module = tf.Module()
        module.weights = pipeline.weights
        save(module, draft, functions)
        request = {k: v.numpy() for k, v in pipeline.codec.request(examples[:1]).items()}
        write_requests(draft / PATH, model_name(directory), [Request(DEFAULT, request)])
        write_facts(draft, pipeline.codec)
        readme = _readme(guide, functions, model_name(directory), pipeline.output)
        (draft / README).write_text(readme, "utf-8")
        return _verify(draft, directory, functions, pipeline.codec, agreement, progress)

    path, report = place_version(directory, write)
    return {
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "signatures": list(functions),
        "python_needs": ["tensorflow", *guide.modules],
        **report,
    }


def _signatures(pipeline):
    """The functions to export, traced, by name."""
    codec = pipeline.codec

    def of_inputs(**inputs):
        return codec.named(pipeline.predict(**codec.checked(**inputs)))

    functions = {DEFAULT: (pipeline.respond, codec.request_specs)}
    if codec.signature is not None:
        functions[codec.signature] = (of_inputs, codec.input_specs())
    return {
        name: tf.function(of_these_shapes(function, specs), autograph=False).get_concrete_function(
            **specs
        )
        for name, (function, specs) in functions.items()
    }


def _verify(draft, name, signatures, codec, agreement, progress):
    """The figures of the first signature; all must agree, in both ways to load the model."""
    reports = []
    for load, program in LOADERS:
        progress(f"calling every signature as {program} loads it")
        with load(draft) as model:
            for signature in signatures:
                results = _results(model, signature, codec, agreement.examples)
                reports.append(agreement.judge(results, f"{name}, {signature}"))
    return reports[0]


def _results(model, signature, codec, examples):
    """What a signature answers to examples, as `Result`s."""

    def answer(batch):
        request = codec.request(batch)
        if signature == DEFAULT:
            return codec.results(_arrays(model.run(signature, **request)))
        inputs, rest = codec.encode(**request)
        outputs = _arrays(model.run(signature, **inputs))
        for output, names in _arrays(codec.named(outputs)).items():
            if not np.array_equal(names, outputs[output], equal_nan=names.dtype.kind == "f"):
                raise ExportError(f"{signature}: `{output}` does not belong to its numbers.")
        return codec.results(_arrays(codec.answers(outputs, rest)))

    return map_sorted(answer, examples, BATCH_SIZE, codec.size)


def _arrays(tensors):
    return {name: np.asarray(value) for name, value in tensors.items()}


def _readme(guide, functions, model, output):
    constants = {name: f"tf.constant({value})" for name, value in guide.request.items()}
    arguments = (f"{name}={value}" for name, value in {**constants, **guide.arguments}.items())
    outputs = functions[DEFAULT].structured_outputs
    return TEXT.substitute(
        model=model,
        purpose=guide.purpose,
        signatures="\n".join(_row(name, call, guide.axes) for name, call in functions.items()),
        notes="\n".join(f"- {note}" for note in guide.notes),
        request=", ".join(f'"{name}": {value}' for name, value in guide.request.items()),
        needs=NEEDS if guide.modules else "",
        imports="".join(f"import {name}  # {why}\n" for name, why in guide.modules.items()),
        arguments=", ".join(arguments),
        output=output,
        decode=".decode()" if outputs[output].dtype == tf.string else "",
    )


def _row(name, function, axes):
    """A row of the table: a signature with its inputs and outputs."""

    def cells(tensors):
        return ", ".join(
            f"`{name}` {spec.dtype.name} [{axes.get(name, 'B')}]" for name, spec in tensors.items()
        )

    inputs = cells(function.structured_input_signature[1])
    return f"| `{name}` | {inputs} | {cells(function.structured_outputs)} |"
