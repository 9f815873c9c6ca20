"""Search that XLA compiles for a few shapes only."""

import dataclasses

import tensorflow as tf

from keras_transformer.tasks.generator import SOURCE
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Buckets:
    """Shapes `[B, S]` of token ids for which a search is compiled: every batch size and length.

    Args:
        batch_sizes: Numbers of sentences, increasing. A batch larger than the last one is decoded
            in parts of that size, one after the other.
        lengths: Source lengths in tokens, increasing; the last one is the maximum length.

    Raises:
        ValueError: If one of them is empty, not positive or not increasing.
    """

    batch_sizes: tuple
    lengths: tuple

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            values = getattr(self, field.name)
            if not values or min(values) < 1 or list(values) != sorted(set(values)):
                raise ValueError(
                    f"`{field.name}` must be positive and increasing. "
                    f"Received: {field.name}={values}."
                )


class BucketedSearch:
    """Search that XLA compiles for each of a few shapes, to which every batch is padded.

    XLA compiles again for every new shape, which takes seconds. A sentence is lengthened with
    padding. A batch is filled with copies of its first sentence, so they do not prolong the search.

    Args:
        search: Function of token ids `[B, S]`, int32, and of settings `[B]`, if it has any. Returns
            a dictionary of tensors whose first axis is B.
        buckets: The `Buckets`.
        pad_id: Id of padding.
        eos_id: Id of the end of a sentence.
        inputs: The `tf.TensorSpec`s of the arguments of `search`.
    """

    def __init__(self, search, buckets, pad_id, eos_id, inputs=(SOURCE,)):
        self._compiled = tf.function(
            search, input_signature=inputs, jit_compile=True, autograph=False
        )
        self._buckets, self._pad_id, self._eos_id = buckets, pad_id, eos_id

    def __call__(self, source, *settings) -> dict[str, Tensor]:
        batch, length = tf.unstack(tf.shape(source))
        size = _smallest(self._buckets.batch_sizes, batch)
        width = _smallest(self._buckets.lengths, length)
        batches = tf.maximum((batch + size - 1) // size, 1)
        source = tf.pad(source, [[0, 0], [0, width - length]], constant_values=self._pad_id)
        # An empty batch is padded with an empty sentence.
        end = tf.one_hot([0], width, self._eos_id, self._pad_id, dtype=tf.int32)  # [1, width]
        rows = tf.range(batches * size)
        rows = tf.where(rows < batch, rows, 0)
        source = tf.reshape(tf.gather(tf.concat([source, end], 0), rows), [batches, size, width])
        settings = [
            tf.reshape(
                tf.gather(tf.pad(values, [[0, 1]], constant_values=1), rows), [batches, size]
            )
            for values in settings
        ]
        outputs = tf.map_fn(
            lambda inputs: self._compiled(*inputs),
            (source, *settings),
            parallel_iterations=1,
            fn_output_signature=self._specs(),
        )
        return {name: _joined(value)[:batch] for name, value in outputs.items()}

    def _specs(self):
        outputs = self._compiled.get_concrete_function().structured_outputs
        return {
            name: tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
            for name, spec in outputs.items()
        }


def _smallest(choices, number):
    """Returns the smallest of increasing `choices` that is at least `number`, or the last one."""
    smaller = tf.reduce_sum(tf.cast(tf.constant(choices) < number, tf.int32))
    return tf.gather(choices, tf.minimum(smaller, len(choices) - 1))


def _joined(batches):
    """Reshapes `[batches, size, ...]` to `[batches * size, ...]`."""
    joined = tf.reshape(batches, tf.concat([[-1], tf.shape(batches)[2:]], 0))
    joined.set_shape([None, *batches.shape[2:]])
    return joined
