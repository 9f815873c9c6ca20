"""Encoder-decoders of other projects on the command line and in exports."""

import json
import random

import gpt2_folders
import madlad_folders
import pytest
import seq2seq_folders
import t5_folders
import tensorflow as tf
from click.testing import CliRunner

import keras_transformer
from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import CTranslate2Options, LiteRTOptions, export_onnx
from keras_transformer.export.ctranslate2.export import export_ctranslate2
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.export.ctranslate2.translator import CTranslate2TextGenerator
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.tasks.token_rows import checked_ids

SENTENCES = ["a dog runs", "seven dogs and", "hill", "the cat sat"]
RULES = {"no_repeat_ngram_size": 2, "forced_bos_token_id": 0, "forced_eos_token_id": 2}


def opened(folder, name):
    """Returns the pipeline of a checkpoint whose outputs depend on the source."""
    folder.mkdir()
    if name in ("t5", "madlad"):
        folders = t5_folders if name == "t5" else madlad_folders
        silent = {} if name == "t5" else {"bad_words_ids": [[0], [1]]}  # else it emits padding
        folders.write_folder(folder, max_length=10, seed=3, num_beams=2, **silent)
    else:
        rules = RULES if name == "bart" else {}
        seq2seq_folders.write_folder(folder, name, max_length=10, seed=3, num_beams=2, **rules)
    pipeline = from_pretrained(folder)
    if name == "madlad":  # which has no default
        pipeline = pipeline.with_languages(target="de")
    factors = {"query/kernel": 3, "cross_attention/output/kernel": 6, "table": 2}
    for weight in pipeline.model.weights:
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(factor * weight)
    return pipeline


@pytest.mark.slow
@pytest.mark.long
def test_languages_in_a_saved_model(tmp_path):
    german = opened(tmp_path / "hf", "nllb")
    french = german.with_languages(target="fra_Latn")
    assert german(SENTENCES) != french(SENTENCES)
    report = export_saved_model(german, tmp_path / "m", SENTENCES)
    assert report["agreement"] == 1 and "languages" in report["signatures"]
    for wanted, options in ((german, {}), (french, {"target_language": "fra_Latn"})):
        loaded = SavedModelTranslator(tmp_path / "m", **options)
        assert [best.text for best in loaded.answer_batch(SENTENCES)] == wanted(SENTENCES)
    loaded = SavedModelTranslator(tmp_path / "m", target_language="xyz")
    with pytest.raises(ValueError, match=r"`target_language` must be languages of the model, such"):
        loaded.answer_batch(["a"])
    mixed = loaded._model.signatures["languages"](
        sentences=tf.constant(SENTENCES[:2]),
        source_language=tf.constant(["", "eng_Latn"]),
        target_language=tf.constant(["fra_Latn", ""]),
    )["translation"].numpy()
    expected = [french(SENTENCES[:1])[0], german(SENTENCES[1:2])[0]]
    assert [text.decode() for text in mixed] == expected


