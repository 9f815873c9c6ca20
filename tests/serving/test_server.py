"""The server around a model: batches, limits, deadlines, health, metrics, and a graceful stop."""

import asyncio
import concurrent.futures
import contextlib
import errno
import json
import re
import socket
import time

import pytest
from servers import NAMED, Shouting, serving

from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.protocols import PROTOCOLS
from keras_transformer.serving.server import FILES, listening_socket, possible_connections


@pytest.fixture(scope="module")
def model():
    return Shouting()


@pytest.fixture(scope="module")
def served(model):
    with serving(model, **NAMED) as served:
        yield served


def translation(text, **more):
    return {"q": text, "source": "en", "target": "xx", **more}


def translate(served, text, **more):
    return served.ask("POST", "/translate", translation(text, **more))


def until(condition):
    """Waits until a condition holds."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextlib.contextmanager
def held(model):
    """The model answers nothing until the block ends; yields whether it works on a batch."""
    before = model.entered
    model.opened.clear()
    try:
        yield lambda: model.entered > before
    finally:
        model.opened.set()


def waiting(served):
    return len(served.service.queue._waiting)


def test_a_thousand_requests_at_once_get_their_own_answers(served, model):
    model.batches.clear()
    texts = [f"{'x' * (number % 17)} {number:b}" for number in range(1000)]
    with concurrent.futures.ThreadPoolExecutor(100) as threads:
        answers = [*threads.map(lambda text: translate(served, text), texts)]
    assert answers == [(200, {"translatedText": text.upper()}) for text in texts]
    assert max(map(len, model.batches)) > 1  # of several requests
    assert sum(map(len, model.batches)) == 1000


def test_a_list_is_answered_in_its_order(served):
    assert translate(served, ["b", "", "a"]) == (200, {"translatedText": ["B", "", "A"]})
    assert translate(served, []) == (200, {"translatedText": []})


def test_a_bad_input_fails_alone(served, model):
    with held(model) as begun, concurrent.futures.ThreadPoolExecutor(8) as threads:
        first = threads.submit(translate, served, "first")
        until(begun)
        texts = ["good", ["fine", "a 7"], "an 8", "also good"]
        asked = [threads.submit(translate, served, text) for text in texts]
        until(lambda: waiting(served) == 5)
        model.opened.set()
        assert first.result() == (200, {"translatedText": "FIRST"})
        good, seven, eight, fine = (one.result() for one in asked)
    assert good == (200, {"translatedText": "GOOD"})
    assert fine == (200, {"translatedText": "ALSO GOOD"})
    assert seven == (400, {"error": "input 2: a text must not have a 7."})
    assert eight == (500, {"error": "the model failed; the log of the server has the reason."})
    assert "secret" in str(served.reports.pop())


@pytest.mark.parametrize(
    "body, words",
    [
        (translation(["a"] * 9), "at most 8 inputs. Received: 9."),
        (translation("a" * 101), "at most 100 characters. Received: 101."),
        (translation(["a", 1]), "an input must be a string. Received: int."),
        (translation({"a": 1}), "`q` must be of type str or list. Received: dict."),
        ({"q": "a", "source": "en"}, "`target` is missing."),
        ({**translation("a"), "target": True}, "`target` must be of type str."),
        ({**translation("a"), "target": "de"}, "en to de is not supported: the model translates"),
        (b'{"q": NaN}', "the body must be JSON: NaN is no number of JSON"),
        (b'{"q": 1e999}', "the body must be JSON: "),
        (b'{"q": "\xff"}', "the body must be JSON in UTF-8."),
        (rb'{"q": "\ud800"}', "half of a surrogate pair."),
        (b"[" * 100_000, "too many levels."),
        (b'{"q": ' + b"9" * 5000 + b"}", "the body must be JSON: "),
        (b"[]", "the body must be an object in JSON."),
        (translation("a", format="x" * 150_000), "the format ..."),
        (b"", "the body must be JSON: "),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_in_one_line(body, words, limited):
    headers = {"content_type": "application/json"}
    status, answer = limited.ask("POST", "/translate", body, **headers)
    assert status == 400 and words in answer["error"] and "\n" not in answer["error"]


@pytest.fixture(scope="module")
def limited(model):
    options = {"max_inputs": 8, "max_characters": 100, "max_body": 200_000, "read_timeout": 0.3}
    with serving(model, **NAMED, **options) as served:
        yield served


def test_a_long_body_is_refused_before_and_while_it_is_read(limited):
    words = (413, {"error": "the body must have at most 200,000 bytes."})
    assert limited.ask("POST", "/translate", b"x" * 200_001) == words
    chunks = (b"x" * 50_000 for _ in range(5))  # its length is not known
    assert limited.ask("POST", "/translate", chunks) == words
    assert limited.service.bodies._held == 0


def exchange(port, *parts, pause=0.0):
    """Sends parts of a request, and returns what the server sends until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for part in parts:
            try:
                client.sendall(part)
            except OSError:
                break
            time.sleep(pause)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while more := client.recv(65536):
                received += more
        return received


