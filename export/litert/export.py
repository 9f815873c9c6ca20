"""Export to a .tflite file for phones and browsers, with the decoding loop inside."""

import os
from collections.abc import Callable, Sequence

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.limits import MAX_LOSS, Limits
from keras_transformer.export.litert.answered import LiteRTAnswers
from keras_transformer.export.litert.generated import LiteRTGeneration
from keras_transformer.export.litert.packed import pack
from keras_transformer.export.litert.runtime import load_interpreter
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space
from keras_transformer.tasks.pipeline import Pipeline


def export_litert(
    pipeline: Pipeline,
    path: str | os.PathLike,
    samples: list,
    quantize: str = "none",
    *,
    calibration: list[str] | None = None,
    lengths: Sequence[int] | None = None,
    batch_sizes: Sequence[int] = (1,),
    min_agreement: float | None = None,
    references: list[str] | None = None,
    max_loss: float = MAX_LOSS,
    max_score_loss: float | None = None,
    searches: Sequence[Greedy | Beam] | None = None,
    n_best: int | None = None,
    alignment: tuple[int, int | None] | None = None,
    license: str | None = None,
    tokenizer: bool = False,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
    source_language: str | None = None,
    target_language: str | None = None,
) -> dict:
    """Writes a .tflite file that runs with LiteRT's builtin operators alone.

    For each length of source and batch size it has a signature of fixed shape, such as
    `greedy_1x16`: `source`, int32 `[1, 16]`, ids that end in `eos_id` and then padding; to
    `tokens`, int32 `[1, max_length]`, as `greedy_decode` gives them, `score`, float32 `[1]`, and
    `length`, int32 `[1]`, of how many tokens there are before the padding. Where greedy search has
    a `max_length` of its own, its `tokens` are that long. With a beam it has as
    many more, such as `beam4_1x16`, which also take `max_length`, int32 `[1]`, the longest output
    of each sentence, and `length_penalty`, float32 `[1]`; to what `beam_decode` gives, `tokens`
    `[1, n_best, max_length]`, and `score` and `length` `[1, n_best]`. A row of wrong ids, such as
    one without `eos_id`, with an id that is not in the vocabulary or only of padding, gives
    padding, the score -1e9 and the length 0, and does not touch the other rows; the metadata states
    under `source` what is right.

    A model that answers in one pass has one signature for each shape, such as `classify_1x16`, and
    where its inputs have no length one for each batch size, such as `classify_1`: from the inputs
    of the model to the outputs of the pipeline's `Codec`. Of a classifier: `source`, int32
    `[1, 16]`, ids that end in `eos_id` and then padding; to `probabilities`, float32 `[1, C]`, and
    `label`, int32 `[1]`, the place of the most probable of the `labels` in the metadata.

    The vocabulary and JSON metadata lie after the model as in a ZIP archive, `tokenizer.model`
    and `metadata.json`: any unzip program reads them, and LiteRT ignores them.

    With `tokenizer` it has for each length one more signature, such as `translate_1x16`:
    `sentence`, string `[1]`, to `translation`, string `[1]`, `score`, float32 `[1]`, and
    `truncated`, boolean `[1]`, whether the sentence has more tokens than that and was cut: a longer
    signature may hold it. With a beam another, `translate_beam4_1x16`, which also takes
    `extra_length`, int32 `[1]`, and `length_penalty`, float32 `[1]`, and gives the best hypothesis.
    These need a runtime that registers operators of TensorFlow Text, which the metadata lists under
    `custom_operators`; one that does not still runs the other signatures.

    The file appears at `path` when it has answered `samples` as the model in memory does. If
    it does not, or on any other error, `path` is as it was before.

    Args:
        pipeline: A `Translator`, a `Classifier` or any other pipeline; one with a shortlist exports
            its searches among the candidates.
        path: The file. An older .tflite file is replaced.
        samples: List of real inputs, such as sentences, to check the export with.
        quantize: `"none"`: float32. `"float16"`: weights of half the size. `"int8"`: weights of a
            quarter of the size, products in integers, activations rounded for each product.
            `"int8_static"`: the same, but activations rounded by ranges that `calibration` gave,
            those of encoder and decoder step apart; layer normalisation, attention's own products,
            softmax and logits stay in float32 or as for int8. It needs a model with a source.
        calibration: For `"int8_static"`, a list of real sentences, other than `samples`.
        lengths: Source lengths in tokens; the last one is the pipeline's `max_length`. A sentence
            is padded to the next one, which costs time in the encoder; each costs room for the
            graph and memory at run time. `None`: see `default_lengths`.
        batch_sizes: Sentences at a time: for each length there is a signature of each size.
        min_agreement, references, max_loss, max_score_loss: See `Limits`; the scores are those of
            an `Agreement` or an `AnswerAgreement`.
        searches: The searches in the file: `Greedy`, which is there in any case, and at most one
            `Beam` with the `normalization` `"gnmt"` or `"power"`. Its size, its normalisation and
            its `stopping` are part of the graphs; its other settings are those of the check and
            defaults of whoever opens the file. `None`: the pipeline's own `search`.
        n_best: How many of its hypotheses the beam returns. `None`: one.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: the greedy signatures then also have the output `alignment`, float32 `[1,
            max_length, 16]`, what each token of the output attended to in the source.
        license: Under which the model may be used, a string for the metadata. `None`: that of its
            origin.
        tokenizer: Whether there are signatures that take and give strings. The vocabulary must be a
            unigram model: see `FastTokenizer`.
        origin: Dictionary of what is known of the checkpoint that the weights come from, for the
            metadata: see `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Samples that are not among `samples` because the check would take too long,
            for the metrics.
        source_language: Code of the language that the model translates, a string for the metadata.
        target_language: Code of the language that it translates to.

    All options from `searches` to `alignment`, `tokenizer`, `calibration`, `left_out` and the
    languages are for models that generate text.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures`, and the results of an `Agreement`;
        with a beam, under `beam`, all of them again; with `tokenizer`, under `strings`, those of
        the signatures that take strings. For `"int8_static"`, under `calibration`, the number of
        its `sentences`, how the `ranges` were found, and which share of the activations for the
        samples lies `outside`. With a shortlist, under `shortlist`, the results of
        `shortlist_metrics`. Of a model that answers in one pass the results of an
        `AnswerAgreement`.

    Raises:
        ExportError: If the file does not agree, needs other than builtin operators, or was to be
            calibrated with other than real sentences; if something else is at `path`; with
            `tokenizer`, if TensorFlow Text's operators give other pieces.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong, or has no effect on such a model.
    """
    load_interpreter()
    format = FORMATS["litert"]
    options = {
        "searches": searches,
        "n_best": n_best,
        "alignment": alignment,
        "tokenizer": tokenizer,
        "calibration": calibration,
        "left_out": left_out,
        "source_language": source_language,
        "target_language": target_language,
    }
    format.check(pipeline, **options)
    samples = pipeline.check_samples(samples)
    path = check_place_of_file(path)
    limits = Limits(quantize, min_agreement, references, max_loss, max_score_loss)
    limits.check(format.quantizations)
    check_space(path, pipeline, quantize)
    contents = in_float32(pipeline), samples, limits, lengths, batch_sizes, progress or silent
    kind = LiteRTGeneration if pipeline.generates else LiteRTAnswers
    contents = kind(*contents, **(options if pipeline.generates else {}))
    about = {
        "license": license or (origin or {}).get("license"),
        **({"origin": origin} if origin else {}),
    }
    report = place_file(path, lambda draft: _write(contents, draft, path, about))
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": quantize,
        "signatures": [signature.name for signature in contents.signatures],
        **report,
    }


def _write(contents, draft, path, about):
    """Writes and checks the file `draft`; returns the results. Errors name it `path`."""
    content = contents.convert(path)
    metadata = {**contents.metadata(content), **about}
    tokenizers = contents.pipeline.tokenizers
    pack(draft, content, tokenizers, metadata)
    report = contents.check(draft, path)
    pack(draft, content, tokenizers, {**metadata, "agreement": without_sentences(report)})
    contents.open(draft)
    return {**report, **contents.results()}
