"""Requests per second, latency and memory of `keras-transformer serve`, beside calls in a loop.

    python benchmarks/server.py MODEL --lines FILE --languages en,de

Starts the server for a model that translates, and sends the lines of a file, one in each request,
from several numbers of clients, which keep their connections open. Another process calls the same
model in a loop, with one text a call and with a whole batch. Server and loop run on the first
processor, in turn, and the clients on the second one. `--memory N` then sends N requests of very
different lengths, and prints the memory of the server after each tenth of them. Linux only.
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import click
from command import processor_name
from rich.console import Console
from rich.table import Table

WARM_UP = 64  # requests before each measurement
BATCH = 32  # texts, the default of the server
BUSY_CLIENTS = 16  # in the measurement of memory


class Server:
    """The process of a server, on one processor, until the block ends.

    Args:
        model: The run or export.
        pair: Codes of the source and the target language. `None`: the model translates nothing.
        processor: Number of the processor.
        more: Further options of `keras-transformer serve`.

    Attributes:
        name: Name of the model in requests.
        port: Port of the server.
    """

    name = "model"

    def __init__(
        self, model: str, pair: tuple[str, str] | None, processor: int, more: Sequence[str] = ()
    ):
        pair = pair or ()
        options = zip(("--source-language", "--target-language"), pair, strict=False)
        languages = ["--name", self.name, *(word for option in options for word in option)]
        command = [sys.executable, "-m", "keras_transformer", "serve", model, "--quiet"]
        self._command = [*command, "--port", "0", "--batch-size", str(BATCH), *languages, *more]
        self._processor, self._pair = processor, dict(zip(("source", "target"), pair, strict=False))

    def __enter__(self) -> "Server":
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        pin(self._processor, self.process.pid)
        lines = []
        for line in self.process.stderr:
            if started := re.search(r"^serving .*:(\d+)$", line):
                self.port = int(started[1])
                return self
            lines.append(line)
        raise SystemExit(f"the server did not start: {''.join(lines)}")

    def __exit__(self, *error: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60):
            raise SystemExit(f"the server ended with status {self.process.returncode}")

    def megabytes(self) -> float:
        """Returns the resident memory of the process."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1000

    def answers(self, inputs, clients):
        """Returns the translation of each input, the seconds of each request, and those of all.

        Args:
            inputs: Texts or lists of texts, one for each request.
            clients: Number of connections, each of which sends its next request after an answer.
        """
        local, opened = threading.local(), []

        def ask(text):
            if not hasattr(local, "connection"):
                local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
                opened.append(local.connection)
            body, begin = json.dumps({"q": text, **self._pair}), time.perf_counter()
            headers = {"content-type": "application/json"}
            local.connection.request("POST", "/translate", body, headers)
            response = local.connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                raise SystemExit(f"status {response.status}: {answer}")
            return answer["translatedText"], time.perf_counter() - begin

        begin = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(clients) as threads:
            translations, seconds = zip(*threads.map(ask, inputs), strict=True)
        for connection in opened:
            connection.close()
        return translations, seconds, time.perf_counter() - begin


def pin(processor, process=0):
    """Restricts a process, by default this one, to a processor."""
    os.sched_setaffinity(process, [processor])


@contextlib.contextmanager
def looping(model, processor):
    """A context with a function like `Server.answers`, which calls the model in another process."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn, _load, (model, processor)) as pool:
        yield lambda inputs, size: pool.submit(_call, inputs, size).result()


def _load(model, processor):
    global _opened
    pin(processor)
    import keras_transformer

    _opened = keras_transformer.open(model)


def _call(inputs, size):
    """Returns the results of `Server.answers`, from calls with `size` inputs."""
    translations, seconds, begin = [], [], time.perf_counter()
    for first in range(0, len(inputs), size):
        called, batch = time.perf_counter(), inputs[first : first + size]
        translations += _opened(batch)
        seconds += [time.perf_counter() - called] * len(batch)
    return translations, seconds, time.perf_counter() - begin


def measure(cases, lines, requests, repeats):
    """Returns the requests per second of each repeat, all times and all answers, by name.

    Args:
        cases: Functions of inputs, by name, that return what `Server.answers` does.
        lines: The texts.
        requests: Number of requests of a repeat.
        repeats: Number of repeats, in each of which all cases have their turn.
    """
    inputs = list(itertools.islice(itertools.cycle(lines), requests))
    results = {name: ([], [], {}) for name in cases}
    for repeat in range(repeats + 1):
        for name, answers in cases.items():
            translations, seconds, total = answers(inputs if repeat else inputs[:WARM_UP])
            if repeat:
                rates, times, known = results[name]
                rates.append(len(inputs) / total)
                times += seconds
                known.update(zip(inputs, translations, strict=True))
    return results


def show(results, alone):
    """Prints a table of results; `alone` names the case whose answers the others should have."""
    table = Table("", "requests/s", "p50, ms", "p99, ms", "other answers")
    expected = results[alone][2]
    for name, (rates, times, answers) in results.items():
        cuts = statistics.quantiles(times, n=100)
        other = sum(answers[text] != expected[text] for text in expected)
        rate = f"{statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f})"
        shown = f"{other} of {len(expected)}"
        table.add_row(name, rate, f"{1000 * cuts[49]:.1f}", f"{1000 * cuts[98]:.1f}", shown)
    Console(width=100).print(table)


def varied(lines, count):
    """Returns inputs of requests: lines, and in a tenth lists of 1 to 4 texts of 0 to 5 lines."""
    rng = random.Random(1)
    return [
        [" ".join(rng.sample(lines, rng.randint(0, 5))) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.1
        else rng.choice(lines)
        for _ in range(count)
    ]


def pair(context, parameter, value):
    """The callback of an option with two codes of languages."""
    codes = tuple(value.split(","))
    if len(codes) != 2:
        raise click.BadParameter("must be two codes, such as en,de.")
    return codes


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("model", type=click.Path(exists=True))
@click.option("--lines", required=True, type=click.File(encoding="utf-8"), help="File of texts.")
@click.option("--languages", default="en,de", callback=pair, help="Codes of both languages.")
@click.option("--requests", default=1000, type=click.IntRange(2), help="Requests of a repeat.")
@click.option("--repeats", default=3, type=click.IntRange(1), help="Number of repeats.")
@click.option("--clients", default="1,8,64", help="Numbers of connections.")
@click.option("--memory", default=0, metavar="N", help="Requests of the measurement of memory.")
# fmt: on
def main(model, lines, languages, requests, repeats, clients, memory):
    """Measure a server for MODEL, a run or an export that translates."""
    lines = lines.read().splitlines()
    print(processor_name(), flush=True)
    first, *others = sorted(os.sched_getaffinity(0))
    with Server(model, languages, first) as server:
        pin(others[0] if others else first)
        with looping(model, first) as loop:
            alone = "loop, 1 text a call"
            cases = {alone: lambda texts: loop(texts, 1)}
            cases[f"loop, {BATCH} texts a call"] = lambda texts: loop(texts, BATCH)
            for count in map(int, clients.split(",")):
                name = f"server, {count} clients"
                cases[name] = lambda texts, count=count: server.answers(texts, count)
            show(measure(cases, lines, requests, repeats), alone)
        inputs = varied(lines, memory)
        tenth = -(-memory // 10)
        for begin in range(0, memory, tenth or 1):
            server.answers(inputs[begin : begin + tenth], BUSY_CLIENTS)
            done = min(begin + tenth, memory)
            print(f"{done:,} requests: {server.megabytes():,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
