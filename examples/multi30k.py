# %% [markdown]
"""
# English to German on Multi30K

A Transformer learns to translate captions of photographs, in minutes on a processor.

Created 2026-11-25, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, download the data (8 MB), and run the
example:

```sh
pip install -e ".[plot]"
export KERAS_TRANSFORMER_DATA="$HOME/keras_transformer_data"
python benchmarks/data.py download --only multi30k
python examples/multi30k.py
```

[The notebook](multi30k.ipynb) has the same cells. The environment variable `EPOCHS` makes
training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

Multi30K (Elliott et al., 2016) has 29,000 captions with their translations; [Real data](../data.md)
describes the files and their licence. Training on real text needs a subword vocabulary, batches
of sentences of similar length, checkpoints, and a validation that translates. The command
`keras-transformer train` has all of these. This example calls the functions behind the command, and
then uses the trained model in Python.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import csv
import os
import pathlib
import sys

import matplotlib.pyplot as plt
import rich.console

from keras_transformer import Beam, Translator
from keras_transformer.plots.attention import attention_figure
from keras_transformer.training import evaluate_split, load_settings, train

# %matplotlib inline
EPOCHS = int(os.environ.get("EPOCHS", 6))
DATA = pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", "."), "multi30k")
if not DATA.is_dir():
    raise SystemExit(
        "Set KERAS_TRANSFORMER_DATA to a folder and run "
        "`python benchmarks/data.py download --only multi30k` to download Multi30K."
    )

# %% [markdown]
"""
## Data

Line n of one file is the translation of line n of the other. `train` reads the files itself.
"""

# %%
for language in ("en", "de"):
    lines = (DATA / f"train.{language}").read_text(encoding="utf-8").splitlines()
    print(f"{language}: {len(lines)} sentences, for example: {lines[2]}")

# %% [markdown]
"""
## Model

The packaged configuration `multi30k` is a file of settings: a Transformer with 3 + 3 layers of
width 128, a vocabulary of 4,000 subword tokens for both languages, and a learning rate that rises
and falls. Overrides replace single settings. An epoch has about 250 updates of 2,048 target tokens.
"""

# %%
updates = 250 * EPOCHS
settings = load_settings(
    "multi30k",
    [
        f"training.updates={updates}",
        f"schedule.warmup_steps={updates // 5}",
        f"training.validate_every={updates // 3}",
        "training.progress_seconds=30",
    ],
)
print(settings.model.preset, settings.vocabulary.size, settings.schedule.peak)

# %% [markdown]
"""
## Training

`train` leaves everything in one folder, the run: settings, vocabulary, checkpoints, learning curves
and the model. If it is interrupted, the same call continues. A validation translates sentences that
are not in the training data and computes BLEU.
"""

# %%
console = rich.console.Console(file=sys.stdout, width=100, force_jupyter=False)
metrics = train(settings, "runs/multi30k", console=console)
print(f"{metrics['parameters']} parameters")

# %% [markdown]
"""
## Evaluation

BLEU and chrF of sacreBLEU on the 1,000 sentences of the test set of 2016, with greedy search and
with a beam of 4.
"""

# %%
for name, search in {"Greedy search": None, "Beam of 4": Beam(4)}.items():
    options = {} if search is None else {"search": search}
    results = evaluate_split("runs/multi30k", **options)
    print(f"{name}, BLEU: {results['bleu']:.1f}")
    print(f"{name}, chrF: {results['chrf']:.1f}")

# %% [markdown]
"""
`Translator` opens the run. The tokenizer belongs to it: strings go in and come out.
"""

# %%
translator = Translator.from_run("runs/multi30k")
sentences = [
    "A man is riding a bicycle.",
    "Two children are playing in the snow.",
    "A black dog jumps over the fence.",
    "The parliament voted on the new law.",
]
for sentence, translation in zip(sentences, translator(sentences, search=Beam(4)), strict=True):
    print(f"{sentence}\n    {translation}")

# %% [markdown]
"""
Each row of the figure is a token of the translation, and shows how much the decoder attended to
each token of the source when it generated this token.
"""

# %%
attention = translator.attention("Two children are playing in the snow.")["cross"]
# Picture: Attention weights of the German translation to the English caption. Each word attends
# most to the word that it translates.
attention_figure(attention)

# %% [markdown]
"""
The training loss and the validation loss:
"""

# %%
with open("runs/multi30k/history.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
# Picture: Curves of the training and the validation loss by number of updates. Both fall to about
# 3.
plt.figure(figsize=(5, 3))
for name in ("train/loss", "validation/loss"):
    points = [(int(row["update"]), float(row[name])) for row in rows if row[name]]
    plt.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
plt.xlabel("updates")
plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown]
"""
## Conclusion

Captions are short and similar to one another, so 29,000 pairs and six epochs go a long way. The
last of the four sentences is not a caption, and few of its words are in the training data: a
translator for other texts needs other data, and more of it.
"""

# %% [markdown]
"""
## Read next

- [Translation](../translation.md): the same from the command line, all searches, and your own
  corpus.
- [Benchmarks](../benchmarks.md#multi30k-raw-text): what longer training achieves on this data.
- [From training to a SavedModel](saved_model.md): export a model, and call it.
"""
