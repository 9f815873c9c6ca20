# %% [markdown]
"""
# Word vectors that were trained elsewhere

A frozen table in GloVe's format lets an encoder understand words without an example.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/word_vectors.py
```

The page of this example shows the output of one run;
[the notebook](word_vectors.ipynb) has the same cells. The
environment variable `EPOCHS` makes training shorter or longer. Set `DATA` to the path of a file
in GloVe's format to use other vectors.
"""

# %% [markdown]
"""
## Introduction

Vectors of words that were trained on a lot of text place similar words near each other. With such a
table a model can handle words that are in none of its own examples. We show this with a table that
is frozen, that is, not trained any further, beside a table that the model learns from its examples.

The vectors are generated here, in the format of GloVe: a word and its values on each line. They
are not GloVe's own; words of one kind are near each other by construction. Set `DATA` to the path
of a real file, such as `glove.6B.50d.txt`, to use that.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import os
import pathlib
import tempfile

import keras
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

from keras_transformer import EncoderBlock
from keras_transformer.layers import SeriesEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 15))
DATA = os.environ.get("DATA")
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data

Half of the words of each kind are in the training texts, the others only in held-out texts. A text
is positive if its only adjective is positive, unless "not" or "never" comes right before it; any
other "not" is ignored.
"""

# %%
KINDS = {
    "positive": """good great excellent wonderful beautiful perfect lovely happy brilliant superb
fantastic pleasant delightful charming""",
    "negative": """bad terrible awful horrible ugly poor nasty sad dreadful boring dull unpleasant
disgusting miserable""",
    "thing": "movie film book story song play novel show concert poem album picture",
    "person": "man woman critic teacher actor writer director student singer reader",
}
KINDS = {kind: words.split() for kind, words in KINDS.items()}
COMMON = ["the", "was", "never", "not", "and", "this", "says", "it", "our"]


def write_vectors(path, width=50):
    """Writes a file in GloVe's format, in which words of one kind are near each other."""
    lines = []
    for words in [*KINDS.values(), *([word] for word in COMMON)]:
        center = rng.normal(size=width)
        for word in words:
            numbers = center + 0.7 * rng.normal(size=width)
            lines.append(" ".join([word, *(f"{number:.4f}" for number in numbers)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_vectors(path, vocabulary):
    """Returns a table `[V, width]` for the words of a vocabulary; all must be in the file."""
    vectors = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.rstrip().split(" ")
            if word in vocabulary:
                vectors[word] = np.array(numbers, "float32")
    missing = [word for word in vocabulary if word not in vectors and word != "[PAD]"]
    if missing:
        raise ValueError(f"`DATA` must have every word of the texts. Missing: {missing}.")
    width = len(vectors[vocabulary[-1]])
    vectors["[PAD]"] = np.zeros(width, "float32")
    return np.stack([vectors[word] for word in vocabulary])


def generated_text(half):
    """Returns a text with words of one half of every kind, and 1 if it is positive."""
    thing, person = (rng.choice(KINDS[kind][half::2]) for kind in ("thing", "person"))
    positive, negated, speaker = (rng.random(3) < [0.5, 0.3, 0.5]).tolist()
    adjective = rng.choice(KINDS["positive" if positive else "negative"][half::2])
    words = ["the", thing, "was", *[rng.choice(["not", "never"])] * negated, adjective]
    aside = ["the", person, "was", "not", "our", rng.choice(KINDS["person"][half::2])]
    if rng.integers(2):
        words = [*aside, "and", *words] if speaker else [*words, "and", *aside]
    return words, int(positive != negated)


VOCABULARY = ["[PAD]", *COMMON, *(word for words in KINDS.values() for word in words)]
IDS = {word: number for number, word in enumerate(VOCABULARY)}
LENGTH = 12


def encoded(half, count):
    """Returns token ids `[B, S]` and labels `[B]`."""
    token_ids, labels = np.zeros((count, LENGTH), "int32"), np.zeros(count, "int32")
    for number in range(count):
        words, labels[number] = generated_text(half)
        token_ids[number, : len(words)] = [IDS[word] for word in words]
    return token_ids, labels


x_train, y_train = encoded(half=0, count=3000)
x_same, y_same = encoded(half=0, count=500)
x_new, y_new = encoded(half=1, count=500)

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(DATA or pathlib.Path(folder, "vectors.txt"))
    if not DATA:
        write_vectors(path)
    table = read_vectors(path, VOCABULARY)
print(f"Numbers of a vector: {table.shape[1]}")

# %% [markdown]
"""
The vectors of the four kinds in the two directions in which they differ most (principal
components):
"""

# %%
# Picture: The vectors in a plane. Positive words, negative words, things and people are four
# separate groups.
plt.figure(figsize=(5, 3.5))
centered = table[1:] - table[1:].mean(axis=0)
plane = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T  # [V - 1, 2]
for kind, words in KINDS.items():
    points = plane[[IDS[word] - 1 for word in words]]
    plt.scatter(*points.T, label=kind)
plt.legend()
plt.show()

# %% [markdown]
"""
## Model

`keras.layers.Embedding` holds the table and is not trainable. `SeriesEmbedding` maps its vectors to
the width of the model and adds the positions, as it does for measurements.
"""


# %%
def classifier(vectors, d_model=32):
    inputs = keras.Input((None,), dtype="int32")
    mask = ops.not_equal(inputs, 0)  # [B, S]
    x = vectors(inputs)  # [B, S, width]
    x = SeriesEmbedding(d_model)(x)  # [B, S, D]
    for _ in range(2):
        x = EncoderBlock(num_heads=4, d_ff=64)(x, mask=mask)  # [B, S, D]
    x = keras.layers.GlobalAveragePooling1D()(x, mask=mask)  # [B, D]
    return keras.Model(inputs, keras.layers.Dense(2)(x))  # [B, 2]


frozen = keras.layers.Embedding(*table.shape, weights=[table], trainable=False)
learned = keras.layers.Embedding(*table.shape)

# %% [markdown]
"""
## Training
"""

# %%
models = {"Frozen vectors": classifier(frozen), "Learned vectors": classifier(learned)}
for name, model in models.items():
    model.compile(
        keras.optimizers.Adam(0.001),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    print(name)
    model.fit(x_train, y_train, batch_size=64, epochs=EPOCHS, verbose=2)
assert np.array_equal(frozen.get_weights()[0], table)  # frozen indeed

# %% [markdown]
"""
## Evaluation

Once on texts with the words seen in training, once on texts with the other words.
"""

# %%
for name, model in models.items():
    _, same = model.evaluate(x_same, y_same, verbose=0)
    _, new = model.evaluate(x_new, y_new, verbose=0)
    print(f"{name}, accuracy with words seen in training: {same:.3f}")
    print(f"{name}, accuracy with new words: {new:.3f}")

# %% [markdown]
"""
## Conclusion

Both models learn the task with the words seen in training. With new words the learned table, whose
rows for them are still random, can only guess; the frozen table still works. How well that works
with real vectors depends on them: good and bad are close to each other in many such tables.
"""

# %% [markdown]
"""
## Read next

- [Language models](../language_models.md): the setting that reads word vectors, for any task.
- [Fine-tuning a pretrained encoder](fine_tuning.md): a whole encoder that was trained elsewhere.
"""
