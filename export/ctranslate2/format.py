"""Folders for CTranslate2 as an export format, and its options."""

import dataclasses
from typing import ClassVar

from keras_transformer.export import options
from keras_transformer.export.formats import Beams, Format


@dataclasses.dataclass(frozen=True)
class CTranslate2Options(options.QuantizedOptions):
    """Options of `export_ctranslate2`.

    Args:
        quantize: Storage of the weights. `"none"`: float32. `"float16"`: half the size. `"int8"`: a
            quarter of the size, and products of integers.
        min_agreement: See `QuantizedOptions`. Tokens are compared in greedy search on this
            processor.
        max_loss: See `QuantizedOptions`. It applies to the quantised weights.
        max_score_loss: Maximum `score_loss` and `score_error` of the quantised weights, in nats per
            token: see `Agreement`. With the processor's kernels the limit is 1, or this value if it
            is larger; for an encoder it is ten times this value. `None`: see `score_losses` and
            `Codec.max_score_loss`.

    Raises:
        ValueError: If an option is out of range.
    """

    # Of the quantised weights when computed in float32: 0.001 was measured for int8 with the small
    # model of the tests, so this limit is tight.
    score_losses: ClassVar[dict[str, float]] = {"none": 0.0, "float16": 0.01, "int8": 0.03}

    quantize: str = options.stored_as("float16", "int8")


FORMAT = Format(
    "ctranslate2",
    """Write a model folder for CTranslate2.

    DIRECTORY also contains the vocabulary. RUN generates text, or is an encoder that answers in one
    pass. For an encoder, head.npz in DIRECTORY contains the weights of the prediction head.
    """,
    "keras-transformer export ctranslate2 runs/base ct2 --quantize int8",
    CTranslate2Options,
    "keras_transformer.export.ctranslate2.export:export_ctranslate2",
    "keras_transformer.export.ctranslate2.export:check_place",
    "keras_transformer.export.ctranslate2.form:CTranslate2Form",
    data=("references", "origin", "progress"),
    of_pipeline=("max_length",),
    needs_vocabulary=True,
    beams=Beams(
        "CTranslate2",
        {
            "normalization": ("average", "power", "none"),
            "stopping": ("count",),
            "min_length": (1,),
            "extra_length": (None,),
        },
        "it has no penalty like the paper's and no limit that depends on the source",
    ),
    opened_with=(
        *("greedy", "beam", "length_penalty", "normalization", "n_best", "max_output"),
        *("source_language", "target_language"),
    ),
    refusal="keras_transformer.export.ctranslate2.expressible:check_run",
)
