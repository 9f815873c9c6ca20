# %% [markdown]
"""
# A label for every word

An encoder marks people and places where the word alone does not show which it is.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/token_classification.py
```

The page of this example shows the output of one run;
[the notebook](token_classification.ipynb) has the same
cells. The environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

"jordan met paris in florence": three words, each of which can be a person or a place. Only the
words around them show which. An encoder sees both sides of a word and gives each word a label:
`B-PER` and `I-PER` for the first and the other words of a person's name, `B-LOC` and `I-LOC` for a
place, `O` for the rest.

Texts have different lengths. Padding must change nothing: no word attends to it, and it counts in
neither loss nor accuracy. The end of this example checks that.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import collections
import os

import keras
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

from keras_transformer import EncoderBlock, PositionalEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 6))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data

`PER` and `LOC` in a pattern are replaced with names of one to three words. The same first words
occur in names of persons and of places.
"""

# %%
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
    """Returns words, and the label of each."""
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
    """Returns the numbers of names, `[B, T]`, with 0 after the end of each row."""
    numbers = {name: number for number, name in enumerate(names)}
    ids = np.zeros((len(rows), LENGTH), "int32")
    for row, items in zip(ids, rows, strict=True):
        row[: len(items)] = [numbers[item] for item in items]
    return ids


token_ids = padded([words for words, _ in texts], VOCABULARY)
labels = padded([labels for _, labels in texts], LABELS)  # 0 is "O" and padding alike
sample_weight = (token_ids != 0).astype("float32")
test, train = slice(held_out), slice(held_out, None)
print(f"{len(texts) - held_out} texts to train with, {held_out} held out, up to {LENGTH} words")

# %% [markdown]
"""
## Model

`mask` is boolean, `[B, T]`, and `True` where a word may be attended to. The blocks get
it.
"""

# %%
inputs = keras.Input((None,), dtype="int32")
mask = ops.not_equal(inputs, 0)  # [B, T]
x = PositionalEmbedding(len(VOCABULARY), d_model=48)(inputs)  # [B, T, D]
for _ in range(2):
    x = EncoderBlock(num_heads=4, d_ff=96)(x, mask=mask)  # [B, T, D]
model = keras.Model(inputs, keras.layers.Dense(len(LABELS))(x))  # [B, T, labels]

# %% [markdown]
"""
## Training

Padding has the index of the label `O` here, and most positions of a short text are padding. If they
counted, every metric would look better than it is. `sample_weight` `[B, T]` is 0 there. `metrics=`
would ignore it; `weighted_metrics=` does not.
"""

# %%
model.compile(
    keras.optimizers.Adam(0.002),
    keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    ),
    weighted_metrics=["accuracy"],
)
history = model.fit(
    token_ids[train],
    labels[train],
    sample_weight=sample_weight[train],
    batch_size=64,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
"""
## Evaluation

For comparison every word gets the label that it most often has in the training texts. Besides the
accuracy we report the F1 of whole names: a name counts if all of its words have the right labels.
"""


# %%
def names_in(row):
    """Returns start, end and kind of every name in a row of numbers of labels."""
    names, start = set(), None
    for position, label in enumerate([*(LABELS[number] for number in row), "O"]):
        if start is not None and not label.startswith("I-"):
            names.add((start, position, LABELS[row[start]][2:]))
            start = None
        if label.startswith("B-"):
            start = position
    return names


def report(title, predicted):
    """Prints accuracy and F1, which do not count padding."""
    predicted = np.where(token_ids[test] != 0, predicted, 0)
    right = (predicted == labels[test])[token_ids[test] != 0]
    hypotheses = [names_in(row) for row in predicted]
    references = [names_in(row) for row in labels[test]]
    both = sum(len(a & b) for a, b in zip(hypotheses, references, strict=True))
    f1 = 2 * both / (sum(map(len, hypotheses)) + sum(map(len, references)))
    print(f"{title}, accuracy: {right.mean():.3f}")
    print(f"{title}, F1 of names: {f1:.3f}")


counts = collections.defaultdict(collections.Counter)
for word, label in zip(token_ids[train].ravel(), labels[train].ravel(), strict=True):
    counts[word][label] += 1
most_frequent = np.array(
    [counts[word].most_common(1)[0][0] if counts[word] else 0 for word in range(len(VOCABULARY))]
)
report("Most frequent label of a word", most_frequent[token_ids[test]])
report("Encoder", model.predict(token_ids[test], verbose=0).argmax(axis=-1))

# %% [markdown]
"""
The first held-out text, with the probability of each label:
"""

# %%
words = texts[0][0]
probabilities = ops.softmax(model.predict(token_ids[:1], verbose=0)[0, : len(words)])  # [T, labels]
# Picture: Probabilities of the five labels for each word of a sentence. Each word has one label
# with nearly all of the probability.
plt.figure(figsize=(6, 2))
plt.imshow(np.transpose(probabilities), cmap="Blues", vmin=0, vmax=1)
plt.xticks(range(len(words)), words, rotation=90)
plt.yticks(range(len(LABELS)), LABELS)
plt.show()

# %% [markdown]
"""
With twenty more columns of padding the logits of the words stay the same:
"""

# %%
longer = np.pad(token_ids[test], [(0, 0), (0, 20)])
changes = model.predict(longer, verbose=0)[:, :LENGTH] - model.predict(token_ids[test], verbose=0)
print(f"Largest change of a logit by padding: {np.abs(changes[token_ids[test] != 0]).max():.6f}")

# %% [markdown]
"""
## Conclusion

The encoder distinguishes people from places by the words around them; in our run every word was
right. The held-out texts have the same patterns as the training texts, and only the names in them
differ: that makes this task far easier than names in newspapers.
"""

# %% [markdown]
"""
## Read next

- [Token classification](../token_classification.md): subwords and files in CoNLL's format.
- [Layers in a Keras program](../layers.md#masks): the masks of this package and of Keras.
"""
