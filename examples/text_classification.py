# %% [markdown]
"""
# Text classification with an encoder

An encoder with pooling beside an LSTM of the same size, on generated reviews.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/text_classification.py
```

The page of this example shows the output of one run;
[the notebook](text_classification.ipynb) has the same cells.
The environment variable `EPOCHS` makes training shorter or longer. To use your own texts, set
`DATA` to the path of a file with lines of a text, a tab and a label.
"""

# %% [markdown]
"""
## Introduction

A review judges several things: "the food was good but the room was not clean". We ask for one of
them, "room ?", and a classifier answers whether the review likes it. To answer, it must find the
right clause and notice a "not" in it; counting words does not help. We train three models:

- an encoder of the paper with the mean over the words as its summary,
- `keras.layers.LSTM` with about as many weights,
- the mean of the embeddings alone, which does not know the order of the words.

The reviews are generated.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import os
import pathlib

import keras
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

from keras_transformer import EncoderBlock, PositionalEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 6))
DATA = os.environ.get("DATA")
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data
"""

# %%
THINGS = ["food", "room", "staff", "pool", "bed", "garden", "view", "bar"]
GOOD = ["good", "nice", "clean", "lovely", "great", "perfect"]
BAD = ["bad", "poor", "dirty", "awful", "dull", "broken"]
LINKS = ["and", "but", "while", "although"]


def generated_review():
    """Returns a question with two or three clauses, and the label of the clause it asks for."""
    things = rng.choice(THINGS, size=rng.integers(2, 4), replace=False)
    subject = rng.integers(len(things))
    words, label = [things[subject], "?"], None
    for number, thing in enumerate(things):
        positive, negated = rng.random() < 0.5, rng.random() < 0.3
        adjective = rng.choice(GOOD if positive else BAD)
        words += [rng.choice(LINKS)] * (number > 0) + ["the", thing, "was"]
        words += ["not"] * negated + [adjective]
        if number == subject:
            label = "yes" if positive != negated else "no"
    return " ".join(words), label


def read_examples():
    """Returns texts and labels, from the file at `DATA` or generated; no text twice."""
    if DATA:
        lines = pathlib.Path(DATA).read_text(encoding="utf-8").splitlines()
        pairs = [line.rsplit("\t", 1) for line in lines if "\t" in line]
    else:
        pairs = [generated_review() for _ in range(24_000)]
    pairs = sorted(dict(pairs).items())
    rng.shuffle(pairs)
    return [text for text, _ in pairs], [label for _, label in pairs]


texts, names = read_examples()
labels = sorted(set(names))
classes = np.array([labels.index(name) for name in names])
held_out = len(texts) // 8
print(f"{len(texts) - held_out} texts to train with, {held_out} held out, labels: {labels}")
print(f"For example: {texts[0]!r}: {names[0]}")

# %% [markdown]
"""
`TextVectorization` numbers the words of the training texts. 0 is padding.
"""

# %%
vectorize = keras.layers.TextVectorization(
    max_tokens=8000, standardize="lower", output_sequence_length=None if not DATA else 128
)
vectorize.adapt(texts[held_out:])
token_ids = np.asarray(vectorize(np.array(texts)))
x_test, y_test = token_ids[:held_out], classes[:held_out]
x_train, y_train = token_ids[held_out:], classes[held_out:]
vocab_size = vectorize.vocabulary_size()

# %% [markdown]
"""
## Model

Masks of this package are boolean and `True` means "may attend". The blocks get
`mask`, so that no word attends to padding, and the pooling gets it so that the mean
ignores padding. Rotary positions turn queries and keys and leave the embeddings alone: a
word looks the same at every position, which makes it easier to find the clause that contains the
word in the question.
"""


# %%
def encoder_model(num_layers, d_model=48):
    inputs = keras.Input((None,), dtype="int32")
    mask = ops.not_equal(inputs, 0)  # [B, S]
    x = PositionalEmbedding(vocab_size, d_model, position="none")(inputs)  # [B, S, D]
    for _ in range(num_layers):
        block = EncoderBlock(num_heads=4, d_ff=96, position="rotary", dropout=0.0)
        x = block(x, mask=mask)  # [B, S, D]
    x = keras.layers.GlobalAveragePooling1D()(x, mask=mask)  # [B, D]
    return keras.Model(inputs, keras.layers.Dense(len(labels))(x))  # [B, C]


def lstm_model(d_model=48, units=75):
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(vocab_size, d_model)(inputs)  # [B, S, D]
    x = keras.layers.LSTM(units)(x, mask=ops.not_equal(inputs, 0))  # [B, units]
    return keras.Model(inputs, keras.layers.Dense(len(labels))(x))


# %% [markdown]
"""
## Training

The label belongs to a whole text, so that there is no padding in the loss.
"""

# %%
models = {
    "Encoder": encoder_model(num_layers=2),
    "LSTM": lstm_model(),
    "Mean of embeddings": encoder_model(num_layers=0),
}
steps, curves = EPOCHS * -(-len(x_train) // 64), {}
for name, model in models.items():
    model.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.003, steps)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    print(f"{name}: {model.count_params()} weights")
    history = model.fit(x_train, y_train, batch_size=64, epochs=EPOCHS, verbose=2)
    curves[name] = history.history["accuracy"]

# %%
# Picture: Curves of the accuracy on the training texts by epoch. The encoder reaches 1.0, the
# LSTM 0.87, the mean of embeddings stays at 0.6.
plt.figure(figsize=(5, 3))
for name, curve in curves.items():
    plt.plot(range(1, EPOCHS + 1), curve, marker="o", label=name)
plt.xlabel("epoch")
plt.ylabel("accuracy on the training texts")
plt.legend(loc=(0.47, 0.1))
plt.show()

# %% [markdown]
"""
## Evaluation

Both labels are equally frequent, so a guess is right in half of the cases.
"""

# %%
print(f"Most frequent label, accuracy: {np.bincount(y_test).max() / len(y_test):.3f}")
for name, model in models.items():
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"{name}, accuracy: {accuracy:.3f}")

# %% [markdown]
"""
## Conclusion

The mean of the embeddings gets 0.61: only the order of the words shows which clause is asked for.
The encoder finds it (1.000 in our run); in the same time the LSTM mostly does (0.86), and was still
improving. How a model is set up matters as much as its kind: a narrower encoder with sinusoidal
positions was behind the LSTM after as many epochs. And these are generated sentences of few words:
the results show that the layers can learn to look up, not how good they are on real reviews.
"""

# %% [markdown]
"""
## Read next

- [Sentiment of film reviews](sentiment.md): the same layers on sentences that people wrote.
- [Text classification](../classification.md): train such a model from the command line.
"""
