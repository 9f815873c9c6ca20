"""Runs eight threads that start at the same moment, to compare with the results of one."""

import concurrent.futures
import threading

import numpy as np

THREADS = 8


def in_threads(function, calls):
    """Calls `function` for each of `calls` in threads that start at once; returns the results."""
    barrier = threading.Barrier(len(calls))

    def work(call):
        barrier.wait()
        return function(call)

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(work, calls))


def answers_to(model, examples, search=None):
    """Returns the answers of pipelines and runtimes as values that can be compared."""
    if search is not None:
        return model.n_best(examples, 2 if hasattr(search, "size") else 1, search)
    return [plain(result) for result in model.answer_batch(examples)]


def plain(result):
    numbers = getattr(result, "numbers", None)
    return result.text, result.score, None if numbers is None else np.asarray(numbers).tolist()


def turned(examples):
    """Returns the examples for each thread, rotated so that no two batches are equal."""
    return [examples[n % len(examples) :] + examples[: n % len(examples)] for n in range(THREADS)]
