# %% [markdown]
"""
# Translation with the whole model

The encoder-decoder of the paper reads numbers in digits and writes them in words.

Created 2026-11-22, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/translation.py
```

The page of this example shows the output of one run;
[the notebook](translation.ipynb) has the same cells. The
environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

`4 0 7` becomes `four hundred and seven`. The source has a token for each digit, and the length of
the target depends on the digits: the same digit is "four", "forty", "fourteen" or "four thousand".
We build the `Transformer` of Fig. 1 from a configuration, train it with `fit`, and translate with
`Greedy`, which keeps a key/value cache and runs as one graph.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import os

import keras
import numpy as np

from keras_transformer import Greedy, Transformer, TransformerConfig
from keras_transformer.pipelines import Attention
from keras_transformer.plots.attention import attention_figure

# %matplotlib inline
EPOCHS = int(os.environ.get("EPOCHS", 8))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data
"""

# %%
ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(number):
    """Returns the words of a number below a million."""
    if number < 20:
        return [ONES[number]]
    if number < 100:
        return [TENS[number // 10]] + ([ONES[number % 10]] if number % 10 else [])
    if number < 1000:
        rest = ["and", *in_words(number % 100)] if number % 100 else []
        return [ONES[number // 100], "hundred", *rest]
    rest = number % 1000
    words = [*in_words(number // 1000), "thousand"]
    return words + (["and"] * (rest < 100) + in_words(rest) if rest else [])


# %% [markdown]
"""
Source and target share a vocabulary: four special tokens, the digits and the words. A source ends
in `EOS`. The decoder's input is the target shifted by one position, after `BOS`.
"""

# %%
PAD, BOS, EOS = 0, 2, 3  # the defaults of `TransformerConfig`
VOCABULARY = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", *"0123456789"]
VOCABULARY += sorted({*ONES, *TENS, "hundred", "thousand", "and"} - {"-"})
IDS = {word: number for number, word in enumerate(VOCABULARY)}


def padded(rows):
    ids = np.full((len(rows), max(map(len, rows))), PAD, "int32")
    for row, words in zip(ids, rows, strict=True):
        row[: len(words)] = words
    return ids


def encoded(numbers):
    """Returns sources `[B, S]` and targets `[B, T]`, both with `EOS`."""
    sources = [[*(IDS[digit] for digit in str(number)), EOS] for number in numbers]
    targets = [[*(IDS[word] for word in in_words(number)), EOS] for number in numbers]
    return padded(sources), padded(targets)


numbers = rng.choice(1_000_000, size=12_500, replace=False)
numbers[:3000] %= 10_000  # short ones are rare otherwise
numbers = rng.permutation(np.unique(numbers)).tolist()
test_numbers, train_numbers = numbers[:500], numbers[500:]
encoder_inputs, labels = encoded(train_numbers)  # [B, S], [B, T]
decoder_inputs = np.concatenate([np.full_like(labels[:, :1], BOS), labels[:, :-1]], axis=1)
print(f"{len(train_numbers)} numbers to train with, {len(test_numbers)} others held out")

# %% [markdown]
"""
## Model

The inputs of a `Transformer` are token ids, from which it makes its masks: no position attends to
padding, and no target position to later ones.
"""

# %%
config = TransformerConfig(
    vocab_size=len(VOCABULARY),
    d_model=64,
    num_layers=2,
    num_heads=4,
    d_ff=128,
    dropout=0.0,
    max_length=24,
)
model = Transformer(config)

# %% [markdown]
"""
## Training

Masks in the model keep padding out of the attention, but a loss still has a value at padded
positions. `sample_weight` is 0 there: with `"mean_with_sample_weight"` the loss is the mean over
the real tokens, and so is each of the `weighted_metrics`.
"""

# %%
batch_size = 64
steps = EPOCHS * -(-len(encoder_inputs) // batch_size)
rate = keras.optimizers.schedules.CosineDecay(
    0.0, steps - steps // 10, warmup_target=0.003, warmup_steps=steps // 10
)
model.compile(
    keras.optimizers.Adam(rate, beta_2=0.98),
    keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    ),
    weighted_metrics=["accuracy"],
)
history = model.fit(
    {"source": encoder_inputs, "target": decoder_inputs},
    labels,
    sample_weight=(labels != PAD).astype("float32"),
    batch_size=batch_size,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
"""
## Evaluation

In training the decoder saw the correct words so far. Here it sees the words that it has generated.
A translation is correct if all of its words are.
"""


# %%
def translate(numbers):
    """Returns the words for each number."""
    tokens = Greedy(max_length=24)(model, encoded(numbers)[0]).tokens[:, 0]  # [B, L]
    rows = [[VOCABULARY[token] for token in row] for row in np.asarray(tokens)]
    return [row[: row.index("[EOS]")] if "[EOS]" in row else row for row in rows]


outputs = translate(test_numbers)
for number, words in zip(test_numbers[:5], outputs, strict=False):
    print(f"{number}: {' '.join(words)}")
right = [words == in_words(number) for number, words in zip(test_numbers, outputs, strict=True)]
print(f"Exact translations: {np.mean(right):.3f}")

# %% [markdown]
"""
Attention of the decoder to the digits, mean of all layers and heads. A row is the word that is
generated there.
"""

# %%
number = 417_305
source_ids, target_ids = encoded([number])
decoder_inputs = np.concatenate([[[BOS]], target_ids[:, :-1]], axis=1)
weights = model.attention_weights({"source": source_ids, "target": decoder_inputs})
attention = Attention(
    "cross",
    queries=[VOCABULARY[token] for token in target_ids[0]],
    keys=[VOCABULARY[token] for token in source_ids[0]],
    weights=np.stack(
        [weights[f"decoder/block_{layer}/cross_attention"][0] for layer in range(2)]
    ),  # [layers, H, T, S]
)
# Picture: Attention weights of the words of a number to its digits. Most words attend to the
# digit that they name, or to the one next to it.
attention_figure(attention)

# %% [markdown]
"""
## Conclusion

The model writes numbers in words that were not among its examples. A number of seven digits needs
the word "million", which it has never seen.
"""

# %% [markdown]
"""
## Read next

- [English to German on Multi30K](multi30k.md): real sentences, subwords and beams.
- [From training to a SavedModel](saved_model.md): export a model with its search, and call it.
"""