HEADER = (
    b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    b"connection: close\r\n"
)


def test_slow_clients_lose_their_connection(limited):
    header = HEADER + b"content-length: 100\r\n\r\n"
    assert exchange(limited.port) == b""  # nothing at all
    assert exchange(limited.port, *[b"GET / HT", *[b"x"] * 9], pause=0.1) == b""  # its header
    answer = exchange(limited.port, header, *[b" "] * 9, pause=0.1)  # its body
    assert b" 408 " in answer and b"must arrive in 0.3 seconds" in answer
    assert translate(limited, "a") == (200, {"translatedText": "A"})


def test_clients_that_take_no_response_lose_their_connection_and_slow_ones_do_not(model):
    limits = {"read_timeout": 1.0, "max_characters": 10**7, "max_body": 10**7}
    with serving(model, **NAMED, **limits) as served:
        body = json.dumps(translation("x" * 9_000_000)).encode()
        request = HEADER + b"content-length: %d\r\n\r\n" % len(body) + body
        with socket.socket() as idle, socket.socket() as slow:
            for client in (idle, slow):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                client.connect(("127.0.0.1", served.port))
                client.sendall(request)
            received, begin = 0, time.monotonic()
            while part := slow.recv(2**15):
                received += len(part)
                if time.monotonic() < begin + 1.5:
                    time.sleep(0.01)
            assert received > 9_000_000
            until(lambda: not served.server.server_state.connections)


@pytest.mark.parametrize(
    "request_",
    [
        HEADER + b"transfer-encoding: chunked\r\n\r\nZZ\r\nnonsense\r\n0\r\n\r\n",
        HEADER + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        HEADER + b"content-length: -1\r\n\r\n",
        HEADER.replace(b"application/json", b"multipart/form-data; boundary=x")
        + b"content-length: 3\r\n\r\nabc",
        HEADER.replace(b"POST", b"POST\0"),
        HEADER + b"host: b\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nconnection: close\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nconnection: close\r\nhost: a\r\n" + b"x: y\r\n" * 50_000 + b"\r\n",
    ],
)
def test_nonsense_is_refused_and_the_server_lives_on(limited, request_, capfd):
    answer = exchange(limited.port, request_)
    assert not capfd.readouterr().err
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert translate(limited, "a") == (200, {"translatedText": "A"})
    assert not limited.reports


def test_unknown_paths_and_methods(served):
    assert served.ask("GET", "/nothing") == (404, {"error": "Not Found"})
    assert served.ask("GET", "/../../etc/passwd")[0] == 404
    assert served.ask("GET", "/v1/models/..%2F..%2Fetc%2Fpasswd")[0] == 404
    assert served.ask("GET", "/translate")[0] == 405


def test_a_full_queue_refuses_requests_for_now(model):
    with serving(model, **NAMED, max_queue=3, batch_size=1) as served:  # noqa: SIM117
        with held(model), concurrent.futures.ThreadPoolExecutor(8) as threads:
            first = threads.submit(translate, served, "first")
            until(
                lambda: (
                    model.opened.is_set()
                    or not waiting(served)
                    and served.service.metrics.inputs._value.get() == 1
                )
            )
            others = [threads.submit(translate, served, "other") for _ in range(3)]
            until(lambda: waiting(served) == 3)
            status, answer, headers = served.exchange("POST", "/translate", translation("more"))
            assert status == 429 and "try again later" in answer["error"]
            assert headers["retry-after"] == "1"
            model.opened.set()
            assert first.result()[0] == 200
            assert [one.result()[0] for one in others] == [200] * 3


