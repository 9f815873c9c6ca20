"""Questions about stories: rows of tokens, lines, answers, attention of hops, and errors."""

import json
import types

import numpy as np
import pipelines
import pytest
import tensorflow as tf

from keras_transformer.options import OptionError
from keras_transformer.pipelines import StoryAnswerer
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.story_questions.codec import StoryCodec
from keras_transformer.tasks.story_questions.lines import parse
from keras_transformer.tasks.story_questions.plots import hops_figure
from keras_transformer.tasks.story_questions.rows import story_rows
from keras_transformer.training import load_settings
from keras_transformer.training.settings.toml import SettingsError

TASK = TASKS["story_questions"]
STORY = ["a cat runs", "the big dog", "a dog and a cat"]
EXAMPLES = [
    (STORY, "the dog"),
    (["the cat"], "a cat runs"),
    ([], "a dog"),
    (STORY + ["the cat and the big dog runs"], "the"),
    ("a cat\n\n  \nthe dog", "runs"),
]


def row_in_loops(tokenizer, story, question, longest, memory_size):
    """The row of one story, in Python: sentences are added from the most recent one on."""
    ids = [tokenizer.tokenize([text])[0].numpy().tolist() for text in (question, *story)]
    question, sentences = ids[0], [one for one in ids[1:] if one]
    row, rest, cut = question[: longest // 2], [], len(question) > longest // 2
    for number, sentence in enumerate(sentences[::-1]):
        fits = len(row) + len(rest) + 1 + len(sentence) + 1 <= longest
        if not fits or (memory_size is not None and number >= memory_size):
            cut = True
            break
        rest = [tokenizer.bos_id, *sentence, *rest]
    return [*row, *rest, tokenizer.eos_id], cut


@pytest.mark.parametrize("longest", [5, 9, 14, 60])
@pytest.mark.parametrize("memory_size", [None, 1, 2])
def test_rows_keep_the_most_recent_sentences(longest, memory_size):
    tokenizer = pipelines.tokenizer()
    stories = [[s for s in (story.split("\n") if isinstance(story, str) else story)]
               for story, _ in EXAMPLES]  # fmt: skip
    questions = [question for _, question in EXAMPLES]
    texts = tf.constant(["\n".join(story) for story in stories]), tf.constant(questions)
    rows, truncated = story_rows(tokenizer, *texts, longest, memory_size)
    for number, (story, question) in enumerate(zip(stories, questions, strict=True)):
        row, cut = row_in_loops(tokenizer, story, question, longest, memory_size)
        assert rows[number].numpy().tolist() == row
        assert bool(truncated[number]) == cut


@pytest.mark.parametrize("encoder", ["memory", "transformer"])
def test_an_answer_in_a_batch_is_the_answer_alone(encoder):
    answerer = pipelines.story_answerer(encoder)
    together = answerer.answer(EXAMPLES)
    for example, result in zip(EXAMPLES, together, strict=True):
        alone = answerer.answer(example)
        np.testing.assert_allclose(alone.probabilities, result.probabilities, atol=1e-6)
        assert (alone.label, alone.truncated) == (result.label, result.truncated)
    assert together[3].truncated == (encoder == "memory")
    assert answerer(EXAMPLES) == [result.label for result in together]


def test_hops_are_an_option_of_an_answer():
    answerer = pipelines.story_answerer().with_settings(hops=True)
    for (story, question), result in zip(EXAMPLES, answerer.answer(EXAMPLES), strict=True):
        lines = story.split("\n") if isinstance(story, str) else story
        sentences = [line for line in lines if line.strip()][-3:]
        content = json.loads(result.text)
        assert content["answer"] == result.label and content["sentences"] == sentences
        assert result.hops.shape == (2, len(sentences))
        total = result.hops.sum(axis=1)  # [K]
        if len(sentences) == 3:
            np.testing.assert_allclose(total, 1, atol=1e-5)
        else:
            assert np.all(total < 1)  # the rest is the weight of the empty places
        drawn = answerer.attention((story, question))["hops"]
        assert drawn.keys == sentences and drawn.queries == ["hop 1", "hop 2"]
        np.testing.assert_allclose(drawn.weights[0, 0], result.hops, atol=1e-5)
    assert answerer.with_settings(hops=False)(EXAMPLES[0]) in pipelines.LABELS


def test_the_last_sentence_has_the_first_place():
    """The weights are in the order of the story: a model that attends to "dog" finds it there."""
    answerer = pipelines.story_answerer(time="none", sentence="bag_of_words").with_settings(
        hops=True
    )
    first, second = (
        answerer.answer((story, "the")).hops[0] for story in (["a cat", "dog"], ["dog", "a cat"])
    )
    assert first[0] != pytest.approx(first[1], abs=1e-3)
    np.testing.assert_allclose(first, second[::-1], atol=1e-6)


def test_a_transformer_has_no_hops():
    answerer = pipelines.story_answerer("transformer")
    with pytest.raises(OptionError, match="needs a memory network. Received: a Transformer"):
        answerer.with_settings(hops=True)
    assert answerer.attention("a cat\tthe dog")["encoder"].weights.shape[:2] == (2, 2)


def test_lines():
    assert parse("a\tb\tc?") == ("a\nb", "c?")
    assert parse('{"question": "c?", "story": ["a", "b"]}') == ("a\nb", "c?")
    assert parse('{"question": "c?", "story": "a"}') == ("a", "c?")
    for line, reason in (
        ("a", "must be the sentences of a story and a question, separated by tabs. Received: no"),
        ("{", "must be JSON with `story`, a list of sentences, and `question`, a string: "),
        ('{"story": []}', "and `question`, a string. Received: story"),
        ('{"story": [1], "question": "a"}', r"a string. Received: \[\[1\], 'a'\]"),
        ("{}", "Received: no field"),
    ):
        with pytest.raises(ValueError, match=reason):
            parse(line)
    with pytest.raises(ValueError, match="`sentence` must be the sentences of a story"):
        pipelines.story_answerer().attention("a")


@pytest.mark.parametrize("examples", [["a", "b", "c"], [("a",)], [(1, "b")], "a", [(["a", 2], "")]])
def test_examples_are_pairs(examples):
    with pytest.raises(TypeError, match="`examples` must be a list of pairs of a story"):
        pipelines.story_answerer().answer(examples)


def test_samples_need_a_question():
    with pytest.raises(ValueError, match="at least one story with a question to check"):
        StoryCodec.check_samples([(["a"], " ")])


def test_an_evaluation_counts_the_errors_of_each_kind():
    answers = [types.SimpleNamespace(label=label, truncated=label == "c") for label in "abcaa"]
    pipeline = types.SimpleNamespace(answer=lambda examples: answers[: len(examples)])
    kinds, right = ["one", "one", "two", "one", "two"], ["a", "x", "c", " a", "x"]
    results = TASK.evaluate(pipeline, [EXAMPLES, kinds, right])
    assert results["error"] == 40 and results["truncated"] == 1 and results["questions"] == 5
    assert results["errors"] == {"one": pytest.approx(100 / 3), "two": 50}
    assert "errors" not in TASK.evaluate(pipeline, [EXAMPLES, right])
    with pytest.raises(ValueError, match="There must be at least one question to answer"):
        TASK.evaluate(pipeline, [[], []])


def test_a_plot_has_a_row_for_each_sentence():
    attention = pipelines.story_answerer().attention((STORY, "the dog"))["hops"]
    axes = hops_figure(attention).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == STORY
    written = [float(text.get_text()) for text in axes.texts]
    np.testing.assert_allclose(np.reshape(written, (3, 2)).T, attention.weights[0, 0], atol=0.006)
    with pytest.raises(ValueError, match="`layers` must be False for a memory network"):
        hops_figure(attention, layers=True)
    empty = pipelines.story_answerer().attention(([], "the dog"))["hops"]
    with pytest.raises(ValueError, match="The story must have a sentence to draw"):
        hops_figure(empty)


def test_models_of_an_ensemble_have_one_answer():
    one, other = pipelines.story_answerer(), pipelines.story_answerer(tying="layer_wise")
    both = StoryAnswerer([one.model, other.model], pipelines.tokenizer())
    for example in EXAMPLES:
        mean = (one.answer(example).probabilities + other.answer(example).probabilities) / 2
        np.testing.assert_allclose(both.answer(example).probabilities, mean, atol=1e-6)
    with pytest.raises(ValueError, match="have no attention weights in common"):
        both.with_settings(hops=True)


@pytest.mark.parametrize(
    ("training", "reason"),
    [
        ("updates = 40", "`linear_start` must be less than the number of batches.*, 40 batches"),
        ("", "`training.updates` must be set with `linear_start`"),
        ("updates = 99\nr_drop = 1.0", "`training.r_drop` must be 0 for story_questions"),
    ],
)
def test_a_linear_start_must_end(tmp_path, training, reason):
    path = tmp_path / "config.toml"
    model = '[task]\nkind = "story_questions"\n[model]\nencoder = "memory"\nlinear_start = 40\n'
    path.write_text(f'{model}[data]\nsource = "stories"\n[training]\n{training}\n')
    with pytest.raises(SettingsError, match=reason):
        load_settings(path)
    path.write_text(model.replace("linear_start = 40\n", "") + '[data]\nsource = "stories"\n')
    assert load_settings(path).training.updates is None  # follows from the data
