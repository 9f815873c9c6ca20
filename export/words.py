"""Words that are inputs of an export: a prefix, banned phrases and terms, named in each call."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from keras_transformer.decoding import Constraints, Found
from keras_transformer.export.errors import ExportError
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.wording import Wording, WordingTokens
from keras_transformer.tensors import Tensor

PREFIX, BANNED, TERMS = "prefix", "banned", "terms"  # names of the inputs
AXES = {PREFIX: 1, BANNED: 2, TERMS: 3}  # their axes after that of the batch
FIELDS = {PREFIX: "prefix", BANNED: "banned_phrases", TERMS: "terms"}  # of `Constraints`
OF_THE_CALL = ("banned", "prefix")  # settings of a pipeline that exclude words of each call


@dataclasses.dataclass(frozen=True)
class WordInputs:
    """Inputs of a graph with the words of each row, as token ids that are padded with `pad_id`.

    - `prefix`, int32 `[B, P]`: the beginning of the output. At positions with `pad_id`, the search
      is free.
    - `banned`, int32 `[B, N, Q]`: N sequences of tokens that the output does not contain.
    - `terms`, int32 `[B, C, A, Q]`, only of a beam: C terms, each in A spellings, of which the
      output contains one.

    A row of padding alone is no phrase, no spelling and no term. All sizes but B may be 0.

    Args:
        pipeline: A `ConditionalGenerator`.
        takes_terms: Whether there are `terms`.
        sizes: Sizes of the axes after the batch, by the names of the inputs, for graphs of fixed
            shape. `None`: any sizes.

    Raises:
        ExportError: If the pipeline has words of its own.
    """

    pipeline: Any
    takes_terms: bool
    sizes: dict[str, tuple[int, ...]] | None = None

    def __post_init__(self) -> None:
        for name in OF_THE_CALL:
            if getattr(self.pipeline.wording, name):
                raise ExportError(
                    f"`takes_words` has no effect with `{name}`: an export holds words of its own, "
                    "or takes those of each call."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return (PREFIX, BANNED, TERMS) if self.takes_terms else (PREFIX, BANNED)

    def specs(self, batch: int | None = None) -> "list[tf.TensorSpec]":
        """Returns the `tf.TensorSpec`s of the inputs for a batch of B rows; `None`: any number."""
        sizes = self.sizes or {name: (None,) * count for name, count in AXES.items()}
        return [tf.TensorSpec([batch, *sizes[name]], tf.int32, name) for name in self.names]

    def taken_by(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function of token ids that also takes the words.

        A row with an id outside the vocabulary gets nothing, as with an invalid source. So do all
        rows if the words are those of another number of rows than the source.

        Args:
            function: Function of `source`, int32 `[B, S]`, the words, and further inputs by name.
                A row of padding is an invalid source.
        """
        pad_id, size = self._tokenizer.pad_id, self._tokenizer.vocab_size

        def with_words(source, **inputs):
            for name in self.names:
                ids, same = inputs[name], True
                if not self.sizes:
                    ids, same = _for_rows(_without_empty_axes(ids, pad_id), source, pad_id)
                known = (ids >= 0) & (ids < size)
                inputs[name] = tf.where(known, ids, pad_id)
                valid = tf.reduce_all(known, axis=range(1, len(ids.shape))) & same  # [B]
                source = tf.where(tf.expand_dims(valid, 1), source, pad_id)
            return function(source=source, **inputs)

        return with_words

    def searched(
        self, find: Callable[[Constraints | None], Found], words: dict[str, Tensor]
    ) -> Found:
        """Returns the result of a search with the words.

        Rules take time at each step even if they forbid nothing. The graph therefore holds a second
        search without rules, for calls in which no row has words.

        Args:
            find: Function from the `Constraints` of the outputs, or `None`, to the result.
            words: The words by the names of the inputs.
        """
        constraints = self.constraints(words)

        def fields(constraints):
            found = find(constraints)._asdict()
            return {name: value for name, value in found.items() if value is not None}

        pad_id = self._tokenizer.pad_id
        named = [tf.reduce_any(tf.not_equal(ids, pad_id)) for ids in words.values()]
        named = functools.reduce(tf.logical_or, named)
        return Found(**tf.cond(named, lambda: fields(constraints), lambda: fields(None)))

    def constraints(self, words: dict[str, Tensor]) -> Constraints:
        """Returns the `Constraints` of the words by the names of the inputs."""
        starts = None
        if self.takes_terms:
            starts = WordingTokens(Wording(), self._tokenizer).word_starts
        fields = {FIELDS[name]: ids for name, ids in words.items()}
        return Constraints(**fields, word_starts=starts)

    @property
    def _tokenizer(self):
        return self.pipeline.target_tokenizer

    def metadata(self) -> dict[str, Any]:
        """Returns the metadata of a file about the words; see `OpenWords`."""
        begin = self.pipeline.model.config.head.rules.beginning_length
        return {"inputs": list(self.names), "sizes": self.sizes, "begin": begin}


def _for_rows(ids, source, pad_id):
    """Returns token ids `[B, ...]` with the rows of the source, and whether they had so many.

    Otherwise they are padding. Without this, a single row would count for all.
    """
    rows, count = tf.shape(ids)[0], tf.shape(source)[0]
    same = tf.equal(rows, count)
    padding = [[0, 1], *[[0, 0]] * (len(ids.shape) - 1)]
    ids = tf.pad(ids, padding, constant_values=pad_id)  # [rows + 1, ...]
    return tf.gather(ids, tf.where(same, tf.range(count), rows)), same


def _without_empty_axes(ids, pad_id):
    """Returns token ids `[B, ...]` with one position of padding in place of none.

    Not all runtimes can reduce an axis without positions.
    """
    missing = tf.cast(tf.equal(tf.shape(ids)[1:], 0), tf.int32)
    after = tf.concat([[0], missing], 0)
    return tf.pad(ids, tf.stack([tf.zeros_like(after), after], 1), constant_values=pad_id)
