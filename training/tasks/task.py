"""The interface of a task's training: from its data to batches, and what an update lowers."""

import abc

import tensorflow as tf

from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.corpus import TokenizedCorpus
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.loop.objectives import RealLabels


class Training(abc.ABC):
    """How one task is trained. What the task is for: see `Task`.

    Args:
        tokenizers: The `Tokenizers`, or a pair of them, for inputs and outputs, or one for both.
            `None` for a task that reads no text.
        config: The configuration of the model. `None`: where none is needed.

    Attributes:
        pad_id: What rows of padding consist of, which make the shards of a batch equally large.
        packed: Whether rows hold several texts: see `pack_texts`.
    """

    pad_id = 0
    packed = False

    def __init__(self, tokenizers=None, config=None):
        self.tokenizers, self.config = tokenizers, config

    @abc.abstractmethod
    def corpus(self, data, split, settings):
        """Returns the examples of a split in memory.

        Args:
            data: A `Source`.
            split: Name of the split.
            settings: The `[data]` section.

        Returns:
            A `TokenizedCorpus`, or anything with its `size`, `tokens`, `too_long`, `fingerprint`,
            `batches`, `steps` and `epochs`.
        """

    def epochs(self, corpus, data, settings):
        """Returns the `Epochs` of a training.

        Args:
            corpus: What `corpus` returned of the training split.
            data: A `Source`.
            settings: The `Settings`.
        """
        return corpus.epochs(settings.data.size_of_batch, settings.training.seed)

    @abc.abstractmethod
    def assemble(self, *columns):
        """Returns a batch, inputs and labels, for a model of the task.

        Args:
            *columns: The columns of the corpus for some examples.
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

    @abc.abstractmethod
    def weigh(self, inputs, labels):
        """Returns how much each label counts, float32, 0 for padding and for rows of padding."""


class TextTraining(Training):
    """The training of a task that reads text.

    Args:
        tokenizer: A `Tokenizer`, or a pair of them, for inputs and outputs.
        config: The configuration of the model. `None`: where none is needed to encode.
        packed: Whether rows hold several texts: see `pack_texts`.

    Attributes:
        tokenizers: The `Tokenizers`.
        texts: The tokenizer of each column that is text, a dictionary from the column's number.
    """

    def __init__(self, tokenizer, config=None, packed=False):
        super().__init__(Tokenizers.of(tokenizer), config)
        self.packed = packed
        self.pad_id = self.tokenizers.source.pad_id
        self.bos_id = self.tokenizers.target.bos_id
        self.eos_id = self.tokenizers.target.eos_id

    def corpus(self, data, split, settings):
        """Returns the `TokenizedCorpus` of a split; its batches are `assemble`d of texts, padded,
        int32 `[B, T]`, and of what else `encode` returned.
        """
        weights = data.weights(split) if split == "train" else None
        return TokenizedCorpus.from_rows(
            data.rows(split), self, settings.max_length, weights, split, settings.cut_source
        )

    def epochs(self, corpus, data, settings):
        """Returns the `Epochs` of a training: of the usual pieces, or of others in each epoch."""
        options = settings.training
        if not options.subword_sampling:
            return super().epochs(corpus, data, settings)
        sampler = SubwordSampler(
            corpus,
            data.rows("train"),
            self,
            settings.data.max_length,
            options.subword_sampling,
            options.seed,
            settings.data.cut_source,
        )
        return sampler.epochs(settings.data.size_of_batch)

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
        """Returns the numbers, int32 `[B]`, of a column that is not text."""
        raise NotImplementedError

    def explain(self, column):
        """Returns what is right in a column that is not text, for an error."""
        raise NotImplementedError

    def weigh(self, inputs, labels):
        """Returns how much each label counts, float32, 0 for padding and for rows of padding."""
        return RealLabels(self.pad_id)(inputs, labels)

    def shifted(self, labels):
        """Returns what a decoder reads: `bos_id`, and the labels `[B, T]` one to the right."""
        words = tf.where(tf.equal(labels, self.eos_id), self.pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self.bos_id)
        return tf.concat([begin, words[:, :-1]], axis=1)
