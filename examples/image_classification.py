# %% [markdown]
"""
# Images as sequences of patches

A small vision transformer with a class token reads scikit-learn's handwritten digits.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot,digits]"
python examples/image_classification.py
```

The page of this example shows the output of one run;
[the notebook](image_classification.ipynb) has the same
cells. The environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

An image is cut into patches, every patch is mapped to a vector, and an encoder treats the vectors
like words (Dosovitskiy et al., 2021). A class token, a learned vector before the patches,
collects what the classifier needs. The digits come with scikit-learn, which the extra `digits`
installs: 1,797 images of 8 x 8 pixels in 17 shades.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import os

import keras
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from keras_transformer import EncoderBlock
from keras_transformer.layers import PatchEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 14))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data

A fifth of the images is held out. The training set has nine copies of each of the others:
unchanged, and shifted by one pixel in each direction.
"""

# %%
digits = load_digits()
order = rng.permutation(len(digits.target))
images = (digits.images[order, :, :, None] / 8 - 1).astype("float32")  # [B, 8, 8, 1], from -1 to 1
labels = digits.target[order]
held_out = len(labels) // 5
x_test, y_test = images[:held_out], labels[:held_out]
wide = np.pad(images[held_out:], [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=-1.0)
x_train = np.concatenate([wide[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)])
y_train = np.tile(labels[held_out:], 9)
print(f"{len(images) - held_out} images to train with, in nine places each; {held_out} held out")

# %% [markdown]
"""
## Model

Patches of 2 x 2 pixels make 16 vectors, and the class token is the 17th, at position 0. There is no
padding, so no mask is needed.
"""


# %%
def vision_transformer(d_model=64, num_layers=2, dropout=0.1):
    inputs = keras.Input((8, 8, 1))
    x = PatchEmbedding(patch_size=2, d_model=d_model, position="learned")(inputs)  # [B, 1 + P, D]
    for _ in range(num_layers):
        x = EncoderBlock(num_heads=4, d_ff=128, dropout=dropout, norm="pre")(x)  # [B, 1 + P, D]
    x = keras.layers.LayerNormalization()(x[:, 0])  # [B, D], the class token
    return keras.Model(inputs, keras.layers.Dense(10)(x))  # [B, 10]


# %% [markdown]
"""
## Training
"""

# %%
batch_size = 64
steps = EPOCHS * -(-len(x_train) // batch_size)
rate = keras.optimizers.schedules.CosineDecay(
    0.0, steps - steps // 10, warmup_target=0.003, warmup_steps=steps // 10
)
model = vision_transformer()
model.compile(
    keras.optimizers.AdamW(rate, weight_decay=0.01),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
print(f"{model.count_params()} weights")
history = model.fit(x_train, y_train, batch_size=batch_size, epochs=EPOCHS, verbose=2)

# %% [markdown]
"""
## Evaluation

For comparison we train two models of scikit-learn, which have no attention, on the training images
that are not shifted.
"""

# %%
others = {"Logistic regression": LogisticRegression(max_iter=300), "Support vectors": SVC()}
for name, other in others.items():
    other.fit(images[held_out:].reshape(-1, 64), labels[held_out:])
    print(f"{name}, accuracy: {other.score(x_test.reshape(-1, 64), y_test):.3f}")
_, accuracy = model.evaluate(x_test, y_test, verbose=0)
print(f"Vision transformer, accuracy: {accuracy:.3f}")

# %% [markdown]
"""
Some of the held-out digits with their predictions; wrong ones come first, in red:
"""

# %%
predictions = model.predict(x_test, verbose=0).argmax(axis=-1)
shown = np.argsort(predictions == y_test, kind="stable")[:16]
# Picture: Sixteen handwritten digits of 8 x 8 pixels with their predictions, which are wrong and
# red for all but the last.
figure, axes = plt.subplots(2, 8, figsize=(7, 2.2))
for axis, number in zip(axes.flat, shown, strict=True):
    axis.imshow(x_test[number], cmap="gray_r")
    wrong = predictions[number] != y_test[number]
    axis.set_title(predictions[number], color="red" if wrong else "black", fontsize=9)
    axis.axis("off")
plt.show()

# %% [markdown]
"""
## Conclusion

The transformer (0.958) is behind logistic regression (0.969) and support vectors (0.981): 1,438
images of this size do not need attention. One of 359 held-out images is a third of a percent, so
small differences mean nothing; with other seeds, the transformer and logistic regression are level.
"""

# %% [markdown]
"""
## Read next

- [Image classification](../image_classification.md): train on folders of images from the command
  line.
- [Plots](../plots.md#attention): draw what the class token attends to.
"""
