"""Threads that share an export get the results of a single thread."""

import pathlib
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pipelines
import pytest
from exporting import asked
from phrases import phrase_translator, phrases, unigram_tokenizer
from support import normal
from threads import THREADS, in_threads

from keras_transformer import Beam
from keras_transformer.export import (
    LiteRTOptions,
    OnnxOptions,
    export_ctranslate2,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.runtime import Pool, check_threads

PROGRAM = pathlib.Path(__file__).parent / "shared_by_threads.py"
SENTENCES = [source for source, _ in phrases()[4480:4488]]
TASKS = {
    pipelines.classifier: pipelines.LINES,
    pipelines.token_classifier: pipelines.LINES,
    pipelines.image_classifier: list(
        np.random.default_rng(0).integers(0, 255, (4, 4, 6, 1)).astype("uint8")
    ),
    pipelines.simulator: list(normal(4, 9, 2)),
    pipelines.answerer: [("a cat", line) for line in pipelines.LINES],
}


def test_no_two_threads_get_the_same_object():
    items, lent, most = [object() for _ in range(3)], [], []
    pool = Pool(items)

    def use(_):
        with pool.borrow() as item:
            assert item not in lent
            lent.append(item)
            most.append(len(lent))
            time.sleep(0.01)
            lent.remove(item)
        return item

    used = in_threads(use, range(THREADS))
    assert set(used) == set(items) and max(most) == 3
    for _ in range(2):  # an error returns the object
        for _ in items:
            with pytest.raises(KeyError), pool.borrow():
                raise KeyError
    assert {use(0) for _ in range(9)} <= set(items)


def test_threads_in_turn_get_the_same_object():
    pool, items = Pool([1, 2, 3]), []
    for _ in range(5):
        thread = threading.Thread(target=lambda: items.append(take(pool)))
        thread.start()
        thread.join()
    assert len(set(items)) == 1


def take(pool):
    with pool.borrow() as item:
        return item


def test_a_thread_that_waits_while_a_pool_is_closed_is_told():
    pool, errors = Pool([1]), []

    def wait():
        try:
            take(pool)
        except ValueError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait)
    with pool.borrow():
        thread.start()
        time.sleep(0.05)
        pool.close()
    thread.join()
    assert errors == ["This export has been closed. Open it again."]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_numbers_of_calls_are_positive_integers(wrong):
    message = "`num_parallel_calls` must be an integer of at least 1. Received: num_parallel_calls="
    with pytest.raises(ValueError, match=message):
        check_threads(num_parallel_calls=wrong)


def single_pass_jobs(folder):
    """A .tflite and an .onnx file of each single-pass task, and one SavedModel."""
    for make, examples in TASKS.items():
        pipeline, file = make(), folder / f"{make.__name__}.tflite"
        lengths = {"lengths": [11]} if pipeline.codec.longest == 11 else {}
        export_litert(pipeline, file, examples, **asked(LiteRTOptions, **lengths))
        yield "LiteRTSinglePass", [file], {}, examples
        export_onnx(pipeline, file.with_suffix(".onnx"), examples)
        yield "open", [file.with_suffix(".onnx")], {}, examples
    export_saved_model(pipeline, folder / "saved", examples)
    yield "SavedModelSinglePass", [folder / "saved"], {}, examples


def translator_jobs(folder):
    """A .tflite file with a tokenizer and a beam, an .onnx file, a folder for CTranslate2."""
    translator, beam = phrase_translator(unigram_tokenizer()), Beam(3)
    file, model = folder / "t.tflite", folder / "ct2"
    export_litert(
        translator, file, SENTENCES, LiteRTOptions(search=beam, lengths=[20], tokenizer=True)
    )
    yield "LiteRTTranslator", [file], {}, SENTENCES
    yield "LiteRTTranslator", [file, beam], {"num_parallel_calls": 3}, SENTENCES
    yield "LiteRTStringTranslator", [file], {}, SENTENCES
    export_onnx(translator, folder / "t.onnx", SENTENCES, OnnxOptions(search=beam))
    yield "open", [folder / "t.onnx"], {"num_threads": 2}, SENTENCES
    export_ctranslate2(translator, model, SENTENCES)
    for calls in (1, 3):
        yield "CTranslate2Translator", [model], {"num_parallel_calls": calls}, SENTENCES


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "jobs_of", [translator_jobs, pytest.param(single_pass_jobs, marks=pytest.mark.long)]
)
def test_eight_threads_get_the_same_results_as_one(jobs_of, tmp_path):
    """Runs in a process of its own: two threads in one LiteRT interpreter can crash it."""
    for package in ("ai_edge_litert", "ctranslate2", "onnxruntime"):
        pytest.importorskip(package)
    jobs = list(jobs_of(tmp_path))
    (tmp_path / "jobs").write_bytes(pickle.dumps(jobs))
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "jobs")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, f"{done.returncode} {done.stdout[-2000:]} {done.stderr[-2000:]}"
    assert done.stdout.count("gives eight threads what one gets") == len(jobs)
