"""Debian's packages as texts with several labels: their descriptions and their tags.

    python benchmarks/debian_tags.py Packages.xz Translation-en.xz FOLDER

The two files are those of a release, such as
http://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz and
http://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-en.xz. Writes `train.jsonl`,
`dev.jsonl` and `test.jsonl` to FOLDER: every package that has tags, with the first `--words` words
of its description and those of its tags that at least `--least` packages have, perhaps none.
Packages with the same text are one example, with the tags of all of them.

Prints on stdout, as JSON, the metrics on the test file of two baselines: the most frequent tags for
every package, as many as are best on the other files; and, if scikit-learn is installed, logistic
regression for each tag on weights of words and pairs of words (TF-IDF), with a threshold of 0.5 and
with the thresholds that are best for each tag on `dev.jsonl`.
"""

import argparse
import collections
import gzip
import hashlib
import json
import lzma
import pathlib
from typing import Any

import numpy as np

from keras_transformer.tasks.multi_label_classification.metrics import as_matrix, label_metrics
from keras_transformer.tasks.multi_label_classification.thresholds import (
    best_thresholds,
    thresholds_of,
)

SPLITS = ("train", "dev", "test")
OPENERS = {".xz": lzma.open, ".gz": gzip.open}
SPECIAL = "special::"  # tags about the state of the tags


def stanzas(path):
    """Yields the paragraphs of a file as dictionaries of fields."""
    fields: dict[str, str] = {}
    name = ""
    with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line == "\n":
                yield fields
                fields = {}
            elif line.startswith(" "):
                fields[name] += line
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip() + "\n"
    if fields:
        yield fields


def read_packages(packages, translation, longest):
    """Returns a dictionary from texts of at most `longest` words to sets of tags."""
    descriptions = {s["Description-md5"]: s["Description-en"] for s in stanzas(translation)}
    found: dict[str, set] = {}
    for stanza in stanzas(packages):
        if "Tag" not in stanza or stanza["Description-md5"] not in descriptions:
            continue
        words = descriptions[stanza["Description-md5"]].split()
        words = [word for word in words if word != "."]  # a line of its own: a paragraph
        text = " ".join(words[:longest])
        tags = (tag.strip() for tag in stanza["Tag"].split(","))
        found.setdefault(text, set()).update(t for t in tags if not t.startswith(SPECIAL))
    return found


def split_of(text) -> str:
    """Returns the split of a description: a tenth each for dev and test."""
    place = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 10
    return SPLITS[2 - place] if place < 2 else SPLITS[0]


def most_frequent(sets, labels):
    """Returns the metrics of the most frequent labels for every text."""
    matrices = {split: as_matrix(rows, labels) for split, rows in sets.items()}
    known = np.concatenate([matrices["train"], matrices["dev"]])
    order = np.argsort(-known.sum(axis=0), kind="stable")

    def predicted(count, rows):
        return np.tile(np.isin(np.arange(len(labels)), order[:count]), (rows, 1))

    micro = [
        label_metrics(predicted(n, len(known)), known, labels)["micro_f1"] for n in range(1, 6)
    ]
    count = 1 + int(np.argmax(micro))
    test = matrices["test"]
    return {"tags": count, **label_metrics(predicted(count, len(test)), test, labels)}


def regression(texts, sets, labels) -> dict[str, Any]:
    """Returns the metrics of logistic regressions on TF-IDF, one for each label."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    features = {split: None for split in SPLITS}
    features["train"] = words.fit_transform(texts["train"])
    for split in ("dev", "test"):
        features[split] = words.transform(texts[split])
    matrices = {split: as_matrix(rows, labels) for split, rows in sets.items()}
    model = OneVsRestClassifier(LogisticRegression(C=10, max_iter=200, solver="liblinear"))
    model.fit(features["train"], matrices["train"].astype(int))
    dev, test = (model.predict_proba(features[split]) for split in ("dev", "test"))
    results = {}
    for aim in ("half", "label_f1"):
        best = 0.5 if aim == "half" else best_thresholds(dev, matrices["dev"], labels, aim)
        predicted = test >= np.array(thresholds_of(best, labels))
        results[aim] = label_metrics(predicted, matrices["test"], labels)
    return results


def shown(metrics):
    """Returns metrics without those of each label."""
    return {name: value for name, value in metrics.items() if name != "per_label"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("translation", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--least", type=int, default=100, help="packages that a tag must have")
    parser.add_argument("--words", type=int, default=16, help="words of a description")
    options = parser.parse_args()
    found = read_packages(options.packages, options.translation, options.words)
    counts = collections.Counter(tag for tags in found.values() for tag in tags)
    labels = sorted(tag for tag, count in counts.items() if count >= options.least)
    known, texts, sets = {*labels}, {s: [] for s in SPLITS}, {s: [] for s in SPLITS}
    for text, tags in found.items():
        split = split_of(text)
        texts[split].append(text)
        sets[split].append(sorted(tags & known))
    options.folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        rows = zip(texts[split], sets[split], strict=True)
        lines = (json.dumps({"text": text, "labels": tags}) for text, tags in rows)
        (options.folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    results = {
        "texts": {split: len(rows) for split, rows in texts.items()},
        "tags": len(labels),
        "most frequent": shown(most_frequent(sets, labels)),
    }
    try:
        results["regression"] = {k: shown(v) for k, v in regression(texts, sets, labels).items()}
    except ImportError:
        results["regression"] = "scikit-learn is missing"
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
