"""An .onnx file of a model that generates text gives the outputs of the model in memory."""

import numpy as np
import pytest
import tensorflow as tf
from onnx_files import PAD, RIGHT, inputs_of, wrong_rows
from searching import by_beam, by_greedy

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.export import ExportError, OnnxOptions, export_onnx
from keras_transformer.export.onnx.model import OnnxModel

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

BEAM = Beam(3, length_penalty=0.6)
LIMIT = 20  # maximum output length of the model


@pytest.fixture(scope="module")
def greedy_file(translator, sentences, tmp_path_factory):
    """The path and the report of a file with greedy search."""
    path = tmp_path_factory.mktemp("onnx") / "greedy.onnx"
    return path, export_onnx(translator, path, sentences, OnnxOptions(license="CC0-1.0"))


@pytest.fixture(scope="module")
def beam_file(translator, sentences, tmp_path_factory):
    """The path and the report of a file with a beam."""
    path = tmp_path_factory.mktemp("onnx") / "beam.onnx"
    return path, export_onnx(translator, path, sentences, OnnxOptions(search=BEAM, n_best=2))


@pytest.fixture(params=["greedy", "beam"])
def file(request):
    return request.getfixturevalue(f"{request.param}_file")[0]


def test_the_report_states_what_was_written_and_checked(greedy_file, sentences):
    path, report = greedy_file
    assert report["path"] == str(path) and report["bytes"] == path.stat().st_size
    assert (report["sentences"], report["agreement"]) == (len(sentences), 1.0)
    assert report["quantize"] == "none" and report["opset"] >= 17
    assert [file.name for file in path.parent.iterdir()] == ["greedy.onnx"]


def test_answers_are_those_of_the_model(greedy_file, translator, sentences):
    """Also for an empty sentence, and one that is truncated."""
    loaded = keras_transformer.open(greedy_file[0])
    ours, theirs = loaded.answer(sentences), translator.answer(sentences)
    assert len({answer.text for answer in theirs}) > 25 and theirs[-2].text == ""
    assert [(a.text, a.truncated, a.complete) for a in ours] == [
        (b.text, b.truncated, b.complete) for b in theirs
    ]
    np.testing.assert_allclose([a.score for a in ours], [b.score for b in theirs], atol=1e-4)


def test_every_hypothesis_is_that_of_the_model(beam_file, translator, sentences):
    """With the settings of the file, and with others that are inputs of the graph."""
    loaded = keras_transformer.open(beam_file[0])
    assert loaded.search == BEAM and loaded.max_outputs == 2
    penalised = set()
    for penalty, limit in ((0.6, None), (0.0, None), (1.2, 4)):
        search = Beam(3, length_penalty=penalty, max_length=limit)
        ours = loaded.n_best(sentences, 2, search)
        theirs = translator.n_best(sentences, 2, search)
        texts = [[[answer.text for answer in row] for row in side] for side in (ours, theirs)]
        assert texts[0] == texts[1]
        scores = [[answer.score for row in side for answer in row] for side in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-4)
        penalised.add(str(texts[0]) + str(scores[0]))
    assert len(penalised) == 3


def test_the_graph_returns_the_tokens_of_the_search(file, translator):
    """In a batch, alone, and with more padding."""
    model = OnnxModel(file)
    outputs = model.run(**inputs_of(model, RIGHT))
    inputs = inputs_of(model, RIGHT)
    if "length_penalty" in inputs:
        settings = {"length_penalty": 1.0, "max_length": LIMIT, "n_best": 2}
        tokens, scores = by_beam(translator.model, inputs["source"], 3, **settings)
        assert outputs["tokens"].shape == (3, 2, LIMIT)
    else:
        tokens, scores = by_greedy(translator.model, inputs["source"])
        assert outputs["tokens"].shape == (3, LIMIT)
    np.testing.assert_array_equal(outputs["tokens"], tokens)
    np.testing.assert_allclose(outputs["score"], scores, atol=1e-4)
    np.testing.assert_array_equal(outputs["length"], (outputs["tokens"] != PAD).sum(-1))
    wide = model.run(**inputs_of(model, RIGHT, width=11))
    for number, row in enumerate(RIGHT):
        alone = model.run(**inputs_of(model, [row], width=len(row)))
        for name, other in (*((key, alone[key][0]) for key in alone), *()):
            np.testing.assert_allclose(outputs[name][number], other, atol=1e-4)
            np.testing.assert_allclose(wide[name][number], other, atol=1e-4)


