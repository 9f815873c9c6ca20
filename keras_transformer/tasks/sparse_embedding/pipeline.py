"""The pipeline of sparse vectors: the tokens that a text is about, with their weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.postings import Postings
from keras_transformer.tasks.single_pass.prompted_pass import PromptedPass
from keras_transformer.tasks.sparse_embedding.codec import SparseVectorCodec
from keras_transformer.tasks.sparse_embedding.model import SparseTextEmbedder
from keras_transformer.tasks.sparse_embedding.vector import SparseVector
from keras_transformer.tasks.strings import check_sentences


class SparseEmbedder(PromptedPass):
    """A trained `SparseTextEmbedder` with its tokenizer.

    Args:
        model: A `SparseTextEmbedder`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.
    """

    task = "sparse_embedding"
    model_class = SparseTextEmbedder
    output = "weights"
    codec_class = SparseVectorCodec
    settings = ("max_active", "prompt")

    def make_codec(self) -> SparseVectorCodec:  # noqa: D102
        most = self.model.config.head.max_active
        return self.codec_class(self.tokenizers, self.max_length, max_active=most)

    def _set(self, name, value):
        if name == "prompt":
            super()._set(name, value)
            return
        check_count("max_active", value)
        self.codec = self.codec.replaced(max_active=value)

    def embed(
        self, texts: Sequence[str], batch_size: int = 64, prompt: str | None = None
    ) -> list[SparseVector]:
        """Returns the sparse vectors of texts.

        Args:
            texts: List of strings of any length.
            batch_size: Number of texts embedded at a time. A batch contains texts of similar
                length. It needs memory for the logits of all its tokens.
            prompt: Name of the prompt in front of each text, or `""`: no prompt. `None`: the
                checkpoint's default, which is mostly none.

        Raises:
            TypeError: If `texts` is not a list of strings.
            ValueError: If there is no such prompt.
        """
        pipeline = self if prompt is None else self.prompted(prompt)
        return pipeline.answer(check_sentences(texts, "texts"), batch_size=batch_size)

    def similarity(
        self, vectors: Sequence[SparseVector], others: Sequence[SparseVector]
    ) -> np.ndarray:
        """Returns the dot products of all pairs of vectors, float32 `[T, U]`.

        Args:
            vectors: T `SparseVector`s of this model.
            others: U of them.
        """
        postings = Postings.of_vectors(others, self.source_tokenizer.vocab_size)
        rows = [postings.scores(vector.ids, vector.weights) for vector in vectors]
        return np.array(rows, "float32").reshape(len(vectors), len(others))

    def difference(self, other: Any) -> str | None:
        """Returns why two models cannot form an ensemble: they have spaces of their own."""
        return super().difference(other) or (
            "vectors of different models cannot be compared or averaged"
        )
