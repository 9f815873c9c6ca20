"""The interface of a task's training: from its texts to batches, and what an update lowers."""

import abc

import tensorflow as tf

from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.loop.objectives import RealLabels


class Training(abc.ABC):
    """How one task is trained. What the task is for: see `Task`.

    Args:
        tokenizer: A `Tokenizer`, or a pair of them, for inputs and outputs.
        config: The configuration of the model. `None`: where none is needed to encode.
        packed: Whether rows hold several texts: see `pack_texts`.

    Attributes:
        tokenizers: The `Tokenizers`.
        texts: The tokenizer of each column that is text, a dictionary from the column's number.
    """

    packed = False

    def __init__(self, tokenizer, config=None, packed=False):
        self.tokenizers = Tokenizers.of(tokenizer)
        self.config, self.packed = config, packed
        self.pad_id = self.tokenizers.source.pad_id
        self.bos_id = self.tokenizers.target.bos_id
        self.eos_id = self.tokenizers.target.eos_id

    @property
    @abc.abstractmethod
    def texts(self):
        """The tokenizer of each column that is text, by the column's number."""

    def encode(self, *columns):
        """Makes numbers of a batch of examples, in the graph.

        Args:
            *columns: Strings `[B]`, the columns of the data.

        Returns:
            A tuple: of each text ragged token ids `[B, (T)]`, each ending in `eos_id`; of each
            other column int32 `[B]`, below 0 for what cannot be.
        """
        return tuple(
            self.texts[number].encode(column) if number in self.texts else self.number(column)
            for number, column in enumerate(columns)
        )

    def number(self, column):
        """Returns the numbers, int32 `[B]`, of a column that is no text."""
        raise NotImplementedError

    def explain(self, column):
        """Returns what is right in a column that is no text, for an error."""
        raise NotImplementedError

    @abc.abstractmethod
    def assemble(self, *columns):
        """Returns a batch, inputs and labels, for a model of the task.

        Args:
            *columns: What `encode` returned for some examples; texts padded, int32 `[B, T]`.
        """

    @abc.abstractmethod
    def loss(self, settings):
        """Returns the Keras loss that the training computes.

        Args:
            settings: The `[training]` section.
        """

    def metrics(self):
        """Returns the Keras metrics of a validation, a list; `None`: those of the loss."""
        return None

    def weigh(self, inputs, labels):
        """Returns how much each label counts, float32, 0 for padding and for rows of padding."""
        return RealLabels(self.pad_id)(inputs, labels)

    def shifted(self, labels):
        """Returns what a decoder reads: `bos_id`, and the labels `[B, T]` one to the right."""
        words = tf.where(tf.equal(labels, self.eos_id), self.pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self.bos_id)
        return tf.concat([begin, words[:, :-1]], axis=1)
