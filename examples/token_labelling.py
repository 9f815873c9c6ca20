"""
Title: A label for every word
Date created: 2026/11/22
Last modified: 2026/11/22
Description: An encoder marks persons and places where the word alone does not tell which it is.
Accelerator: None
"""

"""
## Introduction

"jordan met paris in florence": three words of which each can be a person or a place. Only the words
around them show which. An encoder sees both sides of a word and gives each word a label: `B-PER`
and `I-PER` for the first and the other words of a person, `B-LOC` and `I-LOC` for those of a place,
`O` for the rest.

Texts have different lengths. Padding must change nothing: no word attends to it, and it counts in
neither loss nor accuracy. The end of this example checks that.
"""

"""
## Setup
"""

import collections
import os

import keras
import numpy as np
from keras import ops

from keras_transformer import EncoderBlock, PositionalEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 6))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

"""
## Data

`PER` and `LOC` in a pattern are replaced with names of one to three words. The same first
words occur in names of persons and of places.
"""

FIRST = """jordan paris florence sydney austin georgia dakota phoenix savannah brooklyn chelsea
madison lincoln jackson houston""".split()
SECOND = ["lee", "hill", "stone", "ford", "field", "brook", "wells", "marsh"]
PATTERNS = """PER met PER in LOC
PER moved from LOC to LOC
in LOC PER wrote a letter to PER
the mayor of LOC thanked PER for the visit
PER , who was born in LOC , lives near LOC
the train to LOC was late and PER waited
yesterday PER left LOC with PER
LOC is north of LOC
PER is older than PER
near LOC we saw PER and PER
the road from LOC to LOC was built by PER""".split("\n")
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def labelled_text():
    """Words, and the label of each."""
    words, labels = [], []
    for word in rng.choice(PATTERNS).split():
        if word in ("PER", "LOC"):
            name = [rng.choice(FIRST), *rng.choice(SECOND, size=rng.integers(0, 3))]
            words += name
            labels += [f"B-{word}"] + [f"I-{word}"] * (len(name) - 1)
        else:
            words.append(word)
            labels.append("O")
    return words, labels


texts = [labelled_text() for _ in range(6000)]
held_out = 1000
VOCABULARY = ["[PAD]", *sorted({word for words, _ in texts for word in words})]
LENGTH = max(len(words) for words, _ in texts)


def padded(rows, names):
    """Numbers of names, `[B, T]`, with 0 after the end of each row."""
    numbers = {name: number for number, name in enumerate(names)}
    ids = np.zeros((len(rows), LENGTH), "int32")
    for row, items in zip(ids, rows, strict=True):
        row[: len(items)] = [numbers[item] for item in items]
    return ids


tokens = padded([words for words, _ in texts], VOCABULARY)
labels = padded([labels for _, labels in texts], LABELS)  # 0 is "O" and padding alike
weights = (tokens != 0).astype("float32")
test, train = slice(held_out), slice(held_out, None)
print(f"{len(texts) - held_out} texts to train with, {held_out} held out, up to {LENGTH} words")

"""
## Model

`real` is boolean, `[B, T]`, and `True` where a word may be attended to.
"""

inputs = keras.Input((None,), dtype="int32")
real = ops.not_equal(inputs, 0)  # [B, T]
x = PositionalEmbedding(len(VOCABULARY), d_model=48)(inputs)  # [B, T, D]
for _ in range(2):
    x = EncoderBlock(num_heads=4, d_ff=96)(x, real)  # [B, T, D]
model = keras.Model(inputs, keras.layers.Dense(len(LABELS))(x))  # [B, T, labels]

"""
## Training

Padding has the number of the label `O` here, and most positions of a short text are padding:
counted, they would make every figure look better than it is. `sample_weight` `[B, T]` is 0 there.
`metrics=` would ignore it; `weighted_metrics=` does not.
"""

model.compile(
    keras.optimizers.Adam(0.002),
    keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    ),
    weighted_metrics=["accuracy"],
)
model.fit(
    tokens[train],
    labels[train],
    sample_weight=weights[train],
    batch_size=64,
    epochs=EPOCHS,
    verbose=2,
)

"""
## Evaluation

For comparison every word gets the label that it most often has in the training texts. Beside the
accuracy we report the F1 of whole names: a name counts if all of its words have the right labels.
"""


def names_in(row):
    """Start, end and kind of every name in a row of numbers of labels."""
    names, start = set(), None
    for place, label in enumerate([*(LABELS[number] for number in row), "O"]):
        if start is not None and not label.startswith("I-"):
            names.add((start, place, LABELS[row[start]][2:]))
            start = None
        if label.startswith("B-"):
            start = place
    return names


def report(title, predicted):
    predicted = np.where(tokens[test] != 0, predicted, 0)
    right = (predicted == labels[test])[tokens[test] != 0]
    ours = [names_in(row) for row in predicted]
    theirs = [names_in(row) for row in labels[test]]
    both = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
    f1 = 2 * both / (sum(map(len, ours)) + sum(map(len, theirs)))
    print(f"{title}, accuracy: {right.mean():.3f}")
    print(f"{title}, F1 of names: {f1:.3f}")


counts = collections.defaultdict(collections.Counter)
for word, label in zip(tokens[train].ravel(), labels[train].ravel(), strict=True):
    counts[word][label] += 1
most_frequent = np.array(
    [counts[word].most_common(1)[0][0] if counts[word] else 0 for word in range(len(VOCABULARY))]
)
report("Most frequent label of a word", most_frequent[tokens[test]])
report("Encoder", model.predict(tokens[test], verbose=0).argmax(axis=-1))

shown = model.predict(tokens[:1], verbose=0)[0].argmax(axis=-1)
for word, number in zip(texts[0][0], shown, strict=False):
    print(f"    {word:12} {LABELS[number]}")

"""
With twenty more columns of padding the logits of the words stay the same:
"""

longer = np.pad(tokens[test], [(0, 0), (0, 20)])
changes = model.predict(longer, verbose=0)[:, :LENGTH] - model.predict(tokens[test], verbose=0)
print(f"Largest change of a logit by padding: {np.abs(changes[tokens[test] != 0]).max():.6f}")

"""
## Conclusion

The encoder tells persons from places by the words around them; in our run every word was right. The
patterns of the held-out texts are those of the training texts, and only the names in them differ:
that makes this task far easier than names in newspapers.
"""
