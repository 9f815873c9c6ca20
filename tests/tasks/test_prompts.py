"""TextPrompts of sentence encoders: texts in front of a text, in the pipeline and in a run."""

from types import SimpleNamespace

import numpy as np
import pipelines
import pytest
import tensorflow as tf

from keras_transformer.pipelines import Embedder
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.embedding.codec import VectorCodec
from keras_transformer.tasks.run import Run
from keras_transformer.text.prompts import TextPrompts
from keras_transformer.training.inputs import take_tokenizers

LINES = [*pipelines.LINES, ""]
PROMPTS = {"query": pipelines.LINES[0] + " ", "passage": pipelines.LINES[1] + " ", "none": ""}


@pytest.fixture(scope="module")
def plain():
    return pipelines.embedder()


@pytest.fixture(scope="module")
def prompted(plain):
    return plain.with_model(plain.model).with_prompts(TextPrompts(PROMPTS))


def with_text(name):
    return [PROMPTS[name] + line for line in LINES]


@pytest.mark.slow
def test_a_prompt_is_text_in_front(plain, prompted):
    np.testing.assert_array_equal(prompted.embed(LINES), plain.embed(LINES))
    for name in PROMPTS:
        expected = plain.embed(with_text(name))
        np.testing.assert_allclose(prompted.embed(LINES, prompt=name), expected, atol=1e-6)
    moved = np.abs(prompted.embed(LINES, prompt="query") - plain.embed(LINES)).max()
    assert moved > 0.01
    short = prompted.with_settings(dimensions=3).embed(LINES, prompt="query")
    np.testing.assert_allclose(short, prompted.embed(LINES, 3, prompt="query"), atol=1e-6)


@pytest.mark.slow
def test_the_default_applies_unless_another_prompt_is_chosen(plain, prompted):
    default = prompted.with_settings(prompt="query")
    expected = plain.embed(with_text("query"))
    np.testing.assert_allclose(default.embed(LINES), expected, atol=1e-6)
    np.testing.assert_allclose(default.with_model(plain.model).embed(LINES), expected, atol=1e-6)
    np.testing.assert_allclose(default.embed(LINES, prompt=""), plain.embed(LINES), atol=1e-6)
    expected = plain.embed(with_text("passage"))
    np.testing.assert_allclose(default.embed(LINES, prompt="passage"), expected, atol=1e-6)


def test_each_text_of_a_request_may_have_its_own_prompt(prompted):
    codec = prompted.codec
    names, lines = ["", "query", "passage"], LINES[:3]
    inputs, _ = codec.encode(tf.constant(lines), tf.constant(names))
    texts = [PROMPTS.get(name, "") + line for name, line in zip(names, lines, strict=True)]
    expected, _ = pipelines.embedder().codec.encode(tf.constant(texts))
    np.testing.assert_array_equal(inputs["source"], expected["source"])
    assert [*codec.option_specs] == ["prompt"] and not pipelines.embedder().codec.option_specs
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be empty or one of query, pass"):
        codec.encode(tf.constant(["x"]), tf.constant(["nothing"]))


def test_metadata_of_files_contain_the_prompts(prompted):
    codec = prompted.with_settings(prompt="query").codec
    again = VectorCodec.from_metadata(codec.metadata(), codec.tokenizer)
    assert again.choices == codec.choices == TextPrompts(PROMPTS, "query")
    assert VectorCodec.of_lines(codec.line_metadata()).choices == codec.choices
    assert VectorCodec.of_lines({}).choices == TextPrompts()
    assert codec.guide("x").notes[-1].endswith("or an empty string for none.")


def test_wrong_prompts_are_named(plain, prompted):
    with pytest.raises(ValueError, match="`prompt` must be one of query, passage, none, or empty"):
        prompted.embed(LINES, prompt="document")
    with pytest.raises(ValueError, match="has no effect on a model without prompts. Received: 'q"):
        plain.embed(LINES, prompt="query")
    with pytest.raises(TypeError, match="`prompt` must be a string"):
        prompted.with_settings(prompt=1)
    with pytest.raises(ValueError, match="`prompts` must be texts by name"):
        TextPrompts({"": "x"})
    with pytest.raises(ValueError, match="`default` must be a. Received: 'b'"):
        TextPrompts({"a": "x"}, "b")
    with pytest.raises(ValueError, match="`default` must be no name, because there are no prompts"):
        TextPrompts({}, "b")


def test_a_run_keeps_them(tmp_path, plain):
    run = Run(pipelines.write_run(plain, tmp_path / "run"))
    assert run.read_prompts() is None
    run.write_prompts(TextPrompts(PROMPTS, "query"))
    pipeline = Embedder.from_run(run.path)
    assert pipeline.codec.choices == TextPrompts(PROMPTS, "query")
    np.testing.assert_allclose(pipeline.embed(LINES), plain.embed(with_text("query")), atol=1e-5)
    run.prompts.write_text('{"texts": 3}')
    with pytest.raises(ValueError, match="prompts.json"):
        Embedder.from_run(run.path)


@pytest.mark.slow
def test_one_setting_keeps_the_others(prompted):
    short = prompted.with_settings(dimensions=3)
    expected = prompted.embed(LINES, 3, prompt="query")
    for pipeline in (
        short.with_settings(prompt="query"),
        prompted.with_settings(prompt="query").with_settings(dimensions=3),
        prompted.with_settings(prompt="query", dimensions=3).with_model(prompted.model),
    ):
        np.testing.assert_allclose(pipeline.embed(LINES), expected, atol=1e-6)


@pytest.mark.parametrize("task", ["embedding", "classification"])
def test_a_run_that_starts_from_another_one_keeps_the_prompts_of_its_task(tmp_path, plain, task):
    first = Run(pipelines.write_run(plain, tmp_path / "first"))
    first.write_prompts(TextPrompts(PROMPTS))
    start = SimpleNamespace(run=first, task="embedding", tokenizers=plain.tokenizers)
    settings = SimpleNamespace(
        task=SimpleNamespace(kind=task, get=lambda: TASKS[task]), data=SimpleNamespace()
    )
    (tmp_path / "next").mkdir()
    take_tokenizers(run := Run(tmp_path / "next"), settings, None, None, start)
    assert run.read_prompts() == (TextPrompts(PROMPTS) if task == "embedding" else None)
