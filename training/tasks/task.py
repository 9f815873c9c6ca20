"""The interface of a task's training: from its data to batches, and what an update lowers."""

import abc

import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.data.store import Stores
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
        row_settings: Names of the settings in `[data]` that `rows` depend on.
    """

    pad_id = 0
    packed = False
    row_settings = ()

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

    def corpus(self, data, split, settings, stores=None, sampled=False):
        """Returns the encoded examples of a split, a `Corpus`.

        Args:
            data: A `Source`. Nothing of it is read if there is a store of the split.
            split: Name of the split.
            settings: The `[data]` section.
            stores: The `Stores` that keep it; `None`: temporary ones.
            sampled: Whether the strings of texts are kept as well, for a `SubwordSampler`.
        """
        limits = Limits(
            getattr(settings, "max_length", None),
            getattr(settings, "cut_source", False),
            self.packed,
        )
        own = {name: getattr(settings, name) for name in self.row_settings}
        store = (stores or Stores()).take(
            lambda: self.rows(data, split, settings),
            self,
            limits,
            split=split,
            weights=(lambda: data.weights(split)) if split == "train" else None,
            texts=tuple(self.texts) if sampled else (),
            data=[data.identity(split), own] if stores else None,
            total=lambda: data.count(split),
        )
        return Corpus(store, self, self.variation(settings) if split == "train" else None)

    def epochs(self, corpus, settings):
        """Returns the `Epochs` of a training: of the usual pieces, or of others in each epoch.

        Args:
            corpus: What `corpus` returned of the training split.
            settings: The `Settings`.
        """
        options, size = settings.training, settings.data.size_of_batch
        if not options.subword_sampling:
            return corpus.epochs(size, options.seed)
        sampler = SubwordSampler(
            corpus, self, settings.data.max_length, options.subword_sampling, options.seed
        )
        return sampler.epochs(size)

    @property
    def texts(self):
        """The encoded columns that are `Tokens`, a dictionary from their names."""
        return {name: field for name, field in self.fields.items() if isinstance(field, Tokens)}

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

    def weigh(self, inputs, labels):
        """Returns how much each label counts, float32, 0 for padding and for rows of padding."""
        return RealLabels(self.pad_id)(inputs, labels)

    def shifted(self, labels):
        """Returns what a decoder reads: `bos_id`, and the labels `[B, T]` one to the right."""
        words = tf.where(tf.equal(labels, self.eos_id), self.pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self.bos_id)
        return tf.concat([begin, words[:, :-1]], axis=1)
