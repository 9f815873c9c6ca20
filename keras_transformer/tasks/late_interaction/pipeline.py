"""The pipeline of late interaction: scores of pairs, and vectors of queries and passages."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.late_interaction.codec import InteractionCodec
from keras_transformer.tasks.late_interaction.max_sim import similarities
from keras_transformer.tasks.late_interaction.model import MultiVectorEncoder
from keras_transformer.tasks.signatures import TEXT, Signature
from keras_transformer.tasks.single_pass.text_pairs import TextPairPass
from keras_transformer.tasks.strings import check_sentences, traced_once
from keras_transformer.tensors import Tensor


class LateInteractionRanker(TextPairPass):
    """A trained `MultiVectorEncoder` with its tokenizer.

    Args:
        model: A `MultiVectorEncoder`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a query or a passage in tokens, with its marks; longer texts
            are truncated. `None`: the limits of the model.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.pipelines import LateInteractionRanker
        ranker = LateInteractionRanker.from_run("runs/colbert")
        ranker.rank("who wrote Faust?", ["Goethe wrote Faust.", "Mozart wrote operas."])
    """

    task = "late_interaction"
    model_class = MultiVectorEncoder
    codec_class = InteractionCodec

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._represent = traced_once(self._trace_part)

    def make_codec(self) -> InteractionCodec:  # noqa: D102
        head = self.model.config.head
        marks = self.source_tokenizer.num_marks + (head.query_marker_id is not None)
        if self.max_length < marks + 1:
            raise ValueError(
                f"`max_length` must be at least {marks + 1}, for a token of a text and the marks "
                f"around it. Received: {self.max_length}."
            )
        options = {name: getattr(head, name) for name in InteractionCodec.options}
        return InteractionCodec(self.tokenizers, self.max_length, **options)

    def signatures(self) -> list[Signature]:
        """Returns the `Signature`s of `SinglePass`, and one for queries and one for passages."""
        specs = self.codec.part_specs
        parts = [
            Signature(part, TEXT, specs, functools.partial(self.respond_part, part))
            for part in self.codec.parts
        ]
        return [*super().signatures(), *parts]

    def respond_part(self, part: str, sentences: Tensor) -> dict[str, Tensor]:
        """Returns the vectors of texts, in a graph.

        Args:
            part: `"queries"` or `"passages"`.
            sentences: Strings `[B]`.

        Returns:
            Dictionary of `vectors`, float32 `[B, S, N]`; `mask`, boolean `[B, S]`, `True` for the
            tokens that are compared, the others have vectors of zeros; and `truncated`, `[B]`.
        """
        ids, counted, truncated = self.codec.encode_part(part, sentences)
        vectors = self.predict(source=ids)["vectors"]
        vectors = tf.where(tf.expand_dims(counted, 2), vectors, 0.0)
        return {"vectors": vectors, "mask": counted, "truncated": truncated}

    def answer_part(self, part: str, texts: Sequence[str]) -> dict[str, np.ndarray]:  # noqa: D102
        answers = self._represent(part)(tf.constant(list(texts), tf.string, [len(texts)]))
        return {name: value.numpy() for name, value in answers.items()}

    def embed_queries(self, queries: Sequence[str], batch_size: int = 64) -> list[np.ndarray]:
        """Returns the vectors of the tokens of queries: a list of arrays float32 `[tokens, N]`.

        Args:
            queries: List of strings.
            batch_size: Number of texts at a time. A batch contains texts of similar length.

        Raises:
            TypeError: If `queries` is not a list of strings.
        """
        return self.part_vectors("queries", check_sentences(queries, "queries"), batch_size)

    def embed_passages(self, passages: Sequence[str], batch_size: int = 64) -> list[np.ndarray]:
        """Returns the vectors of the compared tokens of passages; see `embed_queries`.

        Raises:
            TypeError: If `passages` is not a list of strings.
        """
        return self.part_vectors("passages", check_sentences(passages, "passages"), batch_size)

    def similarities(
        self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 64
    ) -> np.ndarray:
        """Returns the score of each of A queries with each of B passages, float32 `[A, B]`.

        Args:
            queries, passages: Lists of strings. Each is embedded once.
            batch_size: See `embed_queries`.
        """
        ours = self.embed_queries(queries, batch_size)
        return similarities(ours, self.embed_passages(passages, batch_size))

    def _trace_part(self, part):
        (spec,) = self.codec.part_specs.values()
        function = functools.partial(self.respond_part, part)
        return tf.function(function, input_signature=[spec], autograph=False)

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of a text as a passage; see `TextPipeline.reading`."""
        ids, _, truncated = self.codec.encode_part("passages", tf.constant([sentence]))
        pieces = self.source_tokenizer.pieces(ids[0].numpy())
        return ids, {"encoder": (pieces, pieces)}, bool(truncated[0])

    def difference(self, other: Any) -> str | None:
        """Returns why two cannot form an ensemble: no two models have the same space."""
        return super().difference(other) or (
            "vectors of different models cannot be compared or averaged"
        )
