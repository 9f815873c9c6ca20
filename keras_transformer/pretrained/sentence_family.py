"""`SentenceFamily`, the part of a family whose folders may also be those of sentence encoders."""

import functools
from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.names import Weight
from keras_transformer.pretrained.reader import Reader
from keras_transformer.pretrained.sentence_encoder import read_sentence_encoder


class SentenceFamily(Family):
    """A family of encoders or decoders that may also be in the format of sentence-transformers."""

    @functools.cached_property
    def sentences(self) -> Any:
        """The `SentenceEncoder` that the folder describes, or `None`."""
        return read_sentence_encoder(self.folder)

    def prompts(self) -> Any:  # noqa: D102
        return self.sentences.prompts if self.sentences else None

    def read_tensors(self) -> Reader:  # noqa: D102
        reader = super().read_tensors()
        return Reader(self.sentences.join(reader.tensors)) if self.sentences else reader

    def names_after_pooling(self) -> Iterator[Weight]:  # noqa: D102
        yield from self.sentences.names() if self.sentences else ()
