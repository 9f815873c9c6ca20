"""Tokenizers in the graph against the package `tokenizers`: equal ids, and speed.

    KERAS_TRANSFORMER_DATA=... python benchmarks/tokenization.py --texts 1000000 --python PYTHON

For each kind of tokenizer it trains a vocabulary on Multi30K and on random texts, and compares the
ids of random texts that tokenizers find hard (see `random_texts.py`) one by one. Invalid UTF-8,
which `tokenizers` does not take, is given to it as Python decodes it. SentencePiece's own package
defines the ids of its vocabularies, so they are compared with that too, and the differences from
`tokenizers` are counted by their reason. Then it measures the speed on the lines of Multi30K and
on random texts: ours with all texts in one batch, the package's `encode_batch` without and with
TOKENIZERS_PARALLELISM. Start it with `taskset` to pin all of them to one processor.
"""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import click
import numpy as np
import tensorflow as tf
from command import RESULTS, describe_machine, names
from random_texts import hostile
from rich.console import Console
from rich.table import Table
from tokenization_vocabularies import INVALID, KINDS, TEXT, TIE, UNKNOWN

PEER = pathlib.Path(__file__).with_name("tokenization_peer.py")
SHARD, SHARD_BYTES = 10_000, 1_000_000  # texts that are compared at a time, and their size
TIMED = 20_000  # random texts whose speed is measured
SHOWN = 5  # differences that are shown
TRAINING_SEED, TIMED_SEED = 1, 2  # of other texts than those that are compared


