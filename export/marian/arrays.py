"""Weights of a `Transformer` as arrays with Marian's names."""

import re
from typing import Any

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.export.marian.settings import from_config, unexpressed
from keras_transformer.pretrained.files.marian.arrays import (
    MULTIPLIER,
    OUTPUT,
    SETTINGS,
    TABLE,
    Quantized,
)
from keras_transformer.pretrained.files.marian.settings import settings_array
from keras_transformer.pretrained.files.marian.weights import LOGITS, SILENT, weights_of
from keras_transformer.text.sentencepiece_model import SpecialIds
from keras_transformer.text.shortlist import Shortlist

# The browsers' engine requires multiples of these sizes of an int8 matrix: rows and columns.
INNER, COLUMNS = 64, 8


def make_arrays(model, tokenizers) -> dict[str, np.ndarray]:
    """Returns the arrays of a Marian model file in float32, a dictionary by name.

    Args:
        model: A `Transformer` that computes in float32.
        tokenizers: The `Tokenizers` of the model.

    Raises:
        ExportError: If Marian cannot express the model.
    """
    config = model.config
    sizes = check_expressible(config, tokenizers)
    arrays = {}
    for weight in weights_of(config, sizes):
        variable = weight.variable(model)
        if variable is not None:
            arrays[weight.names[0]] = weight.layout.theirs(variable.numpy())
    for name, array in list(arrays.items()):
        bias = re.sub(r"_W([qkvo12])$", r"_b\1", name)  # all linear maps of Marian have a bias
        if bias != name:
            arrays.setdefault(bias, np.zeros((1, array.shape[1]), np.float32))
    arrays.setdefault(LOGITS, np.zeros((1, sizes[1]), np.float32))
    silent = [token for token in never_emitted(config) if token < sizes[1]]
    arrays[LOGITS][0, silent] = SILENT
    return {**arrays, SETTINGS: settings_array(from_config(config, sizes))}


def never_emitted(config) -> list[int]:
    """Returns ids of tokens whose bias must exclude them; Marian has no list of banned tokens."""
    return sorted(
        {config.tokens.pad_id, config.tokens.bos_id, *config.head.rules.banned_ids}
        - {config.tokens.eos_id}
    )


def check_run(config, tokenizers, options, origin=None) -> None:
    """Checks that Marian can express a model, and in int8 that the browsers' engine can run it.

    Args:
        config: The `TransformerConfig`.
        tokenizers: The `Tokenizers`.
        options: The `MarianOptions`.
        origin: Provenance of the original checkpoint, a dictionary, or `None`.

    Raises:
        ExportError: If it cannot. The message names the field of the configuration.
    """
    origin = origin or {}
    if unexpressed(config) is not None and origin.get("format") == "opus-mt":
        raise ExportError(
            f"Marian cannot express {origin.get('name') or 'this model'}, a Marian model in "
            "Hugging Face's format: that format differs from Marian's own in the first input of "
            "the decoder (a token, not zeros), the position encodings and the epsilon of the layer "
            "normalisation. To use Marian, train a student of this model with "
            "`keras-transformer distill`, and export the student."
        )
    sizes = check_expressible(config, tokenizers)
    if options.quantize == "int8":
        check_quantizable(config, sizes)


def check_expressible(config, tokenizers) -> list[int]:
    """Returns the sizes of both vocabularies in Marian, a list.

    Raises:
        ExportError: If Marian cannot express the model.
    """
    wrong = unexpressed(config)
    if wrong is not None:
        name, value, rule = wrong
        raise ExportError(f"Marian cannot express `{name}`={value!r}: it must be {rule}.")
    defined = [SpecialIds.of(side.model) for side in tokenizers]
    for side, ids in zip(tokenizers, defined, strict=True):
        _check_vocabulary(side, ids)
    if set(config.head.rules.suppressed_ids) - {defined[1].unk_id}:
        raise ExportError(
            "Marian cannot express `suppressed_ids` other than the unknown token. "
            f"Received: {config.head.rules.suppressed_ids}."
        )
    sizes = [ids.size for ids in defined]
    if config.head.tie == "all" and sizes[0] != sizes[1]:
        raise ExportError("Marian cannot express one embedding table for two vocabularies.")
    return sizes


