"""The texts beside a SavedModel, for whoever runs it with TensorFlow Serving."""

import json
import re

from keras_transformer.export.saved_model.endpoints import Alignments
from keras_transformer.export.saved_model.templates import (
    ALIGNMENT,
    ALIGNMENT_GRPC,
    ALIGNMENT_REST,
    BATCHING_PARAMETERS,
    COMPILED,
    EMPTY,
    TEXT,
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
    text = BATCHING_PARAMETERS.substitute(largest=_largest(buckets))
    return text + "".join(f"allowed_batch_sizes: {size}\n" for size in sizes)


def readme(model, endpoints, sentence, buckets=None):
    """Returns a text in Markdown: the signatures, how to start a server and send requests.

    Args:
        model: Name of the model.
        endpoints: List of `Endpoint`s.
        sentence: A string to translate in the examples.
        buckets: The `Buckets` for which the model is compiled, if it is.
    """
    translator = endpoints[0].translator
    facts = {
        "model": model,
        "output": translator.output,
        "purpose": translator.purpose,
        "empty": EMPTY[translator.blank],
        "signatures": "\n".join(_row(endpoint) for endpoint in endpoints),
        "max_length": translator.max_length,
        "shortest": endpoints[0].beam.min_length,
        "beam_size": endpoints[0].beam.size,
        "eos_id": translator.source_tokenizer.eos_id,
        "pad_id": translator.source_tokenizer.pad_id,
        "searches": "\n".join(
            f"- `{endpoint.name}`: {endpoint.search.summary}" for endpoint in endpoints
        ),
        "flags": f" {XLA_FLAG}" if buckets else "",
        "batching": BATCHING,
        "largest": _largest(buckets),
        "compiled": _compiled(buckets) if buckets else "",
        "sentence": json.dumps(sentence).replace("'", "\\u0027"),
        "ids": translator.encode([sentence])[0].numpy().tolist()[0],
    }
    return TEXT.substitute(facts, **_alignment(endpoints, facts))


def _alignment(endpoints, facts):
    """The sections of the text about alignments: nothing if no endpoint gives them."""
    templates = {
        "alignment": ALIGNMENT,
        "alignment_rest": ALIGNMENT_REST,
        "alignment_grpc": ALIGNMENT_GRPC,
    }
    if not any(isinstance(endpoint, Alignments) for endpoint in endpoints):
        return dict.fromkeys(templates, "")
    tokenizer = endpoints[0].translator.source_tokenizer
    end, unknown = tokenizer.pieces([tokenizer.eos_id, tokenizer.unk_id])
    return {
        name: template.substitute(facts, end=end, unknown=unknown)
        for name, template in templates.items()
    }


def _largest(buckets):
    return buckets.batch_sizes[-1] if buckets else LARGEST_BATCH


def _row(endpoint):
    outputs = endpoint.function.get_concrete_function().structured_outputs
    cells = [
        f"`{name}` {spec.dtype.name} {_axes(spec, endpoint.last_axes.get(name, ()))}"
        for name, spec in outputs.items()
    ]
    inputs = [
        f"`{spec.name}` {spec.dtype.name} {'[B]' if spec.shape.rank == 1 else '[B, S]'}"
        for spec in endpoint.inputs
    ]
    return f"| `{endpoint.name}` | {', '.join(inputs)} | {', '.join(cells)} |"


def _axes(spec, last):
    """The shape of an output in the letters of the text."""
    n_best = [f"M={size}" for size in spec.shape[1 : len(spec.shape) - len(last)]]
    return f"[{', '.join(['B', *n_best, *last])}]"


def _compiled(buckets):
    sizes, lengths = (
        f"{', '.join(map(str, values[:-1]))} and {values[-1]}" if values[1:] else str(values[0])
        for values in (buckets.batch_sizes, buckets.lengths)
    )
    return COMPILED.substitute(sizes=sizes, lengths=lengths, flag=XLA_FLAG)
