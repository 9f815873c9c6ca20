"""One .tflite file of a classifier for phones and browsers: token ids in, probabilities out."""

import itertools

import tensorflow as tf

import keras_transformer
from keras_transformer.export.label_agreement import MAX_LOSS, LabelAgreement
from keras_transformer.export.litert.compact import share_quantization
from keras_transformer.export.litert.convert import convert_functions
from keras_transformer.export.litert.export import figures_of
from keras_transformer.export.litert.kernels import Int8LookUp
from keras_transformer.export.litert.packed import FORMAT, SIGNATURES, Signature, pack
from keras_transformer.export.litert.runtime import LiteRTClassifier, load_interpreter
from keras_transformer.export.litert.source_ids import refuse_wrong_rows
from keras_transformer.export.parity import check_sentences, copy_model, in_float32
from keras_transformer.export.place import check_place_of_file, check_space, place_file, silent
from keras_transformer.export.shapes import check_shapes, default_lengths
from keras_transformer.layers.kernels import Kernels

QUANTIZATIONS = ("none", "float16", "int8")
RULE = (
    "Each row: the ids of a text's pieces, each at least 0 and below vocab_size, none of them pad "
    "or bos; then eos, once; then pad up to source_length. For any other row all probabilities are "
    "0; the other rows are as without it."
)


def export_classifier(
    classifier,
    path,
    sentences,
    quantize="none",
    *,
    lengths=None,
    batch_sizes=(1,),
    min_agreement=None,
    references=None,
    max_loss=MAX_LOSS,
    max_score_loss=None,
    license=None,
    progress=None,
):
    """Writes a .tflite file that runs with LiteRT's builtin operators alone.

    For each length of text and batch size it has a signature of fixed shape, such as
    `classify_1x16`: `source`, int32 `[1, 16]`, ids that end in `eos_id` and then padding; to
    `probabilities`, float32 `[1, C]`, and `label`, int32 `[1]`, the place of the most probable of
    the `labels` in the file's facts. Vocabulary and facts lie after the model as in a ZIP archive:
    see `export_litert`.

    The file appears at `path` when it has classified `sentences` as the model in memory does.

    Args:
        classifier: A `Classifier`.
        path: The file. An older .tflite file is replaced.
        sentences: List of real texts to check the export with.
        quantize: `"none"`, `"float16"` or `"int8"`: see `export_litert`.
        lengths: Lengths in tokens; the last one is the classifier's `max_length`. `None`: see
            `default_lengths`.
        batch_sizes: Texts at a time: for each length there is a signature of each size.
        min_agreement, references, max_loss, max_score_loss: See `LabelAgreement`.
        license: Under which the model may be used, a string for the facts.
        progress: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures` and the figures of a
        `LabelAgreement`.

    Raises:
        ExportError: If the answers differ, or something else is at `path`.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong.
    """
    load_interpreter()
    sentences = check_sentences(sentences)
    path = check_place_of_file(path)
    lengths = list(default_lengths(classifier.max_length) if lengths is None else lengths)
    check_shapes(quantize, QUANTIZATIONS, lengths, list(batch_sizes), classifier.max_length)
    check_space(path, classifier, quantize)
    progress = progress or silent
    classifier = in_float32(classifier)
    agreement = LabelAgreement(
        sentences,
        classifier.classify(sentences),
        quantize,
        min_agreement,
        references,
        max_loss,
        max_score_loss,
    )
    signatures = [
        Signature(f"classify_{batch}x{length}", batch, length)
        for length, batch in itertools.product(lengths, batch_sizes)
    ]

    def write(draft):
        progress(f"converting {len(signatures)} signatures")
        content = _convert(classifier.model, signatures, quantize)
        facts = {**_facts(classifier, signatures, quantize), "license": license}
        pack(draft, content, classifier.tokenizers, facts)
        progress(f"classifying {len(sentences)} texts with every signature")
        report = agreement.judge(_answers(draft, sentences), path)
        pack(draft, content, classifier.tokenizers, {**facts, "agreement": figures_of(report)})
        LiteRTClassifier(draft).classify_batch(sentences[:1])
        return report

    report = place_file(path, write)
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": quantize,
        "signatures": [signature.name for signature in signatures],
        **report,
    }


def _convert(model, signatures, quantize):
    kernels = Kernels()
    if quantize == "int8":
        kernels = Kernels(look_up=Int8LookUp(layer.table for layer in model.embeddings))
    model = copy_model(model, kernels)
    functions = {signature.name: _trace(model, signature) for signature in signatures}
    content = convert_functions(model, functions, quantize)
    return share_quantization(content) if quantize == "int8" else content


def _trace(model, signature):
    def classify(source):
        probabilities = tf.nn.softmax(model(source, training=False))  # [B, C]
        label = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {"probabilities": probabilities, "label": label}

    shape = [signature.batch_size, signature.source_length]
    checked = refuse_wrong_rows(classify, model.config, {"probabilities": 0.0, "label": -1})
    function = tf.function(checked, autograph=False)
    return function.get_concrete_function(source=tf.TensorSpec(shape, tf.int32, name="source"))


def _facts(classifier, signatures, quantize):
    """What a program needs to know to use the file."""
    tokenizer = classifier.source_tokenizer
    return {
        "format": FORMAT,
        "task": classifier.task,
        "labels": list(classifier.labels),
        "tokens": {name: getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "eos")},
        "vocab_size": tokenizer.vocab_size,
        "source": RULE,
        "max_length": classifier.max_length,
        "parameters": classifier.model.count_params(),
        "quantize": quantize,
        SIGNATURES: [vars(signature) for signature in signatures],
        "made_with": {
            "keras_transformer": keras_transformer.__version__,
            "tensorflow": tf.__version__,
        },
    }


def _answers(draft, sentences):
    """The file's answers, with the signatures taking turns, so that none goes unseen."""
    loaded = LiteRTClassifier(draft)
    limit = {signature: signature.source_length for signature in loaded.signatures}
    results = []
    for sentence, signature in zip(sentences, itertools.cycle(loaded.signatures), strict=False):
        length = min(len(loaded.tokenizers.source.encode([sentence])[0]), loaded.max_length)
        chosen = signature if length <= limit[signature] else None
        results += loaded.classify_batch([sentence], chosen)
    return results
