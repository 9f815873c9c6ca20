"""Servers in a thread of the test, models whose answers can be held back, and a plain client."""

import contextlib
import dataclasses
import http.client
import json
import threading
import time

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("multipart")

from keras_transformer.serving.app import make_app
from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.server import GracefulServer, configured, listening_socket
from keras_transformer.serving.service import Service
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import Generated, Translation
from keras_transformer.tasks.streams.turns import END

QUICK = {"port": 0, "batch_wait": 1.0, "read_timeout": 5.0, "timeout": 20.0}
LONG = 1000  # tokens of a text of `Endless`


class Shouting(TextAnswering):
    """A "translator" into capital letters, which refuses texts with a 7 and fails at an 8.

    Attributes:
        opened: Event without which it answers nothing.
        entered: Number of the batches that it was given.
        batches: List of the batches that it has answered.
    """

    task, has_source = "translation", True

    def __init__(self):
        self.opened, self.batches, self.entered = threading.Event(), [], 0
        self.opened.set()

    def answer_batch(self, inputs):
        self.entered += 1
        self.opened.wait(30)
        self.batches.append(list(inputs))
        if any("7" in text for text in inputs):
            raise ValueError("a text must\nnot have a 7.")
        if any("8" in text for text in inputs):
            raise RuntimeError("a secret of the server")
        return [Translation(text.upper(), -0.5, False, complete=True) for text in inputs]


class Whole(TextAnswering):
    """A model that returns texts after its search."""

    task = "language_modelling"

    def with_search(self, search):
        return self

    def answer_batch(self, inputs):
        return [Generated(f"{text} b", -0.5, False, complete=True) for text in inputs]


class Endless(Whole):
    """A model whose texts take a second, and fail after "fail".

    Attributes:
        begun, closed: Numbers of texts.
        together: Largest number of texts in a turn.
        opened: Event without which no token is generated.
    """

    def __init__(self):
        self.begun = self.closed = self.together = 0
        self.template, self.opened = None, threading.Event()
        self.opened.set()

    def streamer(self, count):
        return self

    def prompt(self, text):
        return text

    def tokens_of(self, prompt):
        return 1

    def begin(self, prompt, search, number=0):
        self.begun += 1
        return EndlessText(prompt)

    def advance(self, texts):
        self.opened.wait(10)
        time.sleep(0.001)
        self.together = max(self.together, len(texts))
        return [text.advance() for text in texts]

    def end(self, text):
        text.is_ended = True
        self.closed += 1


@dataclasses.dataclass(eq=False)
class EndlessText:
    """A text of `Endless`."""

    prompt: str
    tokens: int = 0
    complete: bool = False
    is_ended: bool = False

    def advance(self):
        assert not self.is_ended
        if self.tokens == LONG:
            return END
        if self.tokens and self.prompt == "fail":
            return RuntimeError("a secret of the server")
        self.tokens += 1
        return "x"


@dataclasses.dataclass
class Served:
    """A running server.

    Args:
        service: The `Service`.
        port: Its port.
        server: The `GracefulServer`.
        log: Lines of the access log.
        reports: Unexpected exceptions.
    """

    service: Service
    port: int
    server: GracefulServer
    log: list
    reports: list

    def ask(self, method, path, body=None, **headers):
        """Returns the status of a response, and its body, parsed if it is JSON."""
        status, content, _ = self.exchange(method, path, body, **headers)
        return status, content

    def exchange(self, method, path, body=None, **headers):
        """Returns the status of a response, its body and its headers."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, dict):
            body = json.dumps(body)
            headers.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content, kind = response.read(), response.getheader("content-type", "")
            content = json.loads(content) if "json" in kind else content.decode()
            return response.status, content, dict(response.getheaders())


@contextlib.contextmanager
def serving(model, key=None, name="model", protocols=None, **options):
    """A context with the `Served` of a model, which ends gracefully."""
    chosen, log, reports = ServerOptions(**{**QUICK, **options}), [], []
    service = Service(model, chosen, name, key, reports.append)
    bound, started = listening_socket(chosen), threading.Event()
    more = {} if protocols is None else {"protocols": protocols}
    app = make_app(service, log.append, **more)
    server = GracefulServer(configured(service, app), service, started.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        assert started.wait(10)
        yield Served(service, bound.getsockname()[1], server, log, reports)
    finally:
        if not server.should_exit:
            server.handle_exit(2, None)
        thread.join(30)
        assert not thread.is_alive()


NAMED = {"source_language": "en", "target_language": "xx"}


def multipart(**fields):
    """Returns the body of a form and its type."""
    parts = []
    for name, value in fields.items():
        file = '; filename="a.wav"' if isinstance(value, bytes) else ""
        value = value if isinstance(value, bytes) else value.encode()
        parts.append(f'--x\r\ncontent-disposition: form-data; name="{name}"{file}\r\n\r\n'.encode())
        parts.append(value + b"\r\n")
    return b"".join([*parts, b"--x--\r\n"]), "multipart/form-data; boundary=x"
