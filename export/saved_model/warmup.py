"""Requests that TensorFlow Serving answers while it loads a model, before those of clients.

It reads them from `assets.extra/tf_serving_warmup_requests` when it loads a version: a TFRecord
file of `tensorflow.serving.PredictionLog`. The package with those messages, tensorflow-serving-api,
is not needed to write them. This is all of them that is used:

    message PredictionLog { PredictLog predict_log = 6; }
    message PredictLog { PredictRequest request = 1; }
    message PredictRequest { ModelSpec model_spec = 1; map<string, TensorProto> inputs = 2; }
    message ModelSpec { string name = 1; string signature_name = 3; }

Reference: https://www.tensorflow.org/tfx/serving/saved_model_warmup, and the wire format at
    https://protobuf.dev/programming-guides/encoding.
"""

import dataclasses
import itertools

import numpy as np
import tensorflow as tf

PATH = "assets.extra/tf_serving_warmup_requests"


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to a model server.

    Args:
        signature: Name of the signature.
        inputs: Dictionary from the names of its inputs to arrays.
    """

    signature: str
    inputs: dict


def make_requests(endpoints, buckets, sentences):
    """Returns one request for each endpoint and each shape: `Request`s.

    Args:
        endpoints: List of `Endpoint`s.
        buckets: The `Buckets` that have the shapes.
        sentences: List of strings to make sentences of every length from.
    """
    texts = [
        sentence_of_length(endpoints[0].pipeline.source_tokenizer, sentences, length)
        for length in buckets.lengths
    ]
    return [
        Request(endpoint.name, _arrays(endpoint.example([text] * size)))
        for endpoint, size, text in itertools.product(endpoints, buckets.batch_sizes, texts)
    ]


def _arrays(inputs):
    return {name: value.numpy() for name, value in inputs.items()}


def sentence_of_length(tokenizer, sentences, length):
    """Returns a string of as many tokens as possible, at most `length`, `eos_id` included.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: List of strings, of which it is a part, repeated where they are too short.
        length: Number of tokens.
    """
    ids = tokenizer.encode([" ".join(sentences)])[0, :-1]
    ids = tf.tile(ids, [-(-length // max(len(ids), 1))])[:length]
    # After a cut the rest may be split into other pieces: every cut is tried.
    begins = tf.ragged.constant([ids.numpy()[:count].tolist() for count in range(length)], tf.int32)
    texts = tokenizer.decode(begins)
    lengths = tokenizer.encode(texts).row_lengths().numpy()
    best = np.argmax(np.where(lengths <= length, lengths, 0))
    return texts.numpy()[best].decode("utf-8", "replace")


def write_requests(path, model, requests):
    """Writes requests as TensorFlow Serving reads them.

    Args:
        path: The file.
        model: Name of the model.
        requests: List of `Request`.

    Raises:
        OSError: If it cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    try:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for request in requests:
                writer.write(_prediction_log(model, request))
    except tf.errors.OpError as error:
        raise OSError(f"{path} cannot be written: {error.message}") from error


def _prediction_log(model, request):
    spec = _message((1, model.encode()), (3, request.signature.encode()))
    inputs = [
        _message((1, name.encode()), (2, tf.make_tensor_proto(value).SerializeToString()))
        for name, value in request.inputs.items()
    ]
    predict_request = _message((1, spec), *((2, entry) for entry in inputs))
    return _message((6, _message((1, predict_request))))


def _message(*fields):
    """A message of which every field is a string or another message: number, length, content."""
    return b"".join(
        _varint(number << 3 | 2) + _varint(len(content)) + content for number, content in fields
    )


def _varint(number):
    """A number in groups of seven bits, the lowest first; all but the last have bit 8 set."""
    if number < 128:
        return bytes([number])
    return bytes([number & 127 | 128]) + _varint(number >> 7)
