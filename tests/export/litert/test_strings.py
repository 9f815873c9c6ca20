"""A .tflite file with the tokenizer inside: strings in, strings out."""

import json
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import PHONE, model_of, operators
from support import listing

from keras_transformer import Beam
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import check, generated
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator

pytest.importorskip("ai_edge_litert")

OPERATORS = [
    f"TFText>{name}"
    for name in (
        "ByteSplitByOffsets",
        "ByteSplitWithOffsets",
        "FastSentencepieceDetokenize",
        "FastSentencepieceTokenize",
    )
]
STRINGS = ["translate_1x16", "translate_1x20", "translate_beam3_1x16", "translate_beam3_1x20"]

# The program of a phone: an interpreter with TensorFlow Text's operators, without our package.
STRING_PHONE = """
import json, sys
import numpy as np
from ai_edge_litert.interpreter import InterpreterWithCustomOps
from tensorflow_text.core.pybinds.tflite_registrar import SELECT_TFTEXT_OPS
interpreter = InterpreterWithCustomOps(SELECT_TFTEXT_OPS, model_path=sys.argv[1])
run = interpreter.get_signature_runner("translate_1x20")
answers = []
for sentence in json.loads(sys.argv[2]):
    answer = run(sentence=np.array([sentence.encode()], object))
    assert sorted(answer) == ["score", "translation", "truncated"]
    assert all(value.shape == (1,) for value in answer.values())
    answers.append([answer["translation"][0].decode(), bool(answer["truncated"][0])])
assert not {name.partition(".")[0] for name in sys.modules} & {"keras_transformer"}
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def string_export(unigram_translator, sentences, tmp_path_factory):
    """A function that takes a quantisation and returns path and report; float32 has a beam."""
    folder, files = tmp_path_factory.mktemp("strings"), {}

    def of(quantize="none"):
        if quantize not in files:
            path = folder / f"{quantize}.tflite"
            options = {"search": Beam(3)} if quantize == "none" else {"lengths": [20]}
            if quantize == "int4":  # changes scores of this small model by 0.22
                options["max_score_loss"] = 0.3
            report = export_litert(
                unigram_translator,
                path,
                sentences,
                **asked(LiteRTOptions, quantize, tokenizer=True, **options),
            )
            files[quantize] = path, report
        return files[quantize]

    return of


def same(outputs, expected):
    assert [output.text for output in outputs] == [output.text for output in expected]
    assert [output.truncated for output in outputs] == [output.truncated for output in expected]
    scores = [output.score for output in expected]
    assert [output.score for output in outputs] == pytest.approx(scores, abs=1e-4)


@pytest.mark.long
@pytest.mark.slow
def test_the_report_and_the_metadata_name_the_contents(string_export, sentences):
    path, report = string_export()
    assert report["signatures"][-4:] == STRINGS
    metrics = report["strings"]
    assert metrics["agreement"] == metrics["beam"]["agreement"] == 1
    assert metrics["sentences"] == metrics["beam"]["sentences"] == len(sentences)
    metadata = LiteRTTranslator(path).metadata
    assert metadata["custom_operators"] == OPERATORS
    assert [signature["name"] for signature in metadata["string_signatures"]] == STRINGS
    assert not {signature["name"] for signature in metadata["signatures"]} & set(STRINGS)
    assert metadata["agreement"]["strings"]["beam"]["identical"] == len(sentences)
    assert "differences" not in metadata["agreement"]["strings"]["beam"]


@pytest.mark.slow
def test_it_translates_as_the_model_in_memory(string_export, unigram_translator, sentences):
    loaded = LiteRTStringTranslator(string_export()[0])
    odd = ["", " ", "▁", "x" * 5000, "in 3 \ue000 weeks", "\ue000" * 5000 + " in 3 weeks", "a\0b"]
    odd += ["in 12 weeks " * 500, "in 17 weeks ▁"]
    batch = [*sentences, *odd]
    expected = [unigram_translator.answer_batch([sentence])[0] for sentence in batch]
    assert {output.truncated for output in expected} == {True, False}
    assert len({output.text for output in expected}) > 25
    same(loaded.answer_batch(batch), expected)
    assert loaded.answer_batch([]) == []


@pytest.mark.slow
def test_every_signature_gives_the_same(string_export, unigram_translator, sentences):
    loaded = LiteRTStringTranslator(string_export()[0])
    short = sentences[:5]
    expected = unigram_translator.answer_batch(short)
    for signature in loaded.signatures:
        same(loaded.answer_batch(short, signature), expected)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"length_penalty": 1.5, "extra_length": 2}])
def test_the_beam_gives_the_same(string_export, unigram_translator, sentences, options):
    loaded = LiteRTStringTranslator(string_export()[0], Beam(3, **options))
    assert [signature.name for signature in loaded.signatures] == STRINGS[2:]
    batch = [*sentences[-15:], " ", "in 3 \ue000"]
    same(
        loaded.answer_batch(batch),
        unigram_translator.answer_batch(batch, Beam(3, **options)),
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_phone_gives_the_same(string_export, unigram_translator, sentences, python):
    answers = json.loads(python(STRING_PHONE, string_export()[0], json.dumps(sentences)))
    expected = unigram_translator.answer_batch(sentences)
    assert answers == [[output.text, output.truncated] for output in expected]


@pytest.mark.slow
def test_without_the_operators_the_other_signatures_run(string_export, unigram_translator, python):
    """A runtime only fails at a missing operator when it runs a signature that needs it."""
    from ai_edge_litert.interpreter import Interpreter

    path, _ = string_export()
    ids = unigram_translator.encode(tf.constant(["in 17 weeks"]))[0].numpy()
    answers = python(PHONE, path, "greedy_1x16", json.dumps(ids.tolist()))
    text = unigram_translator.source_tokenizer.decode(tf.constant(json.loads(answers))).numpy()
    assert text[0].decode() == unigram_translator(["in 17 weeks"])[0]
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()  # the main graph takes token ids
    assert {detail["dtype"] for detail in interpreter.get_input_details()} <= {np.int32, np.float32}
    with pytest.raises(RuntimeError, match="unresolved custom op: TFText>ByteSplit"):
        interpreter.get_signature_runner("translate_1x16")(sentence=np.array([b"in 17 weeks"]))


@pytest.mark.slow
def test_without_the_operators_the_compiled_model_api_runs_the_others(
    string_export, unigram_translator
):
    compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
    model = compiled_model.CompiledModel.from_file(str(string_export()[0]))
    index = model.get_signature_index("greedy_1x16")
    inputs, outputs = model.create_input_buffers(index), model.create_output_buffers(index)
    ids = unigram_translator.encode(tf.constant(["in 17 weeks"]))[0].numpy()
    inputs[0].write(np.pad(ids, [(0, 0), (0, 16 - ids.shape[1])]))
    model.run_by_index(index, inputs, outputs)
    names = model.get_signature_by_index(index)["outputs"]
    tokens = outputs[names.index("tokens")].read(20, np.int32).reshape(1, 20)
    text = unigram_translator.source_tokenizer.decode(tf.constant(tokens)).numpy()[0]
    assert text.decode() == unigram_translator(["in 17 weeks"])[0]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float16", "int8", "int4"])
def test_quantised_files_give_the_same_from_strings_as_from_ids(string_export, sentences, quantize):
    path, report = string_export(quantize)
    translations = LiteRTStringTranslator(path).answer_batch(sentences)
    same(translations, LiteRTTranslator(path).answer_batch(sentences))
    assert 0.9 <= report["strings"]["token_agreement"] <= 1
    assert report["strings"]["token_agreement"] == report["token_agreement"]


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_ran_other_models_before_gives_the_same(string_export, sentences):
    loaded = {
        name: LiteRTStringTranslator(string_export(name)[0]) for name in ("none", "int8", "float16")
    }
    first = {name: program.answer_batch(sentences[:12]) for name, program in loaded.items()}
    for _ in range(3):
        for name, program in loaded.items():
            for run in (program, LiteRTStringTranslator(string_export(name)[0])):
                assert run.answer_batch(sentences[:12]) == first[name]


@pytest.mark.slow
def test_vocabulary_and_weights_are_stored_once(string_export, unigram_translator):
    path, _ = string_export()
    table = unigram_translator.model.source_embedding.table.numpy()
    assert path.read_bytes().count(table.tobytes()) == 1
    piece = b"\0 Wochen\0"  # a token as the operators store it, for joining tokens
    assert path.read_bytes().count(piece) == 1


@pytest.mark.slow
def test_no_output_comes_from_a_loop(string_export):
    _, ends = operators(string_export()[0])
    assert "WHILE" not in ends.values()
    assert {name for name, _ in ends} >= {signature.encode() for signature in STRINGS}


def test_by_default_there_is_no_tokenizer_inside(export):
    path, report = export("none")
    assert "strings" not in report
    assert "CUSTOM" not in operators(path)[0]
    assert not {"string_signatures", "custom_operators"} & set(LiteRTTranslator(path).metadata)
    with pytest.raises(ValueError, match="has no signatures that take strings.*--tokenizer"):
        LiteRTStringTranslator(path)


@pytest.mark.slow
def test_a_missing_beam_is_reported(string_export):
    with pytest.raises(ValueError, match="has no beam of size 5, only of size 3"):
        LiteRTStringTranslator(string_export()[0], Beam(5))


@pytest.mark.slow
def test_strings_have_no_maximum_output_length(string_export, unigram_translator, tmp_path):
    beam, message = Beam(3, max_length=5), "`search` must have no `max_length` .*max_length=5"
    with pytest.raises(ValueError, match=message):
        LiteRTStringTranslator(string_export()[0], beam)
    with pytest.raises(ValueError, match=message):
        options = {"search": beam, "tokenizer": True}
        export_litert(
            unigram_translator, tmp_path / "x.tflite", ["a"], **asked(LiteRTOptions, **options)
        )
    assert listing(tmp_path) == []


def test_a_bpe_vocabulary_is_refused_before_any_work(translator, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "convert", None)
    with pytest.raises(ExportError, match="`tokenizer` needs a vocabulary that is a unigram model"):
        export_litert(translator, tmp_path / "x.tflite", sentences, LiteRTOptions(tokenizer=True))
    assert listing(tmp_path) == []


@pytest.fixture
def skip_conversion(string_export, monkeypatch):
    """Skips the conversion in a test: the converter returns its earlier result."""
    content = model_of(string_export()[0])
    monkeypatch.setattr(generated, "convert", lambda *args, **kwargs: content)


@pytest.mark.slow
def test_strings_that_are_translated_differently_are_detected(
    skip_conversion, unigram_translator, sentences, tmp_path, monkeypatch, wrong="edges"
):
    class Wrong(LiteRTStringTranslator):
        def _translate(self, sentence, signatures):
            if wrong == "all" or not sentence:
                sentence = "in 3 weeks"
            return super()._translate(sentence, signatures)

    monkeypatch.setattr(check, "LiteRTStringTranslator", Wrong)
    real = [text for text in sentences if text.strip()]
    with pytest.raises(ExportError, match="x.tflite: .* of .* outputs differ"):
        options = {"search": Beam(3), "tokenizer": True}
        export_litert(
            unigram_translator, tmp_path / "x.tflite", real, **asked(LiteRTOptions, **options)
        )
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_the_vocabulary_of_the_file_is_that_of_the_run(string_export, unigram_translator):
    with zipfile.ZipFile(string_export()[0]) as archive:
        assert archive.read("tokenizer.model") == unigram_translator.source_tokenizer.model
