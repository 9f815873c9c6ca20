# %% [markdown]
"""
# Question answering by start and end

An encoder reads a question and a text, and marks where in the text the answer is.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/question_answering.py
```

The page of this example shows the output of one run;
[the notebook](question_answering.ipynb) has the same cells.
The environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

The answer to a question about a text is often a piece of the text. An extractive model reads both
in one sequence,

    where is anna ? [SEP] bob sleeps in the old barn . anna waits at the bridge . ...

and gives every word two scores: that the answer starts there, and that it ends there. The answer is
the pair with the highest sum. The texts are generated: in each of them a few people are somewhere
or have something.
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
from keras import ops

from keras_transformer import EncoderBlock, PositionalEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 8))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data
"""

# %%
PEOPLE = ["anna", "bob", "carla", "david", "emma", "frank", "greta", "henry", "iris", "jack"]
VERBS = ["is", "waits", "sleeps", "works", "sits"]
PREPOSITIONS = ["in", "at", "near", "behind"]
ADJECTIVES = ["old", "red", "small", "quiet", "large"]
PLACES = ["barn", "bridge", "house", "garden", "school", "station", "mill", "tower"]
THINGS = ["book", "lamp", "knife", "letter", "coin", "hat", "rope", "key"]


def phrase(nouns):
    """Returns an article, up to two adjectives and a noun."""
    adjectives = rng.choice(ADJECTIVES, size=rng.integers(0, 3), replace=False)
    return ["the", *adjectives, rng.choice(nouns)]


def generated_example():
    """Returns question, text, and the first and the last position of the answer in the text."""
    people = rng.choice(PEOPLE, size=rng.integers(2, 5), replace=False)
    subject, text = rng.integers(len(people)), []
    for number, person in enumerate(people):
        if rng.integers(2):
            question, answer = ["where", "is", person, "?"], phrase(PLACES)
            text += [person, rng.choice(VERBS), rng.choice(PREPOSITIONS), *answer]
        else:
            question, answer = ["what", "has", person, "?"], phrase(THINGS)
            text += [person, "has", *answer]
        if number == subject:
            example = question, len(text) - len(answer), len(text) - 1
        text.append(".")
    question, start, end = example
    return question, text, start, end


examples = [generated_example() for _ in range(9000)]
held_out = 1000
words = {word for question, text, *_ in examples for word in [*question, *text]}
VOCABULARY = ["[PAD]", "[SEP]", *sorted(words)]
IDS = {word: number for number, word in enumerate(VOCABULARY)}
QUESTION = 5  # words of a question and [SEP]
LENGTH = QUESTION + max(len(text) for _, text, *_ in examples)

token_ids = np.zeros((len(examples), LENGTH), "int32")
for row, (question, text, *_) in zip(token_ids, examples, strict=True):
    sequence = [IDS[word] for word in [*question, "[SEP]", *text]]
    row[: len(sequence)] = sequence
start_positions = np.array([QUESTION + start for *_, start, _ in examples])
end_positions = np.array([QUESTION + end for *_, end in examples])
test, train = slice(held_out), slice(held_out, None)
print(f"{len(examples) - held_out} examples to train with, {held_out} held out")
print(f"For example: {' '.join(examples[0][0])} {' '.join(examples[0][1])}")

# %% [markdown]
"""
## Model

Two masks differ here. A word may attend to all words of question and text, but not to padding:
`mask`. An answer can only be in the text, at the positions of `text_mask`: elsewhere the
scores are lowered so far that their softmax is 0. Rotary positions let a head look for "the word
before the one before me", which leads from a name to its answer.
"""

# %%
LOWEST = -1e9

inputs = keras.Input((LENGTH,), dtype="int32")
mask = ops.not_equal(inputs, 0)  # [B, S]
text_mask = ops.logical_and(mask, ops.arange(LENGTH) >= QUESTION)  # [B, S]
x = PositionalEmbedding(len(VOCABULARY), d_model=64, position="none")(inputs)  # [B, S, D]
for _ in range(2):
    x = EncoderBlock(num_heads=4, d_ff=128, position="rotary", dropout=0.0, norm="pre")(
        x, mask=mask
    )  # [B, S, D]
