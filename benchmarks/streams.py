"""Tokens per second of the streams of `keras-transformer serve`, from several clients at a time.

    python benchmarks/streams.py RUN --clients 1,4,8
    python benchmarks/streams.py RUN --clients 1,4,8 --max-streams 1

Starts the server for RUN, a language model with a chat template, and asks it questions in streamed
chats, each from a client of its own. All clients begin at the same time, and the tokens of all are
counted until the last one has ended. The server runs on the first processor and the clients on the
second one. Its own processor time is measured as well, which other programs on the machine affect
less than wall-clock time. Each answer is compared with the one that a single client got. With
`--max-streams 1`, the server generates one text at a time, and the other clients wait. Linux only.
"""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import statistics
import threading
import time

import click
from command import processor_name
from rich.console import Console
from rich.table import Table
from server import Server, pin

SUBJECTS = ["sky", "sea", "moon", "desert", "forest", "river", "mountain", "city"]
QUESTIONS = [
    "Why is the {} so interesting?",
    "Write a short story about a child and the {}.",
    "Explain to a student what one can learn from the {}, in several steps, with an example.",
]
TICKS = os.sysconf("SC_CLK_TCK")


def questions(count):
    """Returns different questions of different lengths."""
    rng = random.Random(0)
    found = [question.format(subject) for subject in SUBJECTS for question in QUESTIONS]
    rng.shuffle(found)
    return [found[number % len(found)] for number in range(count)]


def processor_seconds(process):
    """Returns the processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def answer(server, question, sampling, barrier):
    """Returns the text, the number of tokens, and the seconds until the first one."""
    body = {
        "model": server.name,
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampling,
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    with contextlib.closing(connection):
        connection.connect()
        barrier.wait()
        begin, first, text = time.perf_counter(), None, ""
        headers = {"content-type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(f"status {response.status}: {response.read().decode()}")
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise SystemExit(event["error"]["message"])
            first = first or time.perf_counter() - begin
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
        return text, event["usage"]["completion_tokens"], first


def together(server, asked, sampling):
    """Returns the answers of clients that begin together, the seconds, and processor seconds."""
    barrier = threading.Barrier(len(asked))
    used, begin = processor_seconds(server.process.pid), time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(asked)) as threads:
        found = [threads.submit(answer, server, text, sampling, barrier) for text in asked]
        answers = [one.result() for one in found]
    seconds = time.perf_counter() - begin
    return answers, seconds, processor_seconds(server.process.pid) - used


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(exists=True))
@click.option("--clients", default="1,4,8", help="Numbers of clients.")
@click.option("--tokens", default=64, type=click.IntRange(1), help="Maximum tokens of an answer.")
@click.option("--temperature", default=0.0, type=click.FloatRange(0), help="0: greedy search.")
@click.option("--questions", "count", default=8, type=click.IntRange(1),
              help="Number of questions, which all numbers of clients ask.")
@click.option("--max-streams", default=8, type=click.IntRange(1),
              help="Texts that the server generates at a time; 1: no batches.")
@click.option("--repeats", default=3, type=click.IntRange(1), help="Number of repeats.")
# fmt: on
def main(run, clients, tokens, temperature, count, max_streams, repeats):
    """Measure the streams of a server for RUN."""
    print(processor_name(), flush=True)
    sampling = {"max_tokens": tokens, "temperature": temperature, "seed": 1}
    first, *others = sorted(os.sched_getaffinity(0))
    sizes, asked = sorted({1, *map(int, clients.split(","))}), questions(count)
    rates, known, other = collections.defaultdict(list), {}, collections.Counter()
    with Server(run, None, first, ["--max-streams", str(max_streams)]) as server:
        pin(others[0] if others else first)
        together(server, asked[:1], {**sampling, "max_tokens": 2})
        for _ in range(repeats):
            for size in sizes:
                written, waited, total, used = 0, [], 0.0, 0.0
                for begin in range(0, count, size):
                    part = asked[begin : begin + size]
                    answers, seconds, processor = together(server, part, sampling)
                    for question, (text, number, until) in zip(part, answers, strict=True):
                        other[size] += known.setdefault(question, text) != text
                        written += number
                        waited.append(until)
                    total, used = total + seconds, used + processor
                rates[size].append((written / total, written / used, statistics.median(waited)))
    titles = ["tokens/s", "tokens/s of processor time", "first token, s"]
    table = Table("clients", *titles, "other answers")
    for size in sizes:
        columns = [statistics.median(column) for column in zip(*rates[size], strict=True)]
        shown = [f"{value:.1f}" for value in columns[:2]] + [f"{columns[2]:.2f}"]
        table.add_row(str(size), *shown, f"{other[size]} of {repeats * count}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
