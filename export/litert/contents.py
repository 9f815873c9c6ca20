"""Contents of a .tflite file, as far as they do not depend on the kind of model."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

import keras_transformer
from keras_transformer.export.litert.packed import FORMAT, SIGNATURES, FixedSignature
from keras_transformer.export.shapes import check_shapes, default_lengths


class Contents:
    """Contents of a file, and its agreement with the model in memory before it is kept.

    A kind of model defines `convert`, which returns the bytes of the model; `about`, its metadata;
    `check`, which returns the results of a draft or raises an `ExportError`; and `open`, which runs
    the finished file once as a user does.

    Args:
        pipeline: A `Pipeline` in float32.
        samples: List of inputs to check the file with.
        limits: The `Limits`.
        options: The `LiteRTOptions`.
        progress: See `export_litert`.

    Attributes:
        signatures: List of its `FixedSignature`s.
    """

    signatures: Sequence[FixedSignature] = ()

    def __init__(self, pipeline, samples, limits, options, progress):
        self.pipeline, self.samples, self.limits = pipeline, samples, limits
        self.quantize, self.progress = limits.quantize, progress
        longest = self.longest
        self.lengths, self.batch_sizes = self._lengths(options.lengths), list(options.batch_sizes)
        check_shapes(self.lengths, self.batch_sizes, longest or 1)

    def about(self) -> dict[str, Any]:
        """Returns the metadata of the kind of model."""
        raise NotImplementedError

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

    def metadata(self, content) -> dict[str, Any]:
        """Returns the metadata that a program needs to use the file.

        Args:
            content: The bytes of the model.
        """
        return {
            "format": FORMAT,
            "task": self.pipeline.task,
            **self.about(),
            "parameters": self.pipeline.model.count_params(),
            "quantize": self.quantize,
            SIGNATURES: [vars(signature) for signature in self.signatures],
            "made_with": {
                "keras_transformer": keras_transformer.__version__,
                "tensorflow": tf.__version__,
            },
        }

    def results(self) -> dict[str, Any]:
        """Returns further results for the report, a dictionary."""
        return {}