@pytest.mark.slow
@pytest.mark.long
def test_target_languages_in_a_saved_model(tmp_path):
    german = opened(tmp_path / "hf", "madlad")
    french = german.with_languages(target="fr")
    assert german(SENTENCES) != french(SENTENCES)
    assert export_saved_model(german, tmp_path / "m", SENTENCES)["agreement"] == 1
    loaded = SavedModelTranslator(tmp_path / "m")
    assert loaded(SENTENCES) == german(SENTENCES)
    assert loaded.with_languages(target="fr")(SENTENCES) == french(SENTENCES)
    written = [f"<2fr> {line}" for line in SENTENCES]
    assert loaded(written) == loaded.with_languages(target="en")(written) == french(SENTENCES)
    with pytest.raises(ValueError, match=r"does not read the language of a source: `source_lang"):
        loaded.with_languages(source="en")
    page = (tmp_path / "m" / "1" / "README.md").read_text("utf-8")
    assert "sentence, `target_language`." in page and "its own code, such as <2ace>, " in page


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["m2m100", "nllb_legacy", "madlad", "bart", "t5"])
def test_a_tflite_file(name, tmp_path):
    pipeline = opened(tmp_path / "hf", name)
    path = tmp_path / "m.tflite"
    report = export_litert(pipeline, path, SENTENCES, LiteRTOptions(lengths=[pipeline.max_length]))
    assert report["agreement"] == report["beam"]["agreement"] == 1
    loaded = LiteRTTranslator(path)
    assert [best.text for best in loaded.answer_batch(SENTENCES)] == pipeline(SENTENCES)
    languages = pipeline.tokenizers.languages
    if languages is None:
        return
    assert loaded.metadata["languages"] == languages.ids
    assert loaded.metadata["target_language"] == languages.target
    other = [code for code in languages.ids if code != languages.target][2]
    before, own = loaded, pipeline(SENTENCES)
    loaded = loaded.with_languages(target=other)
    pipeline = pipeline.with_languages(target=other)
    assert [best.text for best in loaded.answer_batch(SENTENCES)] == pipeline(SENTENCES)
    assert before(SENTENCES) == own, "the object before is as it was"
    with pytest.raises(ValueError, match=r"does not begin with .* of the target language"):
        loaded.decode([[5, 6, 2]])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["m2m100", "nllb_legacy", "madlad", "bart", "t5"])
def test_an_onnx_file(name, tmp_path):
    """With the beam of the checkpoint; languages are chosen when it is opened."""
    pytest.importorskip("onnxruntime")
    pipeline, path = opened(tmp_path / "hf", name), tmp_path / "m.onnx"
    assert export_onnx(pipeline, path, SENTENCES)["agreement"] == 1
    loaded = keras_transformer.open(path)
    assert loaded.search == pipeline.search and isinstance(loaded.search, Beam)
    assert loaded(SENTENCES) == pipeline(SENTENCES)
    languages = pipeline.tokenizers.languages
    if languages is None:
        return
    assert loaded.metadata["languages"] == languages.ids
    other = [code for code in languages.ids if code != languages.target][2]
    other = {"target": other}
    assert loaded.with_languages(**other)(SENTENCES) == pipeline.with_languages(**other)(SENTENCES)


BEAM = Beam(4, normalization="average", extra_length=None)
RANDOM = random.Random(0)
WORDS = ["a", "the", "dog", "dogs", "cat", "cats", "sat", "on", "mat", "hill", "runs", "nine"]
MANY = [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 7))) for _ in range(100)]
FORCED = {"forced_bos_token_id": 0, "forced_eos_token_id": 2}
SILENT = {"bad_words_ids": [[0]], "renormalize_logits": True}  # else random models emit padding
CHECKPOINTS = {
    "m2m100": ("m2m100", {}),
    "nllb_legacy": ("nllb_legacy", {}),
    "mbart": ("mbart", {"forced_eos_token_id": 2}),
    "mbart_ngram": ("mbart", {"no_repeat_ngram_size": 3}),
    "mbart50": ("mbart50", {}),
    "bart": ("bart", FORCED),
    "bart_ngram": ("bart", {**FORCED, "no_repeat_ngram_size": 2}),
    "pegasus": ("pegasus", SILENT),
    "t5": ("t5", SILENT),
    "flan": ("t5", {**t5_folders.UNTIED, **SILENT}),
    "madlad": ("madlad", {"bad_words_ids": [[0], [1]], "renormalize_logits": True}),
    "gpt2": ("gpt2", {}),
}


