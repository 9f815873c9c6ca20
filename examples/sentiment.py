# %% [markdown]
"""
# Sentiment of film reviews

An encoder learns from the 6,920 sentences of SST-2 to tell whether a reviewer liked a film.

Created 2026-11-25, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, download the data (1 MB), and run the
example:

```sh
pip install -e ".[plot]"
export KERAS_TRANSFORMER_DATA="$HOME/keras_transformer_data"
python benchmarks/data.py download --only sst2
python examples/sentiment.py
```

The page of this example shows the output of one run;
[the notebook](sentiment.ipynb) has the same cells. The
environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

SST-2 (Socher et al., 2013) has sentences of film reviews, each with a label: 1 is positive and 0 is
negative. [Real data](../data.md) describes the files and their licence. The other examples generate
their texts; here people wrote them, there are few of them, and most words are rare. We train

- an encoder block with the mean over the words as its summary,
- the mean of the embeddings alone, which does not know the order of the words.
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
DATA = pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", "."), "sst2")
if not DATA.is_dir():
    raise SystemExit(
        "Set KERAS_TRANSFORMER_DATA to a folder and run "
        "`python benchmarks/data.py download --only sst2` to download SST-2."
    )
keras.utils.set_random_seed(1)

# %% [markdown]
"""
## Data

Each line of a file has a sentence, a tab and its label. The sentences are already lowercased and
split into words. `dev` selects the epoch, and `test` is used once, at the end.
"""


# %%
def read(split):
    """Returns sentences and labels of a file."""
    lines = (DATA / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
    sentences, labels = zip(*(line.rsplit("\t", 1) for line in lines), strict=True)
    return list(sentences), np.array(labels, "int32")


train_sentences, train_labels = read("train")
dev_sentences, dev_labels = read("dev")
test_sentences, test_labels = read("test")
print(f"{len(train_labels)} sentences to train, {len(dev_labels)} dev, {len(test_labels)} test")
for sentence, label in zip(train_sentences[:3], train_labels, strict=False):
    print(f"{label}  {sentence}")

# %% [markdown]
"""
`TextVectorization` turns words into numbers. 0 is padding, and 1 stands for every word that is not
among the 10,000 most frequent ones.
"""

# %%
vectorize = keras.layers.TextVectorization(
    max_tokens=10_000, standardize=None, output_sequence_length=56
)
vectorize.adapt(train_sentences)


def encode(sentences):
    """Returns token ids, `[B, S]`."""
    return np.asarray(vectorize(np.array(sentences)))


# %% [markdown]
"""
## Model

`mask` is `True` at real words. The block gets it, so that no word attends to
padding, and the pooling as `mask`, so that the mean ignores padding. The order of the
words says little about the label of such sentences, so the embedding adds no positions. High
dropout keeps a small data set from being learned by heart.
"""


# %%
def classifier(num_layers, d_model=128, dropout=0.5):
    """Returns a model from token ids `[B, S]` to logits `[B, 2]`."""
    inputs = keras.Input((None,), dtype="int32")
    mask = ops.not_equal(inputs, 0)  # [B, S]
    x = PositionalEmbedding(vectorize.vocabulary_size(), d_model, position="none")(inputs)
    x = keras.layers.Dropout(dropout)(x)  # [B, S, D]
    for _ in range(num_layers):
        x = EncoderBlock(num_heads=4, d_ff=256, dropout=0.2)(x, mask=mask)
    x = keras.layers.GlobalAveragePooling1D()(x, mask=mask)  # [B, D]
    x = keras.layers.Dropout(dropout)(x)
    return keras.Model(inputs, keras.layers.Dense(2)(x))  # [B, 2]


models = {"Encoder": classifier(num_layers=1), "Mean of embeddings": classifier(num_layers=0)}

# %% [markdown]
"""
## Training

`EarlyStopping` returns to the weights of the epoch with the best accuracy on `dev`.
"""

# %%
curves = {}
for name, model in models.items():
    model.compile(
        keras.optimizers.Adam(0.001),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    print(f"{name}: {model.count_params()} weights")
    history = model.fit(
        encode(train_sentences),
        train_labels,
        validation_data=(encode(dev_sentences), dev_labels),
        batch_size=32,
        epochs=EPOCHS,
        callbacks=[
            keras.callbacks.EarlyStopping(
                "val_accuracy", patience=EPOCHS, restore_best_weights=True, mode="max"
            )
        ],
        verbose=2,
    )
    curves[name] = history.history["val_accuracy"]

# %%
# Picture: Curves of the accuracy on dev by epoch, of the encoder and the mean of embeddings. The
# mean of embeddings is ahead or level in every epoch.
plt.figure(figsize=(5, 3))
for name, curve in curves.items():
    plt.plot(range(1, len(curve) + 1), curve, marker="o", label=name)
plt.xlabel("epoch")
plt.ylabel("accuracy on dev")
plt.legend()
plt.show()

# %% [markdown]
"""
## Evaluation

The label that is most frequent in the training sentences would be right in half of the cases.
"""

# %%
guess = np.bincount(train_labels).argmax()
print(f"Most frequent label, accuracy: {np.mean(test_labels == guess):.3f}")
for name, model in models.items():
    _, accuracy = model.evaluate(encode(test_sentences), test_labels, verbose=0)
    print(f"{name}, accuracy: {accuracy:.3f}")

# %% [markdown]
"""
Four sentences with the probability that they are positive. The first is the beginning of a training
sentence; the others are our own:
"""

# %%
sentences = [
    "a stirring , funny and finally transporting film",
    "one long string of cliches",
    "the plot is thin but the actors are wonderful",
    "not a bad film",
]
probabilities = ops.softmax(models["Encoder"].predict(encode(sentences), verbose=0))[:, 1]
for sentence, probability in zip(sentences, probabilities, strict=True):
    print(f"{float(probability):.2f}  {sentence}")

# %% [markdown]
"""
## Conclusion

The accuracy is 0.819 for the encoder and 0.816 for the mean of the embeddings: with 1,821 test
sentences this difference means nothing. Most labels follow from single words, and 6,920 sentences
teach an encoder little about the others: it has learned that "not" and "bad" are negative, but not
what they mean together. A model that was pretrained on more text can do better: see the next
example.
"""

# %% [markdown]
"""
## Read next

- [Fine-tuning a pretrained encoder](fine_tuning.md): the same sentences, with a model that was
  pretrained on other texts.
- [Text classification](../classification.md): the command that trains such a model with subwords
  and regularisation.
"""
