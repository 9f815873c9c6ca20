"""`SentenceFamily`, the part of a family whose folders may also be those of sentence encoders."""

import functools
from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.names import Weight
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.sentence_encoder import SPLADE, read_sentence_encoder


class SentenceFamily(Family):
    """A family of encoders or decoders that may also be in the format of sentence-transformers.

    Attributes:
        has_sparse: Whether the family has a head for sparse vectors.
    """

    has_sparse = False

    @functools.cached_property
    def sentences(self) -> Any:
        """The `SentenceEncoder` that the folder describes, or `None`."""
        sentences = read_sentence_encoder(self.folder)
        if sentences is not None and sentences.is_sparse and not self.has_sparse:
            raise ValueError(
                f"{self.folder.path}: {SPLADE} needs an encoder with a head for masked tokens. "
                f"Received: a model of the type {self.model_type}."
            )
        return sentences

    def prompts(self) -> Any:  # noqa: D102
        return self.sentences.prompts if self.sentences else None

    def read_tensors(self) -> Reader:  # noqa: D102
        reader = super().read_tensors()
        return Reader(self.sentences.join(reader.tensors)) if self.sentences else reader

    def names_after_pooling(self) -> Iterator[Weight]:  # noqa: D102
        yield from self.sentences.names() if self.sentences else ()
