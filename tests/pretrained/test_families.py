"""Every family of checkpoints, one row each: read, compared, saved, reopened and exported.

A new family is a file in `keras_transformer/pretrained/families/` and a row of this table.
"""

import ast
import contextlib
import pathlib

import bert_folders
import bert_in_numpy
import dinov2_folders
import distilbert_folders
import distilbert_in_numpy
import electra_folders
import encoder_folders
import encoders_in_numpy
import gpt2_folders
import llama_folders
import marian_in_numpy
import marian_models
import numpy as np
import opus_folders
import pytest
import roberta_folders
import seq2seq_folders
import t5_folders
import t5_in_numpy
import unigram_folders
import vit_folders
import whisper_folders
from marian_reference import Marian
from marks import long, slow_except

from keras_transformer import from_pretrained
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.pretrained import families as package
from keras_transformer.pretrained.families import bert
from keras_transformer.pretrained.family import families
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

ROOT = pathlib.Path(__file__).parents[2]


def opus_mt(folder):
    """Returns a checkpoint, an example, and a function that compares a model to the reference."""
    settings, tensors = opus_folders.write_folder(folder)

    def compare(model):
        source = opus_folders.random_tokens(settings, (7, 3))
        target = opus_folders.random_tokens(settings, (4, 5), 1)
        expected = marian_in_numpy.forward(tensors, settings, source, target)[1]
        ours = model({"source": source, "target": target}, training=False)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)

    return folder, "a dog runs", compare


def marian(folder):
    options = marian_models.settings()
    folder.mkdir()
    write_npz(folder / "model.npz", marian_models.arrays(options))
    (folder / "vocab.spm").write_bytes(marian_models.vocabulary(options["dim-vocabs"][0]))

    def compare(model):
        reference = Marian(marian_models.arrays(options), options, np.float64)
        target = [model.config.tokens.bos_id, 5, 9]
        inputs = {"source": np.array([[7, 8, 0]]), "target": np.array([target])}
        logits = model(inputs, training=False).numpy()[0].astype("float64")
        ours = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        heads, state = reference.begin([7, 8, 0])
        for index, last in enumerate([None, *target[1:]]):
            expected, state = reference.step(last, index, heads, state)
            np.testing.assert_allclose(ours[index, : len(expected)], expected, atol=2e-5, rtol=0)

    return folder / "model.npz", " ".join(marian_models.WORDS[:3]), compare


def bert_of_labels(folder):
    settings, tensors = bert_folders.write_folder(folder)

    def compare(model):
        ids, types = bert_folders.random_rows(settings)
        expected = bert_in_numpy.forward(tensors, settings, ids, types)[1]
        np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

    return folder, "the film is good", compare


def distilbert(folder):
    settings, tensors = distilbert_folders.write_folder(folder)

    def compare(model):
        ids, _ = bert_folders.random_rows(settings)
        expected = distilbert_in_numpy.forward(tensors, settings, ids)[1]
        np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

    return folder, "the film is good", compare


def of_images(folders=vit_folders, **changes):
    def write(folder):
        settings, tensors = folders.write_folder(folder, **changes)
        images = vit_folders.images_of({**settings, "image_size": 12})

        def compare(model):
            expected = folders.forward(tensors, settings, images)[1]
            ours = model(images.astype("float32"), training=False)
            np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)

        return folder, images[0], compare

    return write


def roberta(folder):
    settings, tensors = roberta_folders.write_folder(folder)

    def compare(model):
        ids = roberta_folders.random_rows(settings)
        expected = roberta_folders.forward(tensors, settings, ids)[1]
        np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

    return folder, "the film is good", compare


def unigram(family):
    def write(folder):
        settings, tensors = unigram_folders.write_folder(folder, family)

        def compare(model):
            ids = roberta_folders.random_rows(settings)
            ids[ids == 0] = settings["bos_token_id"]
            expected = roberta_folders.forward(tensors, settings, ids)[1]
            np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

        return folder, "the film is good", compare

    return write


def electra(folder):
    settings, tensors = electra_folders.write_folder(folder)

    def compare(model):
        ids, types = bert_folders.random_rows(settings)
        expected = electra_folders.forward(tensors, settings, ids, types)[1]
        np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

    return folder, "the film is good", compare


def encoder(family):
    """Returns the row of a family of `encoder_folders`."""

    def row(folder):
        settings, tensors = encoder_folders.write_folder(folder, family)

        def compare(model):
            ids, types = encoder_folders.random_rows(settings)
            expected = encoders_in_numpy.forward(tensors, settings, ids, types)[1]
            np.testing.assert_allclose(model(ids, training=False), expected, rtol=0, atol=1e-5)

        return folder, "the film is good", compare

    return row


def gpt2(folder):
    settings, tensors = gpt2_folders.write_folder(folder)

    def compare(model):
        ids = gpt2_folders.random_rows(settings)
        expected = gpt2_folders.forward(tensors, settings, ids)
        logits = model(ids, training=False)[..., :-1]
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4)

    return folder, "the film", compare


def of_llama(kind):
    """Returns the row of a kind of `llama_folders`."""

    def row(folder):
        settings, tensors = llama_folders.write_folder(folder, kind)

        def compare(model):
            ids = llama_folders.random_rows(settings)
            pattern = llama_folders.KINDS[kind]["pattern"]
            expected = llama_folders.forward_of_texts(tensors, settings, ids, pattern)[1]
            logits = model(ids, training=False)[..., :-1]
            np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4)

        return folder, "the film", compare

    return row