def test_a_deadline_ends_a_request_and_its_inputs_leave_the_queue(model):
    with serving(model, **NAMED, timeout=0.2, batch_size=2) as served:
        model.batches.clear()
        with held(model):
            begin = time.monotonic()
            answer = translate(served, ["a"] * 5)
            assert answer == (504, {"error": "no answer within 0.2 seconds."})
            assert time.monotonic() - begin < 5
        until(lambda: not waiting(served))
        assert translate(served, "later")[0] == 200
        assert sum(map(len, model.batches)) == 3  # the batch that had begun, and the later one


def test_a_client_that_leaves_takes_its_inputs_along(model):
    with serving(model, **NAMED, batch_size=1) as served:
        model.batches.clear()
        with held(model):
            body = json.dumps(translation(["gone"] * 4)).encode()
            client = socket.create_connection(("127.0.0.1", served.port))
            client.sendall(HEADER + b"content-length: %d\r\n\r\n" % len(body) + body)
            until(lambda: waiting(served) == 3)
            client.close()
            until(lambda: any('"status": 499' in line for line in served.log))
        assert translate(served, "later")[0] == 200
        assert model.batches == [["gone"], ["later"]]


def test_health_and_metrics(model):
    with serving(model, **NAMED) as served:
        for path in ("/health", "/health/live", "/health/ready"):
            assert served.ask("GET", path) == (200, {"status": "ok"})
        translate(served, ["a", "b"])
        served.ask("GET", "/a/path/of/nobody")
        status, text = served.ask("GET", "/metrics")
    assert status == 200
    lines = text.splitlines()
    name = "keras_transformer_requests_total"
    assert f'{name}{{route="/translate",status="200"}} 1.0' in lines
    assert f'{name}{{route="other",status="404"}} 1.0' in lines
    assert "keras_transformer_inputs_total 2.0" in lines
    assert "keras_transformer_waiting_inputs 0.0" in lines


@pytest.mark.parametrize("path", ["/health/live", "/v2/health/live"])
def test_a_server_whose_model_does_not_return_is_not_alive(model, path):
    """A call may outlast a request, which is often slow, but not by far."""
    name = "keras_transformer_model_busy_seconds"
    with serving(model, **NAMED, timeout=0.2) as served:
        with held(model):
            assert translate(served, "a")[0] == 504
            assert served.ask("GET", path)[0] == 200
            until(lambda: served.ask("GET", path)[0] == 503)
            (busy,) = re.findall(rf"^{name} (\S+)$", served.ask("GET", "/metrics")[1], re.MULTILINE)
            assert float(busy) > 2.0
            words = served.ask("GET", path)[1]["error"]
            assert words == "the model has not returned for more than 2 seconds."
        until(lambda: served.ask("GET", path)[0] == 200)
        assert f"{name} 0.0" in served.ask("GET", "/metrics")[1].splitlines()
        assert translate(served, "later")[0] == 200


def test_the_access_log_has_a_line_in_json_for_each_request(model):
    with serving(model, **NAMED) as served:
        translate(served, ["a", "b"])
        served.ask("GET", "/bad%0Apath%1b")
    one, other = map(json.loads, served.log)
    assert (one["method"], one["path"], one["status"], one["inputs"]) == (
        "POST",
        "/translate",
        200,
        2,
    )
    assert one["client"] == "127.0.0.1" and one["bytes"] > 10 and one["milliseconds"] > 0
    assert other["path"] == "/bad\npath\x1b" and "\n" not in served.log[1]


def test_the_server_stops_when_its_requests_are_answered(model):
    with serving(model, **NAMED, batch_size=1) as served:  # noqa: SIM117
        with held(model), concurrent.futures.ThreadPoolExecutor(2) as threads:
            asked = threads.submit(translate, served, ["a", "b", "c"])
            until(lambda: waiting(served) == 2)
            served.server.handle_exit(15, None)
            assert served.service.queue.is_stopping
            time.sleep(0.3)
            with pytest.raises(ConnectionRefusedError):
                translate(served, "late")
            model.opened.set()
            assert asked.result() == (200, {"translatedText": ["A", "B", "C"]})


