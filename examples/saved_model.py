# %% [markdown]
"""
# From training to a SavedModel

A small translator is trained, exported with its tokenizer and its search, and called as a
SavedModel.

Created 2026-11-25, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, and run the example:

```sh
pip install -e ".[plot]"
python examples/saved_model.py
```

The page of this example shows the output of one run;
[the notebook](saved_model.ipynb) has the same cells. The
environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

A server should not need our Python code: strings go in, and strings come out. The SavedModel that
this package exports contains the tokenizer, the model and the loop that generates tokens. We train
a Transformer that writes dates in full, `2031-03-05` as `the 5th of March 2031`, export it, and
call the export with TensorFlow alone.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import datetime
import io
import os
import tempfile

import keras
import numpy as np
import sentencepiece

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.export import export_saved_model
from keras_transformer.plots.attention import attention_figure
from keras_transformer.tokenizers import SentencePieceTokenizer

# %matplotlib inline
EPOCHS = int(os.environ.get("EPOCHS", 4))
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

# %% [markdown]
"""
## Data
"""


# %%
def in_full(date):
    """Returns a date in words and digits."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(date.day % 10, "th")
    if date.day in (11, 12, 13):
        ending = "th"
    return f"the {date.day}{ending} of {date:%B} {date.year}"


days = rng.choice(200 * 365, size=8500, replace=False).tolist()
dates = [datetime.date(1900, 1, 1) + datetime.timedelta(days=day) for day in days]
sources, targets = [date.isoformat() for date in dates], [in_full(date) for date in dates]
held_out = 500
print(f"{len(dates) - held_out} dates to train with, {held_out} held out")
print(f"For example: {sources[0]} -> {targets[0]}")

# %% [markdown]
"""
SentencePiece learns a small vocabulary for both sides. The four special tokens have the ids
that `SentencePieceTokenizer` and `TransformerConfig` expect. The tokenizer runs inside the
TensorFlow graph, so that it can be exported.
"""

# %%
vocabulary = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(sources[held_out:] + targets[held_out:]),
    model_writer=vocabulary,
    vocab_size=50,
    split_digits=True,
    pad_id=0,
    unk_id=1,
    bos_id=2,
    eos_id=3,
    num_threads=1,
    minloglevel=2,
)
tokenizer = SentencePieceTokenizer(vocabulary.getvalue())
print(tokenizer.encode([sources[0]])[0].numpy())

encoder_inputs = tokenizer.encode(sources).to_tensor().numpy()  # [B, S], each row ends in EOS
labels = tokenizer.encode(targets).to_tensor().numpy()  # [B, T]
bos = np.full_like(labels[:, :1], tokenizer.bos_id)
decoder_inputs = np.concatenate([bos, labels[:, :-1]], axis=1)  # [B, T], one position later
sample_weight = (labels != tokenizer.pad_id).astype("float32")

# %% [markdown]
"""
## Model

`max_length` is the maximum length of an output in tokens. The longest of our dates has 27.
"""

# %%
config = TransformerConfig(
    vocab_size=tokenizer.vocab_size,
    d_model=64,
    num_layers=2,
    num_heads=4,
    d_ff=128,
    dropout=0.0,
    max_length=32,
)
model = Transformer(config)

# %% [markdown]
"""
## Training
"""

# %%
batch_size = 64
steps = EPOCHS * -(-(len(dates) - held_out) // batch_size)
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
    {"source": encoder_inputs[held_out:], "target": decoder_inputs[held_out:]},
    labels[held_out:],
    sample_weight=sample_weight[held_out:],
    batch_size=batch_size,
    epochs=EPOCHS,
    verbose=2,
)

# %% [markdown]
"""
## Evaluation

`Translator` joins the model and the tokenizer.
"""

# %%
translator = Translator(model, tokenizer)
outputs = translator(sources[:held_out])
exact = np.mean([output == target for output, target in zip(outputs, targets, strict=False)])
print(f"Exact translations: {exact:.3f}")
# Picture: Attention weights of the written date to 2031-03-05. The day attends to the last digit,
# the month to the digits of the month, the year to its digits.
attention_figure(translator.attention("2031-03-05")["cross"])

# %% [markdown]
"""
## Export

`export_saved_model` writes the folder `1`, the first version. It keeps an export only if the export
answers `samples` like the model in memory.
"""

# %%
folder = tempfile.mkdtemp()
report = export_saved_model(translator, folder, samples=sources[:20])
print(f"{report['bytes'] / 1e6:.1f} MB; signatures: {', '.join(report['signatures'])}")
print(f"{report['identical']} of {report['sentences']} answers are identical")

# %% [markdown]
"""
## Call

From here on nothing from this package is used. `tensorflow_text` registers the operations of the
tokenizer, which TensorFlow Serving has built in. A signature takes a batch of strings.
"""

# %%
import tensorflow as tf
import tensorflow_text  # noqa: F401

loaded = tf.saved_model.load(os.path.join(folder, "1"))
strings = tf.constant(["2031-03-05", "1969-07-20", "2000-02-29"])
answer = loaded.signatures["serving_default"](sentences=strings)
for name, values in answer.items():
    print(f"{name}: {values.numpy().tolist()}")

# %% [markdown]
"""
`n_best` returns several outputs of a beam search for each string, with their scores.
"""

# %%
answer = loaded.signatures["n_best"](sentences=strings[:1])
for name, values in answer.items():
    print(f"{name}: {values.numpy().tolist()}")

# %% [markdown]
"""
## Conclusion

One call wrote a folder that answers strings like the trained model, without our code. All held-out
dates are exact (1.000); the lower outputs of `n_best` have a wrong letter or digit, and much lower
scores.
"""

# %% [markdown]
"""
## Read next

- [TensorFlow Serving](../serving.md): start a server with this folder, and send requests over REST
  and gRPC.
- [Phones and browsers](../litert.md): export a `.tflite` file instead.
- [English to German on Multi30K](multi30k.md): train a translator on real text.
"""
