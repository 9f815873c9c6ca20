"""A reranker of real texts: the titles and the long descriptions of Debian's packages.

    python benchmarks/reranking.py prepare Packages.xz Translation-en.xz ENCODER FOLDER
    keras-transformer train FOLDER/reranker.toml --output RERANKER
    python benchmarks/reranking.py measure FOLDER RERANKER

The two files are those of `debian_tags.py`. A query is the title of a package, and the relevant
passage is its long description, without the title. There is one package for each source, and
sources with equal titles or descriptions count once: the packages of a source often describe the
same program. A tenth of the sources are for the test, a twentieth for validation, the others for
training, so that neither queries nor passages of the test occur in training.

ENCODER is a run for sentence embeddings. `prepare` searches the passages of each split with it, and
those of the test also with BM25 (k1 = 1.2, b = 0.75, words in lower case). It writes to FOLDER
`train.tsv` and `dev.tsv`, each query with its passage and with `--negatives` others that are
drawn from the best `--depth`; `test.json`; and the configuration `reranker.toml`, which begins with
the weights of ENCODER.

`measure` prints, as JSON, the metrics of both searches alone, and those after RERANKER has sorted
the best `--depth` passages of each query.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib
import random
import re
import time

import numpy as np
from debian_tags import stanzas

import keras_transformer
from keras_transformer.tasks.scoring.metrics import reciprocal_rank

WORDS = 60  # of a passage
VALIDATION = 50  # queries
K1, B = 1.2, 0.75  # of BM25: Robertson and Zaragoza (2009), section 3.5
CONFIGURATION = """\
[task]
kind = "scoring"

[model]
start_from = {encoder}
parts = ["input", "encoder"]
pooling = "mean"

[data]
source = "text"
train = "train.tsv"
validation = "dev.tsv"
max_length = 128
batch_tokens = 4096

[schedule]
kind = "linear"
warmup_steps = 45
peak = 0.0001

