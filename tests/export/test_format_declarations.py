"""The options that each format accepts, and the signatures that a pipeline offers to all."""

import importlib
import inspect

import numpy as np
import pytest
import tensorflow as tf
from pipelines import LINES, classifier, generator, image_classifier, translator

from keras_transformer import Beam
from keras_transformer.cli.export import export
from keras_transformer.cli.search_options import OF_GREEDY_OR_BEAM, SAMPLING
from keras_transformer.decoding import Found
from keras_transformer.export import (
    CTranslate2Options,
    LiteRTOptions,
    MarianOptions,
    OnnxOptions,
    SavedModelOptions,
)
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.search_settings import settings_of
from keras_transformer.tasks.signatures import IDS, TEXT


def exporter_of(format):
    module, name = format.exporter.split(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_declares_the_options_of_its_exporter(name):
    format = FORMATS[name]
    first, second, third, options, *data = inspect.signature(exporter_of(format)).parameters
    assert (first, third, options) == ("pipeline", "samples", "options")
    assert second == ("path" if format.suffix else "directory") and len(data) <= 5
    assert format.name == name
    assert sorted({*format.data, *format.of_answers, *format.of_searches}) == sorted(data)


@pytest.mark.parametrize("name", FORMATS)
def test_a_command_has_the_options_of_its_format_and_declares_none(name):
    """The others describe the search, the pipeline, or the data that the export is checked with."""
    format = FORMATS[name]
    fields = settings_of(format.options)
    derived = {field for field, setting in fields.items() if setting.group is not None}
    others = {"sentences", *format.of_pipeline}
    others |= {"references"} if format.quantizations else set()
    others |= {"calibration"} if format.calibrated else set()
    others |= {*OF_GREEDY_OR_BEAM} if "search" in fields else set()
    others |= {*SAMPLING} if format.samples else set()
    taken = {
        option.name for option in export.commands[name].params if option.param_type_name == "option"
    }
    assert taken == {*derived, *others, "module", "as_json"} and not derived & others


@pytest.mark.parametrize("name", FORMATS)
def test_options_are_declared_with_help_and_documented(name):
    """An option of the command line has a help text; the others are set by the command."""
    kind = FORMATS[name].options
    for field, setting in settings_of(kind).items():
        assert (setting.group is None) == (not setting.help), field
        assert field in kind.__doc__


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            LiteRTOptions,
            {"quantize": "int2"},
            "`quantize` must be one of none, float16, int8, int8",
        ),
        (
            CTranslate2Options,
            {"quantize": "int4"},
            "`quantize` must be one of none, float16, int8.",
        ),
        (
            MarianOptions,
            {"max_loss": -1},
            "`max_loss` must be at least 0 and finite. Received: max",
        ),
        (SavedModelOptions, {"check_seconds": 0}, "`check_seconds` must be above 0 and finite, or"),
        (SavedModelOptions, {"jit": 1}, "`jit` must be True or False. Received: jit=1"),
        (SavedModelOptions, {"n_best": 0}, "`n_best` must be an integer of at least 1, or None"),
        (OnnxOptions, {"license": 3}, "`license` must be a string, or None. Received: license=3"),
        (LiteRTOptions, {"license": 3}, "`license` must be a string, or None. Received: license=3"),
    ],
)
def test_options_check_themselves(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)


def test_options_of_another_format_are_refused(tmp_path):
    with pytest.raises(TypeError, match="`options` must be `LiteRTOptions`. Received: options=Mar"):
        exporter_of(FORMATS["litert"])(translator(), tmp_path / "x", LINES, MarianOptions())


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_that_is_calibrated_takes_sentences_for_it(name):
    format = FORMATS[name]
    assert format.calibrated in ("", *format.quantizations)
    takes = "calibration" in {*format.data, *format.of_searches}
    assert takes == bool(format.calibrated)


def test_options_depend_on_the_task_of_a_pipeline():
    options = {
        make: FORMATS["saved-model"].options_of(make())
        for make in (classifier, generator, translator)
    }
    assert options[classifier] == {"origin", "progress", "references"}
    assert options[translator] - options[generator] == {
        *("alignment", "takes_words", "token_scores")
    }
    assert {"search", "jit", "left_out"} <= options[generator] and "references" not in options[
        generator
    ]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("ctranslate2", image_classifier),
        ("marian", classifier),
        ("marian", generator),
    ],
)
def test_a_format_refuses_other_models_than_it_needs(name, make, tmp_path):
    pipeline = make()
    with pytest.raises(ExportError, match=f"no export to {name} of a model for {pipeline.task}"):
        FORMATS[name].export(pipeline, tmp_path / "x", LINES)
    with pytest.raises(ExportError, match=f"no export to {name} of a model for {pipeline.task}"):
        exporter_of(FORMATS[name])(pipeline, tmp_path / "x", LINES)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("saved-model", {"jit": True}),
        ("litert", {"n_best": 2}),
        ("onnx", {"n_best": 2}),
        ("litert", {"tokenizer": True}),
    ],
)
def test_options_without_effect_are_refused_by_name(name, option, tmp_path):
    pipeline, (word,) = classifier(), option
    options = FORMATS[name].options(**option)
    message = f"`{word}` has no effect on a model for {pipeline.task}"
    with pytest.raises(ValueError, match=message):
        FORMATS[name].export(pipeline, tmp_path / "x.tflite", LINES, options)
    with pytest.raises(ValueError, match=message):
        exporter_of(FORMATS[name])(pipeline, tmp_path / "x.tflite", LINES, options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["saved-model", "litert"])
