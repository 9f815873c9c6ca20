"""The memory network of `story_questions`, against the paper in NumPy loops."""

import keras
import numpy as np
import pytest
from support import randomise

from keras_transformer.models import StoryReader, StoryReaderConfig
from keras_transformer.tasks.story_questions.config import MemoryConfig
from keras_transformer.tasks.story_questions.memories import Temporal

PAD, BOS, EOS = 0, 2, 3
V, D, M = 23, 5, 7
# Questions and stories of several lengths; the last story is longer than the memory.
ROWS = [
    ([4, 5, 6], [[7, 8], [9, 10, 11, 12], [13]]),
    ([14], [[15, 16, 17]]),
    ([4, 9], [[5 + (3 * n + k) % 17 for k in range(1 + n % 4)] for n in range(9)]),
]


def rows_of(examples, width=None):
    """Token ids of questions with their stories, padded to equal width."""
    rows = [q + [id for s in story for id in (BOS, *s)] + [EOS] for q, story in examples]
    width = width or max(map(len, rows))
    return np.array([row + [PAD] * (width - len(row)) for row in rows])


def reference(weights, question, story, hops, sentence, tying, timed, linear=False):
    """Sections 2 and 4.1 of the paper, one place at a time, in float64; empty places hold zeros."""
    width = weights["embedding/table"].shape[1] // D
    tables = [weights["embedding/table"][:, D * n : D * (n + 1)] for n in range(width)]
    times = weights.get("encoder/times")

    def summed(table, words):
        total = np.zeros(D)
        for j, word in enumerate(words, 1):
            for k in range(1, D + 1):
                share = (1 - j / len(words)) - k / D * (1 - 2 * j / len(words))
                factor = share if sentence == "position" else 1.0
                total[k - 1] += factor * tables[table][word, k - 1]
        return total

    def vectors(table, time):
        """The memory's places, of which only those with a sentence have a time."""
        held = [summed(table, words) + (times[time][age] if timed else 0)
                for age, words in enumerate(recent)]  # fmt: skip
        return held + [np.zeros(D)] * (M - len(held))

    u, attention = summed(0, question), []
    recent = story[::-1][:M]
    for hop in range(hops):
        a, c = (hop, hop + 1) if tying == "adjacent" else (1, 2)
        first = 0 if tying == "adjacent" else 1
        m, r = vectors(a, a - first), vectors(c, c - first)
        p = np.array([u @ one for one in m])
        if not linear:
            p = np.exp(p - p.max()) / np.exp(p - p.max()).sum()
        o = sum(weight * one for weight, one in zip(p, r, strict=True))
        u = (u if tying == "adjacent" else weights["encoder/state_map"] @ u) + o
        attention.append(p)
    return u @ weights["output/kernel"], np.array(attention)


def reader(hops=3, seed=0, **options):
    config = StoryReaderConfig(
        encoder="memory", num_layers=hops, d_model=D, memory_size=M, vocab_size=V, max_length=60,
        labels=("a", "b", "c"), **options,
    )  # fmt: skip
    return randomise(StoryReader(config), seed)


def weights_of(model):
    return {w.path.removeprefix(f"{model.name}/"): w.numpy().astype("float64")
            for w in model.weights}  # fmt: skip


@pytest.mark.parametrize("tying", ["adjacent", "layer_wise"])
@pytest.mark.parametrize("sentence", ["position", "bag_of_words"])
@pytest.mark.parametrize("time", ["temporal", "none"])
def test_it_is_the_paper_in_loops(tying, sentence, time):
    model = reader(tying=tying, sentence=sentence, time=time)
    logits = model(rows_of(ROWS)).numpy()
    attention = model.attention_weights(rows_of(ROWS))
    for row, (question, story) in enumerate(ROWS):
        args = weights_of(model), question, story, 3, sentence, tying, time == "temporal"
        expected, weights = reference(*args)
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        for hop in range(3):
            np.testing.assert_allclose(
                attention[f"encoder/hop_{hop}"][row, 0, 0], weights[hop], atol=1e-5
            )


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_the_number_of_hops(hops):
    model = reader(hops)
    expected, _ = reference(weights_of(model), *ROWS[0], hops, "position", "adjacent", True)
    np.testing.assert_allclose(model(rows_of(ROWS[:1]))[0], expected, atol=1e-5)


def test_a_row_alone_padded_and_in_a_batch_is_the_same():
    model = reader()
    together = model(rows_of(ROWS)).numpy()
    for number, row in enumerate(ROWS):
        np.testing.assert_allclose(model(rows_of([row]))[0], together[number], atol=1e-6)
        np.testing.assert_allclose(model(rows_of([row], 71))[0], together[number], atol=1e-6)


