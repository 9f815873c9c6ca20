"""README and batching parameters for serving a SavedModel."""

import dataclasses
import json
import re
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.export.saved_model import templates

BATCHING, README = "batching_parameters.txt", "README.md"
XLA_FLAG = "--xla_cpu_compilation_enabled=true"
LARGEST_BATCH = 32  # sentences that the server batches, where the model is not compiled


def model_name(directory) -> str:
    """Returns the name under which to serve the versions in a folder: the name of the folder.

    Characters that would have to be quoted in a shell or a URL become hyphens.
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", directory.resolve().name).strip("-.") or "model"


def batching_parameters(buckets=None) -> str:
    """Returns the contents of TensorFlow Serving's `--batching_parameters_file`.

    Args:
        buckets: The `Buckets` for which the model is compiled. `None`: it is not compiled.
    """
    sizes = buckets.batch_sizes if buckets else ()
    text = templates.BATCHING_PARAMETERS.substitute(largest=largest_batch(buckets))
    return text + "".join(f"allowed_batch_sizes: {size}\n" for size in sizes)


@dataclasses.dataclass(frozen=True)
class Page:
    """README of a version, as the values for its template.

    Args:
        purpose: The model's purpose, the beginning of a sentence.
        functions: Dictionary from the names of the signatures to concrete functions.
        axes: Function of the name of a signature, the name of one of its tensors and its
            `tf.TensorSpec`. Returns the letters of the axes, such as `"B, S"`.
        notes: Explanation of the letters and the outputs, in Markdown.
        requests: Dictionary from the names of signatures to JSON, example inputs of each.
        modules: Dictionary from modules that a Python program must import to the reason for each.
        arguments: Dictionary from the inputs of the first signature to Python code of an example.
        output: Name of the output that the example prints.
        flags: Options of the server, preceded by a space.
        serving: Further notes on the server, in Markdown.
        grpc: A section with a gRPC client.
    """

    purpose: str
    functions: dict
    axes: Callable
    notes: str
    requests: dict
    modules: dict
    arguments: dict
    output: str
    flags: str = ""
    serving: str = ""
    grpc: str = ""

    def text(self, model) -> str:
        """Returns the page in Markdown; `model` is the name under which it is served."""
        first, *_ = self.functions
        spec = self.functions[first].structured_outputs[self.output]
        written = spec.dtype == tf.string and spec.shape.rank == 1  # one string for each example
        imports = (f"import {name}  # {why}\n" for name, why in self.modules.items())
        return templates.PAGE.substitute(
            model=model,
            purpose=self.purpose,
            signatures="\n".join(map(self._row, self.functions)),
            notes=self.notes,
            flags=self.flags,
            serving=self.serving,
            requests="".join(
                templates.REQUEST.substitute(
                    model=model,
                    inputs=inputs,
                    signature="" if name == first else f'"signature_name": "{name}", ',
                )
                for name, inputs in self.requests.items()
            ),
            grpc=self.grpc,
            needs=templates.NEEDS if self.modules else "",
            imports="".join(imports),
            arguments=", ".join(f"{name}={value}" for name, value in self.arguments.items()),
            output=self.output,
            decode=".decode()" if written else "",
        )

    def _row(self, name):
        """Returns a row of the table: a signature with its inputs and outputs."""

        def cells(tensors):
            return ", ".join(
                f"`{key}` {spec.dtype.name} [{self.axes(name, key, spec)}]"
                for key, spec in tensors.items()
            )

        function = self.functions[name]
        arguments, named = function.structured_input_signature
        inputs = cells({**{spec.name: spec for spec in arguments}, **named})
        return f"| `{name}` | {inputs} | {cells(function.structured_outputs)} |"


def json_of(inputs) -> str:
    """Returns inputs as JSON that can be put between single quotes in a shell."""
    return json.dumps(inputs).replace("'", "\\u0027")


def largest_batch(buckets) -> int:
    """Returns the largest number of sentences that the server batches."""
    return buckets.batch_sizes[-1] if buckets else LARGEST_BATCH


def compiled(buckets) -> str:
    """Returns the paragraph about the shapes for which the searches are compiled."""
    sizes, lengths = (
        f"{', '.join(map(str, values[:-1]))} and {values[-1]}" if values[1:] else str(values[0])
        for values in (buckets.batch_sizes, buckets.lengths)
    )
    return templates.COMPILED.substitute(sizes=sizes, lengths=lengths, flag=XLA_FLAG)