def test_attention_to_a_source_needs_a_source(name, tmp_path):
    message = "`alignment` has no effect on a model for language_modelling"
    options = FORMATS[name].options(alignment=(0, None))
    with pytest.raises(ValueError, match=message):
        FORMATS[name].export(generator(), tmp_path / "x.tflite", LINES, options)


def test_references_have_no_effect_on_a_saved_model_that_generates(tmp_path):
    with pytest.raises(ValueError, match="`references` has no effect on a model for translation"):
        exporter_of(FORMATS["saved-model"])(translator(), tmp_path, LINES, references=LINES)


@pytest.mark.parametrize(
    ("beam", "message"),
    [
        (
            Beam(normalization="average"),
            '`normalization` of a beam in a .tflite file must be "gnmt" or "power": "power" with a '
            '`length_penalty` of 1 is "average", with 0 "none". Received: search=Beam',
        ),
    ],
)
def test_a_beam_that_a_format_cannot_hold_is_reported(beam, message):
    with pytest.raises(ValueError) as caught:
        FORMATS["litert"].beams.check(beam)
    assert str(caught.value).startswith(message)
    FORMATS["saved-model"].beams.check(beam)


@pytest.mark.slow
def test_the_signatures_of_a_generator_equal_its_own_outputs(make=generator):
    pipeline = make()
    text, ids = pipeline.signatures()
    assert (text.form, ids.form) == (TEXT, IDS) and text.search == pipeline.search
    outputs = text.function(tf.constant(LINES))
    expected = pipeline.answer_batch(LINES)
    assert [row[0].decode() for row in outputs[pipeline.output].numpy()] == [
        result.text for result in expected
    ]
    np.testing.assert_allclose(outputs["score"][:, 0], [result.score for result in expected])
    source = pipeline.encode(tf.constant(LINES))[0]
    np.testing.assert_allclose(ids.strict(source=source)["score"], outputs["score"], rtol=1e-6)
    bad = text.function(tf.constant([b"\xff"]))
    for name, value in text.nothing.items():
        assert tf.reduce_all(tf.equal(bad[name], value)), name


def test_the_signatures_of_a_classifier_equal_its_own_outputs():
    pipeline = classifier()
    request, inputs = pipeline.signatures()
    assert (request.form, inputs.form, inputs.name) == (TEXT, IDS, "tokens")
    assert request.search is None and set(inputs.inputs) == {"source"}
    answers = request.function(**pipeline.codec.request(LINES))
    results = pipeline.codec.results({name: value.numpy() for name, value in answers.items()})
    assert [result.text for result in results] == [r.text for r in pipeline.answer(LINES)]
    source = pipeline.codec.encode(**pipeline.codec.request(LINES))[0]["source"]
    strict, lenient = inputs.strict(source=source), inputs.lenient(source=source)
    assert (strict["label"].dtype, lenient["label"].dtype) == (tf.string, tf.int32)
    np.testing.assert_array_equal(strict["probabilities"], lenient["probabilities"])


def test_an_invalid_row_is_an_error_or_gives_an_empty_output(make=translator):
    pipeline = make()
    _, ids = pipeline.signatures()
    source = tf.constant([[5, pipeline.source_tokenizer.eos_id], [5, 6]])  # one of them has no end
    with pytest.raises(tf.errors.InvalidArgumentError, match="must end each row in the id"):
        ids.strict(source=source)
    both, alone = ids.lenient(source=source), ids.lenient(source=source[:1])
    for name, outputs in both.items():
        assert tf.reduce_all(tf.equal(outputs[1], ids.nothing[name])), name
        np.testing.assert_allclose(outputs[:1], alone[name], rtol=1e-5)


def test_the_signature_of_ids_returns_what_a_search_finds():
    """Lengths count tokens, not padding. An invalid row has no tokens, length or attention."""
    pipeline, received = translator(), []
    pad, eos = pipeline.model.config.tokens.pad_id, pipeline.source_tokenizer.eos_id
    tokens = tf.constant([[[5, 6, eos, pad], [7, eos, pad, pad]]] * 2)  # [B, M, L]
    scores, attention = tf.fill([2, 2], -1.0), tf.ones([2, 2, 4, 3])  # [B, M], [B, M, L, S]
    complete = tf.constant([[True, False]] * 2)  # [B, M]

    def find(source, **settings):
        received.append(settings)
        return Found(tokens, scores, complete, alignment=attention)

    _, ids = pipeline.signatures(find)
    source = tf.constant([[5, 6, eos], [5, 6, 7]])  # the second row has no end
    outputs = ids.lenient(source=source, length_penalty=1.0)
    assert received == [{"length_penalty": 1.0}]
    assert outputs["length"].numpy().tolist() == [[3, 2], [0, 0]]
    assert outputs["tokens"].numpy().tolist() == [tokens.numpy().tolist()[0], [[pad] * 4] * 2]
    assert outputs["alignment"].numpy().sum(axis=(1, 2, 3)).tolist() == [24, 0]
    assert outputs["score"].numpy().tolist() == [[-1, -1], [np.float32(-1e9)] * 2]
    assert outputs["complete"].numpy().tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_a_pipeline_is_named(name, tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    message = r"^`pipeline` must be a pipeline, such as `Translator\(model, .* Sequential"
    with pytest.raises(TypeError, match=message):
        exporter_of(FORMATS[name])(model, tmp_path / "x", ["a"])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("samples", ["a b", ["a", 7], []])
def test_wrong_samples_are_named_as_the_argument(samples, tmp_path):
    with pytest.raises((TypeError, ValueError), match="^`samples` must "):
        exporter_of(FORMATS["saved-model"])(translator(), tmp_path / "x", samples)
