"""An .onnx file with strings gives the answers of the model, in every process."""

import dataclasses
import importlib.util
import json
import sys

import numpy as np
import pytest
from pipelines import LINES, classifier, generator

import keras_transformer
from keras_transformer import Beam
from keras_transformer.decoding import Sample
from keras_transformer.export import ExportError, OnnxOptions, child_process, export_onnx
from keras_transformer.export.onnx import string_contents, string_proof
from keras_transformer.export.onnx.string_graph import with_strings
from keras_transformer.export.onnx.strings_runtime import OnnxStringTranslator
from keras_transformer.export.onnx.vocabularies import check_run, check_vocabulary
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
if importlib.util.find_spec("onnxruntime_extensions") is None:  # importing it is not safe here
    pytest.skip("needs onnxruntime-extensions", allow_module_level=True)

BEAM = Beam(3, length_penalty=0.6, extra_length=4)
UNUSUAL = [
    " ",
    "\u3000 \n",
    "in 17 \ue000 weeks",
    "in 17\0 weeks\0\0",
    "in 3 days \U0001f600",
    "E\u0301te\u0301 in 3 weeks",
    "\ufb01ve weeks",
    "▁in▁17 weeks▁",
    "<s> in 17 weeks </s> <pad>",
    "in 17 weeks " * 300,
]
# A program without this package and without TensorFlow.
PLAIN = """
import json, sys
import numpy as np, onnxruntime, onnxruntime_extensions
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
session = onnxruntime.InferenceSession(sys.argv[1], options)
names = [output.name for output in session.get_outputs()]
texts = [text.replace("\\0", "\\ue000") for text in json.loads(sys.argv[2])]
answer = dict(zip(names, session.run(None, {"text": np.array(texts, object)})))
assert not {name.partition(".")[0] for name in sys.modules} & {"keras_transformer", "tensorflow"}
print(json.dumps({name: values.tolist() for name, values in answer.items()}))
"""


@pytest.fixture(scope="module")
def write(translator, sentences, tmp_path_factory):
    """A function that writes a file with strings and returns its path, once for each search."""
    folder, paths = tmp_path_factory.mktemp("strings"), {}

    def write(name, **options):
        if name not in paths:
            path = folder / f"{name}.onnx"
            export_onnx(translator, path, sentences, OnnxOptions(tokenizer=True, **options))
            paths[name] = path
        return paths[name]

    return write


@pytest.fixture(scope="module")
def opened(write):
    return keras_transformer.open(write("greedy"))


def columns(answers):
    return [(answer.text, answer.truncated, answer.complete) for answer in answers]


def test_answers_are_those_of_the_model(opened, translator, sentences):
    """In a batch and alone, in a process that has loaded TensorFlow Text."""
    assert isinstance(opened, OnnxStringTranslator)
    texts = [*sentences, *UNUSUAL]
    ours, theirs = opened.answer(texts), translator.answer(texts)
    assert columns(ours) == columns(theirs)
    np.testing.assert_allclose([a.score for a in ours], [b.score for b in theirs], atol=1e-4)
    assert {answer.truncated for answer in theirs} == {True, False}
    alone = [opened.answer(text) for text in texts[-12:]]
    assert columns(alone) == columns(theirs[-12:])


def test_bytes_that_are_not_text_have_no_answer(opened, translator):
    texts = [b"in 17 weeks", b"in \xff weeks", "in 3 days"]
    ours, theirs = (side.answer_batch(texts) for side in (opened, translator))
    assert columns(ours) == columns(theirs) and ours[1].score == theirs[1].score
    assert opened.answer_batch([]) == []


def test_a_program_without_this_package_gives_the_same(write, translator, sentences, python):
    texts = [*sentences, *UNUSUAL]
    answer = json.loads(python(PLAIN, write("greedy"), json.dumps(texts)))
    expected = translator.answer(texts)
    rows = zip(answer["translation"], answer["truncated"], answer["complete"], strict=True)
    assert [*rows] == columns(expected)
    np.testing.assert_allclose(answer["score"], [one.score for one in expected], atol=1e-4)
    blank = [number for number, text in enumerate(texts) if not text.strip()]
    assert {answer["length"][number] for number in blank} == {0}


