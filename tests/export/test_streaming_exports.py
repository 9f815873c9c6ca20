"""Files that return one token a call: chats, streams, and whole texts."""

import json

import onnx
import pipelines
import pytest
from click.testing import CliRunner
from documents import blocks, run
from servers import serving

import keras_transformer
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.export import ExportError, LiteRTOptions, OnnxOptions
from keras_transformer.export.litert import serialization
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import pack, read_model
from keras_transformer.export.onnx.export import export_onnx
from keras_transformer.export.onnx.form import OnnxForm
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.runtime import changed
from keras_transformer.models import LanguageModel, LanguageModelConfig
from keras_transformer.pipelines import Chat, TextGenerator
from keras_transformer.text.chat_template import ChatTemplate

TEMPLATE = ChatTemplate(
    "{% for message in messages %}{{ message.role[0] + ' ' + message.content }} {% endfor %}"
)
MESSAGES = ["a cat", "the dog", "cats"]
PROMPTS = ["a cat runs", "the dog", ""]
SEARCHES = {
    "greedy": Greedy(7),
    "penalised": Greedy(7, repetition_penalty=1.4),
    "sample": Sample(2.0, 20, 0.95, min_p=0.01, repetition_penalty=1.3, seed=2, max_length=7),
    "coldest": Sample(temperature=0.0, max_length=7),
}


@pytest.fixture(scope="module")
def generator():
    generator = pipelines.generator().with_search(Greedy(9))  # a copy
    generator.chat_template = TEMPLATE
    return generator


@pytest.fixture(scope="module")
def theirs(generator):
    return Chat(generator, "sa")


LENGTHS = (4, 11)  # positions of a .tflite file; the last one is the model's maximum
EXPORTS = {"onnx": (export_onnx, OnnxOptions), "tflite": (export_litert, LiteRTOptions)}


@pytest.fixture(scope="module")
def onnx_file(generator, tmp_path_factory):
    return exported(generator, tmp_path_factory.mktemp("streaming") / "lm.onnx")


@pytest.fixture(scope="module", params=EXPORTS)
def opened(generator, request, tmp_path_factory):
    if request.param == "onnx":
        return request.getfixturevalue("onnx_file")
    return exported(generator, tmp_path_factory.mktemp("streaming") / "lm.tflite", lengths=LENGTHS)


def exported(generator, path, **options):
    export, kind = EXPORTS[path.suffix[1:]]
    options = {"streaming": True, "search": Greedy(6), **options}
    report = export(generator, path, PROMPTS, kind(**options))
    assert report["agreement"] == 1
    return keras_transformer.open(path)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_conversation_is_that_of_the_run(theirs, opened, name):
    ours = Chat(opened, "sa", SEARCHES[name])
    theirs.clear()
    theirs.search = SEARCHES[name]
    for message in MESSAGES:
        assert [*ours.stream(message)] == [*theirs.stream(message)]
        assert ours.complete == theirs.complete
    assert ours.messages == theirs.messages


@pytest.mark.parametrize("name", ["penalised", "sample"])
def test_texts_and_scores_are_those_of_the_run(generator, opened, name):
    ours, theirs = (model.n_best(PROMPTS, 1, SEARCHES[name]) for model in (opened, generator))
    for (one,), (other,) in zip(ours, theirs, strict=True):
        assert (one.text, one.complete) == (other.text, other.complete)
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_a_changed_conversation_is_read_from_its_first_change_on(opened):
    text, whole = opened.kept_text(), opened.kept_text()
    prompt = [7, 8, 9, 10, 11]
    first = [*text.generate(prompt, Greedy(3))]
    assert text.kept == len(prompt) + len(first)
    changed = [7, 8, 12, 10]
    assert text.shared(changed) == 3  # with the token that begins it
    assert [*text.generate(changed, Greedy(3))] == [*whole.generate(changed, Greedy(3))]


def test_the_program_of_the_page_continues_a_text(onnx_file, monkeypatch):
    opened = onnx_file
    monkeypatch.chdir(opened.path.parent)
    (block,) = [
        one for one in blocks("docs/onnx_reference.md", "python") if one.needs == "streaming_file"
    ]
    tokens = run([block])["tokens"]
    for prompt in ([7, 8, 9], []):
        assert [*tokens(prompt)] == [*opened.kept_text().generate(prompt, Greedy())]


