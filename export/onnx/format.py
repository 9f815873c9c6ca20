"""Files for ONNX Runtime as an export format, and its options."""

import dataclasses
from typing import Any

from keras_transformer.export import options
from keras_transformer.export.formats import Format, beams_of_graphs


@dataclasses.dataclass(frozen=True)
class OnnxOptions(options.FileOptions):
    """Options of `export_onnx`.

    All but `license` and those of quantisation are for models that generate text.

    Args:
        quantize: Storage of the weights and arithmetic of the products. `"none"`: float32.
            `"int8"`: weights of a quarter of the size and products of integers; activations are
            rounded for each product when it is computed, with one scale for the whole batch.
            `"float16"`: weights of half the size, which the runtime casts to float32. `"int4"`:
            weights in 4 bits with a scale for each block of 32, and products of integers. Language
            models in `"int8"` and `"int4"` also have blocks, with offsets in 4 bits: see
            docs/onnx.md.
        max_loss, max_score_loss, min_agreement: See `QuantizedOptions`. The scores come from
            `Agreement` or `AnswerAgreement`.
        search: The search of the file: a `Greedy`; a `Beam` with the `normalization` `"gnmt"` or
            `"power"`; or a `Sample`. Size, normalisation, `min_length` and `stopping` of the beam
            are fixed in the graph. Its other settings, and all of a `Sample`, are used by the check
            and are defaults when the file is opened. `None`: the pipeline's own `search`.
        n_best: Number of hypotheses that a `Beam` returns. `None`: 1.
        alignment: Layer and head of the decoder whose attention the search returns, a pair of
            integers; a head of `None` is the mean of the layer's heads. The additional output is
            `alignment`, float32 `[B, max_length, S]` or with a beam `[B, n_best, max_length, S]`,
            the attention of each output token to the source tokens. `None`: there is no such
            output.
        takes_words: Whether the graph also takes the words of each row: see `WordInputs`. Only for
            models with a source.
        token_scores: Whether the search also returns `token_scores`, float32 `[B, max_length]` or
            with a beam `[B, n_best, max_length]`: the log-probability of each token, 0 for padding.
            Only for models with a source.
        tokenizer: Whether the file takes and returns strings instead of token ids. The vocabulary
            must be a BPE or unigram model of SentencePiece, with the model's own ids, and the
            package onnxruntime-extensions must be installed.
        streaming: Whether a call of the graph returns one token, and takes and returns the keys and
            values of the tokens before it, for texts that appear while they are generated. The file
            then holds both greedy search and sampling. Only for language models.
        license: License of the model, a string for the metadata. `None`: the license in `origin`.
        source_language: Code of the source language, a string for the metadata.
        target_language: Code of the target language.

    Raises:
        ValueError: If an option is out of range, a limit of quality is given without `quantize`,
            `tokenizer` with `alignment`, or `streaming`, `takes_words` or `token_scores` with
            `tokenizer`.
    """

    quantize: str = options.stored_as("float16", "int8", "int4")
    search: Any = options.search()
    n_best: int | None = options.n_best(
        "With --beam: number of outputs that beam search returns.", "1", options.BEAM
    )
    alignment: tuple[int, int | None] | None = options.alignment(
        "Let the search also return attention weights: the mean over the heads of the decoder's "
        "last layer.",
        options.CONTENTS,
    )
    takes_words: bool = options.takes_words("Let the file take", excludes="tokenizer")
    token_scores: bool = options.token_scores("Let the search also return", excludes="tokenizer")
    tokenizer: bool = options.tokenizer(
        "Let the file take and return strings instead of token ids, for runtimes that register the "
        "operators of onnxruntime-extensions. The vocabulary must be a BPE or unigram model of "
        "SentencePiece.",
        excludes="alignment",
    )
    streaming: bool = options.streaming(
        "Let each call take the keys and values of the earlier tokens, and return them with one "
        "more token, for chats and other texts that are shown while they are generated.",
        excludes="tokenizer",
    )


FORMAT = Format(
    "onnx",
    """Write an .onnx file for ONNX Runtime.

    The file contains the vocabulary and one search with its decoding loop: greedy search, beam
    search or sampling. The file takes any number of texts of any length. Inputs and outputs are
    strings with --tokenizer, otherwise token ids.
    """,
    """# Beam search:
keras-transformer export onnx runs/base model.onnx --beam 4
# Strings in and out, weights of 8 bits:
keras-transformer export onnx runs/base model.onnx --tokenizer --quantize int8""",
    OnnxOptions,
    "keras_transformer.export.onnx.export:export_onnx",
    "keras_transformer.export.onnx.place:check_place_of_onnx",
    "keras_transformer.export.onnx.form:OnnxForm",
    suffix=".onnx",
    data=("references", "origin", "progress"),
    of_pipeline=("max_length", "shortlist", "banned", "prefix"),
    beams=beams_of_graphs(
        "an .onnx file", "Export beam search with N hypotheses instead of greedy search."
    ),
    opened_with=(
        *(
            "greedy",
            "beam",
            "n_best",
            "length_penalty",
            "extra_length",
            "max_length_ratio",
            "max_output",
            "sample",
        ),
        *("source_language", "target_language", "alignments"),
    ),
    refusal="keras_transformer.export.onnx.vocabularies:check_run",
)