[training]
updates = 450
precision = "auto"
validate_every = 150
checkpoint_every = 150
best_by = "loss"
final_model = "best"
"""


def packages_of(packages, translation):
    """Returns the title and the description of one package for each source, by source."""
    descriptions = {s["Description-md5"]: s["Description-en"] for s in stanzas(translation)}
    found = {}
    for stanza in sorted(stanzas(packages), key=lambda stanza: stanza["Package"]):
        name = stanza["Package"].strip()
        source = stanza.get("Source", name).split()[0]
        title, _, rest = descriptions.get(stanza["Description-md5"], "").partition("\n")
        words = [word for word in rest.split() if word != "."]  # a line of its own: a paragraph
        if title and words and (source not in found or name == source):
            found[source] = " ".join(title.split()), " ".join(words[:WORDS])
    unique, seen = {}, set()
    for source, pair in sorted(found.items()):
        keys = {text.casefold() for text in pair}
        if not keys & seen:
            unique[source] = pair
        seen |= keys
    return unique


def split_of(source):
    """Returns the split of a source."""
    place = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 20
    return "test" if place < 2 else "dev" if place == 2 else "train"


def dense_search(encoder, queries, passages, depth):
    """Returns the indices of the nearest passages of each query, the best first."""
    texts = [np.array([one.values for one in encoder.answer(t)]) for t in (queries, passages)]
    return np.argsort(-(texts[0] @ texts[1].T), axis=1, kind="stable")[:, :depth].tolist()


def bm25_search(queries, passages, depth):
    """Returns the indices of the best passages of each query by BM25, the best first."""

    def words(text):
        return re.findall(r"\w+", text.lower())

    counts = [collections.Counter(words(passage)) for passage in passages]
    lengths = np.array([sum(count.values()) for count in counts])
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    postings = collections.defaultdict(list)
    for number, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((number, times))
    found = []
    for query in queries:
        scores = np.zeros(len(passages))
        for word in {*words(query)} & {*postings}:
            rows, times = np.array(postings[word]).T
            weight = math.log(1 + (len(passages) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += weight * times * (K1 + 1) / (times + norms[rows])
        found.append(np.argsort(-scores, kind="stable")[:depth].tolist())
    return found


def prepare(options):
    """Writes the files."""
    rng, splits = random.Random(1), {"train": [], "dev": [], "test": []}
    for source, pair in packages_of(options.packages, options.translation).items():
        splits[split_of(source)].append(pair)
    for pairs in splits.values():
        rng.shuffle(pairs)
    print({split: len(pairs) for split, pairs in splits.items()}, flush=True)
    splits["train"] = splits["train"][: options.train]
    encoder = keras_transformer.open(options.encoder)
    options.folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", options.train), ("dev", VALIDATION)):
        queries, passages = zip(*splits[split], strict=True)
        lines = []
        for number, near in enumerate(dense_search(encoder, queries, passages, options.depth)):
            others = [other for other in near if other != number]
            chosen = rng.sample(others, min(options.negatives, len(others)))
            lines += [
                f"{queries[number]}\t{passages[other]}\t{int(other == number)}\n"
                for other in (number, *chosen)
            ]
        kept = lines[: count * (1 + options.negatives)]
        (options.folder / f"{split}.tsv").write_text("".join(kept), "utf-8")
    queries, passages = zip(*splits["test"], strict=True)
    queries = queries[: options.queries]
    dense = dense_search(encoder, queries, passages, options.depth)
    searches = {"BM25": bm25_search(queries, passages, options.depth), "encoder": dense}
    test = {"queries": queries, "passages": passages, "searches": searches}
    (options.folder / "test.json").write_text(json.dumps(test), "utf-8")
    name = json.dumps(str(pathlib.Path(options.encoder).resolve()))
    (options.folder / "reranker.toml").write_text(CONFIGURATION.format(encoder=name), "utf-8")


def metrics_of(order, wanted):
    """Returns metrics from 0 to 1 of passages in order, whose relevant one is `wanted`."""
    labels = [int(one == wanted) for one in order]
    rank = reciprocal_rank(labels, [-place for place in range(len(labels))])
    return {"mrr_at_10": rank, "recall_at_1": labels[0], "recall_of_all": sum(labels)}


def mean_of(rows):
    """Returns the means of metrics, from 0 to 100."""
    return {name: round(100 * float(np.mean([row[name] for row in rows])), 1) for name in rows[0]}


def changes(before, after):
    """Returns how many queries have a better, a worse and an equal rank of their passage."""
    pairs = zip(before, after, strict=True)
    gains = [new["mrr_at_10"] - old["mrr_at_10"] for old, new in pairs]
    better, worse = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
    return better, worse, len(gains) - better - worse


def measure(options):
    """Prints the metrics."""
    test = json.loads((options.folder / "test.json").read_text("utf-8"))
    queries, passages = test["queries"], test["passages"]
    reranker, results = keras_transformer.open(options.reranker), {}
    results["queries"], results["passages"] = len(queries), len(passages)
    for name, searched in test["searches"].items():
        pairs = [
            (query, passages[one])
            for query, found in zip(queries, searched, strict=True)
            for one in found
        ]
        begin = time.process_time()
        scores = iter(reranker.score(pairs))
        seconds = time.process_time() - begin
        before, after = [], []
        for number, found in enumerate(searched):
            own = [next(scores) for _ in found]
            order = [found[place] for place in np.argsort(np.negative(own), kind="stable")]
            before.append(metrics_of(found, number))
            after.append(metrics_of(order, number))
        results[name] = {
            "alone": mean_of(before),
            "reranked": mean_of(after),
            "better, worse, equal": changes(before, after),
            "pairs_per_second": round(len(pairs) / seconds, 1),
        }
    print(json.dumps(results, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    preparing = commands.add_parser("prepare")
    preparing.set_defaults(function=prepare)
    for name in ("packages", "translation", "encoder", "folder"):
        preparing.add_argument(name, type=str if name == "encoder" else pathlib.Path)
    preparing.add_argument("--train", type=int, default=6000, help="queries for training")
    preparing.add_argument("--queries", type=int, default=400, help="queries of the test")
    preparing.add_argument("--negatives", type=int, default=3, help="other passages of a query")
    preparing.add_argument("--depth", type=int, default=20, help="passages that a search returns")
    measuring = commands.add_parser("measure")
    measuring.set_defaults(function=measure)
    measuring.add_argument("folder", type=pathlib.Path)
    measuring.add_argument("reranker")
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
