"""Constant tables are stored once, however many blocks and loops of a graph use them."""

import gc

import numpy as np
import tensorflow as tf

from keras_transformer import MultiHeadSelfAttention, PositionalEmbedding, constants
from keras_transformer.layers import sinusoids
from keras_transformer.positions.rotary import Rotary


def largest_constant(function):
    """Returns the number of bytes of the largest constant in the graphs of a concrete function."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for inner in graph.library.function for node in inner.node_def)]
    return max(node.attr["value"].tensor.ByteSize() for node in nodes if node.op == "Const")


def sinusoidal_steps():
    layer = PositionalEmbedding(11, 8, "sinusoidal", max_length=500)
    layer.build()

    def steps(tokens):
        def step(index, x):
            return index + 1, x + layer(tokens, start=index)

        beginning = (0, tf.zeros([tf.shape(tokens)[0], 1, 8]))
        return tf.while_loop(lambda index, x: index < 5, step, beginning)[1]

    return steps, tf.TensorSpec([None, 1], tf.int32), sinusoids(500, 8)


def test_a_table_is_stored_once_and_outside_of_the_loops(tmp_path, make=sinusoidal_steps):
    steps, spec, table = make()
    module = tf.Module()
    module.steps = tf.function(steps, input_signature=[spec], autograph=False)
    function = module.steps.get_concrete_function()
    assert largest_constant(function) < 1000
    inputs = tf.ones([2, *spec.shape[1:]], spec.dtype)
    expected = steps(inputs)  # eagerly
    np.testing.assert_allclose(module.steps(inputs), expected, rtol=0, atol=1e-5)
    module.weights = [*function.variables]
    tf.saved_model.save(module, str(tmp_path))
    assert (tmp_path / "saved_model.pb").read_bytes().count(table.tobytes()) == 1
    session = tf.compat.v1.Session(graph=tf.Graph())  # as TensorFlow Serving loads it
    with session, session.graph.as_default():
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["serving_default"]
        (given,), (output,) = signature.inputs.values(), signature.outputs.values()
        found = session.run(output.name, {given.name: inputs.numpy()})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_equal_tables_share_a_tensor_that_is_freed_with_its_graphs():
    def use(table):
        function = tf.function(lambda: constants.shared(table) + 0.0, autograph=False)
        return function.get_concrete_function()

    def known():
        return [tensor.shape for tensor in constants.KNOWN.values() if tensor.shape == [999]]

    first, second = use(np.full(999, 3.5, "float32")), use(np.full(999, 3.5, "float32"))
    assert len(known()) == 1
    assert first.captured_inputs[0] is second.captured_inputs[0]
    array = np.full(999, 3.5)
    assert constants.shared(array) is array, "no graph is being made"
    del first, second
    gc.collect()
    assert not known()


def lookups(count, *bases):
    """Returns the number of table look-ups in a graph of steps of `count` layers for each base."""
    positions = [Rotary(base, max_length=9) for base in bases for _ in range(count)]
    layers = [MultiHeadSelfAttention(2, position=position) for position in positions]
    for layer in layers:
        layer.build((None, None, 8))

    def step(x, index):
        for layer in layers:
            x, _ = layer.step(x, layer.empty_cache(tf.shape(x)[0], 7), index)
        return x

    signature = [tf.TensorSpec([None, 1, 8]), tf.TensorSpec([], tf.int32)]
    graph = tf.function(step, input_signature=signature, autograph=False).get_concrete_function()
    x = tf.random.stateless_normal([3, 1, 8], (1, 2))
    for index in (0, 3):
        np.testing.assert_allclose(graph(x, index), step(x, index), rtol=0, atol=1e-6)
    return sum(node.type == "GatherV2" for node in graph.graph.get_operations())


def test_all_blocks_look_up_the_rotations_of_their_positions_once():
    assert lookups(1, 50.0) == lookups(3, 50.0) == 2  # sine and cosine, for queries and keys
    assert lookups(2, 50.0, 60.0) == 4


def test_results_are_shared_only_for_the_same_tensor_of_a_graph():
    counts = []

    def result(tensor):
        return constants.once(("name",), tensor, lambda: counts.append(1) or tensor + 1)

    def both(x, y):
        outer = result(x)
        (inner,) = tf.while_loop(lambda i: i < 3, lambda i: (result(i) + 0 * result(x),), (x,))
        return outer + result(x), result(y), inner

    both_of = tf.function(both, autograph=False)
    assert [int(value) for value in both_of(tf.constant(1), tf.constant(5))] == [4, 6, 3]
    assert len(counts) == 4, "x and y, in the loop i, and x as the loop captures it"
    assert result(tf.constant(4)) == 5 and result(np.float32(2)) == 3
