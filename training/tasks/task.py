"""The interface of a task's training: from its data to batches, and what an update lowers."""

import abc

import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.arrays import ArrayCorpus
from keras_transformer.training.data.corpus import TokenizedCorpus
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.loop.objectives import RealLabels


class Training(abc.ABC):
    """How one task is trained. What the task is for: see `Task`.

    A corpus holds an encoded column for each of the `fields`. The data of the task have `columns`,
    which `encode` turns into the encoded ones; `assemble` makes batches of them.

    Args:
        tokenizers: The `Tokenizers`, or a pair of them, for inputs and outputs, or one for both.
            `None` for a task without text.
        config: The configuration of the model. `None`: where none is needed.

    Attributes:
        pad_id: What rows of padding consist of, which make the shards of a batch equally large.
        packed: Whether rows hold several texts: see `pack_texts`.
    """

    pad_id = 0
    packed = False

    def __init__(self, tokenizers=None, config=None):
        self.tokenizers, self.config = tokenizers, config

    @property
    @abc.abstractmethod
    def fields(self):
        """The encoded columns of an example, a dictionary from their names to `Field`s."""

    @property
    def columns(self):
        """Names of the columns of the data, in their order."""
        return tuple(self.fields)

    def rows(self, data, split, settings):
        """Returns the examples of a split, a `tf.data.Dataset` of tuples of the `columns`.

        Args:
            data: A `Source`.
            split: Name of the split.
            settings: The `[data]` section.
        """
        return data.rows(split)

    def encode(self, columns):
        """Encodes a batch of examples; runs in a graph.

        Here each field encodes the column of its name. A task whose columns depend on each other
        has its own way.

        Args:
            columns: Dictionary of the `columns` of the data, `[B, ...]`.

        Returns:
            Dictionary of the encoded columns, one for each of the `fields`.
        """
        return {name: field.encode(columns[name]) for name, field in self.fields.items()}

    def variation(self, settings):
        """Returns what every epoch of a training changes of its examples, or `None`.

        Args:
            settings: The `[data]` section.

        Returns:
            A function of random numbers from 0 to 1, float32 `[B, 2]`, which follow from seed and
            epoch, and of a dictionary of encoded columns, to the columns as the epoch sees them.
        """
        return None

    @abc.abstractmethod
    def assemble(self, **columns):
        """Returns a batch, inputs and labels, for a model of the task.

        Args:
            **columns: The encoded columns of some examples. Those that are ragged come padded.
        """

    def identity(self):
        """Returns what the encoded columns depend on besides the data, plain values."""
        return {name: field.identity() for name, field in self.fields.items()}

    def corpus(self, data, split, settings):
        """Returns the encoded examples of a split.

        Args:
            data: A `Source`.
            split: Name of the split.
            settings: The `[data]` section.

        Returns:
            A `TokenizedCorpus` if a field is ragged, otherwise an `ArrayCorpus`.
        """
        rows = self.rows(data, split, settings)
        if not any(field.is_ragged for field in self.fields.values()):
            return ArrayCorpus.from_rows(rows, self, split, self.variation(settings))
        weights = data.weights(split) if split == "train" else None
        return TokenizedCorpus.from_rows(
            rows, self, settings.max_length, weights, split, settings.cut_source
        )

    def epochs(self, corpus, data, settings):
        """Returns the `Epochs` of a training.

        Args:
            corpus: What `corpus` returned of the training split.
            data: A `Source`.
            settings: The `Settings`.
        """
        return corpus.epochs(settings.data.size_of_batch, settings.training.seed)

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
    """

    def __init__(self, tokenizer, config=None, packed=False):
        super().__init__(Tokenizers.of(tokenizer), config)
        self.packed = packed
        self.pad_id = self.tokenizers.source.pad_id
        self.bos_id = self.tokenizers.target.bos_id
        self.eos_id = self.tokenizers.target.eos_id

    @property
    def texts(self):
        """The encoded columns that are `Tokens`, a dictionary from their names."""
        return {name: field for name, field in self.fields.items() if isinstance(field, Tokens)}

    def epochs(self, corpus, data, settings):
        """Returns the `Epochs` of a training: of the usual pieces, or of others in each epoch."""
        options = settings.training
        if not options.subword_sampling:
            return super().epochs(corpus, data, settings)
        sampler = SubwordSampler(
            corpus,
            self.rows(data, "train", settings.data),
            self,
            settings.data.max_length,
            options.subword_sampling,
            options.seed,
            settings.data.cut_source,
        )
        return sampler.epochs(settings.data.size_of_batch)

    def weigh(self, inputs, labels):
        """Returns how much each label counts, float32, 0 for padding and for rows of padding."""
        return RealLabels(self.pad_id)(inputs, labels)

    def shifted(self, labels):
        """Returns what a decoder reads: `bos_id`, and the labels `[B, T]` one to the right."""
        words = tf.where(tf.equal(labels, self.eos_id), self.pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self.bos_id)
        return tf.concat([begin, words[:, :-1]], axis=1)
