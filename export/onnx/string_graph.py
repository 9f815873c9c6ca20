"""Strings around the graph of an .onnx file, by operators of onnxruntime-extensions."""

import itertools
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam
from keras_transformer.export.onnx.float16 import replace
from keras_transformer.export.onnx.packages import DOMAIN, load_onnx
from keras_transformer.search_settings import UNLIMITED
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.text.sentencepiece_model import with_table

OPERATORS = ["SentencepieceDecoder", "SentencepieceTokenizer"]
VERSION = 1  # of these operators
TEXT, TRUNCATED = "text", "truncated"  # an input, and an output
TOKENS, SCORE, LENGTH = "tokens", "score", "length"  # outputs of the graph of token ids
SOURCE, LIMIT = "source", "max_length"  # its inputs
INNER = "ids/"  # begins the names of its outputs in the graph of strings
PREFIX = "strings/"  # begins the names of values that are added
# Inputs of a graph of strings with a beam, which have defaults.
LENGTH_PENALTY, EXTRA_LENGTH, MAX_OUTPUT = "length_penalty", "extra_length", "max_output"
BEAM_INPUTS = (
    (LENGTH_PENALTY, "FLOAT", [1]),
    (EXTRA_LENGTH, "INT32", [1]),
    (MAX_OUTPUT, "INT32", [1]),
)
ALL = np.iinfo(np.int64).max


class Nodes:
    """Nodes that are added to a graph, with their constants."""

    def __init__(self) -> None:
        self._onnx = load_onnx()
        self._numbers = itertools.count()
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Returns the name of a constant."""
        name = f"{PREFIX}{next(self._numbers)}"
        self.weights.append(self._onnx.numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Adds a node and returns the name of its output.

        Args:
            kind: Name of the operator.
            *inputs: Names of the inputs.
            name: Name of the output. `None`: a new one.
            **attributes: Attributes of the node.
        """
        return self.add_several(kind, inputs, [name], **attributes)[0]

    def add_several(self, kind, inputs, names, **attributes) -> list[str]:
        """Adds a node and returns the names of its outputs; see `add`."""
        names = [name or f"{PREFIX}{next(self._numbers)}" for name in names]
        domain = DOMAIN if kind in OPERATORS else None
        node = self._onnx.helper.make_node(kind, inputs, names, domain=domain, **attributes)
        self.nodes.append(node)
        return names


def read_text(nodes: Nodes, text: str, tokenizer: Any, max_length: int) -> tuple[str, str, str]:
    """Adds nodes that tokenise strings as `keras_transformer.tasks.strings.encode` does.

    Args:
        nodes: The `Nodes`.
        text: Name of the strings, `[B]`.
        tokenizer: A `SentencePieceTokenizer` that `check_vocabulary` accepts.
        max_length: Maximum number of tokens of a text, the end token included.

    Returns:
        Names of the token ids, int32 `[B, S]`, which end in `eos_id` and are then padded; of their
        numbers without the end token, int64 `[B]`; and of the boolean `[B]` that is true for a text
        that was truncated.
    """
    one_best, alpha = nodes.constant([0]), nodes.constant([0], np.float32)
    flags = [nodes.constant([False], bool)] * 4  # bos, eos, in reverse, ids of fairseq
    tokens, splits = nodes.add_several(
        "SentencepieceTokenizer",
        [text, one_best, alpha, *flags],
        [None, None],
        model=with_table(tokenizer.model),
    )  # [n], [B + 1]
    zero, one, most = nodes.constant(0), nodes.constant(1), nodes.constant(max_length - 1)
    begins = nodes.add("Slice", splits, nodes.constant([0]), nodes.constant([-1]))  # [B]
    ends = nodes.add("Slice", splits, nodes.constant([1]), nodes.constant([ALL]))  # [B]
    counts = nodes.add("Sub", ends, begins)  # [B]
    kept = nodes.add("Min", counts, most)  # [B]
    longest = nodes.add("ReduceMax", kept, keepdims=0)  # scalar
    places = nodes.add("Range", zero, nodes.add("Add", longest, one), one)  # [S]
    column, ends = (
        nodes.add("Unsqueeze", value, nodes.constant([1])) for value in (begins, kept)
    )  # [B, 1]
    pad, eos = (nodes.constant([id], np.int32) for id in (tokenizer.pad_id, tokenizer.eos_id))
    padded = nodes.add("Concat", tokens, pad, axis=0)  # [n + 1]
    chosen = nodes.add("Min", nodes.add("Add", column, places), nodes.add("Shape", tokens))
    ids = nodes.add("Gather", padded, chosen, axis=0)  # [B, S]
    rest = nodes.add("Where", nodes.add("Equal", places, ends), eos, pad)  # [B, S]
    source = nodes.add("Where", nodes.add("Less", places, ends), ids, rest)  # [B, S]
    return source, kept, nodes.add("Greater", counts, most)


