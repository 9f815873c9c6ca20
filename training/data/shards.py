"""Shards of a batch: all replicas together see what one device would."""

import tensorflow as tf

from keras_transformer.training.data.stream import unconverted


def cut_batches(batches, strategy, pad_id):
    """Gives every replica its own shard of every batch.

    Of n replicas the one with number i gets `rows[i::n]`. Shards are padded with rows of `pad_id`
    to the same size, so that all replicas see the same shapes, even where a batch has fewer rows
    than there are replicas. With losses that are summed over real tokens and divided by the
    tokens of all replicas, an update is therefore that of one device with the whole batch. No
    other sharding takes place: each process makes the whole batches and keeps its own rows.

    Args:
        batches: An infinite `tf.data.Dataset` of batches, the same in all processes: any structure
            of tensors [rows, ...]. Their order must not depend on the process.
        strategy: A `tf.distribute.Strategy`.
        pad_id: What the added rows consist of.

    Returns:
        What `fit` (with `steps_per_epoch`) and `evaluate` (with `steps`) take: the dataset itself
        for the default strategy, otherwise a `tf.distribute.DistributedDataset`.
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
        # Otherwise the processes would consult each other before every update whether there is one.
        return shards.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    return strategy.distribute_datasets_from_function(shards_of_process)


def cut(tensor, shards, pad_id):
    """Cuts a batch by rows: `rows[i::shards]`, padded to the same size.

    Args:
        tensor: Integers, [rows, ...].
        shards: Number of shards.
        pad_id: What the added rows consist of.

    Returns:
        [shards, ceil(rows / shards), ...].
    """
    rows, others = tf.shape(tensor)[0], tf.shape(tensor)[1:]
    size = -(-rows // shards)
    added = [[0, size * shards - rows]] + [[0, 0]] * (tensor.shape.rank - 1)
    full = tf.pad(tensor, added, constant_values=pad_id)
    by_shard = tf.reshape(full, tf.concat([[size, shards], others], 0))
    # Row r is in shard r mod `shards`.
    return tf.transpose(by_shard, [1, 0, *range(2, tensor.shape.rank + 1)])
