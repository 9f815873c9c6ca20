"""Speed, memory and recall of `search`: exact, and with a graph.

    keras-transformer index RUN --input texts.txt --output INDEX --approximate
    python benchmarks/search.py INDEX RUN queries.txt

`benchmarks/search_texts.py` writes the files of texts. The queries are embedded first, which is not
measured. Times are medians of five passes, exact and approximate in turn.
"""

import resource
import statistics
import sys
import time

import numpy as np

import keras_transformer
from keras_transformer.retrieval.index import TextIndex
from keras_transformer.retrieval.probes import vectors_of
from keras_transformer.text.lines import read_lines

TOP, QUERIES, PASSES = 10, 1000, 5
BATCHES = (1, 64)


def seconds_of(index, vectors, batch, exact):
    """Returns the time to search all vectors, `batch` at a time."""
    begin = time.perf_counter()
    for first in range(0, len(vectors), batch):
        index.nearest(vectors[first : first + batch], TOP, exact)
    return time.perf_counter() - begin


def main(folder, run, queries):
    """Prints the figures."""
    model = keras_transformer.open(run)
    texts = read_lines(queries)
    texts = texts[:: max(1, len(texts) // QUERIES)][:QUERIES]
    vectors = vectors_of(model, texts)
    index = TextIndex(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{len(index):,} texts, {index.store.dimensions} features, {index.store.dtype}")
    for batch in BATCHES:
        times = {True: [], False: []}
        for _ in range(PASSES):
            for exact, seconds in times.items():
                seconds.append(seconds_of(index, vectors, batch, exact))
        rates = {exact: len(vectors) / statistics.median(x) for exact, x in times.items()}
        print(f"batches of {batch}: exact {rates[True]:,.0f} queries/s, graph {rates[False]:,.0f}")
    exact, found = (index.nearest(vectors, TOP, exact).rows for exact in (True, False))
    shares = [len({*ours} & {*theirs}) / TOP for ours, theirs in zip(exact, found, strict=True)]
    print(f"recall@{TOP} of the graph: {np.mean(shares):.4f}")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory: {(after - before) / 1024:,.0f} MiB more than with the model alone")


if __name__ == "__main__":
    main(*sys.argv[1:])
