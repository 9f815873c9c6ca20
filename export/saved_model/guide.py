"""README and batching parameters for serving a SavedModel."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.export.saved_model import templates
from keras_transformer.tasks.signatures import DEFAULT

BATCHING, README = "batching_parameters.txt", "README.md"
LONGEST_REQUEST = 2000  # characters of a request in the README; longer ones are in files
XLA_FLAG = "--xla_cpu_compilation_enabled=true"
OF_MODEL = "SentencepieceOp"  # creates the model, before other operations read it
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
        files: Dictionary from the names of files that this code reads to their contents.
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
    files: dict = dataclasses.field(default_factory=dict)
    flags: str = ""
    serving: str = ""
    grpc: str = ""

    def write(self, folder, model) -> None:
        """Writes the README, and the files that its examples read, into the folder of a version."""
        (folder / README).write_text(self.text(model), "utf-8")
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        for name in self.requests:
            if self._is_long(name):
                (folder / _file(name)).write_text(self._body(name) + "\n", "utf-8")

    def _is_long(self, name):
        return len(self.requests[name]) > LONGEST_REQUEST

    def _body(self, name):
        """Returns the JSON of a request to a signature."""
        first, *_ = self.functions
        signature = "" if name == first else f'"signature_name": "{name}", '
        return f'{{{signature}"inputs": {self.requests[name]}}}'

    def _data(self, name):
        """Returns the body of a request as an argument of `curl`."""
        return f"@{_file(name)}" if self._is_long(name) else f"'{self._body(name)}'"

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
                templates.REQUEST.substitute(model=model, data=self._data(name))
                for name in self.requests
            ),
            place=templates.PLACE if any(map(self._is_long, self.requests)) else "",
            grpc=self.grpc,
            needs=self._needs(self.functions[first]),
            imports="".join(imports),
            arguments=", ".join(f"{name}={value}" for name, value in self.arguments.items()),
            output=self.output,
            decode=".decode()" if written else "",
        )

    def _needs(self, function):
        """Returns the paragraph about the operations of tensorflow-text that a function calls."""
        names = text_operations(function) if self.modules else []
        if not names:
            return ""
        name = OF_MODEL if OF_MODEL in names else names[0]
        return templates.NEEDS.substitute(operation=name)

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


def _file(name):
    """Returns the name of the file with a request to a signature."""
    return "request.json" if name == DEFAULT else f"request_{name}.json"


def text_operations(function) -> list[str]:
    """Returns the names of the operations of a `ConcreteFunction` that tensorflow-text adds."""
    graph = function.graph.as_graph_def()
    functions = graph.library.function
    nodes = itertools.chain(graph.node, *(one.node_def for one in functions))
    names = {node.op for node in nodes} - {one.signature.name for one in functions}
    return sorted(x for x in names if not x.startswith("_") and not hasattr(tf.raw_ops, x))


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