def test_the_file_states_its_operators(write):
    model = onnx.load(write("greedy"))
    assert [tensor.name for tensor in model.graph.input] == ["text"]
    names = {tensor.name for tensor in model.graph.output}
    assert names == {"translation", "score", "length", "complete", "truncated"}
    assert {opset.domain for opset in model.opset_import} == {"", "ai.onnx.contrib"}
    properties = {prop.key: prop.value for prop in model.metadata_props}
    metadata = json.loads(properties["metadata.json"])
    assert metadata["custom_operators"] == ["SentencepieceDecoder", "SentencepieceTokenizer"]
    assert metadata["other_operators"] == {"ai.onnx.contrib": 1}
    assert metadata["agreement"]["agreement"] == 1 and "source" not in metadata


def test_token_ids_and_other_searches_are_refused(opened):
    with pytest.raises(ValueError, match="greedy.onnx takes strings and no token ids. Export with"):
        opened.decode([[7, 3]])
    with pytest.raises(ValueError, match="exported for greedy search only"):
        opened.with_search(BEAM)


@pytest.mark.slow
def test_every_hypothesis_is_that_of_the_model(write, translator, sentences, python):
    """With the settings of the file, also as the defaults of its inputs, and with others."""
    path = write("beam", search=BEAM, n_best=2)
    loaded, texts = keras_transformer.open(path), [*sentences, *UNUSUAL]
    for search in (
        BEAM,
        dataclasses.replace(BEAM, length_penalty=1.2, extra_length=None, max_length=4),
    ):
        ours, theirs = (side.n_best(texts, 2, search) for side in (loaded, translator))
        assert [*map(columns, ours)] == [*map(columns, theirs)]
        scores = [[answer.score for row in side for answer in row] for side in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-4)
    answer = json.loads(python(PLAIN, path, json.dumps(texts)))
    best = [row[0] for row in answer["translation"]]
    assert best == [one.text for one in translator.answer(texts, BEAM)]


@pytest.mark.slow
def test_draws_are_those_of_the_run(write, translator, sentences):
    search = Sample(temperature=1.5, top_k=9, seed=7)
    loaded = keras_transformer.open(write("sample", search=search))
    for other in (search, Sample(seed=11, max_length=5)):
        assert columns(loaded.answer(sentences, other)) == columns(
            translator.answer(sentences, other)
        )


@pytest.mark.slow
def test_a_quantised_file_takes_strings_of_a_unigram_vocabulary(unigram_translator, tmp_path):
    """The check of the export has compared them with the answers to their token ids."""
    path, samples = tmp_path / "x.onnx", ["in 3 weeks", "after 7 days"]
    options = OnnxOptions(quantize="int8", tokenizer=True)
    assert export_onnx(unigram_translator, path, samples, options)["token_agreement"] > 0.5
    assert keras_transformer.open(path).answer(samples)[0].text


@pytest.mark.slow
def test_two_vocabularies_are_not_mistaken_for_each_other(translator, tokenizer, tmp_path):
    """Two words have changed places in the vocabulary of the outputs."""
    proto = string_proof.read_model(tokenizer.model)
    one, other = (
        next(piece for piece in proto.pieces if piece.piece == f"▁{word}")
        for word in ("Wochen", "Tagen")
    )
    one.piece, other.piece = other.piece, one.piece
    tokenizers = tokenizer, SentencePieceTokenizer(proto.SerializeToString())
    path, pipeline = tmp_path / "x.onnx", type(translator)(translator.model, tokenizers)
    export_onnx(pipeline, path, ["in 3 weeks"], OnnxOptions(tokenizer=True))
    ours, theirs = (side.answer("in 17 weeks").text for side in (translator, pipeline))
    assert keras_transformer.open(path).answer("in 17 weeks").text == theirs != ours


