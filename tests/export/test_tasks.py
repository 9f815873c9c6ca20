"""Exports of models that do not translate: a language model and a classifier."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from marks import long
from phrases import bpe_tokenizer
from searching import by_beam, by_greedy
from support import randomise, with_effect

from keras_transformer import Beam, LanguageModel
from keras_transformer.cli.main import cli
from keras_transformer.export import (
    LiteRTOptions,
    SavedModelOptions,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.litert.stand_ins import StandIns
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass, SavedModelTranslator
from keras_transformer.models import ClassifierConfig, LanguageModelConfig, TextClassifier
from keras_transformer.pipelines import TextClassificationPipeline, TextGenerator
from keras_transformer.tasks.classification.pipeline import ClassificationCodec

PROMPTS = ["in 3", "after 12 hours", "", "in 17 weeks and 3", "Monday", "for 5 days"] * 3
TEXTS = ["in 3 days", "after 12 hours and 30 minutes", "weeks", "", "Grüße aus Köln", "x " * 40]
LABELS = ("bad", "so so", "good")
SIZES = {
    "num_layers": 1,
    "d_model": 24,
    "d_ff": 40,
    "num_heads": 3,
    "max_length": 20,
    "dropout": 0.0,
}


@pytest.fixture(scope="module")
def tokenizer():
    return bpe_tokenizer()


def sizes(tokenizer):
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    return {"vocab_size": tokenizer.vocab_size, **ids, **SIZES}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param({"tie": "all"}, id="tied"),
        long({"tie": "none"}, id="untied"),
        long({"mixer": "lstm"}, id="lstm"),
    ],
)
def generator(request, tokenizer):
    options = {**sizes(tokenizer), "num_layers": 2, **request.param}
    config = LanguageModelConfig(**with_effect(LanguageModelConfig, **options))
    return TextGenerator(randomise(LanguageModel(config)), tokenizer)


@pytest.fixture(
    scope="module",
    params=["mean", pytest.param("attention", marks=[pytest.mark.slow, pytest.mark.long])],
)
def classifier(request, tokenizer):
    config = ClassifierConfig(
        **{**sizes(tokenizer), "num_layers": 2}, labels=LABELS, pooling=request.param
    )
    return TextClassificationPipeline(randomise(TextClassifier(config)), tokenizer)


@pytest.fixture(scope="module")
def exports():
    """Exports by kind, cached: pytest would make them again for each pair of parameters."""
    return {}


@pytest.fixture(scope="module")
def generator_files(generator, exports, tmp_path_factory):
    key = generator.model.config
    if key not in exports:
        exports[key] = export_generator(generator, tmp_path_factory.mktemp("generator"))
    return exports[key]


def export_generator(generator, folder):
    version = export_saved_model(generator, folder / "m", PROMPTS, SavedModelOptions(Beam(3)))
    file = export_litert(
        generator,
        folder / "m.tflite",
        PROMPTS,
        LiteRTOptions(lengths=[20], search=Beam(3), n_best=2),
    )
    return version, file


def prompt_ids(generator):
    return generator.encode(tf.constant(PROMPTS))[0]


@pytest.mark.long
@pytest.mark.slow
def test_files_of_a_language_model_generate_its_tokens(generator, generator_files):
    version, file = generator_files
    assert version["agreement"] == file["agreement"] == file["beam"]["agreement"] == 1.0
    source = prompt_ids(generator)
    greedy, scores = by_greedy(generator.model, source)
    beams, beam_scores = by_beam(generator.model, source, 3, 3)
    with SessionModel(version["path"]) as model:
        answer = model.run("tokens", source=source)
        np.testing.assert_array_equal(answer["tokens"], greedy)
        np.testing.assert_allclose(answer["score"], scores, rtol=1e-4, atol=1e-4)
        several = model.run("beam_tokens", source=source)
        np.testing.assert_array_equal(several["tokens"], beams)
        np.testing.assert_allclose(several["score"], beam_scores, rtol=1e-4, atol=1e-4)
    rows = [[token for token in row if token] for row in source.numpy().tolist()]
    tokens, _ = LiteRTTranslator(file["path"]).decode(rows)
    np.testing.assert_array_equal(tokens[:, 0], greedy)
    tokens, _ = LiteRTTranslator(file["path"], Beam(3)).decode(rows)
    np.testing.assert_array_equal(tokens, beams[:, :2])


@pytest.mark.long
@pytest.mark.slow
def test_texts_from_strings_begin_with_their_prompts(generator, generator_files):
    version, file = generator_files
    expected = [[output.text for output in row] for row in generator.n_best(PROMPTS, 2, Beam(3))]
    for loaded in (
        SavedModelTranslator(version["path"], Beam(3)),
        LiteRTTranslator(file["path"], Beam(3)),
    ):
        outputs = [[output.text for output in row] for row in loaded.n_best_batch(PROMPTS, 2)]
        assert outputs == expected and not loaded.blank
    for prompt, texts in zip(PROMPTS, expected, strict=True):
        assert all(text.startswith(prompt) for text in texts)
    assert expected[2][0], "an empty prompt begins a text"


@pytest.mark.long
@pytest.mark.slow
def test_a_wrong_weight_of_a_language_model_is_detected(tokenizer, tmp_path, monkeypatch):
    config = LanguageModelConfig(**sizes(tokenizer))
    generator = TextGenerator(randomise(LanguageModel(config)), tokenizer)
    right = StandIns.copy

    def disturbed(*arguments):
        copy = right(*arguments)
        table = copy.embedding.table
        table.assign(table.numpy() + np.eye(*table.shape) * 0.5)
        return copy

    monkeypatch.setattr(StandIns, "copy", disturbed)
    with pytest.raises(ExportError, match="differ from those of the model in memory"):
        export_litert(generator, tmp_path / "x.tflite", PROMPTS, LiteRTOptions(lengths=[20]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_forced_tokens_do_not_hide_a_wrong_score(generator):
    """Masked logits do not affect the allowed rounding error."""
    from keras_transformer.export.scorer import Scorer

    source = [row[row > 0].tolist() for row in prompt_ids(generator).numpy()]
    rows = by_greedy(generator.model, prompt_ids(generator))[0].numpy()
    tokens = [tuple(row[row > 0]) for row in rows]
    for reading in Scorer(generator).read(source, tokens):
        assert reading.rounding < 1e-3


@pytest.fixture(scope="module")
def classifier_files(classifier, exports, tmp_path_factory):
    key = classifier.model.config
    if key not in exports:
        exports[key] = export_classifier(classifier, tmp_path_factory.mktemp("classifier"))
    return exports[key]


def export_classifier(classifier, folder):
    texts = [*TEXTS, "in 5 weeks"]
    version = export_saved_model(classifier, folder / "m", texts)
    files = {
        quantize: export_litert(
            classifier,
            folder / f"{quantize}.tflite",
            texts,
            LiteRTOptions(quantize, batch_sizes=(1, 3)),
        )
        for quantize in ("none", "float16", "int8")
    }
    return version, files


@pytest.mark.slow
def test_files_of_a_classifier_give_its_probabilities(classifier, classifier_files):
    version, files = classifier_files
    expected = classifier.classify(TEXTS)
    probabilities = np.stack([output.probabilities for output in expected])
    assert expected[-1].truncated and not expected[0].truncated
    ids = classifier.codec.encode(tf.constant(TEXTS))[0]["source"]
    with SessionModel(version["path"]) as model:
        for answer in (
            model.run("serving_default", sentences=TEXTS),
            model.run("tokens", source=ids),
        ):
            np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-5)
            assert [label.decode() for label in answer["label"]] == [e.label for e in expected]
            np.testing.assert_allclose(answer["probability"], probabilities.max(axis=1), atol=1e-5)
    loaded = (SavedModelSinglePass(version["path"]), LiteRTSinglePass(files["none"]["path"]))
    for program in loaded:
        answers = program.answer_batch(TEXTS)
        assert [(f.label, f.truncated) for f in answers] == [
            (e.label, e.truncated) for e in expected
        ]
        np.testing.assert_allclose([f.probabilities for f in answers], probabilities, atol=1e-5)
    assert files["int8"]["bytes"] < files["float16"]["bytes"] < files["none"]["bytes"]
    assert set(files["none"]["signatures"]) == {
        f"classify_{batch}x{length}" for batch in (1, 3) for length in (16, 20)
    }


@pytest.mark.slow
def test_rows_of_wrong_ids_have_no_probability_and_do_not_affect_others(classifier_files):
    _, files = classifier_files
    loaded = LiteRTSinglePass(files["none"]["path"])
    right = loaded.tokenizers.source.encode(["in 3 days"]).to_list()[0]
    good = [*right, *[0] * (16 - len(right))]
    for wrong in ([*right[:-1], *[0] * (17 - len(right))], [9999, 3, *[0] * 14], [0] * 16):
        answer = loaded.run_signature(
            "classify_3x16", source=np.array([good, wrong, good], np.int32)
        )
        np.testing.assert_array_equal(answer["probabilities"][1], 0)
        assert answer["label"][1] == -1
        alone = loaded.run(source=np.array([right] * 2))["probabilities"]
        np.testing.assert_allclose(answer["probabilities"][::2], alone, atol=1e-6)


@pytest.mark.slow
def test_a_request_of_wrong_ids_is_an_error(classifier_files):
    version, _ = classifier_files
    with SessionModel(version["path"]) as model:
        for wrong in ([[7, 8]], [[7] * 30 + [3]], [[10**6, 3]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="`source` must"):
                model.run("tokens", source=np.array(wrong, np.int32))


@pytest.mark.long
@pytest.mark.slow
def test_a_classifier_with_different_answers_is_not_kept(classifier, tmp_path, monkeypatch):
    before = classifier.model.get_weights()

    def disturbed(self, texts, *arguments, **options):
        results = genuine(self, texts, *arguments, **options)
        classifier.model.set_weights([weight * 0.9 for weight in before])
        return results

    genuine = TextClassificationPipeline.answer
    monkeypatch.setattr(TextClassificationPipeline, "answer", disturbed)
    try:
        for export, place in ((export_saved_model, "m"), (export_litert, "x.tflite")):
            classifier.model.set_weights(before)
            with pytest.raises(ExportError, match="a probability differs .* not kept"):
                export(classifier, tmp_path / place, TEXTS)
        assert list(tmp_path.iterdir()) == []
    finally:
        classifier.model.set_weights(before)


CODEC = ClassificationCodec(bpe_tokenizer(), 20, LABELS)


def result(probabilities, truncated=False):
    outputs = {"probabilities": tf.constant([probabilities], tf.float32)}
    answers = CODEC.answers(outputs, {"truncated": tf.constant([truncated])})
    return CODEC.results({name: value.numpy() for name, value in answers.items()})[0]


def test_the_comparison_of_a_classifier():
    ours = [result([0.2, 0.5, 0.3]), result([0.40003, 0.4, 0.19997])]

    def agreement(*quantize, **options):
        return AnswerAgreement(CODEC, ["a", "b"], ours, Limits(*quantize, **options))

    judge = agreement().judge
    report = judge([ours[0], result([0.4, 0.40003, 0.19997])], "x")  # a tie
    assert report["identical"] == 1 and report["differences"][0]["found"] == "so so"
    with pytest.raises(ExportError, match="x: a probability differs .* by 0.1"):
        judge([result([0.1, 0.6, 0.3]), ours[1]], "x")
    with pytest.raises(ExportError, match="by nan"):
        judge([result([np.nan, 0.6, 0.3]), ours[1]], "x")
    with pytest.raises(ExportError, match="only one of the two models read all of 'b'"):
        judge([ours[0], result([0.40003, 0.4, 0.19997], True)], "x")
    other_names = dataclasses.replace(ours[0], label="good")
    with pytest.raises(ExportError, match="x: 'a' became 'good', not 'so so'"):
        judge([other_names, ours[1]], "x")
    worse = [result([0.2, 0.45, 0.35]), result([0.3, 0.5, 0.2])]
    right = {"references": ["so so", "bad"], "max_score_loss": 1}
    report = agreement("int8", **right, max_loss=60).judge(worse, "x")
    assert report["accuracy"] == {"in_memory": 100.0, "exported": 50.0, "difference": -50.0}
    expected = (abs(np.log(0.45 / 0.5)) + abs(np.log(0.3 / 0.40003))) / 2
    assert report["score_error"] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ExportError, match="the accuracy falls from 100.0 to 50.0"):
        agreement("int8", **right).judge(worse, "x")
    limited = r"off by 0.2 nats on average, .* 0.1 is allowed \(`--max-score-loss`\)"
    with pytest.raises(ExportError, match=limited):
        agreement("int8").judge(worse, "x")
    with pytest.raises(ExportError, match="50.0 % of the answers .* requires 90 %"):
        agreement("int8", min_agreement=0.9, max_score_loss=1).judge(worse, "x")


@pytest.mark.long
@pytest.mark.slow
def test_a_file_of_another_task_is_reported(classifier_files, generator_files):
    version, files = classifier_files
    with pytest.raises(ValueError, match="none.tflite holds a model for classification"):
        LiteRTTranslator(files["none"]["path"])
    with pytest.raises(ValueError, match="holds a model for classification"):
        SavedModelTranslator(version["path"])
    version, file = generator_files
    with pytest.raises(ValueError, match="holds a model for language_modelling"):
        LiteRTSinglePass(file["path"])
    with pytest.raises(ValueError, match="holds a model for language_modelling"):
        SavedModelSinglePass(version["path"])


@pytest.mark.long
@pytest.mark.slow
def test_predict_opens_the_files(
    classifier, classifier_files, generator, generator_files, tmp_path
):
    lines = tmp_path / "in.txt"
    lines.write_text("\n".join(TEXTS) + "\n")

    def predict(model, *options):
        arguments = ["predict", str(model), "--input", str(lines), *options]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout.splitlines()

    version, files = classifier_files
    labels = [
        "" if not text else label for text, label in zip(TEXTS, classifier(TEXTS), strict=True)
    ]
    assert predict(version["path"]) == predict(files["none"]["path"]) == labels
    version, file = generator_files
    texts = generator(TEXTS, Beam(3))
    assert predict(version["path"]) == predict(file["path"], "--beam", "3") == texts
    done = CliRunner().invoke(cli, ["predict", files["none"]["path"], "--beam", "3"])
    assert done.exit_code == 2 and "--beam has no effect on" in done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_the_metadata_name_the_task(classifier_files, generator_files):
    version, files = classifier_files
    assert LiteRTSinglePass(files["none"]["path"]).metadata["labels"] == list(LABELS)
    folder = pathlib.Path(version["path"])
    readme = (folder / "README.md").read_text()
    assert "`so so`" in readme and json.dumps(TEXTS[0]) in readme
    assert (folder / "assets.extra").is_dir()
    _, file = generator_files
    assert LiteRTTranslator(file["path"]).metadata["task"] == "language_modelling"
