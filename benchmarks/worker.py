"""Program of a `workers.Worker` process: reads requests from stdin and answers on stdout."""

import importlib
import json
import os
import resource
import sys
import time


def main():
    """Builds the object that the first line describes, then runs steps until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for an answer

    def answer(**results):
        answers.write(json.dumps(results) + "\n")
        answers.flush()

    first = json.loads(sys.stdin.readline())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, first["cpus"])  # before any library starts its threads
    module = importlib.import_module(first["module"])
    start = peak_bytes()
    measured = module.make(first["order"])
    answer(start_bytes=start, **measured.metadata)
    for line in sys.stdin:
        steps = json.loads(line)["steps"]
        begin, begin_processor = time.perf_counter(), time.process_time()
        results = measured.run(steps)
        seconds = time.perf_counter() - begin
        own = time.process_time() - begin_processor
        answer(**{"seconds": seconds, "processor_seconds": own, **results}, peak_bytes=peak_bytes())


def peak_bytes():
    """Returns the peak memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
