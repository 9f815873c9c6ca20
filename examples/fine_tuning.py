# %% [markdown]
"""
# Fine-tuning a pretrained encoder

A small BERT in Hugging Face's format learns the sentiment of film reviews, and becomes a file for
web pages.

Created 2026-11-25, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, download the data (1 MB) and a checkpoint (91
MB), and run the example:

```sh
pip install -e ".[plot,litert]" huggingface_hub
export KERAS_TRANSFORMER_DATA="$HOME/keras_transformer_data"
python benchmarks/data.py download --only sst2
hf download sentence-transformers/all-MiniLM-L6-v2 config.json model.safetensors vocab.txt \
    tokenizer_config.json --local-dir ./minilm
CHECKPOINT=./minilm python examples/fine_tuning.py
```

The page of this example shows the output of one run;
[the notebook](fine_tuning.ipynb) has the same cells. The
environment variable `EPOCHS` makes training shorter or longer.
"""

# %% [markdown]
"""
## Introduction

A model that has read a lot of text knows words that are not in the 6,920 training sentences of
SST-2. Fine-tuning continues from its weights, with a new classification head and a low learning
rate (Devlin et al., 2019).

The environment variable `CHECKPOINT` names a folder with `config.json`, `model.safetensors` and
`vocab.txt` of a BERT. We use
[all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), 6 layers of width
384 with 23 million parameters (Apache 2.0), because it is small enough for a processor. Any other
BERT works in the same way if it has no head, or one for classes.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import dataclasses
import os
import pathlib
import tempfile
import warnings

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import keras_transformer
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.models import TextClassifier
from keras_transformer.pipelines import TextClassificationPipeline

EPOCHS = int(os.environ.get("EPOCHS", 1))
CHECKPOINT = os.environ.get("CHECKPOINT")
DATA = pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", "."), "sst2")
LABELS = ("negative", "positive")
if not CHECKPOINT:
    raise SystemExit(
        "Set CHECKPOINT to the folder of a BERT, for example with "
        "`hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir ./minilm`."
    )
if not DATA.is_dir():
    raise SystemExit(
        "Set KERAS_TRANSFORMER_DATA to a folder and run "
        "`python benchmarks/data.py download --only sst2` to download SST-2."
    )
keras.utils.set_random_seed(1)

# %% [markdown]
"""
## Data

Each line of a file has a sentence, a tab and its label: 1 is positive, 0 is negative.
"""


# %%
def read(split):
    """Returns sentences and labels of a file."""
    lines = (DATA / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
    sentences, labels = zip(*(line.rsplit("\t", 1) for line in lines), strict=True)
    return list(sentences), np.array(labels, "int32")


for split in ("train", "dev", "test"):
    print(f"{split}: {len(read(split)[0])} sentences")

# %% [markdown]
"""
## Model

`from_pretrained` returns a `TextClassificationPipeline`: the model, which is an ordinary Keras
model of token ids, with the tokenizer of the checkpoint. This checkpoint has no classification
head, so the head has random weights: before fine-tuning the classifier guesses. It has no names for
the classes either, so we make a model with the same weights and with names.
"""

# %%
warnings.filterwarnings("ignore", "the checkpoint has no head")  # that of the run is trained below
checkpoint = keras_transformer.from_pretrained(CHECKPOINT)
config, tokenizer = checkpoint.model.config, checkpoint.tokenizers.source
head = dataclasses.replace(config.head, labels=LABELS)
model = TextClassifier(dataclasses.replace(config, head=head))
model.set_weights(checkpoint.model.get_weights())
MAX_LENGTH = min(64, checkpoint.max_length)
classifier = TextClassificationPipeline(model, tokenizer, max_length=MAX_LENGTH)
print(f"{model.count_params()} parameters, a vocabulary of {tokenizer.vocab_size} tokens")
print(tokenizer.encode(["one long string of cliches"])[0].numpy())

# %% [markdown]
"""
The tokenizer turns sentences into token ids. Batches contain sentences of similar length, which
saves padding.
"""


# %%
def batches(split, batch_size, shuffle=False):
    """Returns batches of token ids `[B, S]` and labels `[B]`; 0 is padding."""
    sentences, labels = read(split)
    token_ids = tokenizer.encode(sentences)[:, :MAX_LENGTH]
    rows = tf.data.Dataset.from_tensor_slices((token_ids, labels))
    if shuffle:
        rows = rows.shuffle(len(labels), seed=1)
    rows = rows.map(lambda ids, label: (ids, label))  # rows of a ragged tensor become tensors
    rows = rows.bucket_by_sequence_length(
        lambda ids, _: tf.size(ids), [12, 18, 24, 32], [batch_size] * 5
    )
    count = sum(1 for _ in rows)  # buckets have no length, and Keras warns where an epoch ends
    return rows.apply(tf.data.experimental.assert_cardinality(count)).prefetch(1)


train, dev, test = batches("train", 32, shuffle=True), batches("dev", 64), batches("test", 64)

# %% [markdown]
"""
## Training

