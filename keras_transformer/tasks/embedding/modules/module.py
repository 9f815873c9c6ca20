"""`VectorModule`, the base class of the layers between pooling and the vector of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from keras_transformer.lazy_keras import keras
from keras_transformer.variants import Variant


class VectorModule(Variant):
    """Base class of the values of `after_pooling`, layers that change the vector of a text.

    A kind is a class with a `kind` in a file of this folder. Configurations, saved models, exports
    and the reading of published folders take it from there.

    Attributes:
        published: Name of the class of sentence-transformers, the end of `type` in `modules.json`.
        weights: Names of the tensors in its folder; each is the path of our variable in the layer,
            and whether the file has its transpose.
    """

    option = "after_pooling"
    package = "keras_transformer.tasks.embedding.modules"
    taken_by = "EmbedderConfig"
    published: ClassVar[str] = ""
    weights: ClassVar[Mapping[str, tuple[str, bool]]] = {}

    def width(self, width: int) -> int:
        """Returns the number of features of the output, for `width` features of the input."""
        return width

    def layer(self, width: int, dtype: Any, name: str) -> keras.Layer:
        """Returns the layer.

        Args:
            width: Number of features of its input.
            dtype: Its dtype.
            name: Its name.
        """
        raise NotImplementedError

    @classmethod
    def read(cls, settings: Any, shapes: Mapping[str, tuple[int, ...]]) -> Self:
        """Returns the value that the files of a published module describe.

        Args:
            settings: The `CheckpointSettings` of its `config.json`.
            shapes: Shapes of its tensors.

        Raises:
            ValueError: If a setting is not valid or has no place here; the error names it.
        """
        return cls()
