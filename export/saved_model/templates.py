"""Templates of the texts that are written with a SavedModel."""

import string

BATCHING_PARAMETERS = string.Template("""\
# For tensorflow_model_server --enable_batching --batching_parameters_file=...
max_batch_size { value: $largest }
# Time that a single request waits for others, in microseconds. The sentences of a batch are decoded
# together, and all are ready when the longest one is.
batch_timeout_micros { value: 2000 }
# Full batches that wait before further requests are refused: no more than the server decodes in the
# time for which clients wait.
max_enqueued_batches { value: 8 }
# Requests with token ids of different lengths can share a batch.
pad_variable_length_inputs: true
""")

PAGE = string.Template("""\
# $model

$purpose. A model for TensorFlow Serving, written by `keras-transformer export saved-model`.
Neither server nor clients need that package.

| signature | inputs | outputs |
|---|---|---|
$signatures

$notes
## Start the server

In the folder of this file:

```sh
docker run --detach --rm --name $model -p 8500:8500 -p 8501:8501 \\
  -v "$$(dirname "$$PWD"):/models/$model" -e MODEL_NAME=$model \\
  tensorflow/serving:2.20.0$flags
```

$serving## Send requests over REST

$place```sh
$requests```

The response is `{"outputs": {...}}` with the outputs of the table.

$grpc## Load the model in Python
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
  $data
""")
PLACE = """In the folder of this file, which has the request in a file:

"""
NEEDS = string.Template("""
The model uses operations of the package `tensorflow-text`, in the same version as TensorFlow.
Without its import, loading fails with "Op type not registered '$operation'".
""")

# Parts of the page for a model that generates text.
NOTES = string.Template("""\
- B: number of sentences in a request. S: tokens of its longest source, at most $max_length.
- M: number of outputs per sentence, the best first. If a search finds fewer, the others are empty
  with a score of -1e9.
- L: $max_length, the maximum output length in tokens.
- Token ids belong to the $vocabulary vocabulary in the model. A source ends in $eos_id, and
  ids after that are ignored. An output ends in $eos_id and is padded with $pad_id.
- `score` is the sum of the tokens' log-probabilities. A beam search divides it by the length
  penalty.
- `complete` is false for an output that reached its maximum length: text is missing, or the model
  repeated itself.
- `search` takes settings with each sentence: `beam_size`, the number of hypotheses, from 1 to
  $beam_size (outputs beyond it are empty); `length_penalty`, at least 0; and `max_length`, the
  maximum number of new tokens, without those of a prompt, from $shortest to $max_length. An output
  has at most L tokens. Settings out of range are an error.
- Strings are UTF-8. A sentence of more than $max_length tokens is truncated, and `truncated` is
  true. A string that is not valid UTF-8 has empty outputs with a score of -1e9.
  $empty Token ids that are invalid are an error.
$languages$words$alignment
Searches of the signatures:

$searches
""")
SERVING = string.Template("""\
To decode the sentences of several requests together, add this option:

```sh
  --enable_batching --batching_parameters_file="/models/$model/$$(basename "$$PWD")/$batching"
```

A request may then contain at most $largest sentences. Invalid token ids, or settings out of range,
are an error for all requests in the same batch.

While the server loads the model, it answers the warm-up requests in `assets.extra`, so that no
client has to wait for the work of the first call.
$compiled
""")
GRPC = string.Template("""\
## Send requests over gRPC

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
    True: "The output for an empty sentence is empty.",
    False: "An output begins with its prompt; its score covers the tokens after the prompt. An "
    "empty prompt starts a new text.",
}

# Part of the page for a model with languages to choose from.
LANGUAGES = string.Template("""\
- `languages` takes the languages of each sentence, $inputs. The
  empty string stands for the default, $defaults, which the other signatures with
  sentences use.$own A source of token ids begins with $front. The languages are: $codes.
""")
OWN = " A sentence may begin with its own code, such as {}, which takes precedence."

# Part of the page for an export with the signature `token_scores`.
SCORES = """\
- `token_scores` returns T tokens of each output as `target_pieces`, including the end of the
  sentence, and their log-probabilities. T is the length of the longest output; after the end of an
  output, pieces are empty and scores are 0.
"""

# Part of the page for an export with the signature `words`.
WORDS = string.Template("""\
- `words` takes for each sentence `prefix`, the beginning of the output, and `banned`, phrases that
  the output does not contain, separated by newlines$terms.
  The empty string stands for none. Phrases are banned as they are written and with a capital
  first letter, as sequences of tokens, so that longer words that begin with them are also banned.
  A sentence has at most $phrases banned phrases, each of at most $characters characters$most.
  If its words do not fit, are not valid UTF-8$unknown,
  its outputs are empty with a score of -1e9, and `error` says why in a line. Otherwise `error` is
  empty.
""")
TERMS = """; and `terms`, terms that the output contains, also
  with a capital first letter, separated by newlines. Spellings of a term, of which one is enough,
  are separated by tabs"""

# Parts of the page for an export with the signature `alignment`.
ALIGNMENT = string.Template("""\
- T: tokens of the longest translation of a request. `alignment[b, t, s]` is the attention weight
  of source token s when the decoder generated token t of translation b; the weights of a token sum
  to 1. After the end of a sentence or translation, ids are $pad_id, pieces are empty and weights
  are 0. An empty translation has no pieces. If the server decodes several requests together, S and
  T are the maxima over all of them.
- `source_pieces` and `target_pieces` are the tokens as the $vocabulary vocabulary writes them,
  including the end, `$end`.$joined
""")
JOINED = string.Template(""" Joined without the end, and with a space for each `▁`, they are the
  text as SentencePiece normalises it, with `$unknown` for characters that are not in the
  vocabulary.""")
ALIGNMENT_GRPC = string.Template("""
answer = predict("alignment", sentences=[$sentence])
sources = answer["source_pieces"][0]
for target, weights in zip(answer["target_pieces"][0], answer["alignment"][0]):
    if target:
        print(target.decode(), "from", sources[weights.argmax()].decode())
""")

COMPILED = string.Template("""
XLA compiles the searches while the model is loaded, for batches of $sizes and sources of
$lengths tokens. Requests are padded to these shapes, and larger batches are decoded in parts.
On CPUs, the server must be started with `$flag`, as above; otherwise it
cannot load the model. Images for GPUs were reported to lack the compiler
(https://github.com/tensorflow/serving/issues/2214).
""")