def ending(folder, name):
    """Returns the pipeline of a checkpoint, of whose outputs some end before the limit."""
    kind, changes = CHECKPOINTS[name]
    folder.mkdir()
    if kind == "gpt2":
        gpt2_folders.write_folder(folder)
    elif kind in ("t5", "madlad"):
        folders = t5_folders if kind == "t5" else madlad_folders
        folders.write_folder(folder, max_length=20, seed=3, num_beams=2, **changes)
    else:
        options = {"max_length": 20, "seed": 3, "num_beams": 2, **changes}
        seq2seq_folders.write_folder(folder, kind, **options)
    pipeline = from_pretrained(folder)
    if kind == "madlad":  # which has no default
        pipeline = pipeline.with_languages(target="de")
    model, end = pipeline.model, pipeline.model.config.tokens.eos_id
    for weight in model.weights:
        if weight.path.endswith(("query/kernel", "cross_attention/output/kernel")):
            weight.assign(4 * weight)
    table = model.embeddings[-1].table
    values = table.numpy()
    values[end] *= 3
    table.assign(values)
    return pipeline


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_folder_for_ctranslate2(name, tmp_path):
    """The export compares greedy search and a beam with the run, token for token."""
    pytest.importorskip("ctranslate2")
    pipeline = ending(tmp_path / "hf", name)
    report = export_ctranslate2(pipeline, tmp_path / "m", MANY)
    assert report["agreement"] == 1 and report["score_difference"] < 1e-5
    is_renormalized = name.endswith("_ngram")
    assert report["beam_agreement"] in (1, None)
    assert not (is_renormalized and report["beam_sentences"])
    loaded = open_ctranslate2(tmp_path / "m")
    texts = [best.text for best in loaded.answer_batch(MANY)]
    assert texts == pipeline(MANY, search=pipeline.greedy) and len({*texts}) > 5
    assert isinstance(loaded, CTranslate2TextGenerator) == (name == "gpt2")
    if is_renormalized:
        with pytest.raises(
            ValueError, match=r"must be greedy for .* `no_repeat_ngram`, with which"
        ):
            open_ctranslate2(tmp_path / "m", BEAM)
    languages = pipeline.tokenizers.languages
    if languages is not None:
        other = [code for code in languages.ids if code != languages.target][1]
        before, loaded = loaded, loaded.with_languages(target=other)
        expected = pipeline.with_languages(target=other)(MANY, search=pipeline.greedy)
        assert [best.text for best in loaded.answer_batch(MANY)] == expected != texts
        assert before(MANY) == texts, "the object before is as it was"
    report = export_ctranslate2(
        pipeline, tmp_path / "q", MANY, CTranslate2Options("int8", max_score_loss=0.1)
    )
    assert abs(report["in_float32"]["score_loss"]) < 0.1


def test_ids_without_languages_are_refused(tmp_path):
    tokenizer = opened(tmp_path / "hf", "nllb").source_tokenizer
    ids = tokenizer.encode(["a dog"]).to_tensor()
    checked_ids(ids, tokenizer, 20)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must begin each row with the tok"):
        checked_ids(ids[:, 2:], tokenizer, 20)


@pytest.mark.long
@pytest.mark.slow
def test_the_command_line_chooses_languages(tmp_path):
    translator = opened(tmp_path / "hf", "nllb")  # the file has other weights
    command = ["convert", "hf", str(tmp_path / "hf"), str(tmp_path / "run")]
    done = CliRunner().invoke(cli, [*command, "--target-language", "deu"])
    assert done.exit_code == 1 and "must be one of the 4 languages" in done.output
    done = CliRunner().invoke(cli, [*command, "--target-language", "fra_Latn"])
    assert done.exit_code == 0, done.output
    table = json.loads((tmp_path / "run" / "source.ids.json").read_text())
    assert table["languages"]["target"] == "fra_Latn"
    command = ["translate", str(tmp_path / "run"), "--greedy"]
    options = ["--target-language", "ace_Arab"]
    lines = "\n".join(SENTENCES) + "\n"
    done = CliRunner().invoke(cli, [*command, *options], input=lines)
    assert done.exit_code == 0, done.output
    translator = from_pretrained(tmp_path / "hf").with_languages(target="ace_Arab")
    assert done.stdout.splitlines() == translator(SENTENCES, search=Greedy(8))
