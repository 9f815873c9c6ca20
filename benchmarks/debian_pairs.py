"""Debian's packages as pairs of texts: the title of a package and its long description.

    python benchmarks/debian_pairs.py Packages.xz Translation-en.xz FOLDER

The two files are those of `debian_tags.py`, the splits those of `reranking.py`: no package of the
test occurs in training. Writes `train.tsv`, `dev.tsv` and `test.tsv` to FOLDER, in the form of
`keras-transformer train` for vectors of texts, sparse vectors and vectors of tokens.

Prints the metrics of BM25 on `test.tsv`, as JSON, under the names of `keras-transformer evaluate`:
each title is searched for among all descriptions of the file.
"""

import argparse
import json
import pathlib
import random

from reranking import bm25_search, mean_of, metrics_of, packages_of, split_of

DEPTH = 10  # descriptions whose order is measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("packages", "translation", "folder"):
        parser.add_argument(name, type=pathlib.Path)
    options = parser.parse_args()
    rng, splits = random.Random(1), {"train": [], "dev": [], "test": []}
    for source, pair in packages_of(options.packages, options.translation).items():
        splits[split_of(source)].append(pair)
    options.folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in splits.items():
        rng.shuffle(pairs)
        text = "".join(f"{title}\t{description}\n" for title, description in pairs)
        (options.folder / f"{split}.tsv").write_text(text, "utf-8")
    titles, descriptions = zip(*splits["test"], strict=True)
    orders = bm25_search(titles, descriptions, DEPTH)
    metrics = mean_of([metrics_of(order, wanted) for wanted, order in enumerate(orders)])
    metrics["recall_at_10"] = metrics.pop("recall_of_all")
    counts = {split: len(pairs) for split, pairs in splits.items()}
    print(json.dumps({"pairs": counts, "BM25": metrics}, indent=2))


if __name__ == "__main__":
    main()