@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "loss"), [("int8", 0.02), ("int4", 0.1)])
def test_a_smaller_file_keeps_its_limits(generator, tmp_path, quantize, loss):
    """Its weights are in blocks, and the angles of positions in float32."""
    path = tmp_path / "lm.onnx"
    options = OnnxOptions(quantize, streaming=True, search=Greedy(6))
    report = export_onnx(generator, path, PROMPTS, options)
    assert abs(report["score_loss"]) < loss and 0 < report["score_error"] < loss
    opened = keras_transformer.open(path)
    assert opened.metadata["other_operators"] == {"com.microsoft": 1}
    stored = [weight.name for weight in onnx.load(path).graph.initializer]
    assert any(name.endswith("_codes") for name in stored)
    assert Chat(opened).send("a cat")


@pytest.mark.slow
def test_a_tflite_file_in_int4_has_blocks_of_weights(generator, tmp_path):
    """Its table is in int8. Every matrix has a multiple of 32 inputs."""
    sizes = {"num_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 2}
    config = LanguageModelConfig.preset("tiny", vocab_size=30, max_length=11, **sizes)
    model = pipelines.with_larger_weights(LanguageModel(config))
    generator = TextGenerator(model, generator.target_tokenizer)
    path, options = tmp_path / "lm.tflite", {"search": Greedy(6), "lengths": LENGTHS}
    report = export_litert(
        generator, path, PROMPTS, LiteRTOptions("int4", streaming=True, **options)
    )
    assert abs(report["score_loss"]) < 0.1 and 0 < report["score_error"] < 0.1
    stored = serialization.read_model(read_model(path))
    int4 = serialization.schema.TensorType.INT4
    weights = [[t for t in graph.tensors if t.type == int4] for graph in stored.subgraphs]
    assert [len(of_graph) for of_graph in weights if of_graph] == 4 * [2 * (4 + 2)]
    assert {t.quantization.details.blockSize for tensors in weights for t in tensors} == {32}
    answers = keras_transformer.open(path).n_best(PROMPTS, 1)
    assert all(one.text for (one,) in answers)


@pytest.mark.slow
def test_the_program_for_tflite_files_continues_a_text(generator, tmp_path, monkeypatch):
    exported(generator, tmp_path / "lm.tflite", lengths=LENGTHS)
    monkeypatch.chdir(tmp_path)
    places = blocks("docs/litert_files.md", "python")
    (block,) = [one for one in places if one.needs == "streaming_tflite_file"]
    tokens = run([block])["tokens"]
    for prompt in ([7, 8, 9], []):
        assert [*tokens(prompt)] == [*generator.kept_text().generate(prompt, Greedy())]


def test_a_model_without_a_template_has_no_chats(generator, opened):
    copied = changed(opened, chat_template=None)
    with pytest.raises(ValueError, match=r"A chat needs a run with .* Received: /.*lm\..*, temp"):
        Chat(copied)
    other = generator.with_model(generator.model)
    assert other.chat_template == generator.chat_template


@pytest.mark.parametrize("suffix", EXPORTS)
def test_what_cannot_be_streamed_is_refused(generator, tmp_path, suffix):
    export, kind = EXPORTS[suffix]
    options = kind(streaming=True, search=Beam(2))
    with pytest.raises(ValueError, match="choose one as its default with --greedy or --sample"):
        export(generator, tmp_path / f"model.{suffix}", PROMPTS, options)
    with pytest.raises(ValueError, match="`streaming` has no effect with `tokenizer`"):
        kind(streaming=True, tokenizer=True)
    assert not [*tmp_path.iterdir()]


def test_options_of_tflite_files_without_effect_are_refused(generator, tmp_path):
    with pytest.raises(ValueError, match="`unrolled` has no effect with `streaming`"):
        LiteRTOptions(streaming=True, unrolled=True)
    for error, message, options in (
        (ValueError, r"`batch_sizes` must be \(1,\) with `streaming`", {"batch_sizes": (1, 2)}),
        (ExportError, "int8_static needs a model with an encoder", {"quantize": "int8_static"}),
        (ValueError, "`lengths` must end in the pipeline's `max_length`, 11", {"lengths": (4,)}),
        (ValueError, "streams of tokens need the converter 'tensorflow'", {"converter": "litert"}),
    ):
        with pytest.raises(error, match=message):
            calibration = ["a cat", "the"] if "quantize" in options else None
            options = LiteRTOptions(streaming=True, search=Greedy(6), **options)
            path = tmp_path / "lm.tflite"
            export_litert(generator, path, PROMPTS, options, calibration=calibration)
    assert not [*tmp_path.iterdir()]


def test_signatures_read_parts_of_a_prompt_and_single_tokens(generator, tmp_path, monkeypatch):
    """A prompt of several parts, to the last position of the model; some start before the end."""
    monkeypatch.setattr("keras_transformer.export.litert.streaming.PART", 3)
    opened = exported(generator, tmp_path / "lm.tflite", lengths=LENGTHS)
    names = [signature.name for signature in opened.signatures]
    assert names == ["next_3_4", "next_1_4", "next_3_11", "next_1_11"]
    ours, theirs = opened.kept_text(), generator.kept_text()
    for prompt in ([7, 8, 9, 10, 11, 12, 13, 9, 8, 7], [7, 8], [7, 8, 9, 10, 11, 12, 14], []):
        assert [*ours.generate(prompt, Greedy())] == [*theirs.generate(prompt, Greedy())]


@pytest.mark.slow
def test_a_damaged_description_of_a_stream_is_one_error(generator, tmp_path):
    opened = exported(generator, tmp_path / "lm.tflite", lengths=(11,))
    damaged = {**opened.metadata, "streaming": {"heads": "none"}}
    pack(opened.path, read_model(opened.path), opened.tokenizers, damaged)
    with pytest.raises(ValueError, match=r"lm.tflite is damaged: its metadata.json cannot be"):
        keras_transformer.open(opened.path)


def talk(opened, *options, messages="a cat\n\nthe dog\n"):
    result = CliRunner().invoke(cli, ["chat", str(opened.path), *options], input=messages)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("options", "search"),
    [
        ("", Greedy(6)),
        ("--max-output 3 --repetition-penalty 1.5", Greedy(3, repetition_penalty=1.5)),
        ("--repetition-penalty 1.5", Greedy(6, repetition_penalty=1.5)),  # the limit of the file
    ],
)
def test_the_command_talks_to_a_file(opened, options, search):
    chat = Chat(opened, search=search)
    code, out, _ = talk(opened, *options.split())
    assert code == 0 and out == "".join(f"{chat.send(text)}\n" for text in ("a cat", "the dog"))


