"""Hops over a memory of sentences."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dot_product import attend_with_weights
from keras_transformer.tasks.story_questions.config import MemoryConfig
from keras_transformer.tensors import Shape, Tensor


class MemorySentences(NamedTuple):
    """The sentences of a batch of rows: question, `bos_id`, sentence, `bos_id`, sentence, ...

    Attributes:
        age: Number of sentences of the story after that of each token, int32 `[B, S]`.
        in_question: Whether a token is before the first `bos_id`, boolean `[B, S]`.
        is_word: Whether a token is neither padding nor `bos_id` nor `eos_id`, boolean `[B, S]`.
    """

    age: Tensor
    in_question: Tensor
    is_word: Tensor

    @classmethod
    def of(cls, tokens: Tensor, ids: Any) -> "MemorySentences":
        """Returns the sentences of token ids `[B, S]`.

        Args:
            tokens: The token ids.
            ids: An object with `pad_id`, `bos_id` and `eos_id`.
        """
        begins = ops.equal(tokens, ids.bos_id)  # [B, S]
        number = ops.cumsum(ops.cast(begins, "int32"), axis=1)  # 0 in the question
        is_word = ops.logical_not(begins)
        for token in (ids.pad_id, ids.eos_id):
            is_word = ops.logical_and(is_word, ops.not_equal(tokens, token))
        return cls(number[:, -1:] - number, ops.equal(number, 0), is_word)

    def moved(self, empty: Tensor) -> "MemorySentences":
        """Returns the sentences with empty places among them.

        Args:
            empty: Number of empty places before the sentence of each age, int32 `[B, M]`.
        """
        shift = ops.cumsum(empty, axis=1)  # [B, M]
        age = ops.clip(self.age, 0, shift.shape[1] - 1)
        return self._replace(age=self.age + ops.take_along_axis(shift, age, axis=1))

    def places(self, size: int) -> Tensor:
        """Returns which tokens are in each place of a memory, float32 `[B, size + 1, S]`.

        The last place is the question's. Older sentences than `size` are in no place.
        """
        kept = ops.where(self.age < size, self.age, -1)  # [B, S]
        place = ops.where(self.in_question, size, kept)
        place = ops.where(self.is_word, place, -1)
        numbers = ops.reshape(ops.arange(size + 1, dtype="int32"), (1, -1, 1))
        return ops.cast(ops.equal(ops.expand_dims(place, 1), numbers), "float32")


@keras.saving.register_keras_serializable(package="keras_transformer")
class MemoryHops(CompositeLayer):
    """Hops over a memory of sentences, each a dot-product attention with one head.

    The question is the first state u, `[B, D]`. Each hop compares it with all sentences m,

        p = softmax(u m^T),  o = p c,  u' = u + o,

    where m and c are sums of a sentence's word embeddings from two tables. In places without a
    sentence they are 0, so that a hop whose state resembles no sentence reads little.

    Args:
        config: A `MemoryConfig`, or its dictionary.
        pad_id, bos_id, eos_id: Ids of padding, of the beginning of a sentence and of the end.
        **kwargs: `kernels`, and `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Embeddings of the tokens from all tables, `[B, S, tables * D]`, floating.
        tokens: Token ids, integer `[B, S]`: question, then `bos_id` and a sentence, several times,
            `eos_id`, padding.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether there is random noise in time, and the batch is counted.

    Returns: The last state `[B, D]`; with `return_attention_scores`, a pair of this and a
        dictionary: `"hop_0"` and so on with `[B, 1, 1, M]`, the weights of the M places of the
        memory. The most recent sentence is first, and the places without a sentence are last.

    Reference: Sukhbaatar et al. (2015), sections 2, 4.1 and 4.2.

    Differs from the paper: the linear start ends after a number of batches, not when the validation
    loss no longer falls.
    """

    def __init__(
        self, config: MemoryConfig | dict, pad_id: int, bos_id: int, eos_id: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.config = MemoryConfig.from_dict(config) if isinstance(config, dict) else config
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id
        self.seed_generator = keras.random.SeedGenerator() if self.config.time.noise else None

    def build(self, x_shape: Shape, tokens_shape: Shape | None = None) -> None:  # noqa: D102
        config = self.config
        if config.time.learned:
            timed = config.tables - config.tying.untimed
            self.times = self.add_weight(
                shape=(timed, config.memory_size, config.d_model),
                initializer=keras.initializers.RandomNormal(stddev=0.1),
                name="times",
            )
        config.tying.build(self)
        if config.linear_start:
            self.batches = self.add_weight(
                shape=(),
                dtype="int32",
                initializer="zeros",
                trainable=False,
                aggregation="only_first_replica",
                name="batches",
            )

    def call(  # noqa: D102
        self,
        x: Tensor,
        tokens: Tensor,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        config, size = self.config, self.config.memory_size
        sentences = MemorySentences.of(tokens, self)
        if training and self.seed_generator is not None:
            drawn = keras.random.uniform((ops.shape(x)[0], size), seed=self.seed_generator)
            sentences = sentences.moved(ops.cast(drawn < config.time.noise, "int32"))
        places = sentences.places(size)  # [B, M + 1, S]
        sums = self._sums(x, places)  # tables of [B, M + 1, D]
        filled = ops.max(places[:, :size], axis=2, keepdims=True)  # [B, M, 1]
        state, weights = sums[0][:, size], {}  # [B, D]
        for hop in range(config.num_layers):
            key, value = (self._memory(sums, filled, table) for table in config.tying.places(hop))
            read, weights[f"hop_{hop}"] = self._read(state, key, value)
            state = config.tying.carried(self, state) + read
        if training and config.linear_start:
            self.batches.assign(self.batches + 1)
        return (state, weights) if return_attention_scores else state

    def _sums(self, x, places):
        """Returns the sums of the words in each place for each table, a list of `[B, M + 1, D]`."""
        tables, width = self.config.tables, self.config.d_model
        length = ops.sum(places, axis=2, keepdims=True)  # [B, M + 1, 1]
        counts = ops.sum(ops.cumsum(places, axis=2) * places, axis=1)  # [B, S], from 1
        lengths = ops.maximum(ops.sum(length * places, axis=1), 1.0)  # [B, S]
        factors = self.config.sentence.factors(counts, lengths, width)  # [B, S, D]
        if factors is not None:
            x = x * ops.cast(ops.tile(factors, (1, 1, tables)), x.dtype)
        sums = ops.matmul(ops.cast(places, x.dtype), x)  # [B, M + 1, tables * D]
        return ops.split(sums, tables, axis=2)

    def _memory(self, sums, filled, table):
        """Returns the vectors of the memory's M places from one table, `[B, 1, M, D]`."""
        memory = sums[table][:, : self.config.memory_size]  # [B, M, D]
        if self.config.time.learned:
            time = self.times[table - self.config.tying.untimed]  # [M, D]
            memory = memory + ops.cast(filled, memory.dtype) * ops.cast(time, memory.dtype)
        return ops.expand_dims(memory, 1)

    def _read(self, state, key, value):
        """Returns what a hop reads, `[B, D]`, and its attention weights, `[B, 1, 1, M]`."""
        query = ops.expand_dims(ops.expand_dims(state, 1), 1)  # [B, H=1, T=1, D]
        scores = self.kernels.similarity(query, key)  # [B, 1, 1, M]
        read, weights = attend_with_weights(scores, value)  # [B, 1, 1, D]
        if self.config.linear_start:
            is_linear = self.batches < self.config.linear_start
            weights = ops.where(is_linear, scores, weights)
            read = ops.where(is_linear, ops.matmul(scores, value), read)
        return ops.squeeze(read, axis=(1, 2)), weights

    def compute_output_spec(self, x: Any, tokens: Any, **options: Any) -> Any:  # noqa: D102
        dtype, config = self.compute_dtype, self.config
        state = keras.KerasTensor((x.shape[0], config.d_model), dtype=dtype)
        if not options.get("return_attention_scores"):
            return state
        shape = (x.shape[0], 1, 1, config.memory_size)
        hops = range(config.num_layers)
        return state, {f"hop_{hop}": keras.KerasTensor(shape, dtype=dtype) for hop in hops}

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        ids = {name: getattr(self, name) for name in ("pad_id", "bos_id", "eos_id")}
        return {**super().get_config(), "config": self.config.to_dict(), **ids}