def test_an_invalid_row_gets_nothing_and_does_not_affect_the_others(file, translator):
    model = OnnxModel(file)
    expected = model.run(**inputs_of(model, RIGHT))
    wrong = wrong_rows(translator.source_tokenizer.vocab_size)
    outputs = model.run(**inputs_of(model, [*wrong, *RIGHT]))
    count = len(wrong)
    assert (outputs["tokens"][:count] == PAD).all() and (outputs["length"][:count] == 0).all()
    assert (outputs["score"][:count] == np.float32(-1e9)).all() and outputs["complete"][
        :count
    ].all()
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name][count:], values, atol=1e-4)


def test_the_file_states_its_search_and_its_license(greedy_file, beam_file):
    greedy, beam = (OnnxModel(path).metadata for path, _ in (greedy_file, beam_file))
    lengths = {"max_length": None, "max_length_ratio": None}
    assert greedy["search"] == {"search": "greedy", **lengths, "repetition_penalty": 1.0}
    assert (beam["search"]["size"], beam["n_best"]) == (3, 2)
    assert greedy["license"] == "CC0-1.0" and greedy["agreement"]["agreement"] == 1.0
    assert greedy["tokens"] == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}


def test_names_and_shapes_are_those_of_the_documentation(greedy_file, beam_file):
    for (path, _), inputs in (
        (greedy_file, {"source"}),
        (beam_file, {"source", "max_length", "length_penalty"}),
    ):
        model = onnx.load(path)
        tensors = {tensor.name: tensor.type.tensor_type for tensor in model.graph.input}
        assert tensors.keys() == inputs
        outputs = {tensor.name for tensor in model.graph.output}
        assert outputs == {"tokens", "score", "length", "complete"}
        source = tensors["source"]
        assert source.elem_type == onnx.TensorProto.INT32
        assert not any(axis.HasField("dim_value") for axis in source.shape.dim)
        assert {opset.domain for opset in model.opset_import} <= {"", "ai.onnx"}
        onnx.checker.check_model(model, full_check=True)


def test_a_search_that_the_file_does_not_have_is_refused(greedy_file, beam_file):
    greedy, beam = (keras_transformer.open(path) for path, _ in (greedy_file, beam_file))
    assert greedy.with_search(Greedy()).search == Greedy()
    with pytest.raises(ValueError, match=r"for greedy search only. Export it again with --beam 2"):
        greedy.with_search(Beam(2))
    with pytest.raises(ValueError, match="`max_length` of the greedy search of .* is None, which"):
        greedy.with_search(Greedy(max_length=4))
    with pytest.raises(
        ValueError, match="for a beam of size 3 only. Export it again with --beam 4"
    ):
        beam.with_search(Beam(4))
    with pytest.raises(ValueError, match="for a beam of size 3 only. .* with --greedy"):
        beam.with_search(Greedy())
    with pytest.raises(ValueError, match="`min_length` of the beam of .* is 1, which is fixed in"):
        beam.with_search(Beam(3, min_length=2))
    with pytest.raises(
        ValueError, match='`normalization` of a beam in an .onnx file must be "gnmt"'
    ):
        beam.with_search(Beam(3, normalization="average"))


def test_ids_that_are_not_a_source_are_refused(greedy_file):
    loaded = keras_transformer.open(greedy_file[0])
    with pytest.raises(ValueError, match="one pair of languages that was exported with --alignme"):
        loaded.align(["in 3 weeks"])
    with pytest.raises(ValueError, match=r"`sources\[1\]` does not end in eos_id"):
        loaded.decode([[7, 3], [7]])
    with pytest.raises(ValueError, match=r"`sources\[0\]` has 21 tokens .* takes at most 20"):
        loaded.decode([[7] * 20 + [3]])
    tokens, scores = loaded.decode([])
    assert tokens.shape == (0, 1, LIMIT) and scores.shape == (0, 1)


def test_a_file_with_other_answers_is_not_kept(light, tmp_path, monkeypatch):
    """The graph is written with a weight that differs from the model's."""
    from keras_transformer.export.onnx import generated

    copy_pipeline = generated.copy_pipeline

    def disturbed(pipeline, kernels):
        copy = copy_pipeline(pipeline, kernels)
        table = copy.model.target_embedding.table
        table.assign(table + tf.eye(*table.shape))
        return copy

    monkeypatch.setattr(generated, "copy_pipeline", disturbed)
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x08an older file")
    with pytest.raises(ExportError, match="x.onnx: .* outputs differ from those of the model"):
        export_onnx(light, path, ["in 3 weeks", "after 7 days"])
    assert path.read_bytes() == b"\x08an older file"
