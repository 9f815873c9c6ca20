"""The messages that TensorFlow Serving reads from text files.

ModelServerConfig comes from tensorflow-serving-api. That package lacks the other two messages,
which are declared here field by field.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow_serving.config import model_server_config_pb2

BOOL, STRING, INT64, MESSAGE = 8, 9, 3, 11
OPTIONAL, REPEATED = 1, 3


def _declared():
    """Declares the messages of session_bundle_config.proto and monitoring_config.proto."""
    file = descriptor_pb2.FileDescriptorProto(name="server.proto", syntax="proto3")

    def declare(message, *fields):
        declared = file.message_type.add(name=message)
        for name, number, kind, label, *of in fields:
            field = declared.field.add(name=name, number=number, type=kind, label=label)
            if of:
                field.type_name = f".{of[0]}"

    declare("Int64Value", ("value", 1, INT64, OPTIONAL))
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    values = [(name, n, MESSAGE, OPTIONAL, "Int64Value") for n, name in enumerate(names, start=1)]
    sizes, pad = ("allowed_batch_sizes", 6, INT64, REPEATED), "pad_variable_length_inputs"
    declare("BatchingParameters", *values, sizes, (pad, 7, BOOL, OPTIONAL))
    declare("PrometheusConfig", ("enable", 1, BOOL, OPTIONAL), ("path", 2, STRING, OPTIONAL))
    prometheus = ("prometheus_config", 1, MESSAGE, OPTIONAL, "PrometheusConfig")
    declare("MonitoringConfig", prometheus)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in ("BatchingParameters", "MonitoringConfig")
    ]


BatchingParameters, MonitoringConfig = _declared()
# Messages by the file names in our documents.
FILES = {
    "models.config": model_server_config_pb2.ModelServerConfig,
    "monitoring.config": MonitoringConfig,
    "batching_parameters.txt": BatchingParameters,
}


def read(file, text):
    """Parses a text as the server does; `file` is one of `FILES`.

    Raises:
        text_format.ParseError: If the text does not match the message.
    """
    return text_format.Parse(text, FILES[file]())
