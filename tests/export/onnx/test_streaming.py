"""Files for ONNX Runtime that return one token a call: chats, streams, and whole texts."""

import numpy as np
import pipelines
import pytest

import keras_transformer
from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.export.onnx.export import export_onnx
from keras_transformer.export.onnx.format import OnnxOptions
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.pipelines import Chat
from keras_transformer.text.chat_template import ChatTemplate

TEMPLATE = ChatTemplate(
    "{% for message in messages %}{{ message.role[0] + ' ' + message.content }} {% endfor %}"
)
MESSAGES = ["a cat", "the dog", "cats"]
PROMPTS = ["a cat runs", "the dog", ""]
SEARCHES = {
    "greedy": Greedy(7),
    "penalised": Greedy(7, repetition_penalty=1.4),
    "sample": Sample(temperature=3.0, top_p=0.95, top_k=20, seed=5, max_length=7),
    "all": Sample(temperature=2.0, min_p=0.01, repetition_penalty=1.3, seed=2, max_length=7),
    "coldest": Sample(temperature=0.0, max_length=7),
}


@pytest.fixture(scope="module")
def generator():
    generator = pipelines.generator().with_search(Greedy(9))  # a copy
    generator.chat_template = TEMPLATE
    return generator


@pytest.fixture(scope="module")
def opened(generator, tmp_path_factory):
    path = tmp_path_factory.mktemp("streaming") / "model.onnx"
    report = export_onnx(generator, path, PROMPTS, OnnxOptions(streaming=True, search=Greedy(9)))
    assert report["agreement"] == 1
    return keras_transformer.open(path)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_conversation_is_that_of_the_run(generator, opened, name):
    ours, theirs = (Chat(model, "sa", SEARCHES[name]) for model in (opened, generator))
    for message in MESSAGES:
        assert [*ours.stream(message)] == [*theirs.stream(message)]
        assert ours.complete == theirs.complete
    assert ours.messages == theirs.messages


@pytest.mark.parametrize("name", SEARCHES)
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


def test_a_program_needs_only_the_ids_and_the_values_of_the_call_before(opened):
    model = OnnxModel(opened.path)
    heads = {
        f"past_{place}": np.zeros([batch, count, 0, size], np.float32)
        for place, (batch, count, size) in enumerate(model.metadata["streaming"]["heads"])
    }
    controls = {"seed": np.zeros([1, 2], np.int32), "limit": np.array([12], np.int32)}
    controls |= {name: np.ones([1], np.float32) for name in ("top_p", "repetition_penalty")}
    controls |= {"top_k": np.zeros([1], np.int32), "min_p": np.zeros([1], np.float32)}
    controls["temperature"] = np.array([-1], np.float32)
    ids, expected = [7, 8, 9], opened.kept_text().generate([7, 8, 9], Greedy(9))
    for token in expected:
        outputs = model.run(text=np.array([ids], np.int32), **heads, **controls)
        assert outputs["token"] == [token]
        heads = {
            name.replace("present", "past"): outputs[name]
            for name in outputs
            if name.startswith("present")
        }
        ids.append(token)


def test_what_cannot_be_streamed_is_refused(generator, tmp_path):
    options = OnnxOptions(streaming=True, search=Beam(2))
    with pytest.raises(ValueError, match="choose one as its default with --greedy or --sample"):
        export_onnx(generator, tmp_path / "model.onnx", PROMPTS, options)
    with pytest.raises(ValueError, match="`streaming` has no effect with `tokenizer`"):
        OnnxOptions(streaming=True, tokenizer=True)
    assert not [*tmp_path.iterdir()]