scores = keras.layers.Dense(2)(keras.layers.LayerNormalization()(x))  # [B, S, 2]
scores = ops.where(ops.expand_dims(text_mask, -1), scores, LOWEST)
outputs = {
    "start": keras.layers.Identity(name="start")(scores[..., 0]),  # [B, S]
    "end": keras.layers.Identity(name="end")(scores[..., 1]),
}
model = keras.Model(inputs, outputs)

# %% [markdown]
"""
## Training

The positions are the classes of two cross-entropies, whose sum is the loss. The softmax already
excludes padding, so no sample weights are needed.
"""

# %%
batch_size = 64
steps = EPOCHS * -(-(len(examples) - held_out) // batch_size)
rate = keras.optimizers.schedules.CosineDecay(
    0.0, steps - steps // 10, warmup_target=0.003, warmup_steps=steps // 10
)
model.compile(
    keras.optimizers.Adam(rate),
    {name: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for name in outputs},
    metrics={name: "accuracy" for name in outputs},
)
history = model.fit(
    token_ids[train],
    {"start": start_positions[train], "end": end_positions[train]},
    batch_size=batch_size,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
"""
## Evaluation

The answer is the best of all pairs in which the end is not before the start and at most four words
away. For comparison we answer with words of a random sentence.
"""


# %%
def answers(token_ids, longest=5):
    """Returns the best first and last position, `[B]` each."""
    predicted = model.predict(token_ids, verbose=0)
    start, end = predicted["start"][:, :, None], predicted["end"][:, None, :]
    sums = np.where(np.tri(LENGTH, k=longest - 1) * np.tri(LENGTH).T, start + end, 2 * LOWEST)
    best = sums.reshape(len(token_ids), -1).argmax(axis=1)
    return np.divmod(best, LENGTH)


first, last = answers(token_ids[test])
for row, a, b, (question, *_) in zip(token_ids[:3], first, last, examples, strict=False):
    print(f"{' '.join(question)} {' '.join(VOCABULARY[token] for token in row[a : b + 1])}")
sentences = np.array([text.count(".") for _, text, *_ in examples[:held_out]])
print(f"A sentence by chance, exact answers: {np.mean(1 / sentences):.3f}")
exact = (first == start_positions[test]) & (last == end_positions[test])
print(f"Encoder, exact answers: {np.mean(exact):.3f}")

# %% [markdown]
"""
The probabilities of start and end for the first held-out example:
"""

# %%
question, text, *_ = examples[0]
predicted = model.predict(token_ids[:1], verbose=0)
places = np.arange(len(text))
# Picture: Bars with the probability that the answer starts or ends at each word of the text. One
# word has nearly all of each: the answer is "the rope".
plt.figure(figsize=(8, 2.6))
for shift, name in ((-0.2, "start"), (0.2, "end")):
    probabilities = ops.convert_to_numpy(ops.softmax(predicted[name][0]))  # [S]
    plt.bar(places + shift, probabilities[QUESTION : QUESTION + len(text)], width=0.4, label=name)
plt.xticks(places, text, rotation=90)
plt.title(" ".join(question))
plt.ylabel("probability")
plt.legend()
plt.show()

# %% [markdown]
"""
## Conclusion

In nearly all held-out texts of our run (0.999), the encoder finds the sentence that the question
asks about, and the answer in it. Sentences that people write, with other words in the question
than in the text, need a pretrained encoder.
"""

# %% [markdown]
"""
## Read next

- [Question answering](../question_answering.md): train on SQuAD's format from the command line.
- [Fine-tuning a pretrained encoder](fine_tuning.md): begin with a model that has read a lot of
  text.
"""
