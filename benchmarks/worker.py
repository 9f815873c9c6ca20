"""The other end of `workers.Worker`: reads requests from stdin and answers on stdout."""

import importlib
import json
import os
import resource
import sys
import time


def main():
    """Builds what the first line asks for, then runs steps until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like an answer

    def answer(**figures):
        answers.write(json.dumps(figures) + "\n")
        answers.flush()

    first = json.loads(sys.stdin.readline())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, first["cpus"])  # before any library starts its threads
    module = importlib.import_module(first["module"])
    start = peak_bytes()
    measured = module.make(first["order"])
    answer(start_bytes=start, **measured.facts)
    for line in sys.stdin:
        steps = json.loads(line)["steps"]
        begin = time.perf_counter()
        figures = measured.run(steps)
        seconds = time.perf_counter() - begin
        answer(seconds=seconds, peak_bytes=peak_bytes(), **figures)


def peak_bytes():
    """The most memory that this process has ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
