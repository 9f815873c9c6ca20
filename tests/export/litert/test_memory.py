"""Memory that a conversion takes: tables are variables, which all graphs share."""

import pytest
from litert_files import translator_of
from support import small_config

from keras_transformer import Transformer
from keras_transformer.export.litert.convert import search_kernels
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.searches import LoopSearches
from keras_transformer.export.parity import copy_pipeline


@pytest.mark.slow
@pytest.mark.parametrize("in_int8", [True], ids=["int8"])
def test_no_graph_contains_a_table(in_int8):
    """A constant would be stored once for every loop, and a file has many loops."""
    model = Transformer(small_config(vocab_size=997))
    pipeline = copy_pipeline(translator_of(model), search_kernels(model, in_int8, None, True))
    signature = FixedSignature("greedy_1x5", 1, 5, 29)
    ((_, function),) = LoopSearches().functions(pipeline, signature, lambda function: function)
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    constants = [node.attr["value"].tensor.ByteSize() for node in nodes if node.op == "Const"]
    assert len(constants) > 50 and max(constants) < 4 * 997  # bytes of the quantisation scales
