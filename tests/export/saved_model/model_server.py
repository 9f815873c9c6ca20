"""A stand-in for a model server in tests. It is not TensorFlow Serving.

Like TensorFlow Serving it loads a version with TensorFlow's session loader from the graph alone,
answers the requests in `assets.extra` while loading, and speaks the same gRPC. It has no batching,
no version handling and no HTTP for REST. It imports nothing of this package.
"""

import concurrent.futures
import contextlib
import pathlib

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of SentencePiece)
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)


class Server(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, path, name):
        self.name = name
        self.session = tf.compat.v1.Session(graph=tf.Graph())
        with self.session.graph.as_default():
            meta = tf.compat.v1.saved_model.loader.load(self.session, ["serve"], str(path))
        self.signatures = meta.signature_def
        for log in read_warmup(path):
            self.answer(log.predict_log.request)

    def run(self, signature, **inputs):
        # Calling an unknown signature would add an empty one of that name.
        if signature not in self.signatures:
            raise KeyError(f"Serving signature name: {signature} not found")
        known = self.signatures[signature]
        outputs = {name: info.name for name, info in known.outputs.items()}
        feed = {known.inputs[name].name: value for name, value in inputs.items()}
        return self.session.run(outputs, feed)

    def answer(self, request):
        spec = request.model_spec
        if spec.name != self.name:
            raise KeyError(f"Servable not found for request: {spec.name}")
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        response = predict_pb2.PredictResponse(model_spec=spec)
        for name, value in self.run(spec.signature_name or "serving_default", **inputs).items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return response

    def Predict(self, request, context):  # noqa: N802
        try:
            return self.answer(request)
        except KeyError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except tf.errors.InvalidArgumentError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)

    def rest(self, body):
        """Returns the REST interface's answer to a request body in columns, without HTTP."""
        signature = body.get("signature_name", "serving_default")
        known = self.signatures[signature].inputs
        assert set(body["inputs"]) == set(known)
        inputs = {}
        for name, value in body["inputs"].items():
            dtype = tf.dtypes.as_dtype(known[name].dtype)
            inputs[name] = np.array(value, dtype.as_numpy_dtype)
        outputs = self.run(signature, **inputs)
        return {"outputs": {name: value.tolist() for name, value in outputs.items()}}

    @contextlib.contextmanager
    def listening(self):
        """Serves on a free port of this machine; yields the port."""
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, server)
        port = server.add_insecure_port("localhost:0")
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


def read_warmup(path):
    """Returns the `PredictionLog`s of a version."""
    file = pathlib.Path(path, "assets.extra", "tf_serving_warmup_requests")
    records = tf.data.TFRecordDataset([str(file)]).as_numpy_iterator()
    return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
