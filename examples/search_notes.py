# %% [markdown]
"""
# Search by meaning in your own notes

A published sentence encoder finds notes that share no word with the question, from a file of a
quarter of its size and without TensorFlow.

Created 2026-11-30, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example, which downloads a
checkpoint (91 MB):

```sh
pip install -e ".[plot,hub,litert]"
python examples/search_notes.py
```

The page of this example shows the output of one run;
[the notebook](search_notes.ipynb) has the same cells. If you have the checkpoint, set the
environment variable `CHECKPOINT` to its folder.
"""

# %% [markdown]
"""
## Introduction

A sentence encoder turns a text into a vector, and texts of similar meaning have similar vectors
(Reimers and Gurevych, 2019). We take
[all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), which was trained
on a billion pairs of sentences: 6 layers of width 384 (Apache 2.0). Nothing is trained here. We
export it to a `.tflite` file in int8, measure what the smaller file costs, and search with the file
alone, as a small program or an app would.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import ast
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time

import matplotlib.pyplot as plt
import numpy as np

import keras_transformer
from keras_transformer.export import LiteRTOptions, export_litert

CHECKPOINT = os.environ.get("CHECKPOINT", "sentence-transformers/all-MiniLM-L6-v2")

# %% [markdown]
"""
## Data

Our notes were written by other people and are on every machine with Python: the first sentences in
the documentation of the standard library's functions and classes. What follows such a sentence is
about the same thing in other words. This is our test: each second sentence is a question, and its
answer is the note that stands before it.
"""


# %%
def documentation():
    """Returns the name, the first and the second sentence of what the library documents."""
    found = {}
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("[!_]*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
                first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                first, rest = " ".join(first.split()), " ".join(rest.split())
                if len(first.split()) > 3:
                    second = re.split(r"(?<=[.:]) ", rest)[0]
                    found.setdefault(first, (f"{path.stem}.{node.name}", second))
    return [(name, first, second) for first, (name, second) in found.items()]


names, notes, seconds = zip(*documentation(), strict=True)
pairs = [(text, row) for row, text in enumerate(seconds) if len(text.split()) > 7]
print(f"{len(notes)} notes, {len(pairs)} questions")
example, row = pairs[0]
print(f"For example: {example}\n    -> {notes[row]}")

# %% [markdown]
"""
## Model

`from_pretrained` returns an `Embedder`: the encoder with its tokenizer. Texts of more than 64
tokens are truncated.
"""

# %%
embedder = keras_transformer.from_pretrained(CHECKPOINT, max_length=64)
print(f"{embedder.model.count_params()} parameters")
vectors = embedder.embed(list(notes))  # [N, D], of length 1
print(f"vectors of {vectors.shape[1]} numbers")

# %% [markdown]
"""
## Export

The file contains the tokenizer's vocabulary. `export_litert` keeps it only if its vectors of the
samples are close to those of the model in memory: the mean cosine distance is at most 0.02. It has
a graph for texts of up to 16 tokens and one for up to 64.
"""

# %%
folder = pathlib.Path(tempfile.mkdtemp())
options = LiteRTOptions(quantize="int8", lengths=[16, 64])
report = export_litert(embedder, folder / "notes.tflite", list(notes[:20]), options)
print(f"{report['bytes'] / 1e6:.1f} MB; graphs: {', '.join(report['signatures'])}")

# %% [markdown]
"""
## Evaluation

How often is the right note the first, or among the first ten? For comparison, BM25 counts the words
that a question and a note have in common (Robertson and Zaragoza, 2009). The file answers on one
thread.
"""


# %%
def bm25(questions, k=1.2, b=0.75):
    """Returns the score of each note for each question, `[Q, N]`."""
    words = [re.findall(r"\w+", note.lower()) for note in notes]
    counts = [collections.Counter(note) for note in words]
    notes_with = collections.Counter(word for note in counts for word in note)
    lengths = np.array([len(note) for note in words])
    penalty = k * (1 - b + b * lengths / lengths.mean())
    scores = np.zeros([len(questions), len(notes)])
    for row, question in enumerate(questions):
        for word in {*re.findall(r"\w+", question.lower())} & {*notes_with}:
            count = np.array([note[word] for note in counts])
            rarity = math.log(1 + (len(notes) - notes_with[word] + 0.5) / (notes_with[word] + 0.5))
            scores[row] += rarity * count * (k + 1) / (count + penalty)
    return scores


def recall(scores, top):
    """Returns the share of questions whose note is among the `top` best."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return np.mean([row in found for (_, row), found in zip(pairs, best, strict=True)])


