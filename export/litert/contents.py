"""Contents of a .tflite file: signatures of fixed shape."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.export.contents import Contents
from keras_transformer.export.litert.converters import converter_of
from keras_transformer.export.litert.packed import FORMAT, SIGNATURES, FixedSignature
from keras_transformer.export.shapes import check_shapes, default_lengths


class FixedContents(Contents):
    """Contents of a .tflite file; `convert` returns the bytes of the model.

    Args:
        pipeline: A `Pipeline` in float32.
        samples: List of inputs to check the file with.
        limits: The `Limits`.
        options: The `LiteRTOptions`.
        progress: See `export_litert`.

    Attributes:
        signatures: List of its `FixedSignature`s.
        converter: The `Converter`.

    Raises:
        ValueError: If an option is wrong or not supported by the converter.
    """

    signatures: Sequence[FixedSignature] = ()

    def __init__(self, pipeline, samples, limits, options, progress):
        super().__init__(pipeline, samples, limits, progress)
        self.converter = converter_of(options)
        longest = self.longest
        self.lengths, self.batch_sizes = self._lengths(options.lengths), list(options.batch_sizes)
        check_shapes(self.lengths, self.batch_sizes, longest or 1)

    @property
    def longest(self) -> int | None:
        """Maximum length of a row of the inputs; `None` if rows have no length."""
        return self.pipeline.max_length

    def usual_lengths(self) -> list[int]:
        """Returns the lengths of the signatures, if none are given."""
        return default_lengths(self.longest)

    def _lengths(self, lengths):
        """Returns the list of the signatures' lengths, `[1]` for inputs without a length."""
        if self.longest is not None:
            return list(self.usual_lengths() if lengths is None else lengths)
        if lengths is not None:
            raise ValueError(
                "`lengths` must be None for a model whose inputs have no length. "
                f"Received: {lengths}."
            )
        return [1]

    def metadata(self, content) -> dict[str, Any]:  # noqa: D102
        signatures = [*map(dataclasses.asdict, self.signatures)]
        return {"format": FORMAT, **super().metadata(content), SIGNATURES: signatures}
