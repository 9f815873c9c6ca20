"""Folders for Marian as an export format, and its options."""

import dataclasses

from keras_transformer.export import options
from keras_transformer.export.formats import Format


@dataclasses.dataclass(frozen=True)
class MarianOptions(options.QuantizedOptions):
    """Options of `export_marian`.

    Args:
        quantize: Storage of the weights: `"none"`, float32; or `"int8"`.
        max_loss, max_score_loss, min_agreement: See `QuantizedOptions`.

    Raises:
        ValueError: If an option is out of range.
    """

    quantize: str = options.stored_as("int8")


FORMAT = Format(
    "marian",
    """Write a model folder for Marian.

    With int8, DIRECTORY also contains the model for the translation engine of browsers.
    """,
    "keras-transformer export marian runs/student bergamot --quantize int8",
    MarianOptions,
    "keras_transformer.export.marian.export:export_marian",
    "keras_transformer.export.marian.export:check_place",
    "keras_transformer.export.marian.form:MarianForm",
    data=("references", "calibration", "origin", "progress"),
    of_pipeline=("shortlist",),
    needs_source=True,
    calibrated="int8",
    refusal="keras_transformer.export.marian.arrays:check_run",
)