def _check_vocabulary(side, ids):
    if side.table is not None and side.table.ids != tuple(range(ids.size)):
        raise ExportError(
            "Marian cannot express ids that are not SentencePiece's own. To use Marian, train a "
            "student of this model with `keras-transformer distill`, and export the student."
        )
    if side.table is not None and side.table.codes:
        raise ExportError("Marian cannot express codes of target languages.")
    if side.eos_id != ids.eos_id:
        raise ExportError(
            "Marian takes the end of a sentence from SentencePiece. "
            f"Received: eos_id={side.eos_id}, SentencePiece's is {ids.eos_id}."
        )


def cut_shortlist(shortlist, pipeline) -> Shortlist:
    """Returns a shortlist with the tokens of Marian's vocabularies only.

    Args:
        shortlist: A `Shortlist` of the model's vocabularies.
        pipeline: A `Translator`.

    Raises:
        ValueError: If the shortlist belongs to other vocabularies.
        ExportError: If it has a target token that Marian's vocabulary does not have.
    """
    config = pipeline.model.config
    shortlist.check_sizes(config.tokens.vocab_size, config.output_size)
    source, target = check_expressible(config, pipeline.tokenizers)
    offsets = shortlist.offsets[: source + 1]
    ids = shortlist.ids[: offsets[-1]]
    if ids.max(initial=0) >= target:
        raise ExportError(
            "The shortlist has tokens that Marian's vocabulary does not have, "
            f"{ids.max()} for example."
        )
    if offsets[-1] == offsets[-2]:  # Marian refuses a file whose last list is empty
        ids, offsets = np.append(ids, 0), np.append(offsets[:-1], offsets[-1] + 1)
    return Shortlist(shortlist.first, max(1, shortlist.best), offsets, ids)


def check_quantizable(config, sizes) -> None:
    """Checks that the browsers' engine can run a model in int8.

    Raises:
        ExportError: If it cannot. The message names the field of the configuration.
    """
    for name, size in (("d_model", config.d_model), ("d_ff", config.encoder.block.d_ff)):
        if size % INNER:
            raise ExportError(
                f"`{name}` must be a multiple of {INNER} for the browsers' engine in int8. "
                f"Received: {name}={size}."
            )
    if sizes[1] % COLUMNS:
        raise ExportError(
            f"The size of the vocabulary must be a multiple of {COLUMNS} for the browsers' engine "
            f"in int8. Received: {sizes[1]}."
        )
    if config.head.tie != "all":
        raise ExportError(
            '`tie` must be "all" for the browsers\' engine in int8. '
            f"Received: tie={config.head.tie!r}."
        )
    if config.encoder.block.activation == "gelu":
        raise ExportError(
            "`activation` must not be gelu for the browsers' engine, which computes "
            "x * sigmoid(1.702 x) under that name. Received: activation='gelu'."
        )


def quantize(arrays, multipliers) -> dict[str, Any]:
    """Returns the arrays of a model in int8, including the multipliers of the activations.

    Args:
        arrays: Result of `make_arrays`.
        multipliers: Result of `find_multipliers`.
    """
    quantized = dict(arrays)
    for name, multiplier in multipliers.items():
        value = np.array([[multiplier]], np.float32)
        quantized[name + MULTIPLIER] = value
        if name == OUTPUT:  # the embedding table, which has two names
            quantized[TABLE] = Quantized.of(arrays[TABLE])
            quantized[TABLE + MULTIPLIER] = Quantized.of(value)
        else:
            quantized[name] = Quantized.of(arrays[name])
    return quantized
