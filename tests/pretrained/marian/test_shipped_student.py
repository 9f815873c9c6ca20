"""The student that Marian trained, in every runtime and trained further.

It covers the files that users get.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.export import (
    LiteRTOptions,
    OnnxOptions,
    SavedModelOptions,
    export_litert,
    export_marian,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.run import Run
from keras_transformer.training.converted import write_converted
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

pytestmark = pytest.mark.slow
LIMIT = 64  # maximum length; the output of one of the first 40 sentences never ends
BEAM = Beam(4, 0.6, normalization="power", stopping="narrow")


@pytest.fixture(scope="module")
def run(student, tmp_path_factory):
    checkpoint = read_checkpoint(
        student.folder / "model.npz", vocabularies=[student.folder / "vocab.spm"]
    )
    return write_converted(checkpoint, tmp_path_factory.mktemp("student") / "run").path


@pytest.fixture(scope="module")
def translator(run):
    return Translator.from_run(run, max_length=LIMIT)


@pytest.fixture(scope="module")
def sentences(student):
    return [text for text, *_ in student.greedy[:40]]


@pytest.mark.long
def test_a_saved_model_in_a_session(translator, sentences, tmp_path):
    report = export_saved_model(
        translator, tmp_path / "m", sentences, SavedModelOptions(search=BEAM)
    )
    assert report["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "m/1"))
        signature = meta.signature_def["serving_default"]
        name = next(iter(signature.inputs.values())).name
        outputs = signature.outputs["translation"].name
        texts = session.run(outputs, {name: [text.encode() for text in sentences]})
    assert [text.decode() for text in texts] == translator(sentences, search=BEAM)


@pytest.mark.long
def test_a_tflite_file(translator, sentences, tmp_path):
    report = export_litert(
        translator, tmp_path / "m.tflite", sentences, LiteRTOptions(lengths=[LIMIT])
    )
    assert report["agreement"] == 1
    loaded = LiteRTTranslator(tmp_path / "m.tflite")
    texts = [best.text for best in loaded.answer_batch(sentences)]
    assert texts == translator(sentences)


@pytest.mark.long
@pytest.mark.parametrize("search", [Greedy(), BEAM], ids=["greedy", "beam"])
def test_an_onnx_file_gives_marians_tokens_and_scores(run, student, tmp_path, search):
    """The best output of 50 sentences; a beam ranks by Marian's normalised score."""
    translator = Translator.from_run(run, max_length=128)
    rows = student.greedy[::4] if search == Greedy() else student.beam[::16]
    assert len(rows) == 50
    texts = [text for text, *_ in rows]
    export_onnx(translator, tmp_path / "m.onnx", texts[:4], OnnxOptions(search=search))
    loaded = OnnxTranslator(OnnxModel(tmp_path / "m.onnx"))
    ids, target = translator.source_tokenizer.encode(texts).to_list(), translator.target_tokenizer
    special = translator.model.config.tokens
    for (_, expected, *scores), tokens, score in zip(rows, *loaded.decode(ids), strict=True):
        emitted = tokens[0][tokens[0] != special.pad_id].tolist()
        words = [token for token in emitted if token != special.eos_id]
        assert " ".join(target.pieces(words)) == expected
        assert abs(score[0] - float(scores[-1])) < 1e-4 * len(emitted)


@pytest.mark.long
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_exports_end_an_output_where_marian_ends_it(run, student, tmp_path, quantize):
    """Marian cuts one output, after three times the 34 tokens of its source."""
    longest = 112
    whole = Translator.from_run(run, max_length=longest)
    (endless,) = (row for row in student.greedy if len(row[1].split(" ")) == 102)
    samples = [endless[0], *(text for text, *_ in student.greedy[:3])]
    options = {"lengths": [longest], "batch_sizes": [2]}
    report = export_litert(
        whole, tmp_path / "m.tflite", samples, **asked(LiteRTOptions, quantize, **options)
    )
    assert report["sentences"] == 4
    exported = [LiteRTTranslator(tmp_path / "m.tflite")]
    if quantize == "none":
        assert report["agreement"] == 1
        export_saved_model(whole, tmp_path / "m", samples)
        exported.append(SavedModelTranslator(tmp_path / "m"))
        for loaded in exported:
            texts = [best.text for best in loaded.answer_batch(samples)]
            assert texts == whole(samples)
    ids = whole.source_tokenizer.encode(samples).to_list()
    tokens, _ = exported[0].decode(ids)
    counts = np.count_nonzero(tokens[:, 0] != whole.model.config.tokens.pad_id, axis=1)
    assert counts[0] == 102 == 3 * len(ids[0]) and counts.max() == 102


@pytest.mark.long
def test_int8_is_a_quarter_and_passes_its_check(translator, sentences, tmp_path):
    sizes = {
        quantize: export_litert(
            translator,
            tmp_path / f"{quantize}.tflite",
            sentences,
            LiteRTOptions(quantize, lengths=[LIMIT]),
        )["bytes"]
        for quantize in ("none", "int8")
    }
    assert sizes["int8"] < 0.4 * sizes["none"]  # measured: 0.35; both files contain the vocabulary


@pytest.mark.long
def test_it_can_be_trained_further_and_exported_to_marian(
    run, translator, sentences, data_dir, tmp_path
):
    """The loss of 100 pairs that it does not know falls, whatever their quality."""
    for code in ("en", "de"):
        lines = (data_dir / "multi30k" / f"val.{code}").read_text("utf-8").splitlines()[:100]
        (tmp_path / f"pairs.{code}").write_text("\n".join(lines) + "\n", "utf-8")
    config = tmp_path / "tune.toml"
    config.write_text(
        f'[model]\nstart_from = "{run}"\ndropout = 0.0\n'
        '[data]\nsource = "text"\nmax_length = 60\nbatch_tokens = 1000\n'
        'train_source = "pairs.en"\ntrain_target = "pairs.de"\n'
        'validation_source = "pairs.en"\nvalidation_target = "pairs.de"\n'
        '[schedule]\nkind = "linear"\nwarmup_steps = 10\npeak = 0.001\n'
        "[training]\nupdates = 40\nvalidate_every = 40\ncheckpoint_every = 40\n"
        "label_smoothing = 0.0\nvalidate_sentences = 0\n"
    )
    pairs = [(tmp_path / f"pairs.{code}").read_text("utf-8").splitlines() for code in ("en", "de")]

    def loss(model):
        return -sum(result.score for result in model.score(*pairs))

    train(load_settings(config), tmp_path / "tuned")
    tuned = Translator.from_run(tmp_path / "tuned", max_length=LIMIT)
    assert loss(tuned) < 0.8 * loss(translator)
    fields = {"dropout": 0.0}
    assert tuned.model.config == dataclasses.replace(translator.model.config, **fields)
    assert Run(tmp_path / "tuned").read_origin() == Run(run).read_origin() != {}
    report = export_marian(tuned, tmp_path / "back", sentences)
    assert report["agreement"] == 1
