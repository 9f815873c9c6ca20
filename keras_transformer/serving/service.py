"""The served model, with everything that a protocol needs to answer requests for it."""

import base64
import binascii
import contextlib
import time
from collections.abc import Callable
from typing import Any

from keras_transformer.decoding import Greedy
from keras_transformer.serving.bodies import Bodies
from keras_transformer.serving.jobs import JobQueue
from keras_transformer.serving.metrics import Metrics
from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.streams import Streams
from keras_transformer.serving.work import Work

STUCK = 10  # times the time of a request: a call of the model that takes longer will not return


class Service:
    """A model in use by a server.

    Args:
        model: The `Answering`.
        options: The `ServerOptions`.
        name: Name of the model in requests.
        key: Key that requests must have. `None`: they need none.
        report: Function that is called with an unexpected exception.

    Attributes:
        is_ready: Whether requests are answered.
        streams: The `Streams`. `None`: the model returns no tokens before its search has ended.

    Raises:
        ValueError: If the model answers a series as a whole, or an option has no effect on it.
    """

    def __init__(
        self,
        model: Any,
        options: ServerOptions,
        name: str,
        key: str | None = None,
        report: Callable[[BaseException], object] = lambda error: None,
    ):
        self.codec: Any = None if model.generates else model.codec
        if self.codec is not None and self.codec.simulates:
            raise ValueError(
                f"A model for {model.task} is not served: its lines are one series. Use `predict`."
            )
        if model.has_languages:
            model = model.with_languages(options.source_language, options.target_language)
        self.model, self.options, self.name, self.key = model, options, name, key
        self.report, self.created, self.is_ready = report, int(time.time()), False
        self.metrics = Metrics()
        self.bodies = Bodies(options.body_limit(self.reads_files), options.read_timeout)
        self.queue = JobQueue(model, options, self.metrics, report)
        self.streams = self._new_streams()

    def _new_streams(self):
        if not self.model.generates:
            return None
        most, waiting = self.options.max_streams, self.options.queue_limit
        try:
            streamer = self.model.streamer(most)
        except ValueError:
            return None
        return Streams(streamer, most, waiting, self.queue, self.metrics)

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.model.task

    @property
    def reads_files(self) -> bool:
        """`True` if inputs are the contents of files, such as recordings."""
        return bool(getattr(self.codec, "suffixes", ()))

    def warm_up(self) -> None:
        """Answers an input, so that the first request need not wait for a graph."""
        if self.reads_files:
            return
        # A language model may continue a text for minutes.
        search = None if self.streams is None else Greedy(max_length=2)
        # A model may take another form of inputs, or let each request choose a language.
        with contextlib.suppress(ValueError, TypeError, Refusal):
            work = Work(search=search)
            work.answer(work.model(self.model), [self.input_of("1")], [0], 1)
        if self.streams is not None:
            self.streams.warm_up()

    def check_live(self) -> None:
        """Raises a `Refusal` if the model does not return, so that nobody gets an answer."""
        limit = STUCK * self.options.timeout
        if self.queue.busy_seconds > limit:
            raise Refusal(503, f"the model has not returned for more than {limit:g} seconds.")

    def input_of(self, value: Any) -> Any:
        """Returns the input that a value of a request is.

        Args:
            value: A string, or `bytes` of text or of a file. For a file, a string would be a path
                on the server: it is refused.

        Raises:
            Refusal: If it is no input of the model.
        """
        if self.reads_files:
            if not isinstance(value, bytes):
                raise Refusal(400, f"an input must be the bytes of a file: {self._files()}.")
            return value
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                raise Refusal(400, "an input must be in UTF-8.") from None
        if not isinstance(value, str):
            kind = type(value).__name__
            raise Refusal(400, f"an input must be a string. Received: {kind}.")
        if self.codec is None:
            return value
        try:
            return self.codec.parse(value)
        except ValueError as error:
            raise Refusal(400, f"an input {error}") from None

    def inputs_of(self, values: Any) -> list:
        """Returns the inputs that a list of values is, after checking the limits.

        Raises:
            Refusal: If there are too many, they are too long, or one is no input of the model.
        """
        if not isinstance(values, list):
            kind = type(values).__name__
            raise Refusal(400, f"inputs must be a list. Received: {kind}.")
        if len(values) > self.options.input_limit:
            raise Refusal(
                400,
                f"a request must have at most {self.options.input_limit:,} inputs. "
                f"Received: {len(values):,}.",
            )
        inputs = [self.input_of(value) for value in values]
        size = 0 if self.reads_files else sum(map(len, values))
        if size > self.options.max_characters:
            raise Refusal(
                400,
                f"a request must have at most {self.options.max_characters:,} characters. "
                f"Received: {size:,}.",
            )
        return inputs

    def check_name(self, name: Any) -> None:
        """Raises a `Refusal` unless `name` is the name of the model."""
        if name != self.name:
            raise Refusal(404, f"there is no model {name!r}: this server has {self.name!r}.")

    def _files(self):
        return ", ".join(self.codec.suffixes)


def from_base64(text: Any) -> bytes:
    """Returns the bytes that a string in Base64 stands for.

    Raises:
        Refusal: If it is something else.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Refusal(400, "`b64` must be a string in Base64.") from None
