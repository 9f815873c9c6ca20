"""Processes that each hold one thing to measure, and run some steps of it on demand.

Frameworks must not share a process: their thread pools would compete, and peak memory could not be
told apart. All workers of a comparison are alive at the same time, and all but one of them wait.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from figures import BenchmarkError

WORKER = pathlib.Path(__file__).with_name("worker.py")


def processors(cores):
    """Returns the numbers of the processors to pin to: the first `cores` that we may use.

    Raises:
        BenchmarkError: If there are not so many.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
    else:  # macOS: threads are limited in number, but cannot be pinned
        allowed = list(range(os.cpu_count()))
    if cores > len(allowed):
        raise BenchmarkError(
            f"`--cores` must be at most {len(allowed)}, the processors that this process may use. "
            f"Received: {cores}."
        )
    return allowed[:cores]


class Worker:
    """A process that has built what a module's `make` returns.

    It answers JSON with JSON, one line each way. Use it as a context manager.

    Args:
        name: What errors call it.
        module: Module beside this file whose `make(order)` returns an object with `facts`, a
            dictionary, and `run(steps)`, which returns another one.
        order: What `make` gets; a dictionary that JSON can hold.
        cores: Processors that it is pinned to, and threads.
        python: The Python that runs it.

    Attributes:
        facts: The object's facts, and `start_bytes`, the memory of the process before `make`.

    Raises:
        BenchmarkError: If the process ends by itself.
    """

    def __init__(self, name, module, order, cores, python=sys.executable):
        self.name = name
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - see close
        self._process = subprocess.Popen(
            [python, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **_environment(cores)},
            text=True,
        )
        first = {"module": module, "order": order, "cpus": processors(cores)}
        try:
            self.facts = self._ask(first)
        except BaseException:
            self.close()
            raise

    def run(self, steps):
        """Runs steps. Returns what the object reports of them, `seconds` and `peak_bytes`."""
        return self._ask({"steps": steps})

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ask(self, request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise BenchmarkError(f"{self.name} ended: {self._last_words()}")
        return json.loads(answer)

    def _last_words(self):
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().split("\n")
        # A message may have several lines; the last one that is not indented begins it.
        messages = [line for line in lines if line.strip() and not line.startswith(" ")]
        return f"{messages[-1] if messages else 'it wrote no message'} (exit status {code})"


def task_order(task, precision, cores):
    """What a peer gets: the fields of the task, the precision, the number of threads."""
    return {"task": dataclasses.asdict(task), "precision": precision, "cores": cores}


def _environment(cores):
    """Settings that libraries read when they are loaded."""
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
         "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
        str(cores),
    )  # fmt: skip
    return {
        **threads,
        "CUDA_VISIBLE_DEVICES": "",
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
