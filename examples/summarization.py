"""
Title: Summarization with encoder and decoder blocks
Date created: 2026/11/22
Last modified: 2026/11/22
Description: Reports of matches become one sentence, with a model built out of blocks.
Accelerator: None
"""

"""
## Introduction

A report of a match has a few sentences in any order. Its summary is one sentence that is
not in the report: who won against whom, where, and with how many goals.

    the rain stopped at noon . lions scored 3 goals . the match was in delft . owls scored 1 goal .
    -> lions beat owls 3 1 in delft .

The decoder has to choose what matters, to compare the goals, and to copy. Unlike the example of
translation, this one builds the model out of `EncoderBlock` and `DecoderBlock`, and decodes with a
loop of its own.
"""

"""
## Setup
"""

import collections
import os

import keras
import numpy as np
from keras import ops

from keras_transformer import DecoderBlock, EncoderBlock, PositionalEmbedding

EPOCHS = int(os.environ.get("EPOCHS", 14))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

"""
## Data
"""

TEAMS = """lions owls foxes wolves bears hawks bulls sharks crows eagles otters rams stags swans
tigers vipers""".split()
TOWNS = ["delft", "ghent", "york", "bath", "turin", "lyon", "graz", "bonn"]
ASIDES = """the rain stopped at noon
many people came by train
the grass was wet
the songs were loud
a dog ran across the field
the lamps went out for a minute
children waved flags""".split("\n")


def generated_report():
    """The words of a report and of its summary."""
    first, second = rng.choice(TEAMS, size=2, replace=False)
    goals = rng.integers(0, 6, size=2)
    town = rng.choice(TOWNS)
    report = [
        f"{team} scored {count} goals" for team, count in ((first, goals[0]), (second, goals[1]))
    ]
    report.append(f"the match was in {town}")
    report += list(rng.choice(ASIDES, size=rng.integers(1, 4), replace=False))
    rng.shuffle(report)
    if goals[0] < goals[1]:
        first, second, goals = second, first, goals[::-1]
    verb = "drew with" if goals[0] == goals[1] else "beat"
    if goals[0] == goals[1]:
        first, second = sorted((first, second))  # neither comes first by its goals
    summary = f"{first} {verb} {second} {goals[0]} {goals[1]} in {town} ."
    return " . ".join(report).split() + ["."], summary.split()


examples = [generated_report() for _ in range(10_500)]
held_out = 500
words = {word for report, summary in examples for word in [*report, *summary]}
PAD, BOS, EOS = 0, 1, 2
VOCABULARY = ["[PAD]", "[BOS]", "[EOS]", *sorted(words)]
IDS = {word: number for number, word in enumerate(VOCABULARY)}


def padded(rows):
    ids = np.full((len(rows), max(map(len, rows))), PAD, "int32")
    for row, words in zip(ids, rows, strict=True):
        row[: len(words)] = [IDS[word] for word in words]
    return ids


source = padded([report for report, _ in examples])
target = padded([[*summary, "[EOS]"] for _, summary in examples])
before = np.concatenate([np.full_like(target[:, :1], BOS), target[:, :-1]], axis=1)
weights = (target != PAD).astype("float32")  # padding does not count in the loss
test, train = slice(held_out), slice(held_out, None)
print(f"{len(examples) - held_out} reports to train with, {held_out} held out")

"""
## Model

The memory of the encoder has padding: `real` keeps the encoder and, as `memory_allowed`, the
decoder from attending to it. The decoder's attention to itself is always causal. One matrix is
the embedding of both sides and the output weights.
"""

d_model, num_layers = 64, 2
reports = keras.Input((None,), dtype="int32", name="reports")
summaries = keras.Input((None,), dtype="int32", name="summaries")
embedding = PositionalEmbedding(len(VOCABULARY), d_model)
real = ops.not_equal(reports, PAD)  # [B, S]

memory = embedding(reports)  # [B, S, D]
for _ in range(num_layers):
    memory = EncoderBlock(num_heads=4, d_ff=128, dropout=0.0)(memory, real)
x = embedding(summaries)  # [B, T, D]
for _ in range(num_layers):
    x = DecoderBlock(num_heads=4, d_ff=128, dropout=0.0)(x, memory, memory_allowed=real)
logits = embedding(x, reverse=True)  # [B, T, V]
model = keras.Model({"reports": reports, "summaries": summaries}, logits)

"""
## Training
"""

batch_size = 64
steps = EPOCHS * -(-(len(examples) - held_out) // batch_size)
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
    {"reports": source[train], "summaries": before[train]},
    target[train],
    sample_weight=weights[train],
    batch_size=batch_size,
    epochs=EPOCHS,
    verbose=2,
)

"""
## Evaluation

Greedy decoding: the most probable word, appended, until all summaries have ended. ROUGE-1 is the F1
of the words that two texts share; the first sentence of the report is the usual comparison.
"""


def summarize(source):
    rows = np.full((len(source), target.shape[1] + 1), PAD, "int32")
    rows[:, 0] = BOS
    for position in range(target.shape[1]):
        inputs = {"reports": source, "summaries": rows[:, :-1]}
        scores = model.predict(inputs, batch_size=128, verbose=0)[:, position]  # [B, V]
        rows[:, position + 1] = scores.argmax(axis=-1)
    texts = [[VOCABULARY[token] for token in row[1:]] for row in rows]
    return [words[: words.index("[EOS]")] if "[EOS]" in words else words for words in texts]


def rouge_1(words, reference):
    shared = (collections.Counter(words) & collections.Counter(reference)).total()
    return 2 * shared / (len(words) + len(reference))


def mean_rouge(texts):
    return np.mean([rouge_1(a, b) for a, (_, b) in zip(texts, examples, strict=False)])


outputs = summarize(source[test])
for words, (report, _) in zip(outputs[:3], examples, strict=False):
    print(f"{' '.join(report)}\n    -> {' '.join(words)}")
leads = [report[: report.index(".") + 1] for report, _ in examples[:held_out]]
exact = np.mean([a == b for a, (_, b) in zip(outputs, examples, strict=False)])
print(f"First sentence, ROUGE-1: {mean_rouge(leads):.3f}")
print(f"Model, ROUGE-1: {mean_rouge(outputs):.3f}")
print(f"Model, exact summaries: {exact:.3f}")

"""
## Conclusion

The summaries have the right words (ROUGE-1 of 1.000 in our run), and 96 % of them are exact. The
others name the teams in the wrong order, which ROUGE-1 does not notice: measure what matters. The
reports have the same few sentences as those it was trained with; articles by people need subwords,
more weights and far more data.
"""
