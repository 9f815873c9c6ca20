"""Comparison of the operators of onnxruntime-extensions with a tokenizer, for every token."""

import pathlib
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.export.apart import EngineApart
from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx import strings_apart
from keras_transformer.export.onnx.convert import IR_VERSION, OPSET
from keras_transformer.export.onnx.packages import DOMAIN, load_onnx
from keras_transformer.export.onnx.string_graph import (
    SOURCE,
    TEXT,
    TOKENS,
    VERSION,
    Nodes,
    infos,
    read_text,
    write_text,
)
from keras_transformer.export.runtime import padded
from keras_transformer.tasks.strings import encode
from keras_transformer.text.sentencepiece_model import read_model

SPACE = "▁"  # as SentencePiece writes a space
DECODED = "decoded"  # an output


def require_same_strings(tokenizers: Any, samples: list[str], max_length: int) -> None:
    """Compares the operators with the tokenizers: for samples, and for every token.

    Args:
        tokenizers: The `Tokenizers`.
        samples: List of strings.
        max_length: Maximum number of tokens of a text, the end token included.

    Raises:
        ExportError: If token ids or texts differ. The message names the first text.
    """
    source, target = tokenizers
    pieces = (piece.replace(SPACE, " ") + strings_apart.UNKNOWN for piece in _pieces(source))
    texts = [*samples, *pieces]
    ids, *_ = encode(source, tf.constant(texts), max_length)
    known, *_ = encode(target, tf.constant(samples), max_length)
    unk_id, eos_id = target.unk_id, target.eos_id
    # Each token at the beginning of a text, in it, and after an unknown one.
    numbers = [number for number in range(target.vocab_size) if number != eos_id]
    rows = [(number, number, unk_id, number, eos_id) for number in numbers]
    tokens = padded([*known.to_list(), *rows], target.pad_id).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "vocabulary.onnx")
        path.write_bytes(_operators(tokenizers, max_length).SerializeToString())
        with EngineApart(strings_apart.__name__, str(path), "1") as engine:
            inputs = {TEXT: np.array(texts, object), TOKENS: tokens}
            found = engine.run(strings_apart.ANSWER, **inputs)
    expected = ids.to_tensor(source.pad_id).numpy()
    for text, ours, theirs in zip(texts, expected, found[SOURCE], strict=True):
        if not np.array_equal(ours, theirs):
            raise ExportError(_difference(f"split {text!r}", theirs.tolist(), ours.tolist()))
    decoded = target.decode(tf.constant(tokens)).numpy()
    for row, ours, theirs in zip(tokens, decoded, found[DECODED], strict=True):
        if ours != theirs:
            both = (text.decode("utf-8", "replace") for text in (theirs, ours))
            raise ExportError(_difference(f"join the tokens {row.tolist()}", *both))


def _difference(what, theirs, ours):
    return (
        "`tokenizer` needs the same tokens and texts as in training: the operators of "
        f"onnxruntime-extensions {what} into {theirs!r}, not {ours!r}. Export without the "
        "tokenizer."
    )


def _pieces(tokenizer):
    return [piece.piece for piece in read_model(tokenizer.model).pieces]


def _operators(tokenizers, max_length):
    """Returns a model of the operators alone: texts to token ids, and tokens to texts."""
    onnx, nodes = load_onnx(), Nodes()
    source, *_ = read_text(nodes, TEXT, tokenizers.source, max_length)
    nodes.add("Identity", source, name=SOURCE)
    nodes.add("Identity", write_text(nodes, TOKENS, tokenizers.target), name=DECODED)
    inputs = infos([(TEXT, "STRING", ["B"]), (TOKENS, "INT32", ["R", "L"])])
    outputs = infos([(SOURCE, "INT32", ["B", "S"]), (DECODED, "STRING", ["R"])])
    graph = onnx.helper.make_graph(nodes.nodes, "vocabulary", inputs, outputs, nodes.weights)
    opsets = [onnx.helper.make_opsetid(*one) for one in (("", OPSET), (DOMAIN, VERSION))]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
