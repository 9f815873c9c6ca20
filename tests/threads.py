"""Eight threads that begin at the same moment, and what they should get: the answers of one."""

import concurrent.futures
import threading

import numpy as np

THREADS = 8


def in_threads(function, calls):
    """`function` of each of `calls`, each in a thread of its own, all at once; the results."""
    barrier = threading.Barrier(len(calls))

    def work(call):
        barrier.wait()
        return function(call)

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(work, calls))


def answers_to(model, examples, search=None):
    """Answers of pipelines and runtimes, as values that can be compared."""
    if hasattr(model, "answer_batch"):
        return [plain(result) for result in model.answer_batch(examples)]
    if search is not None:
        return model.n_best(examples, 2 if hasattr(search, "size") else 1, search)
    return [plain(result) for result in model.translate_batch(examples)]


def plain(result):
    numbers = getattr(result, "numbers", None)
    return result.text, result.score, None if numbers is None else np.asarray(numbers).tolist()


def turned(examples):
    """The examples for each thread: each begins with another, so that no two batches are equal."""
    return [examples[n % len(examples) :] + examples[: n % len(examples)] for n in range(THREADS)]
