"""The texts beside a SavedModel, for whoever runs it with TensorFlow Serving."""

import dataclasses
import json
import re

import tensorflow as tf

from keras_transformer.export.saved_model.templates import (
    BATCHING_PARAMETERS,
    COMPILED,
    NEEDS,
    PAGE,
    REQUEST,
)

BATCHING, README = "batching_parameters.txt", "README.md"
XLA_FLAG = "--xla_cpu_compilation_enabled=true"
LARGEST_BATCH = 32  # of several requests, where the model is not compiled for certain sizes


def model_name(directory):
    """Returns the name under which to serve the versions in a folder: that of the folder.

    What would have to be quoted in a shell or an address becomes a hyphen.
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", directory.resolve().name).strip("-.") or "translator"


def batching_parameters(buckets=None):
    """Returns the text of a file for TensorFlow Serving's `--batching_parameters_file`.

    Args:
        buckets: The `Buckets` for which the model is compiled, if it is.
    """
    sizes = buckets.batch_sizes if buckets else ()
    text = BATCHING_PARAMETERS.substitute(largest=largest_batch(buckets))
    return text + "".join(f"allowed_batch_sizes: {size}\n" for size in sizes)


@dataclasses.dataclass(frozen=True)
class Page:
    """Text about the model in the README of a version.

    Args:
        purpose: What it does, the beginning of a sentence.
        functions: Dictionary from the names of the signatures to concrete functions.
        axes: Function of the name of a signature, the name of one of its tensors and its
            `tf.TensorSpec` to the letters of its axes, such as `"B, S"`.
        notes: What the letters and the outputs mean, in Markdown.
        requests: Dictionary from signatures to JSON of an example of their inputs.
        modules: Modules that a Python program must import, and why: a dictionary.
        arguments: Dictionary from the inputs of the first signature to Python of the example.
        output: Which of its outputs the example prints.
        flags: Flags of the server, after a space.
        serving: What else there is to know about the server, in Markdown.
        grpc: A section with a client for gRPC.
    """

    purpose: str
    functions: dict
    axes: object
    notes: str
    requests: dict
    modules: dict
    arguments: dict
    output: str
    flags: str = ""
    serving: str = ""
    grpc: str = ""

    def text(self, model):
        """Returns the page in Markdown for a model of that name."""
        first, *_ = self.functions
        written = self.functions[first].structured_outputs[self.output].dtype == tf.string
        imports = (f"import {name}  # {why}\n" for name, why in self.modules.items())
        return PAGE.substitute(
            model=model,
            purpose=self.purpose,
            signatures="\n".join(map(self._row, self.functions)),
            notes=self.notes,
            flags=self.flags,
            serving=self.serving,
            requests="".join(
                REQUEST.substitute(
                    model=model,
                    inputs=inputs,
                    signature="" if name == first else f'"signature_name": "{name}", ',
                )
                for name, inputs in self.requests.items()
            ),
            grpc=self.grpc,
            needs=NEEDS if self.modules else "",
            imports="".join(imports),
            arguments=", ".join(f"{name}={value}" for name, value in self.arguments.items()),
            output=self.output,
            decode=".decode()" if written else "",
        )

    def _row(self, name):
        """A row of the table: a signature with its inputs and outputs."""

        def cells(tensors):
            return ", ".join(
                f"`{key}` {spec.dtype.name} [{self.axes(name, key, spec)}]"
                for key, spec in tensors.items()
            )

        function = self.functions[name]
        arguments, named = function.structured_input_signature
        inputs = cells({**{spec.name: spec for spec in arguments}, **named})
        return f"| `{name}` | {inputs} | {cells(function.structured_outputs)} |"


def json_of(inputs):
    """Returns inputs as JSON that may stand between single quotes in a shell."""
    return json.dumps(inputs).replace("'", "\\u0027")


def largest_batch(buckets):
    """Returns how many sentences a batch of several requests may have."""
    return buckets.batch_sizes[-1] if buckets else LARGEST_BATCH


def compiled(buckets):
    """Returns the section about the shapes for which the searches are compiled."""
    sizes, lengths = (
        f"{', '.join(map(str, values[:-1]))} and {values[-1]}" if values[1:] else str(values[0])
        for values in (buckets.batch_sizes, buckets.lengths)
    )
    return COMPILED.substitute(sizes=sizes, lengths=lengths, flag=XLA_FLAG)
