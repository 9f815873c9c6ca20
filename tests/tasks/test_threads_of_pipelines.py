"""Threads that share a pipeline get the results of one thread, even before graphs exist."""

import threading
import time

import numpy as np
import pipelines
import pytest
import tensorflow as tf
from pipelines import LINES
from support import normal
from threads import THREADS, answers_to, in_threads, turned

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Sample
from keras_transformer.tasks.strings import traced_once

PAIRS = [("a cat", line) for line in LINES]
MASKED = [line.replace("cat", "<mask>").replace("dog", "<mask>") for line in LINES]
IMAGES = [
    tf.io.encode_png(np.random.default_rng(seed).integers(0, 255, (4, 6, 1), "uint8")).numpy()
    for seed in range(4)
]
TASKS = {
    "classification": (pipelines.classifier, LINES),
    "embedding": (pipelines.embedder, LINES),
    "token_classification": (pipelines.token_classifier, LINES),
    "masked_language_modelling": (pipelines.filler, MASKED),
    "question_answering": (pipelines.answerer, PAIRS),
    "image_classification": (pipelines.image_classifier, IMAGES),
}
SEARCHES = {
    "translation": (pipelines.translator, Greedy()),
    "SSRU": (pipelines.recurrent_translator, Beam(3)),
    "summarization": (pipelines.summarizer, Sample(temperature=1.5, seed=3)),
    "language_modelling": (pipelines.generator, Beam(3)),
}


def fresh(make):
    """Returns a pipeline without any graphs."""
    return make().with_model(make().model)


FAST = "classification"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("task", ["token_classification", "image_classification"])
def test_single_pass_models(task):
    make, examples = TASKS[task]
    pipeline, batches = fresh(make), turned(examples)
    answers = in_threads(lambda batch: answers_to(pipeline, batch), batches)
    assert answers == [answers_to(pipeline, batch) for batch in batches]
    assert len({str(answer) for answer in answers[0]}) > 1


@pytest.mark.slow
def test_searches(kind="language_modelling"):
    make, search = SEARCHES[kind]
    pipeline, batches = fresh(make), turned(LINES)
    answers = in_threads(lambda batch: answers_to(pipeline, batch, search), batches)
    assert answers == [answers_to(pipeline, batch, search) for batch in batches]
    assert len({str(answer) for answer in answers[0]}) > 1


@pytest.mark.slow
def test_series():
    pipeline = fresh(pipelines.simulator)
    batches = [normal(5 + thread, 2, seed=thread) for thread in range(THREADS)]
    answers = in_threads(pipeline, batches)
    for answer, batch in zip(answers, batches, strict=True):
        np.testing.assert_array_equal(answer, pipeline(batch))


@pytest.mark.long
@pytest.mark.slow
def test_different_calls_of_one_translator():
    """Searches, scores, alignments and attention are traced from the same layers at once."""
    pipeline = fresh(pipelines.translator)
    calls = [
        lambda: pipeline(LINES),
        lambda: pipeline.n_best(LINES, 2, Beam(3)),
        lambda: pipeline(LINES, Sample(temperature=1.5, seed=3)),
        lambda: pipeline.score(LINES, LINES),
        lambda: [alignment.weights.tolist() for alignment in pipeline.align(LINES)],
        lambda: pipeline.attention(LINES[0])["cross"].weights.tolist(),
        lambda: pipeline.attention(LINES[1])["encoder"].weights.tolist(),
    ]
    answers = in_threads(lambda call: call(), calls)
    assert answers == [call() for call in calls]


def test_threads_share_the_graphs_of_a_pipeline():
    """Tracing takes seconds, and eight times as long in eight threads at once."""
    traced = []

    def trace(*arguments):
        time.sleep(0.05)
        traced.append(threading.current_thread())
        return object()

    once = traced_once(trace)
    graphs = in_threads(lambda search: once(search), [0, 1] * (THREADS // 2))
    assert len(traced) == 2
    assert len(set(graphs[::2])) == len(set(graphs[1::2])) == 1 and graphs[0] is not graphs[1]


def test_one_graph_is_traced_at_a_time():
    """In the whole process, for all pipelines: two traces at a time may crash it."""
    active, most = [], []

    class Graph:
        def get_concrete_function(self):
            active.append(self)
            time.sleep(0.01)
            most.append(len(active))
            active.remove(self)

    searchers = [traced_once(lambda search: Graph()) for _ in range(2)]
    in_threads(lambda number: searchers[number % 2](number), range(THREADS))
    assert most == [1] * THREADS