def test_other_vocabularies_are_refused(tokenizer):
    with pytest.raises(ExportError, match="a vocabulary of the kind WordPiece. Export without"):
        check_vocabulary(WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]))
    ids = range(tokenizer.vocab_size)
    table = PieceTable(ids=tuple(ids), size=len(ids), pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    with pytest.raises(
        ExportError, match="ids are SentencePiece's own; this one has a table of di"
    ):
        check_vocabulary(SentencePieceTokenizer(tokenizer.model, table))
    proto = string_proof.read_model(tokenizer.model)
    proto.trainer_spec.model_type = proto.trainer_spec.CHAR
    characters = SentencePieceTokenizer(proto.SerializeToString())
    with pytest.raises(ExportError, match="of the kind char model of SentencePiece. Export with"):
        check_vocabulary(characters)


def test_other_models_and_options_are_refused(tmp_path):
    path, options = tmp_path / "x.onnx", OnnxOptions(tokenizer=True)
    with pytest.raises(ValueError, match="`tokenizer` has no effect on a model for classification"):
        export_onnx(classifier(), path, LINES, options)
    with pytest.raises(
        ExportError, match="`tokenizer` needs a model with an encoder. Received: on"
    ):
        export_onnx(generator(), path, LINES, options)
    with pytest.raises(ValueError, match="`tokenizer` has no effect with `alignment`"):
        OnnxOptions(tokenizer=True, alignment=(-1, None))


@pytest.mark.parametrize("side", ["source", "decoded"])
def test_other_tokens_or_texts_are_refused(tokenizer, monkeypatch, side):
    """The operators stand in for themselves, with one wrong answer."""

    class Wrong(string_proof.EngineApart):
        def run(self, name, **inputs):
            found = super().run(name, **inputs)
            if side == "source":
                found[side][0, 0] += 1
            else:
                found[side][0] = b"in 3 days"
            return found

    samples = ["in 17 weeks"]
    monkeypatch.setattr(string_proof, "EngineApart", Wrong)
    message = {
        "source": "split 'in 17 weeks' into",
        "decoded": r"join the tokens .* 'in 3 days', not",
    }
    with pytest.raises(ExportError, match=f"onnxruntime-extensions {message[side]} .* Export with"):
        string_proof.require_same_strings(Tokenizers(tokenizer, tokenizer), samples, 20)


@pytest.mark.slow
def test_a_file_with_other_answers_to_strings_is_not_kept(light, tmp_path, monkeypatch):
    """The graph of strings reads fewer tokens than that of token ids."""

    def shorter(model, pipeline, search):
        monkeypatch.setattr(pipeline, "max_length", 3)
        return with_strings(model, pipeline, search)

    monkeypatch.setattr(string_contents, "with_strings", shorter)
    with pytest.raises(ExportError, match="x.onnx: .* outputs differ from those of the model"):
        export_onnx(light, tmp_path / "x.onnx", ["in 3 weeks"], OnnxOptions(tokenizer=True))
    assert not [*tmp_path.iterdir()]


@pytest.fixture
def unknown(tmp_path):
    """A file with an operator that onnxruntime-extensions does not have."""
    node = onnx.helper.make_node("Juggle", ["text"], ["label"], domain="ai.onnx.contrib")
    tensors = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, ["B"])]
        for name in ("text", "label")
    ]
    opsets = [onnx.helper.make_opsetid(*one) for one in (("", 18), ("ai.onnx.contrib", 1))]
    graph = onnx.helper.make_graph([node], "juggling", *tensors)
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(model, tmp_path / "x.onnx")
    return tmp_path / "x.onnx"


def test_an_operator_that_is_missing_is_reported(unknown):
    with pytest.raises(ValueError, match="x.onnx cannot be read by ONNX Runtime: .*Juggle") as info:
        keras_transformer.open(unknown)
    assert "\n" not in str(info.value)


def test_a_missing_package_is_named(unknown, translator, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime_extensions", None)
    message = r"^ONNX files with strings need the package onnxruntime-extensions in ver.*\[onnx\]"
    with pytest.raises(ValueError, match=message):
        keras_transformer.open(unknown)
    config, options = translator.model.config, OnnxOptions(tokenizer=True)
    with pytest.raises(ValueError, match=message):
        check_run(config, translator.tokenizers, options)
    check_run(config, translator.tokenizers, OnnxOptions())


def test_a_program_that_starts_no_python_is_told_so(unknown, monkeypatch):
    monkeypatch.setattr(child_process, "available", lambda: False)
    with pytest.raises(ValueError, match="x.onnx takes strings. Such files run in a process witho"):
        keras_transformer.open(unknown)