def write_text(nodes: Nodes, tokens: str, tokenizer: Any) -> str:
    """Adds nodes that decode tokens as `Tokenizer.decode` does, row by row.

    The operator decodes one text.

    Args:
        nodes: The `Nodes`.
        tokens: Name of the token ids, int32 `[..., L]`; after `eos_id` there is only padding.
        tokenizer: A `SentencePieceTokenizer`.

    Returns:
        Name of the strings, `[...]`.
    """
    onnx = load_onnx()
    types, info = onnx.TensorProto, onnx.helper.make_tensor_value_info
    zero = nodes.constant([0])
    width = nodes.add("Shape", tokens, start=-1)  # [1]
    shape = nodes.add("Concat", nodes.constant([-1]), width, axis=0)
    rows = nodes.add("Reshape", nodes.add("Cast", tokens, to=types.INT64), shape)  # [R, L]
    count = nodes.add("Squeeze", nodes.add("Shape", rows, end=1), zero)  # scalar
    special = [tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id]
    special = nodes.constant([[id] for id in special])  # [3, 1]
    body = Nodes()
    number, before, after = (f"{PREFIX}{name}" for name in ("number", "before", "after"))
    row = body.add("Gather", rows, number, name=f"{PREFIX}row", axis=0)  # [L]
    equal = body.add("Equal", row, special, name=f"{PREFIX}equal")  # [3, L]
    equal = body.add("Cast", equal, name=f"{PREFIX}equal_32", to=types.INT32)
    any_equal = body.add("ReduceMax", equal, zero, name=f"{PREFIX}special", keepdims=0)  # [L]
    is_text = body.add("Cast", any_equal, name=f"{PREFIX}special_1", to=types.BOOL)
    is_text = body.add("Not", is_text, name=f"{PREFIX}is_text")  # [L]
    ids = body.add("Compress", row, is_text, name=f"{PREFIX}ids", axis=0)
    model = with_table(tokenizer.model)
    text = body.add("SentencepieceDecoder", ids, name=f"{PREFIX}text", model=model)  # [1]
    body.add("Identity", before, name=after)
    graph = onnx.helper.make_graph(
        body.nodes,
        "decode",
        [info(number, types.INT64, []), info(before, types.BOOL, [])],
        [info(after, types.BOOL, []), info(text, types.STRING, [1])],
    )
    texts = nodes.add("Loop", count, "", body=graph)  # [R, 1]
    outer = nodes.add("Shape", tokens, end=-1)
    return nodes.add("Reshape", texts, outer)