def test_the_command_draws_answers_of_a_file(opened):
    chat = Chat(opened, "sa", Sample(temperature=2.0, min_p=0.05, seed=3, max_length=4))
    options = "--system sa --sample --temperature 2 --min-p 0.05 --seed 3 --max-output 4 --json"
    code, out, _ = talk(opened, *options.split())
    expected = [(chat.send(text), chat.complete) for text in ("a cat", "the dog")]
    answers = [*map(json.loads, out.splitlines())]
    assert code == 0
    assert [(answer["content"], answer["complete"]) for answer in answers] == expected


def test_the_command_refuses_a_file_without_streams(onnx_file, monkeypatch):
    whole = OnnxTranslator(OnnxModel(onnx_file.path))
    monkeypatch.setattr(OnnxForm, "open", lambda path: whole)
    code, out, err = talk(onnx_file)
    assert code and not out
    assert "an .onnx or .tflite file that was exported with --streaming. Received: " in err


def test_a_server_has_chats_of_a_file(opened):
    body = {"model": "model", "messages": [{"role": "user", "content": "a"}]}
    with serving(opened) as served:
        status, answer = served.ask("POST", "/v1/chat/completions", {**body, "max_tokens": 4})
    expected = Chat(opened, search=Greedy(4)).send("a")
    assert status == 200 and answer["choices"][0]["message"]["content"] == expected
