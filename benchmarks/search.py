"""Speed, memory and recall of `search`: exact, with a graph, and with postings of sparse vectors.

    keras-transformer index RUN --input texts.txt --output INDEX --approximate
    python benchmarks/search.py INDEX RUN queries.txt

`benchmarks/search_texts.py` writes the files of texts. The queries are embedded first, which is not
measured. Times are processor times, medians of the passes of each way in turn: the exact search of
dense vectors or of vectors of tokens, and the graph if there is one; or the search with postings,
and dot products with all vectors for comparison.
"""

import resource
import statistics
import time

import click
import numpy as np

import keras_transformer
from keras_transformer.retrieval.index import TextIndex
from keras_transformer.retrieval.nearest import best
from keras_transformer.text.lines import read_lines

TOP = 10
BATCHES = (1, 64)


def every_product(index):
    """Returns a search that multiplies a query with all weights of all texts."""
    tokens, rows, weights = [], [], []
    for postings in index.searcher.segments:
        tokens.append(np.repeat(np.arange(len(postings.offsets) - 1), np.diff(postings.offsets)))
        rows.append(np.asarray(postings.rows))
        weights.append(np.asarray(postings.weights, "float64"))
    tokens, rows, weights = map(np.concatenate, (tokens, rows, weights))

    def nearest(queries):
        found = []
        for query in queries:
            dense = np.zeros(tokens.max() + 1)
            known = query.ids <= tokens.max()
            dense[query.ids[known]] = query.weights[known]
            scores = np.bincount(rows, dense[tokens] * weights, len(index)).astype("float32")
            few = np.flatnonzero(scores > 0)
            found.append(best(scores[few][None], few[None], TOP).rows[0])
        return found

    return nearest


def ways_of(index):
    """Returns functions from encoded queries to the rows of their texts, the exact one first."""

    def exact(queries):
        return [found.rows for found in index.nearest(queries, TOP, exact=True)]

    def graph(queries):
        return [found.rows for found in index.nearest(queries, TOP)]

    if index.store.kind.name == "sparse":
        return {"all products": every_product(index), "postings": exact}
    return {"exact": exact, "graph": graph} if index.has_graph else {"exact": exact}


def seconds_of(search, queries, batch):
    """Returns the processor time to search all queries, `batch` at a time."""
    begin = time.process_time()
    for first in range(0, len(queries), batch):
        search(queries[first : first + batch])
    return time.process_time() - begin


@click.command(context_settings={"show_default": True})
@click.argument("folder", metavar="INDEX")
@click.argument("run")
@click.argument("texts", metavar="QUERIES")
@click.option("--queries", default=1000, type=click.IntRange(1), help="Number of queries.")
@click.option("--passes", default=5, type=click.IntRange(1), help="Number of passes of each way.")
def main(folder, run, texts, queries, passes):
    """Measure the search of INDEX, which RUN built, for lines of the file QUERIES."""
    model = keras_transformer.open(run)
    texts = read_lines(texts)
    texts = texts[:: max(1, len(texts) // queries)][:queries]
    index = TextIndex(folder)
    encoded = index.store.kind.encode_queries(model, texts, 64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = sum(path.stat().st_size for path in index.store.folder.iterdir())
    print(f"{len(index):,} texts, {index.described}, {size / 1e6:.1f} MB on disk")
    ways = ways_of(index)
    for batch in BATCHES:
        times = {name: [] for name in ways}
        for _ in range(passes):
            for name, search in ways.items():
                times[name].append(seconds_of(search, encoded, batch))
        rates = {name: len(encoded) / statistics.median(x) for name, x in times.items()}
        shown = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        print(f"batches of {batch}, queries a second: {shown}")
    wanted, *others = ([*search(encoded)] for search in ways.values())
    for found in others:
        shares = [
            len({*ours} & {*theirs}) / max(1, len(ours))
            for ours, theirs in zip(wanted, found, strict=True)
        ]
        print(f"share of the {TOP} nearest texts that are found: {np.mean(shares):.4f}")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory: {(after - before) / 1024:,.0f} MiB more than with the model alone")


if __name__ == "__main__":
    main()