class PeerProcess:
    """A process of `tokenization_peer.py`, which answers orders.

    Args:
        python: The Python to run it with.
        parallel: Whether the package uses all processors.
    """

    def __init__(self, python, parallel=False):
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "true" if parallel else "false"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([python, PEER], env=environment, text=True, **pipes)

    def ask(self, do, **order):
        """Returns the answer to an order."""
        self._process.stdin.write(json.dumps({"do": do, **order}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise click.ClickException(f"{PEER.name} has ended: see its message above.")
        return json.loads(answer)

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--kinds", callback=names(KINDS), default=",".join(KINDS),
              help="Kinds of tokenizers.")
@click.option("--texts", "count", type=click.IntRange(1), default=1_000_000,
              help="Number of random texts to compare, for each kind.")
@click.option("--pieces", type=click.IntRange(400), default=30_000, help="Size of a vocabulary.")
@click.option("--trained-on", type=click.IntRange(0), default=50_000,
              help="Number of random texts that a vocabulary is trained on, besides Multi30K.")
@click.option("--seed", type=click.IntRange(10), default=10, help="Seed of the compared texts.")
@click.option("--repeats", type=click.IntRange(1), default=5, help="Measurements of each speed.")
@click.option("--python", default=sys.executable, help="Python in which `tokenizers` is installed.")
@click.option("--data", envvar="KERAS_TRANSFORMER_DATA", required=True,
              type=click.Path(path_type=pathlib.Path, exists=True),
              help="Folder with multi30k/train.en and train.de.")
@RESULTS
# fmt: on
def main(kinds, count, pieces, trained_on, seed, repeats, python, data, output):
    """Compare tokenizers in the graph with the package tokenizers."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    lines = [
        line
        for language in ("en", "de")
        for line in (data / f"multi30k/train.{language}").read_text(encoding="utf-8").split("\n")
    ]
    options = {"texts": count, "pieces": pieces, "trained_on": trained_on, "seed": seed}
    rows, report = [], {"machine": describe_machine(1), "settings": options}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        peers = {parallel: PeerProcess(python, parallel) for parallel in (False, True)}
        for peer in peers.values():
            stack.callback(peer.close)
        for kind in kinds:
            rows.append({"kind": kind, **_measure(kind, peers, folder, lines, options, repeats)})
            if output:  # after every kind, so that an interruption loses little
                output.write_text(json.dumps({**report, "kinds": rows}, indent=1) + "\n")
    _show(rows)


def _measure(kind, peers, folder, lines, options, repeats):
    """Returns the differences and the speeds of a kind."""
    texts, path = folder / "texts.json", folder / f"{kind}.json"
    trained = hostile(options["trained_on"], TRAINING_SEED, lines, longest=100, invalid=False)
    _write(texts, [*lines, *(text.decode() for text in trained)])
    tokenizer = KINDS[kind].make(peers[False], texts, options["pieces"], path)
    version = [peer.ask("open", path=str(path)) for peer in peers.values()][0]
    begin, done, wrong, reasons = time.perf_counter(), 0, 0, collections.Counter()
    for shard in _shards(hostile(options["texts"], options["seed"], lines)):
        ours = tokenizer.tokenize(tf.constant(shard))
        expected = KINDS[kind].expected(tokenizer, shard)
        wrong += sum(map(list.__ne__, ours.to_list(), expected)) if expected is not None else 0
        differences = _differences(peers[False], folder, shard, ours)
        texts_of = [text.decode("utf-8", "replace") for text, *_ in differences]
        prepared = peers[False].ask("prepare", texts=texts_of) if differences else []
        for (text, *rows), words in zip(differences, prepared, strict=True):
            reason = KINDS[kind].reason(tokenizer, text, *rows, words)
            reasons[reason] += 1
            if reasons[reason] <= SHOWN and reason == UNKNOWN:
                print(f"  {text[:200]!r}\n    ours   {rows[0][:40]}\n    theirs {rows[1][:40]}")
        done += len(shard)
        print(f"{kind}: {done:,} texts, {time.perf_counter() - begin:.0f} s; differ from "
              f"sentencepiece: {wrong}, from tokenizers: {dict(reasons)}", flush=True)  # fmt: skip
    corpora = {
        "lines": [line for line in lines if line],
        "random": [t.decode("utf-8", "replace") for t in hostile(TIMED, TIMED_SEED, lines)],
    }
    speeds = {name: _speeds(tokenizer, peers, texts, corpus, repeats)
              for name, corpus in corpora.items()}  # fmt: skip
    return {"pieces": tokenizer.vocab_size, "tokenizers": version, "texts": done,
            "differ": sum(reasons.values()), "reasons": reasons, "sentencepiece": wrong,
            "speeds": speeds}  # fmt: skip


def _differences(peer, folder, shard, ours):
    """Returns the texts whose ids differ from the peer's, with both rows of ids."""
    texts, path = folder / "shard.json", folder / "ids.npz"
    _write(texts, [text.decode("utf-8", "replace") for text in shard])
    peer.ask("encode", texts=str(texts), path=str(path))
    with np.load(path) as theirs:
        ids, lengths = theirs["ids"], theirs["lengths"]
    our_ids, our_lengths = ours.values.numpy(), ours.row_lengths().numpy()
    if np.array_equal(our_lengths, lengths) and np.array_equal(our_ids, ids):
        return []
    rows = zip(shard, _rows(our_ids, our_lengths), _rows(ids, lengths), strict=True)
    return [row for row in rows if row[1] != row[2]]


def _rows(ids, lengths):
    return [row.tolist() for row in np.split(ids, np.cumsum(lengths)[:-1])]


def _speeds(tokenizer, peers, path, corpus, repeats):
    """Returns texts a second: ours, and the package's without and with parallelism."""
    _write(path, corpus)
    batch = tf.constant(corpus)
    times = []
    for _ in range(repeats + 1):  # the first call also traces the graph
        begin = time.perf_counter()
        tokenizer.tokenize(batch).values.numpy()
        times.append(time.perf_counter() - begin)
    order = {"texts": str(path), "repeats": repeats}
    theirs = {f"parallel_{on}": len(corpus) / peer.ask("time", **order)
              for on, peer in peers.items()}  # fmt: skip
    return {"ours": len(corpus) / min(times[1:]), **theirs}


def _shards(texts):
    shard, size = [], 0
    for text in texts:
        if shard and (len(shard) == SHARD or size + len(text) > SHARD_BYTES):
            yield shard
            shard, size = [], 0
        shard.append(text)
        size += len(text)
    yield shard


def _write(path, texts):
    path.write_text(json.dumps(texts), encoding="utf-8")


def _show(rows):
    differences = Table(title="texts whose ids differ")
    for column in ("kind", "pieces", "texts", "from tokenizers", INVALID, TEXT, TIE, UNKNOWN,
                   "from sentencepiece"):  # fmt: skip
        differences.add_column(column, justify="left" if column == "kind" else "right")
    speeds = Table(title="texts a second: lines of Multi30K, and random texts")
    for column in ("kind", "lines: ours", "tokenizers", "parallel", "random: ours", "tokenizers",
                   "parallel"):  # fmt: skip
        speeds.add_column(column, justify="left" if column == "kind" else "right")
    for row in rows:
        counts = [row[name] for name in ("pieces", "texts", "differ")]
        counts += [row["reasons"][reason] for reason in (INVALID, TEXT, TIE, UNKNOWN)]
        differences.add_row(row["kind"], *(f"{n:,}" for n in (*counts, row["sentencepiece"])))
        measured = [row["speeds"][corpus].values() for corpus in ("lines", "random")]
        speeds.add_row(row["kind"], *(f"{speed:,.0f}" for both in measured for speed in both))
    console = Console(width=120)
    console.print(differences)
    console.print(speeds)


if __name__ == "__main__":
    main()
