"""Worker processes, each of which holds one object to measure and runs steps of it on request.

Frameworks must not share a process: their thread pools would compete, and their peak memory could
not be separated. All workers of a comparison are alive at the same time, but only one of them runs.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from measurements import BenchmarkError

WORKER = pathlib.Path(__file__).with_name("worker.py")


def processors(cores):
    """Returns the numbers of the processors to pin to: the first `cores` available ones.

    Raises:
        BenchmarkError: If fewer are available.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
    else:  # macOS can limit the number of threads but not pin them
        allowed = list(range(os.cpu_count()))
    if cores > len(allowed):
        raise BenchmarkError(
            f"`--cores` must be at most {len(allowed)}, the number of available processors. "
            f"Received: {cores}."
        )
    return allowed[:cores]


class Worker:
    """A process that holds the object returned by a module's `make`, and runs its steps.

    Requests and answers are lines of JSON. Use it as a context manager.

    Args:
        name: Name for error messages.
        module: Module in this folder whose `make(order)` returns an object with `metadata`, a
            dictionary, and `run(steps)`, which returns a dictionary of results.
        order: Argument of `make`, a dictionary of plain values.
        cores: Number of processors to pin the process to, and of its threads.
        python: Path of the Python interpreter.
        gpu: Whether the process may use GPUs.

    Attributes:
        metadata: The object's metadata, and `start_bytes`, the memory of the process before `make`.

    Raises:
        BenchmarkError: If the process ends by itself.
    """

    def __init__(self, name, module, order, cores, python=sys.executable, gpu=False):
        self.name = name
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - see close
        self._process = subprocess.Popen(
            [python, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **_environment(cores, gpu)},
            text=True,
        )
        first = {"module": module, "order": order, "cpus": processors(cores)}
        try:
            self.metadata = self._ask(first)
        except BaseException:
            self.close()
            raise

    def run(self, steps):
        """Runs steps; returns the results of the object, `seconds` and `peak_bytes`."""
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
        # A message may have several lines; it begins with the last line that is not indented.
        messages = [line for line in lines if line.strip() and not line.startswith(" ")]
        return f"{messages[-1] if messages else 'it wrote no message'} (exit status {code})"


def task_order(task, precision, cores):
    """Returns the order of a peer: the task's fields, the precision and the number of threads."""
    return {"task": dataclasses.asdict(task), "precision": precision, "cores": cores}


def _environment(cores, gpu):
    """Returns environment variables that libraries read when they are imported."""
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
         "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
        str(cores),
    )  # fmt: skip
    return {
        **threads,
        **({} if gpu else {"CUDA_VISIBLE_DEVICES": ""}),
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
