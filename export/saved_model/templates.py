"""The wording of the texts beside a SavedModel."""

import string

BATCHING_PARAMETERS = string.Template("""\
# For tensorflow_model_server --enable_batching --batching_parameters_file=...
max_batch_size { value: $largest }
# A request that comes alone waits so long for others. Sentences of one batch are decoded together
# and all of them are ready when the longest is.
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 100 }
# Token ids of several requests become one batch although they differ in length.
pad_variable_length_inputs: true
""")

PAGE = string.Template("""\
# $model

$purpose, under TensorFlow Serving. Written by `keras-transformer export saved-model`; neither a
server nor a client needs that package.

| signature | inputs | outputs |
|---|---|---|
$signatures

$notes
## Start the server

In the folder of this file:

```sh
docker run -p 8500:8500 -p 8501:8501 \\
  -v "$$(dirname "$$PWD"):/models/$model" -e MODEL_NAME=$model \\
  tensorflow/serving$flags
```

$serving## Ask it over REST

```sh
$requests```

The answer is `{"outputs": {...}}` with the outputs of the table.

$grpc## Load it in Python
$needs
In the folder of this file:

```python
import tensorflow as tf
$imports
answer = tf.saved_model.load(".").signatures["serving_default"]
print(answer($arguments)["$output"][0].numpy()$decode)
```
""")
REQUEST = string.Template("""\
curl http://localhost:8501/v1/models/$model:predict -d \\
  '{$signature"inputs": $inputs}'
""")
NEEDS = """
It needs the operations of the package `tensorflow-text`, of TensorFlow's version: without its
import, loading fails with "Op type not registered 'SentencepieceOp'".
"""

# The parts of the page for a model that generates text.
NOTES = string.Template("""\
- B: sentences of a request, any number. S: tokens of its longest source, at most $max_length.
- M: outputs for a sentence, the best first. Where a search finds fewer, the others are empty
  and have a score of -1e9.
- L: $max_length, the longest output in tokens.
- Token ids are those of the SentencePiece vocabulary inside. A source ends in $eos_id, and whatever
  follows is ignored; an output ends in $eos_id and is padded with $pad_id.
- `score` is the sum of the log-probabilities of the tokens; from a search with a beam it is divided
  by the penalty for the length.
- `search` takes its settings with each sentence: `beam_size`, 1 to $beam_size hypotheses, of which
  no more than that are given; `length_penalty`, at least 0; `max_length`, the longest output in
  tokens, $shortest to $max_length. Settings out of range are an error.
- Strings are UTF-8. Of a sentence of more than $max_length tokens the beginning is read, and
  `truncated` says so. A string that is not UTF-8 has empty outputs with a score of -1e9. $empty
  Token ids that cannot be read are an error.
$alignment
How they search:

$searches
""")
SERVING = string.Template("""\
To decode the sentences of several requests together, add

```sh
  --enable_batching --batching_parameters_file="/models/$model/$$(basename "$$PWD")/$batching"
```

A request then may hold $largest sentences and no more, and token ids that cannot be read, or
settings out of range, are an error for all requests that share their batch.

While it loads the model, the server answers the requests in `assets.extra`, so that the
first client need not wait for what is done only once.
$compiled
""")
GRPC = string.Template("""\
## Ask it over gRPC

After `pip install tensorflow-serving-api`:

```python
import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel("localhost:8500"))


def predict(signature, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "$model"
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        dtype = tf.float32 if name == "length_penalty" else None
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    outputs = stub.Predict(request, timeout=60).outputs
    return {name: tf.make_ndarray(value) for name, value in outputs.items()}


answer = predict("serving_default", sentences=[$sentence])
print(answer["score"][0], answer["$output"][0].decode())

answer = predict("n_best", sentences=[$sentence])
for text, score in zip(answer["$output"][0], answer["score"][0]):
    print(score, text.decode())

print(predict("tokens", source=[$ids])["tokens"][0])
print(predict("beam_tokens", source=[$ids])["tokens"][0])

settings = {"beam_size": [$beam_size], "length_penalty": [1.0], "max_length": [$max_length]}
answer = predict("search", sentences=[$sentence], **settings)
print(answer["score"][0, 0], answer["$output"][0, 0].decode())
$alignment_grpc```

""")

# By whether an empty input has an empty output.
EMPTY = {
    True: "An empty sentence stays empty.",
    False: "An output begins with its prompt, and its score is that of what follows; an empty "
    "prompt is the beginning of any text.",
}

# Parts of the text above, for an export with that signature.
ALIGNMENT = string.Template("""\
- T: tokens of the longest translation of a request. `alignment[b, t, s]` is how much of its
  attention the decoder gave to piece s of source b when it generated piece t of the translation; a
  row sums to 1. After the end of a sentence or translation ids are $pad_id, pieces are empty and
  weights are 0; an empty sentence has no pieces. Where the server decodes several requests
  together, S and T are those of all of them.
- `source_pieces` and `target_pieces` are the tokens as SentencePiece writes them, the end, `$end`,
  included. Without it and one after the other, with a space for each `▁`, they are the text as
  SentencePiece normalises it; what the vocabulary does not have is `$unknown`.
""")
ALIGNMENT_GRPC = string.Template("""
answer = predict("alignment", sentences=[$sentence])
sources = answer["source_pieces"][0]
for target, weights in zip(answer["target_pieces"][0], answer["alignment"][0]):
    if target:
        print(target.decode(), "from", sources[weights.argmax()].decode())
""")

COMPILED = string.Template("""
The searches are compiled by XLA while the model is loaded, for batches of $sizes and sources of
$lengths tokens, to which requests are padded; larger batches are decoded in parts. On a
processor the server must be started with `$flag`, as above; without it, it
cannot load the model. Images for GPUs were reported to lack the compiler
(https://github.com/tensorflow/serving/issues/2214).
""")