def test_sentences_older_than_the_memory_have_no_effect():
    model = reader()
    question, story = ROWS[2]
    other = [[5], [6, 7], *story[-M:]]
    rows = [rows_of([(question, one)]) for one in (story, other, story[-M:])]
    first, *others = (model(row).numpy() for row in rows)
    for logits in others:
        np.testing.assert_allclose(logits, first, atol=1e-6)


def test_without_a_story_the_state_remains_the_question():
    model = reader()
    logits = model(np.array([[4, 5, EOS, PAD]]))
    expected, _ = reference(weights_of(model), [4, 5], [], 3, "position", "adjacent", True)
    np.testing.assert_allclose(logits[0], expected, atol=1e-5)
    for weights in model.attention_weights(np.array([[4, 5, EOS, PAD]])).values():
        np.testing.assert_allclose(weights, np.full((1, 1, 1, M), 1 / M), atol=1e-6)


def test_a_hop_may_read_nothing():
    """If no sentence resembles the question, the attention goes to the empty places."""
    model = reader(hops=1, time="none", sentence="bag_of_words")
    table = np.zeros((V, 2 * D), "float32")
    table[4, 0], table[5:8, 0], table[5:8, D:] = 6, (-6, 0, 6), 1
    model.get_layer("embedding").table.assign(table)
    rows = rows_of([([4], [[word]]) for word in (5, 6, 7)])
    weights = model.attention_weights(rows)["encoder/hop_0"][:, 0, 0, 0]
    np.testing.assert_allclose(weights, [0, 1 / M, 1], atol=1e-6)


def test_a_linear_start_has_no_softmax_until_its_end():
    model = reader(linear_start=2, time=Temporal(noise=0.0))
    model.get_layer("encoder").batches.assign(0)
    rows = rows_of(ROWS)
    args = "position", "adjacent", True
    for batch in range(4):
        for row, (question, story) in enumerate(ROWS):
            expected, weights = reference(
                weights_of(model), question, story, 3, *args, linear=batch < 2
            )
            given = model(rows).numpy()[row]
            np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-5)
            if batch < 2:
                assert weights[0].min() < 0  # and no probabilities
        model(rows, training=True)
    assert int(model.get_layer("encoder").batches) == 4


def test_an_answer_does_not_count_as_a_batch():
    model = reader(linear_start=2)
    model.get_layer("encoder").batches.assign(0)
    model(rows_of(ROWS)), model.predict(rows_of(ROWS), verbose=0)
    assert int(model.get_layer("encoder").batches) == 0


def test_fit_ends_the_linear_start():
    model = reader(linear_start=3)
    model.get_layer("encoder").batches.assign(0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(rows_of(ROWS), np.array([0, 1, 2]), batch_size=3, epochs=4, verbose=0)
    assert int(model.get_layer("encoder").batches) == 4


def test_noise_moves_sentences_in_training_only():
    """With noise, each sentence keeps its words and its order, at a place that is not earlier."""
    keras.utils.set_random_seed(1)
    model = reader(time=Temporal(noise=0.4))
    rows = rows_of(ROWS[:2])
    np.testing.assert_array_equal(model(rows), model(rows))
    drawn = [model(rows, training=True).numpy() for _ in range(6)]
    assert len({tuple(one.ravel().round(5)) for one in drawn}) > 2
    still = reader(time=Temporal(noise=0.0))
    still.set_weights(model.get_weights()[: len(still.get_weights())])
    np.testing.assert_array_equal(still(rows, training=True), still(rows))


def test_it_is_saved_and_loaded(tmp_path):
    model = reader(tying="layer_wise", sentence="bag_of_words", linear_start=5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded(rows_of(ROWS)), model(rows_of(ROWS)))


def test_options_without_effect_are_refused():
    for option in ({"pooling": "max"}, {"segments": "from_bos"}, {"embedding_scale": 2.0}):
        with pytest.raises(ValueError, match=f"`{next(iter(option))}` has no effect on a memory"):
            reader(**option)
    with pytest.raises(ValueError, match="`num_heads` has no effect on a `StoryReaderConfig`"):
        reader(num_heads=4)
    with pytest.raises(ValueError, match="`time` of the kind 'none' has no options"):
        reader(time={"kind": "none", "noise": 0.1})
    with pytest.raises(ValueError, match="`memory_size` has no effect on a `StoryReaderConfig`"):
        StoryReaderConfig(memory_size=9)
    with pytest.raises(ValueError, match="`linear_start` must be a whole number, at least 0"):
        MemoryConfig(linear_start=-1)
    with pytest.raises(ValueError, match="`encoder` must be one of"):
        StoryReaderConfig(encoder="memories")