exported = keras_transformer.open(folder / "notes.tflite", num_threads=1)
start = time.process_time()
small = np.array([result.values for result in exported.answer(list(notes))])
print(f"{1000 * (time.process_time() - start) / len(notes):.0f} ms of processor time for a note")

questions = [text for text, _ in pairs]
queries = np.array([result.values for result in exported.answer(questions)])
scores = {
    "Words in common": bm25(questions),
    "Checkpoint": embedder.embed(questions) @ vectors.T,
    "File in int8": queries @ small.T,
}
for name, values in scores.items():
    print(f"{name}, right note first: {recall(values, 1):.3f}")
    print(f"{name}, among the first ten: {recall(values, 10):.3f}")
first = [scores[name].argmax(axis=1) for name in ("Checkpoint", "File in int8")]
print(f"Checkpoint and file, same note first: {np.mean(first[0] == first[1]):.3f}")

# %% [markdown]
"""
The plot shows, for the file and for BM25, how many answers are found with the number of notes that
you read.
"""

# %%
# Picture: Curves of the share of questions whose note is among the first 1 to 50. The file in int8
# is above BM25 everywhere.
plt.figure(figsize=(5, 3))
for name in ("File in int8", "Words in common"):
    tops = [1, 2, 5, 10, 20, 50]
    plt.plot(tops, [recall(scores[name], top) for top in tops], marker="o", label=name)
plt.xscale("log")
plt.xticks(tops, tops)
plt.xlabel("notes that are read")
plt.ylabel("share of questions answered")
plt.legend()
plt.show()

# %% [markdown]
"""
## Search without TensorFlow

A program of its own, which never imports TensorFlow or Keras, reads the vectors and the file. It
answers questions that we wrote; each is followed by the two most similar notes with the cosine of
their vectors.
"""

# %%
PROGRAM = """
import json, sys
import numpy as np
import keras_transformer

encoder = keras_transformer.open("notes.tflite", num_threads=1)
notes, vectors = json.load(open("notes.json")), np.load("vectors.npy")
questions = sys.stdin.read().splitlines()
for question, result in zip(questions, encoder.answer(questions)):
    scores = vectors @ result.values
    print(question)
    for row in np.argsort(-scores)[:2]:
        print(f"    {scores[row]:.2f}  {': '.join(notes[row])}")
print("TensorFlow or Keras imported:", bool({"tensorflow", "keras"} & {*sys.modules}))
"""
OWN_QUESTIONS = [
    "put the elements of a list in a random order",
    "guess the kind of a file by its ending",
    "wait until another thread is finished",
    "remove spaces at the beginning of lines",
    "what did the other computer send",
    "is this year 366 days long",
]
np.save(folder / "vectors.npy", small)
(folder / "notes.json").write_text(json.dumps([*zip(names, notes, strict=True)]))
done = subprocess.run(
    [sys.executable, "-c", PROGRAM],
    input="\n".join(OWN_QUESTIONS),
    cwd=folder,
    capture_output=True,
    text=True,
    check=True,
)
print(done.stdout)

# %% [markdown]
"""
## Conclusion

Without any training, the share of questions whose note is among the first ten is 0.492, by words in
common 0.350. The file in int8 has 23.2 MB instead of 91 MB. It has the same first note as the
checkpoint for a share of 0.957, and finds as many. The last question shows a limit: the note on
leap years is not among its first two.

For notes of your own, with a note on each line of `notes.txt`, two commands do the same with the
file. They do not import TensorFlow either:

    keras-transformer index notes.tflite --input notes.txt --output notes.index
    keras-transformer search notes.index "how similar are two strings"
"""

# %% [markdown]
"""
## Read next

- [Sentence embeddings](../embeddings.md): train an encoder, indexes of many texts, prompts.
- [Phones and browsers](../litert.md): the same file in an app or a web page.
- [Pretrained models](../pretrained.md): other sentence encoders.
- [Reranking](../reranking.md): sort what a search has found.
"""