def of_bart(name):
    """Returns the row of a kind of `seq2seq_folders`."""

    def row(folder):
        settings, tensors = seq2seq_folders.write_folder(folder, name)

        def compare(model):
            source = seq2seq_folders.random_sources(settings, model)
            start = settings["decoder_start_token_id"]
            target = opus_folders.random_tokens(settings, (4, 5, 2), 1, start=start)
            read, begun = np.asarray(model.read_source(source)), target.copy()
            if model.config.head.rules.language_codes == "start":
                begun[:, 0] = source[:, 0]
            expected = marian_in_numpy.forward(tensors, settings, read, begun)[1]
            ours = model({"source": source, "target": target}, training=False)
            np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)

        return folder, "a dog runs", compare

    return row


def t5(folder, **changes):
    settings, tensors = t5_folders.write_folder(folder, **changes)

    def compare(model):
        source = opus_folders.random_tokens(settings, (7, 3))
        target = opus_folders.random_tokens(settings, (4, 5), 1, start=0)
        expected = t5_in_numpy.forward(tensors, settings, source, target)[1]
        ours = model({"source": source, "target": target}, training=False)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)

    return folder, "a dog runs", compare


def whisper(folder):
    settings, tensors = whisper_folders.write_folder(folder)
    shape = 2, 2 * settings["max_source_positions"], settings["num_mel_bins"]
    frames = np.random.default_rng(0).normal(size=shape).astype("float32")

    def compare(model):
        target = np.array([[5, 17, 3], [8, 2, 99]])
        expected = whisper_folders.forward(tensors, settings, frames, target)[1]
        ours = model({"source": frames, "target": target}, training=False)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)

    return folder, np.sin(np.arange(2000) / 5).astype("float32"), compare


ROWS = {
    "opus-mt": opus_mt,
    "m2m-100": of_bart("nllb"),
    "mbart": of_bart("mbart50"),
    "t5": t5,
    "mt5": lambda folder: t5(folder, model_type="mt5", **t5_folders.UNTIED),
    "bart": of_bart("bart"),
    "pegasus": of_bart("pegasus"),
    "marian": marian,
    "bert": bert_of_labels,
    "distilbert": distilbert,
    "vit": of_images(),
    "deit": of_images(
        model_type="deit",
        architectures=[vit_folders.TEACHER],
        preprocessor={**vit_folders.PREPROCESSOR, "do_center_crop": False},
    ),
    "dinov2": of_images(dinov2_folders),
    "dinov2_with_registers": of_images(dinov2_folders, **dinov2_folders.REGISTERS),
    "roberta": roberta,
    "gpt2": gpt2,
    "llama": of_llama("llama3"),
    "qwen2": of_llama("qwen2"),
    "qwen3": of_llama("qwen3"),
    "mistral": of_llama("mistral"),
    "xlm-roberta": unigram("xlm-roberta"),
    "camembert": unigram("camembert"),
    **{family: encoder(family) for family in encoder_folders.CLASSES},
    "electra": electra,
    "whisper": whisper,
}


def test_every_family_has_a_row():
    assert {family.name for family in families()} == {*ROWS}


def assert_documented(name, checkpoint, pipeline, run):
    """Fails unless the table of the documentation has the task and the exports of a checkpoint."""
    (family,) = [family for family in families() if family.name == name]
    assert checkpoint.task in {task for tasks in family.kinds().values() for task in tasks}
    accepted = set()
    for kind, form in FORMATS.items():
        with contextlib.suppress(ExportError):
            form.check(pipeline)
            form.check_run(run, form.options())
            accepted.add(kind)
    assert accepted == {"saved-model", "litert", "onnx", *family.listing.exports}


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_except(ROWS, "whisper", mark=long))
def test_a_checkpoint_becomes_a_run_that_computes_the_same(name, tmp_path):
    path, example, compare = ROWS[name](tmp_path / "checkpoint")
    checkpoint = read_checkpoint(path)
    assert checkpoint.origin["format"] == name
    compare(checkpoint.model)
    run = write_converted(checkpoint, tmp_path / "run")
    pipeline = open_run(run.path)
    assert_documented(name, checkpoint, pipeline, run)
    assert type(pipeline) is type(from_pretrained(path))
    compare(pipeline.model)
    assert pipeline([example]) == from_pretrained(path)([example])


def test_a_new_family_is_one_file(tmp_path, monkeypatch):
    """For example a family whose checkpoints only differ from BERT's in the name of their type."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new/robert.py").write_text(
        "from keras_transformer.pretrained.families.bert import Bert\n\n\n"
        "class Robert(Bert):\n    name = model_type = 'robert'\n"
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "new")])
    families.cache_clear()
    try:
        bert_folders.write_folder(tmp_path / "hf", model_type="robert")
        assert read_checkpoint(tmp_path / "hf").origin["format"] == "robert"
    finally:
        families.cache_clear()


def test_only_an_exporter_names_its_family():
    """The code that reads, fills, converts and opens checkpoints knows only the interface."""
    modules = {family.__module__ for family in families()}
    assert bert.__name__ in modules
    for path in [*(ROOT / "keras_transformer").rglob("*.py"), *(ROOT / "training").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.module in modules), path