All weights are trained, with a learning rate that falls from 5e-5 to zero.
"""

# %%
steps = EPOCHS * int(train.cardinality())
rate = keras.optimizers.schedules.PolynomialDecay(5e-5, steps)
model.compile(
    keras.optimizers.AdamW(rate, weight_decay=0.01, clipnorm=1.0),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
_, before = model.evaluate(dev, verbose=0)
print(f"Before fine-tuning, accuracy on dev: {before:.3f}")
history = model.fit(train, validation_data=dev, epochs=EPOCHS, shuffle=False, verbose=2)

# %% [markdown]
"""
## Evaluation
"""

# %%
_, accuracy = model.evaluate(test, verbose=0)
print(f"Fine-tuned, accuracy: {accuracy:.3f}")

# %% [markdown]
"""
The classifier takes strings. A result is the label; `classify` also returns the probabilities.
"""

# %%
sentences = [
    "a stirring , funny and finally transporting film",
    "one long string of cliches",
    "the plot is thin but the actors are wonderful",
    "not a bad film",
]
for sentence, result in zip(sentences, classifier.classify(sentences), strict=True):
    print(f"{result.label}, {result.probability:.2f}: {sentence}")

# %% [markdown]
"""
The probabilities of the test sentences: most are near 0 or 1, and the errors are spread over the
whole range.
"""

# %%
test_sentences, test_labels = read("test")
positive = np.array([result.probabilities[1] for result in classifier.classify(test_sentences)])
# Picture: Two histograms of the probability of positive for the test sentences. Most positive
# sentences are between 0.8 and 1, most negative ones between 0 and 0.2.
plt.figure(figsize=(5, 3))
bins = np.linspace(0, 1, 21)
plt.hist(positive[test_labels == 1], bins, alpha=0.6, label="positive sentences")
plt.hist(positive[test_labels == 0], bins, alpha=0.6, label="negative sentences")
plt.xlabel("probability of positive")
plt.ylabel("sentences")
plt.legend()
plt.show()

# %% [markdown]
"""
## Export

A `.tflite` file in int8 contains the vocabulary and the names of the classes. `export_litert` keeps
it only if it classifies the samples like the model in memory.
"""

# %%
file = pathlib.Path(tempfile.mkdtemp()) / "sentiment.tflite"
report = export_litert(classifier, file, read("dev")[0][:100], LiteRTOptions(quantize="int8"))
print(f"{report['bytes'] / 1e6:.1f} MB; graphs: {', '.join(report['signatures'])}")
answers = keras_transformer.open(file).answer(test_sentences)
exact = np.mean([answer.label == LABELS[y] for answer, y in zip(answers, test_labels, strict=True)])
print(f"File in int8, accuracy: {exact:.3f}")

# %% [markdown]
"""
A web page uses this file with the modules of `examples/browser`, without a server:

```js
import { Classifier } from "./classify.js";

const classifier = await Classifier.load("sentiment.tflite");
const { label, probability } = await classifier.classify("not a bad film");
```
"""

# %% [markdown]
"""
## Conclusion

After one epoch the accuracy is 0.873, five points more than that of [a model without
pretraining](sentiment.md) that was trained on the same sentences. The difference is what the
encoder has learned from other texts: "not a bad film" is now positive. The file in int8 has the
same accuracy and 23.3 MB instead of 91 MB.
"""

# %% [markdown]
"""
## Read next

- [Pretrained models](../pretrained.md): what is read from a checkpoint, and the same fine-tuning
  from the command line.
- [Sentiment of film reviews](sentiment.md): a model without pretraining.
- [Phones and browsers](../litert.md): files for web pages and apps.
- [From training to a SavedModel](saved_model.md): export a model, and call it.
"""
