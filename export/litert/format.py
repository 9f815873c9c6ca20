"""Files for LiteRT as an export format, and its options."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.export import options
from keras_transformer.export.formats import Format, beams_of_graphs
from keras_transformer.search_settings import setting

CONVERTERS = ("tensorflow", "litert")


@dataclasses.dataclass(frozen=True)
class LiteRTOptions(options.FileOptions):
    """Options of `export_litert`.

    Those from `search` to `tokenizer` and the languages are for models that generate text.

    Args:
        quantize: Storage of the weights and arithmetic of the products. `"none"`: float32.
            `"float16"`: weights of half the size. `"int8"`: weights of a quarter of the size and
            products of integers; activations are rounded for each product when it is computed.
            `"int8_static"`: like `"int8"`, but activations are rounded with fixed ranges found with
            `calibration`, separate ones for the encoder and for a step of the decoder. Layer
            normalisation, the products inside attention, softmax and logits remain as in `"int8"`.
            It needs a model with a source. `"int4"`: like `"int8"`, but embeddings and the weights
            of products have 4 bits, with a scale for each row, and the archive is compressed.
        max_loss, max_score_loss, min_agreement: See `QuantizedOptions`. The scores come from
            `Agreement` or `AnswerAgreement`.
        lengths: Source lengths in tokens, increasing; the last one must be the pipeline's
            `max_length`. Sentences are padded to the next length, which costs time in the encoder.
            Every length makes the file larger and needs memory at run time. `None`: 16, 64 and so
            on.
        batch_sizes: Numbers of sentences in a batch. There is a signature of every size for every
            length.
        search: A `Greedy`; or a `Beam` with the `normalization` `"gnmt"` or `"power"`, which the
            file has beside greedy search. Size, normalisation and `stopping` of the beam are fixed
            in the graphs. Its other settings are used by the check and are defaults when the file
            is opened. `None`: the pipeline's own `search`.
        beam_only: Whether to leave out greedy search beside a `Beam`, because every signature makes
            the file larger and needs memory at run time.
        n_best: Number of hypotheses that a `Beam` returns. `None`: 1.
        alignment: Layer and head of the decoder whose attention the greedy signatures return, a
            pair of integers; a head of `None` is the mean of the layer's heads. The additional
            output is `alignment`, float32 `[1, max_length, 16]`, the attention of each output token
            to the source tokens. `None`: there is no such output.
        converter: Program that writes the graphs. `"tensorflow"`: the converter that is part of
            TensorFlow, `tf.lite`. `"litert"`: that of the package litert-converter, which reads
            StableHLO; it supports no quantisation and no `tokenizer`. `None`: `"tensorflow"`, or
            `"litert"` with a TensorFlow that has no `tf.lite`.
        takes_words: Whether every signature also takes the words of each row: see `WordInputs`.
            Only for models with a source.
        token_scores: Whether every signature also returns `token_scores`, float32, of the shape of
            `tokens`: the log-probability of each token, 0 for padding. Only for models with a
            source.
        tokenizer: Whether to include signatures that take and return strings. The vocabulary must
            be a unigram model: see `FastTokenizer`.
        unrolled: Whether the file has two functions without loops for each signature, `encode` and
            `step`, which a program calls in a loop of its own: see `UnrolledSearch`. Delegates for
            accelerators run no loops.
        streaming: Whether a call of a signature returns one token, after keys and values of the
            tokens before it, for texts that appear while they are generated. The file then holds
            both greedy search and sampling, and `lengths` are the numbers of positions for which
            there are keys and values. Only for language models.
        license: License of the model, a string for the metadata. `None`: the license in `origin`.
        source_language: Code of the source language, a string for the metadata.
        target_language: Code of the target language.

    Raises:
        ValueError: If an option is out of range, a limit of quality is given without `quantize`, or
            `alignment` with `beam_only`, `tokenizer` with `unrolled`, `takes_words` or
            `token_scores` with `tokenizer`, or `streaming` with `tokenizer` or `unrolled`.
    """

    quantize: str = options.stored_as("float16", "int8", "int8_static", "int4")
    lengths: Sequence[int] | None = options.lengths()
    batch_sizes: Sequence[int] = options.batch_sizes((1,), "1")
    search: Any = options.search()
    n_best: int | None = options.n_best(
        "With --beam: number of outputs that beam search returns.", "1", options.BEAM
    )
    beam_only: bool = setting(
        False,
        "Leave out greedy search, which saves memory in the program that loads the file.",
        kind=bool,
        group="Search",
        needs=options.BEAM,
    )
    alignment: tuple[int, int | None] | None = options.alignment(
        "Let greedy search also return attention weights: the mean over the heads of the decoder's "
        "last layer.",
        options.CONTENTS,
        excludes="beam_only",
    )
    converter: str | None = setting(
        None,
        "Program that writes the graphs: TensorFlow's converter, or LiteRT's own converter, "
        "which reads StableHLO. LiteRT's converter supports neither quantisation nor strings.",
        kind=str,
        choices=CONVERTERS,
        is_optional=True,
        default_help="TensorFlow's, if the installed TensorFlow has one",
        group=options.CONTENTS,
    )
    takes_words: bool = options.takes_words("Let every signature take", excludes="tokenizer")
    token_scores: bool = options.token_scores(
        "Let every signature also return", excludes="tokenizer"
    )
    tokenizer: bool = options.tokenizer(
        "Add signatures that take and return strings, for runtimes that register TensorFlow Text's "
        "operators. The vocabulary must be a unigram model.",
        excludes="unrolled",
    )
    unrolled: bool = setting(
        False,
        "Write signatures without loops, for accelerators that cannot run loops. The program that "
        "loads the file repeats the signature named step until the output ends.",
        kind=bool,
        group=options.CONTENTS,
        needs=options.GENERATION,
        excludes="streaming",
    )
    streaming: bool = options.streaming(
        "Let each call take the keys and values of the earlier tokens, and return one token, for "
        "chats and other texts that are shown while they are generated. With --streaming, "
        "--lengths are numbers of positions.",
        excludes="tokenizer",
    )


FORMAT = Format(
    "litert",
    """Write a .tflite file for LiteRT.

    The file contains the decoding loop and the vocabulary. Its inputs and outputs are token ids.
    """,
    """# Weights of 8 bits:
keras-transformer export litert runs/base model.tflite --quantize int8
# Weights of 4 bits, beam search, sentences of your own for the check:
keras-transformer export litert runs/base model.tflite --quantize int4 \\
  --beam 4 --sentences in.txt --references out.txt
# Strings in and out, for runtimes with TensorFlow Text's operators:
keras-transformer export litert runs/base model.tflite --tokenizer""",
    LiteRTOptions,
    "keras_transformer.export.litert.export:export_litert",
    "keras_transformer.export.place_checks:check_place_of_file",
    "keras_transformer.export.litert.form:LiteRTForm",
    suffix=".tflite",
    data=("references", "origin", "progress"),
    of_searches=("calibration", "left_out"),
    of_pipeline=("max_length", "shortlist", "banned", "prefix"),
    calibrated="int8_static",
    beams=beams_of_graphs(
        "a .tflite file", "Export beam search with N hypotheses in addition to greedy search."
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
        ),
        *("source_language", "target_language", "alignments"),
    ),
    refusal="keras_transformer.export.litert.generated:check_run",
)
