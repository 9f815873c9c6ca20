"""Shards of batches for the replicas of a strategy."""

from typing import Any

import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.data.stream import unconverted


def cut_batches(batches, strategy, pad_id) -> Any:
    """Distributes every batch to the replicas of a strategy.

    Replica i of n gets `rows[i::n]`. Shards are padded with rows of `pad_id` to the same size, so
    that all replicas have the same shapes, even if a batch has fewer rows than there are replicas.
    If losses are summed over tokens without padding and divided by the number of tokens of all
    replicas, an update is therefore the same as on one device with the whole batch. There is no
    other sharding: each process makes the whole batches and keeps its own rows.

    Args:
        batches: An infinite `tf.data.Dataset` of batches, any structure of tensors [rows, ...]. All
            processes must have the same batches in the same order.
        strategy: A `tf.distribute.Strategy`.
        pad_id: Value of the rows of padding.

    Returns:
        A dataset for `fit` (with `steps_per_epoch`) and `evaluate` (with `steps`): `batches` for
        the default strategy, otherwise a `tf.distribute.DistributedDataset`.
    """
    if strategy is tf.distribute.get_strategy():
        return batches

    def shards_of_process(context):
        total = context.num_replicas_in_sync
        count = total // context.num_input_pipelines
        first = context.input_pipeline_id * count

        def own_shards(*batch):
            return tf.nest.map_structure(
                lambda tensor: cut(tensor, total, pad_id)[first : first + count], batch
            )

        shards = batches.map(unconverted(own_shards)).unbatch().prefetch(2 * count)
        # Otherwise the processes would synchronise before every update to check for its end.
        return shards.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    return strategy.distribute_datasets_from_function(shards_of_process)


def cut(tensor, shards, pad_id) -> Tensor:
    """Cuts a batch into shards `rows[i::shards]`, padded to the same size.

    Args:
        tensor: The batch, [rows, ...].
        shards: Number of shards.
        pad_id: Value of the rows of padding.

    Returns:
        The shards, [shards, ceil(rows / shards), ...].
    """
    rows, others = tf.shape(tensor)[0], tf.shape(tensor)[1:]
    size = -(-rows // shards)
    added = [[0, size * shards - rows]] + [[0, 0]] * (tensor.shape.rank - 1)
    full = tf.pad(tensor, added, constant_values=pad_id)
    by_shard = tf.reshape(full, tf.concat([[size, shards], others], 0))
    # Row r is in shard r mod `shards`.
    return tf.transpose(by_shard, [1, 0, *range(2, tensor.shape.rank + 1)])
