"""`PatchModelConfig`, what configurations of models of images have in common."""

import dataclasses
from typing import Any, TypeVar

from keras_transformer.config.model import ModelConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.positions import Binary

Kind = TypeVar("Kind", bound="PatchModelConfig")


class PatchModelConfig(ModelConfig):
    """Base class of configurations of models that read an image as patches.

    Its head has a `pooling`, and says with `has_class_token` whether learned tokens precede the
    patches.
    """

    follow = frozenset({"max_length"})

    @property
    def leading_tokens(self) -> int:
        """Number of learned tokens before the patches."""
        return self.input.class_tokens if self.head.has_class_token else 0

    def with_data(self: Kind, **data: Any) -> Kind:  # noqa: D102
        # `max_length` follows from the size of these images instead of the default one.
        return super().with_data(**{"max_length": StackConfig().max_length, **data})

    def complete(self) -> None:  # noqa: D102
        rows, columns = self.input.grid
        length = max(1, rows * columns + self.leading_tokens)
        if self.encoder.max_length not in (StackConfig().max_length, length):
            raise ValueError(
                f"`max_length` follows from the number of patches, here {length}. "
                f"Received: max_length={self.encoder.max_length}."
            )
        encoder = dataclasses.replace(self.encoder, max_length=length)
        object.__setattr__(self, "encoder", encoder)

    def check(self) -> None:  # noqa: D102
        super().check()
        if isinstance(self.encoder.position, Binary):
            raise ValueError(
                "`position` must not be binary for patches, which have a row and a column. "
                f"Received: position={self.encoder.position}."
            )