def test_a_full_batch_and_a_stop_end_the_wait_for_other_inputs(model):
    with serving(model, **NAMED, batch_size=2, batch_wait=60_000.0) as served:  # noqa: SIM117
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            assert translate(served, ["a", "b"]) == (200, {"translatedText": ["A", "B"]})
            asked = threads.submit(translate, served, "c")
            until(lambda: waiting(served) == 1)
            served.server.handle_exit(15, None)
            assert asked.result() == (200, {"translatedText": "C"})


def test_requests_need_the_key(model):
    with serving(model, key="sesame", **NAMED) as served:
        refused = (401, {"error": "the API key is missing or wrong."})
        assert translate(served, "a") == translate(served, "a", api_key="other") == refused
        assert translate(served, "a", api_key="sesame")[0] == 200
        body = translation("a")
        assert served.ask("POST", "/translate", body, authorization="Bearer sesame")[0] == 200
        assert served.ask("POST", "/translate", body, x_api_key="sesame")[0] == 200
        assert served.ask("POST", "/translate", body, authorization="Basic sesame") == refused
        assert served.ask("GET", "/metrics") == served.ask("GET", "/v1/models") == refused
        assert served.ask("GET", "/health")[0] == 200


def test_web_pages_of_other_origins_are_let_in_only_if_named(served, model):
    page = {"origin": "https://example.org"}
    assert "access-control-allow-origin" not in served.exchange("GET", "/languages", **page)[2]
    with serving(model, cors="https://example.org", **NAMED) as named:
        headers = named.exchange("GET", "/languages", **page)[2]
        assert headers["access-control-allow-origin"] == "https://example.org"


class Length(Protocol):
    """A protocol of one file: the length of a text."""

    def routes(self):
        return [("POST", "/length", self.length)]

    def error(self, refusal):
        return {"wrong": refusal.message}

    async def length(self, call):
        from starlette.responses import JSONResponse

        from keras_transformer.serving.work import Work

        (result,) = await call.answer(
            Work(), self.service.inputs_of([(await call.body()).decode()])
        )
        return JSONResponse({"length": len(result.text)})


def test_another_protocol_is_a_class_and_an_entry(model):
    with serving(model, protocols=[*PROTOCOLS, Length], **NAMED) as served:
        assert served.ask("POST", "/length", b"seventeen") == (200, {"length": 9})
        words = "a text must not have a 7."
        assert served.ask("POST", "/length", b"17") == (400, {"wrong": words})
        assert translate(served, "a")[0] == 200


def test_responses_are_not_delayed_by_nagles_algorithm():
    with contextlib.closing(listening_socket(ServerOptions(port=0))) as bound:
        bound.listen()
        client = socket.create_connection(bound.getsockname())
        accepted, _ = bound.accept()
        with client, accepted:
            asyncio.base_events._set_nodelay(accepted)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_connections_beyond_the_limit_are_refused_and_then_closed(model):
    limits = {"max_connections": 2, "read_timeout": 60.0}
    with serving(model, **NAMED, **limits) as served, contextlib.ExitStack() as stack:
        address = "127.0.0.1", served.port
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(66)]
        until(lambda: len(served.server.server_state.connections) == 66)
        assert b" 503 " in exchange_on(clients.pop(), b"GET /health HTTP/1.1\r\nhost: a\r\n")
        clients.append(stack.enter_context(socket.create_connection(address)))
        until(lambda: len(served.server.server_state.connections) == 66)
        assert exchange(served.port) == b""
        assert clients[0].send(b"GET") == 3


def exchange_on(client, header):
    client.sendall(header + b"connection: close\r\n\r\n")
    return client.recv(1000)


def test_too_many_open_files_are_reported_once_and_other_errors_always(served):
    for number in (errno.EMFILE, errno.EMFILE, errno.EIO):
        served.server._handle(None, {"exception": OSError(number, "words")})
    assert [error.errno for error in served.reports] == [errno.EMFILE, errno.EIO]
    served.reports.clear()


def test_connections_are_as_many_as_the_system_allows():
    resource = pytest.importorskip("resource")
    allowed, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        most = min(1000, hard - FILES)
        assert possible_connections(1000) == most
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most + FILES, hard)
        assert possible_connections(10) == 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def test_an_address_in_use_is_an_error_of_one_line(served, model):
    words = "cannot listen on 127.0.0.1:.*: Address already in use."
    with pytest.raises(ValueError, match=words), serving(model, port=served.port):
        pass
