"""Metrics of the server, in the text format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Metrics of one server.

    Attributes:
        requests: Counter of requests, by route and status.
        seconds: Histogram of the time until a request is answered, by route.
        inputs: Counter of inputs of requests.
        batch_size: Histogram of the inputs of a batch.
        model_seconds: Histogram of the time of a batch in the model.
        model_busy_seconds: Gauge of the time since the current call of the model began; 0 if there
            is none.
        waiting: Gauge of the inputs that wait.
        stream_batch_size: Histogram of the texts that are given a token in one turn.
        streams: Gauge of the texts that are generated token by token.
        tokens: Counter of their tokens.
    """

    def __init__(self):
        self._registry = registry = CollectorRegistry()
        prefix = "keras_transformer_"
        self.requests = Counter(
            f"{prefix}requests", "Requests", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            f"{prefix}request_seconds", "Time until the answer", ["route"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.inputs = Counter(f"{prefix}inputs", "Inputs of requests", registry=registry)
        self.batch_size = Histogram(
            f"{prefix}batch_size", "Inputs of a batch", buckets=SIZES, registry=registry
        )
        self.stream_batch_size = Histogram(
            f"{prefix}stream_batch_size", "Texts that are given a token in one turn",
            buckets=SIZES, registry=registry,
        )  # fmt: skip
        self.model_seconds = Histogram(
            f"{prefix}model_seconds", "Time of a batch in the model",
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.model_busy_seconds = Gauge(
            f"{prefix}model_busy_seconds",
            "Time since the current call of the model began; 0 if there is none",
            registry=registry,
        )
        self.waiting = Gauge(f"{prefix}waiting_inputs", "Inputs that wait", registry=registry)
        self.streams = Gauge(
            f"{prefix}streams", "Texts that are generated token by token", registry=registry
        )
        self.tokens = Counter(f"{prefix}streamed_tokens", "Tokens of streams", registry=registry)

    def text(self) -> bytes:
        """Returns all metrics in the text format."""
        return generate_latest(self._registry)
