"""`Training`, the interface for training a task: batches from its data, loss and metrics."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.data.store import Stores
from keras_transformer.training.data.stream import Epochs
from keras_transformer.training.loop.objectives import RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy


class Training(abc.ABC):
    """Training of one task: encoding of its data, batches, loss and metrics.

    The purpose of the task is described by its `Task`. Its data have `columns`; `encode` turns them
    into an encoded column for each of the `fields`, which a corpus stores; `assemble` makes batches
    of encoded columns.

    Args:
        tokenizers: The `Tokenizers`, a pair of tokenizers for inputs and outputs, or one for both.
            `None` for a task without text.
        config: The configuration of the model. `None`: nothing that needs it is called.

    Attributes:
        pad_id: Value of the rows that pad the shards of a batch to equal size.
        packed: Whether rows contain several texts: see `pack_texts`.
        row_settings: Names of the settings in `[data]` that `rows` depend on.
        encoded_together: Number of examples that are encoded together; 64 times as many are in
            memory when a store is written. `None`: as many as suit texts.
    """

    pad_id = 0
    packed = False
    row_settings = ()
    encoded_together: int | None = None

    def __init__(self, tokenizers: Any = None, config: Any = None):
        self.tokenizers, self.config = tokenizers, config

    @property
    @abc.abstractmethod
    def fields(self) -> dict[str, Field]:
        """The `Field` of each encoded column, a dictionary by name."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the data, in order."""
        return tuple(self.fields)

    @classmethod
    def label_fields(cls, names: Sequence[str]) -> dict[str, Field]:
        """Returns the fields of the columns of class labels, which are checked before training.

        Args:
            names: The class labels of the training data.
        """
        return {}

    def rows(self, data: Any, split: str, settings: Any) -> tf.data.Dataset:
        """Returns the examples of a split, a `tf.data.Dataset` of tuples of the `columns`.

        Args:
            data: A `Source`.
            split: Name of the split.
            settings: The `[data]` section.
        """
        return data.rows(split)

    def of_train_split(self, settings: Any) -> "Training":
        """Returns the `Training` that encodes and batches the training split.

        Args:
            settings: The `[data]` section. With `train_distributions` the training split has
                columns that the other splits do not have.
        """
        return self

    def encode(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encodes a batch of examples; runs in a graph.

        By default each field encodes the column of the same name. A task whose columns depend on
        one another overrides this method.

        Args:
            columns: Dictionary of the `columns` of the data, `[B, ...]`.

        Returns:
            Dictionary of the encoded columns, one for each of the `fields`.
        """
        return {name: field.encode(columns[name]) for name, field in self.fields.items()}

    def variation(
        self, settings: Any
    ) -> Callable[[Tensor, dict[str, Tensor]], dict[str, Tensor]] | None:
        """Returns the data augmentation of the training split, or `None`.

        Args:
            settings: The `[data]` section.

        Returns:
            A function that changes the examples of an epoch. Its arguments are random numbers from
            0 to 1, float32 `[B, num_draws]`, which depend on seed and epoch, and a dictionary of
            encoded columns; it returns the changed columns.
        """
        return None

    def num_draws(self, settings: Any) -> int:
        """Returns the number of random numbers that `variation` needs for each example.

        Args:
            settings: The `[data]` section.
        """
        return 2

    @abc.abstractmethod
    def assemble(self, **columns: Tensor) -> tuple:
        """Returns a batch for a model of the task: inputs and labels.

        Args:
            **columns: The encoded columns of some examples; ragged columns are padded.
        """

    def identity(self) -> dict[str, Any]:
        """Returns everything that the encoded columns depend on besides the data, plain values."""
        return {name: field.identity() for name, field in self.fields.items()}

    def corpus(
        self, data: Any, split: str, settings: Any, stores: Any = None, sampled: bool = False
    ) -> Corpus:
        """Returns the encoded examples of a split, a `Corpus`.

        Args:
            data: A `Source`. It is not read if there is a store of the split.
            split: Name of the split.
            settings: The `[data]` section.
            stores: The `Stores` that contain it. `None`: a temporary store.
            sampled: Whether the strings of texts are stored as well, for a `SubwordSampler`.
        """
        limits = Limits(
            getattr(settings, "max_length", None),
            getattr(settings, "truncate_source", False),
            self.packed,
        )
        own = {name: getattr(settings, name) for name in self.row_settings}
        store = (stores or Stores()).take(
            lambda: self.rows(data, split, settings),
            self,
            limits,
            split=split,
            place=lambda number, column: data.place(split, number, column),
            weights=(lambda: data.weights(split)) if split == "train" else None,
            texts=tuple(self.texts) if sampled else (),
            data=[data.identity(split), own] if stores else None,
            total=lambda: data.count(split),
        )
        if split != "train":
            return Corpus(store, self)
        return Corpus(store, self, self.variation(settings), self.num_draws(settings))

    def epochs(self, corpus: Corpus, settings: Any) -> Epochs:
        """Returns the `Epochs` of a corpus, with subword sampling if the settings ask for it.

        Args:
            corpus: The `Corpus` of the training split.
            settings: The `Settings`.
        """
        options, size = settings.training, settings.data.size_of_batch
        if not options.subword_sampling:
            return corpus.epochs(size, options.seed, settings.data.widths)
        sampler = SubwordSampler(
            corpus, self, settings.data.max_length, options.subword_sampling, options.seed
        )
        return sampler.epochs(size, settings.data.widths)

    @property
    def texts(self) -> dict[str, Tokens]:
        """The fields that are `Tokens`, a dictionary by name."""
        return {name: field for name, field in self.fields.items() if isinstance(field, Tokens)}

    @abc.abstractmethod
    def loss(self, settings: Any) -> keras.Loss:
        """Returns the Keras loss to train with.

        Args:
            settings: The `[training]` section.
        """

    def forward(self, model: Any) -> Callable[[Any], Tensor] | None:
        """Returns a function that computes `model(inputs, training=True)` in another way.

        Args:
            model: The model.

        Returns:
            A function of `inputs` that needs less time or memory than the model and has the same
            gradients; `None` if there is none. It is not used where XLA needs static shapes.
        """
        return None

    def metrics(self) -> list[keras.Metric] | None:
        """Returns a list of the Keras metrics of a validation. `None`: perplexity and accuracy."""
        return None

    @abc.abstractmethod
    def weigh(self, inputs: Any, labels: Tensor) -> Tensor:
        """Returns the weight of each label, float32; 0 for padding and for rows of padding."""


class TextTraining(Training):
    """Training of a task that reads text.

    Args:
        tokenizer: A `Tokenizer`, or a pair of them, for inputs and outputs.
        config: The configuration of the model. `None`: encoding does not need it.
        packed: Whether rows contain several texts: see `pack_texts`.

    Attributes:
        tokenizers: The `Tokenizers`.
    """

    def __init__(self, tokenizer: Any, config: Any = None, packed: bool = False):
        super().__init__(Tokenizers.of(tokenizer), config)
        self.packed = packed
        self.pad_id = self.tokenizers.source.pad_id
        self.bos_id = self.tokenizers.target.bos_id
        self.eos_id = self.tokenizers.target.eos_id

    def weigh(self, inputs: Any, labels: Tensor) -> Tensor:
        """Returns the weight of each label, float32; 0 for padding and for rows of padding."""
        return RealLabels(self.pad_id)(inputs, labels)

    def loss(self, settings: Any) -> keras.Loss:
        """Returns the smoothed cross-entropy of all labels but padding: see `Training.loss`."""
        return LabelSmoothedCrossEntropy(settings.label_smoothing, self.pad_id)

    def shifted(self, labels: Tensor) -> Tensor:
        """Returns the decoder's input: labels `[B, T]`, shifted right by one, after `bos_id`."""
        words = tf.where(tf.equal(labels, self.eos_id), self.pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self.bos_id)
        return tf.concat([begin, words[:, :-1]], axis=1)
