"""One .tflite file for phones and browsers: token ids in and out, the decoding loop inside."""

from keras_transformer.export.limits import MAX_LOSS, Limits
from keras_transformer.export.litert.answered import Answered
from keras_transformer.export.litert.contents import Options
from keras_transformer.export.litert.generated import Generated
from keras_transformer.export.litert.packed import figures_of, pack
from keras_transformer.export.litert.runtime import load_interpreter
from keras_transformer.export.parity import in_float32
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space


def export_litert(
    pipeline,
    path,
    samples,
    quantize="none",
    *,
    calibration=None,
    lengths=None,
    batch_sizes=(1,),
    min_agreement=None,
    references=None,
    max_loss=MAX_LOSS,
    max_score_loss=None,
    searches=None,
    n_best=1,
    alignment=None,
    license=None,
    tokenizer=False,
    origin=None,
    progress=None,
    left_out=0,
    source_language=None,
    target_language=None,
):
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
    padding, the score -1e9 and the length 0, and does not touch the other rows; the facts state
    under `source` what is right.

    A model that answers in one pass has one signature for each shape, such as `classify_1x16`, and
    where its inputs have no length one for each batch size, such as `classify_1`: from the inputs
    of the model to the outputs of the pipeline's `Codec`. Of a classifier: `source`, int32
    `[1, 16]`, ids that end in `eos_id` and then padding; to `probabilities`, float32 `[1, C]`, and
    `label`, int32 `[1]`, the place of the most probable of the `labels` in the facts.

    The vocabulary and a JSON of facts lie after the model as in a ZIP archive, `tokenizer.model`
    and `facts.json`: any unzip program reads them, and LiteRT ignores them.

    With `tokenizer` it has for each length one more signature, such as `translate_1x16`:
    `sentence`, string `[1]`, to `translation`, string `[1]`, `score`, float32 `[1]`, and
    `truncated`, boolean `[1]`, whether the sentence has more tokens than that and was cut: a longer
    signature may hold it. With a beam another, `translate_beam4_1x16`, which also takes
    `extra_length`, int32 `[1]`, and `length_penalty`, float32 `[1]`, and gives the best hypothesis.
    These need a runtime that registers operators of TensorFlow Text, which the facts list under
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
        n_best: How many of its hypotheses the beam returns.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: the greedy signatures then also have the output `alignment`, float32 `[1,
            max_length, 16]`, what each token of the output attended to in the source.
        license: Under which the model may be used, a string for the facts. `None`: that of its
            origin.
        tokenizer: Whether there are signatures that take and give strings. The vocabulary must be a
            unigram model: see `FastTokenizer`.
        origin: Dictionary of what is known of the checkpoint that the weights come from, for the
            facts: see `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Samples that are not among `samples` because the check would take too long,
            for the figures.
        source_language: Code of the language that the model translates, a string for the facts.
        target_language: Code of the language that it translates to.

    All options from `searches` to `alignment`, `tokenizer`, `calibration`, `left_out` and the
    languages are for models that generate text.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures`, and the results of an `Agreement`;
        with a beam, under `beam`, all of them again; with `tokenizer`, under `strings`, those of
        the signatures that take strings. For `"int8_static"`, under `calibration`, the number of
        its `sentences`, how the `ranges` were found, and which share of the activations for the
        samples lies `outside`. With a shortlist, under `shortlist`, the results of
        `shortlist_figures`. Of a model that answers in one pass the results of an
        `AnswerAgreement`.

    Raises:
        ExportError: If the file does not agree, needs other than builtin operators, or was to be
            calibrated with other than real sentences; if something else is at `path`; with
            `tokenizer`, if TensorFlow Text's operators give other pieces.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong, or has no effect on such a model.
    """
    load_interpreter()
    samples = pipeline.check_samples(samples)
    path = check_place_of_file(path)
    limits = Limits(quantize, min_agreement, references, max_loss, max_score_loss)
    options = Options(
        searches, n_best, alignment, tokenizer, calibration, left_out, source_language,
        target_language,
    )  # fmt: skip
    kind = Generated if pipeline.generates else Answered
    contents = kind(pipeline, samples, limits, lengths, batch_sizes, options, progress or silent)
    check_space(path, pipeline, quantize)
    contents.begin(in_float32(pipeline))
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
    contents.calibrate(path)
    contents.progress(f"converting {len(contents.signatures)} signatures")
    content = contents.convert(path)
    metadata = {**contents.metadata(content), **about}
    tokenizers = contents.pipeline.tokenizers
    pack(draft, content, tokenizers, metadata)
    report = contents.check(draft, path)
    pack(draft, content, tokenizers, {**metadata, "agreement": figures_of(report)})
    contents.open(draft)
    return {**report, **contents.results()}
