"""
Title: Translation with the whole model
Date created: 2026/11/22
Last modified: 2026/11/22
Description: The encoder-decoder of the paper reads numbers in digits and writes them in words.
Accelerator: None
"""

"""
## Introduction

`4 0 7` becomes `four hundred and seven`. The source has a token for each digit, and the length of
the target depends on the digits: the same digit is "four", "forty", "fourteen" or "four thousand".
We build the `Transformer` of Fig. 1 from a configuration, train it with `fit`, and translate with
`greedy_decode`, which keeps a key/value cache and runs as one graph.
"""

"""
## Setup
"""

import os

import keras
import numpy as np

from keras_transformer import Transformer, TransformerConfig, greedy_decode

EPOCHS = int(os.environ.get("EPOCHS", 8))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

"""
## Data
"""

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(number):
    """The words of a number below a million."""
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


"""
Source and target share a vocabulary: four special tokens, the digits and the words. A source ends
in `EOS`. The decoder sees the target one position later than it is to predict it, after `BOS`.
"""

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
    """Sources `[B, S]` and targets `[B, T]`, both with `EOS`."""
    sources = [[*(IDS[digit] for digit in str(number)), EOS] for number in numbers]
    targets = [[*(IDS[word] for word in in_words(number)), EOS] for number in numbers]
    return padded(sources), padded(targets)


numbers = rng.choice(1_000_000, size=12_500, replace=False)
numbers[:3000] %= 10_000  # short ones are rare otherwise
numbers = rng.permutation(np.unique(numbers)).tolist()
test_numbers, train_numbers = numbers[:500], numbers[500:]
source, target = encoded(train_numbers)
before = np.concatenate([np.full_like(target[:, :1], BOS), target[:, :-1]], axis=1)  # [B, T]
print(f"{len(train_numbers)} numbers to train with, {len(test_numbers)} others held out")

"""
## Model

The inputs of a `Transformer` are token ids, and it makes its masks of them: no attention to
padding, and none of a target position to later ones.
"""

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

"""
## Training

Masks in the model keep padding out of the attention, but a loss still has a value at padded
positions. `sample_weight` is 0 there: with `"mean_with_sample_weight"` the loss is the mean over
the real tokens, and so is each of the `weighted_metrics`.
"""

batch_size = 64
steps = EPOCHS * -(-len(source) // batch_size)
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
model.fit(
    {"source": source, "target": before},
    target,
    sample_weight=(target != PAD).astype("float32"),
    batch_size=batch_size,
    epochs=EPOCHS,
    verbose=2,
)

"""
## Evaluation

In training the decoder saw the right words so far. Here it sees its own. A translation counts if
all of its words are right.
"""


def translate(numbers):
    """The words for each number."""
    tokens, _ = greedy_decode(model, encoded(numbers)[0], max_length=24)  # [B, L]
    rows = [[VOCABULARY[token] for token in row] for row in np.asarray(tokens)]
    return [row[: row.index("[EOS]")] if "[EOS]" in row else row for row in rows]


outputs = translate(test_numbers)
for number, words in zip(test_numbers[:5], outputs, strict=False):
    print(f"{number}: {' '.join(words)}")
right = [words == in_words(number) for number, words in zip(test_numbers, outputs, strict=True)]
print(f"Exact translations: {np.mean(right):.3f}")

"""
## Conclusion

The model writes numbers in words that were not among its examples. A number of seven digits needs
the word "million", which it has never seen. For a corpus of real sentences, with a vocabulary of
subwords, beams and exports, see the page Translation.
"""