def with_strings(model: Any, pipeline: Any, search: Any) -> Any:
    """Returns an `onnx.ModelProto` that takes and returns strings in place of token ids.

    Args:
        model: The `onnx.ModelProto` of the search, which is changed.
        pipeline: A `Generator` whose vocabularies `check_vocabulary` accepts.
        search: The search, a `Greedy`, a `Beam` or a `Sample`.
    """
    onnx = load_onnx()
    graph, nodes = model.graph, Nodes()
    given = [tensor for tensor in graph.input if tensor.name != SOURCE]
    outputs = {output.name: output.type.tensor_type.shape for output in graph.output}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [INNER + name if name in outputs else name for name in names]
    max_length = pipeline.max_length
    source, kept, truncated = read_text(nodes, TEXT, pipeline.source_tokenizer, max_length)
    nodes.add("Identity", source, name=SOURCE)
    if isinstance(search, Beam):
        _add_limit(nodes, kept, search, max_length)
        given = infos(BEAM_INPUTS)
    before = len(nodes.nodes)
    empty = nodes.add("Equal", kept, nodes.constant(0))  # [B]
    if len(outputs[SCORE].dim) > 1:
        empty = nodes.add("Unsqueeze", empty, nodes.constant([1]))  # [B, 1]
    text = write_text(nodes, INNER + TOKENS, pipeline.target_tokenizer)
    nodes.add("Where", empty, nodes.constant("", object), text, name=pipeline.output)
    for name, dtype in ((SCORE, np.float32), (LENGTH, np.int32)):
        nodes.add("Where", empty, nodes.constant(0, dtype), INNER + name, name=name)
    nodes.add("Or", empty, INNER + COMPLETE, name=COMPLETE)
    nodes.add("Identity", truncated, name=TRUNCATED)
    replace(graph.node, [*nodes.nodes[:before], *graph.node, *nodes.nodes[before:]])
    graph.initializer.extend(nodes.weights)
    types = {pipeline.output: "STRING", SCORE: "FLOAT", LENGTH: "INT32", COMPLETE: "BOOL"}
    batch, *rest = (dim.dim_param or dim.dim_value for dim in outputs[SCORE].dim)
    tensors = [(name, kind, [batch, *rest]) for name, kind in types.items()]
    replace(graph.output, infos([*tensors, (TRUNCATED, "BOOL", [batch])]))
    replace(graph.input, [*infos([(TEXT, "STRING", [batch])]), *given])
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, VERSION))
    onnx.checker.check_model(model, full_check=True)
    return model


def check_ratio(search: Any) -> None:
    """Raises a `ValueError` if the graph cannot compute the limit of a beam from its source."""
    if isinstance(search, Beam) and search.max_length_ratio is not None:
        raise ValueError(
            "`search` must have no `max_length_ratio` if the .onnx file takes strings and has a "
            f"beam. Received: search={search!r}."
        )


def beam_values(beam: Beam) -> dict[str, np.ndarray]:
    """Returns the inputs of a graph of strings with the settings of a `Beam`, `[1]` each."""
    limits = {EXTRA_LENGTH: beam.extra_length, MAX_OUTPUT: beam.max_length}
    return {
        LENGTH_PENALTY: np.array([beam.length_penalty], np.float32),
        **{
            name: np.array([UNLIMITED if limit is None else limit], np.int32)
            for name, limit in limits.items()
        },
    }


def infos(tensors: Any) -> list[Any]:
    """Returns descriptions of tensors, given as their names, types and sizes."""
    onnx = load_onnx()
    return [
        onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), sizes)
        for name, kind, sizes in tensors
    ]


def _add_limit(nodes, kept, beam, max_length):
    """Adds the input `max_length` `[B]` of the search, as `Beam.limit` computes it.

    The settings of the beam become inputs with defaults.
    """
    onnx = load_onnx()
    for name, value in beam_values(beam).items():
        nodes.weights.append(onnx.numpy_helper.from_array(value, name))
    kept = nodes.add("Cast", kept, to=onnx.TensorProto.INT32)
    length = nodes.add("Add", kept, nodes.constant(1, np.int32))  # [B], with the end token
    limit = nodes.add("Min", nodes.add("Add", length, EXTRA_LENGTH), MAX_OUTPUT)
    limit = nodes.add("Max", limit, nodes.constant(beam.min_length, np.int32))
    nodes.add("Min", limit, nodes.constant(max_length, np.int32), name=LIMIT)
