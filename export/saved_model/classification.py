"""A SavedModel of a classifier for TensorFlow Serving: strings or ids in, labels out."""

import json
import string

import numpy as np
import tensorflow as tf

from keras_transformer.export.label_agreement import LabelAgreement
from keras_transformer.export.parity import ExportError, check_sentences, in_float32
from keras_transformer.export.place import (
    check_place_of_versions,
    check_space,
    place_version,
    save,
    silent,
)
from keras_transformer.export.saved_model.guide import README, model_name
from keras_transformer.export.saved_model.ids import checked_ids
from keras_transformer.export.saved_model.verify import LOADERS
from keras_transformer.export.saved_model.warmup import PATH, Request, write_requests
from keras_transformer.tasks.classifier import to_classifications
from keras_transformer.tasks.strings import map_sorted

DEFAULT, TOKENS = "serving_default", "tokens"
BATCH_SIZE = 64
TEXT = string.Template("""\
# $model

Gives texts one of the labels $labels, with its tokenizer inside, under TensorFlow Serving. Written
by `keras-transformer export saved-model`; neither a server nor a client needs that package.

| signature | inputs | outputs |
|---|---|---|
| `serving_default` | `sentences` string [B] | `label` string [B], `probability` float32 [B], \
`probabilities` float32 [B, C], `truncated` bool [B] |
| `tokens` | `source` int32 [B, S] | `label` string [B], `probability` float32 [B], \
`probabilities` float32 [B, C] |

- B: texts of a request, any number. S: tokens of its longest text, at most $max_length.
- C: the $count labels, in the order above. `label` is the most probable of them.
- Strings are UTF-8. Of a text of more than $max_length tokens the beginning is read, and
  `truncated` says so. Token ids are those of the SentencePiece vocabulary inside: a text ends in
  $eos_id, and whatever follows is ignored; ids that cannot be read are an error.

## Start the server

In the folder of this file:

```sh
docker run -p 8500:8500 -p 8501:8501 \\
  -v "$$(dirname "$$PWD"):/models/$model" -e MODEL_NAME=$model \\
  tensorflow/serving
```

## Ask it over REST

```sh
curl http://localhost:8501/v1/models/$model:predict -d \\
  '{"inputs": {"sentences": [$sentence]}}'
```

## Load it in Python

The tokenizer inside needs the operations of the package `tensorflow-text`, of TensorFlow's version.
In the folder of this file:

```python
import tensorflow as tf
import tensorflow_text  # registers the operations of the tokenizer

classify = tf.saved_model.load(".").signatures["serving_default"]
print(classify(sentences=tf.constant([$sentence]))["label"][0].numpy().decode())
```
""")


def export_classifier(classifier, directory, sentences, *, references=None, progress=None):
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    It has two signatures: `serving_default`, strings `[B]` to their `label`, its `probability`, the
    `probabilities` of all labels and whether the text was `truncated`; and `tokens`, the same for
    token ids `[B, S]`. Beside the model lie a request with which TensorFlow Serving warms it up and
    a `README.md`.

    The version appears in `directory` when it is complete and both signatures have answered
    `sentences` as the model in memory does, loaded in both ways that TensorFlow has.

    Args:
        classifier: A `Classifier`.
        directory: Folder of the versions, as TensorFlow Serving expects it; made if missing.
        sentences: List of real texts to check the export with.
        references: List of their right labels, for the report. `None`: they are not known.
        progress: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `signatures`, `python_needs` and the figures of a
        `LabelAgreement`.

    Raises:
        ExportError: If the answers differ, or `directory` holds something else.
        OSError: If it cannot be written.
    """
    sentences = check_sentences(sentences)
    directory = check_place_of_versions(directory)
    classifier = in_float32(classifier)
    check_space(directory, classifier)
    progress = progress or silent
    agreement = LabelAgreement(sentences, classifier.classify(sentences), references=references)
    functions = _signatures(classifier)
    request = Request(DEFAULT, {"sentences": tf.constant(sentences[:1]).numpy()})

    def write(draft):
        progress("writing the graphs")
        module = tf.Module()
        module.weights = classifier.weights
        save(module, draft, functions)
        write_requests(draft / PATH, model_name(directory), [request])
        (draft / README).write_text(_readme(classifier, directory, sentences[0]), "utf-8")
        return _verify(draft, directory, classifier, agreement, progress)

    path, report = place_version(directory, write)
    return {
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "signatures": list(functions),
        "python_needs": ["tensorflow", "tensorflow_text"],
        **report,
    }


def _signatures(classifier):
    """The functions to export, by name."""
    labels = tf.constant(classifier.labels)

    def answer(ids):
        probabilities = tf.nn.softmax(classifier.model(ids, training=False))  # [B, C]
        return {
            "label": tf.gather(labels, tf.argmax(probabilities, axis=1)),
            "probability": tf.reduce_max(probabilities, axis=1),
            "probabilities": probabilities,
        }

    def of_strings(sentences):
        ids, truncated = classifier.encode(sentences)  # [B, S], [B]
        return {**answer(ids), "truncated": truncated}

    def of_ids(source):
        return answer(checked_ids(source, classifier.source_tokenizer, classifier.max_length))

    strings = tf.TensorSpec([None], tf.string, name="sentences")
    ids = tf.TensorSpec([None, None], tf.int32, name="source")
    return {
        DEFAULT: tf.function(of_strings, input_signature=[strings], autograph=False),
        TOKENS: tf.function(of_ids, input_signature=[ids], autograph=False),
    }


def _verify(draft, name, classifier, agreement, progress):
    """The figures of the first signature; both must agree, in both ways to load the model."""
    reports = []
    for load, program in LOADERS:
        progress(f"calling every signature as {program} loads it")
        with load(draft) as model:
            for signature in (DEFAULT, TOKENS):
                answers = _answers(model, signature, classifier, agreement.sentences)
                reports.append(agreement.judge(answers, f"{name}, {signature}"))
    return reports[0]


def _answers(model, signature, classifier, sentences):
    """What a signature answers to sentences, as `Classification`s."""

    def answer(batch):
        strings = tf.constant(batch, tf.string, [len(batch)])
        ids, truncated = classifier.encode(strings)
        if signature == DEFAULT:
            outputs = model.run(signature, sentences=strings)
            truncated = outputs["truncated"]
        else:
            outputs = model.run(signature, source=ids)
        results = to_classifications(classifier.labels, outputs["probabilities"], truncated)
        for result, label in zip(results, np.asarray(outputs["label"]), strict=True):
            if result.label != label.decode():
                raise ExportError(f"{signature}: {label!r} is not the most probable label.")
        return results

    return map_sorted(answer, sentences, BATCH_SIZE)


def _readme(classifier, directory, sentence):
    return TEXT.substitute(
        model=model_name(directory),
        labels=", ".join(f"`{label}`" for label in classifier.labels),
        count=len(classifier.labels),
        max_length=classifier.max_length,
        eos_id=classifier.source_tokenizer.eos_id,
        sentence=json.dumps(sentence).replace("'", "\\u0027"),
    )
