"""Warm-up requests, which TensorFlow Serving answers while it loads a model.

TensorFlow Serving reads them from `assets.extra/tf_serving_warmup_requests`, a TFRecord file of
`tensorflow.serving.PredictionLog` messages. They are encoded here by hand, so that an export does
not need the package tensorflow-serving-api. These are the fields that are used:

    message PredictionLog { PredictLog predict_log = 6; }
    message PredictLog { PredictRequest request = 1; }
    message PredictRequest { ModelSpec model_spec = 1; map<string, TensorProto> inputs = 2; }
    message ModelSpec { string name = 1; string signature_name = 3; }

Reference: https://www.tensorflow.org/tfx/serving/saved_model_warmup, and for the wire format
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
        inputs: Dictionary from the names of the inputs to arrays.
    """

    signature: str
    inputs: dict


def make_requests(endpoints, buckets, sentences) -> list[Request]:
    """Returns a list of `Request`s, one for each endpoint and each shape.

    Args:
        endpoints: List of `Endpoint`s.
        buckets: The `Buckets` with the shapes.
        sentences: List of strings, from which sentences of every length are made.
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


def sentence_of_length(tokenizer, sentences, length) -> str:
    """Returns a string of `length` tokens including `eos_id`, or of as many below as possible.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: List of strings. The result is a part of them, repeated if they are too short.
        length: Number of tokens.
    """
    ids = tokenizer.encode([" ".join(sentences)])[0, :-1]
    ids = tf.tile(ids, [-(-length // max(len(ids), 1))])[:length]
    # A text that is truncated may be tokenised differently, so every cut is tried.
    begins = tf.ragged.constant([ids.numpy()[:count].tolist() for count in range(length)], tf.int32)
    texts = tokenizer.decode(begins)
    lengths = tokenizer.encode(texts).row_lengths().numpy()
    best = np.argmax(np.where(lengths <= length, lengths, 0))
    return texts.numpy()[best].decode("utf-8", "replace")


def write_requests(path, model, requests) -> None:
    """Writes requests to a file for TensorFlow Serving.

    Args:
        path: The file.
        model: Name under which the model is served.
        requests: List of `Request`s.

    Raises:
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    try:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for request in requests:
                writer.write(_prediction_log(model, request))  # ty: ignore[missing-attribute]
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
    """Encodes a message of strings and messages: number, length and content of each field."""
    return b"".join(
        _varint(number << 3 | 2) + _varint(len(content)) + content for number, content in fields
    )


def _varint(number):
    """Encodes a number in groups of seven bits, lowest first; all but the last have bit 8 set."""
    if number < 128:
        return bytes([number])
    return bytes([number & 127 | 128]) + _varint(number >> 7)
