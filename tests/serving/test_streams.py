"""Streams of OpenAI's completions and chats: parts, usage, errors and clients that leave."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import random
import threading
import time

import pipelines
import pytest
from servers import LONG, Endless, EndlessText, Whole, serving

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.options import OptionError
from keras_transformer.pipelines import Chat
from keras_transformer.serving.protocols.openai.stops import Stops
from keras_transformer.serving.streams import AHEAD, Stream, Streams
from keras_transformer.tasks.streams.prompts import after
from keras_transformer.tasks.streams.turns import END
from keras_transformer.text.chat_template import ChatTemplate

TEXT, OTHER = "a cat runs", "the big dog"
TEMPLATE = ChatTemplate(
    "{% for message in messages %}{{ message.role[0] + ' ' + message.content }} {% endfor %}"
)
COMPLETE, CHAT = "/v1/completions", "/v1/chat/completions"


@pytest.fixture(scope="module")
def generator():
    generator = pipelines.generator().with_search(Greedy())  # a copy
    generator.chat_template = TEMPLATE
    return generator


@pytest.fixture(scope="module")
def served(generator):
    with serving(generator) as served:
        yield served


def events_of(served, path, body):
    """Returns the events of a stream, parsed, without the last one."""
    body = {"model": "model", **body, "stream": True}
    status, text = served.ask("POST", path, body)
    assert status == 200, text
    *events, end, rest = text.split("\n\n")
    assert end == "data: [DONE]" and not rest
    return [json.loads(event.removeprefix("data: ")) for event in events]


def joined(events, index=0):
    """Returns the text of a choice of a stream, its reason and the number of its parts."""
    choices = [one for event in events for one in event["choices"] if one["index"] == index]
    parts = [one.get("text") or one.get("delta", {}).get("content") or "" for one in choices]
    reasons = [one["finish_reason"] for one in choices]
    assert set(reasons[:-1]) <= {None}
    return "".join(parts), reasons[-1], sum(map(bool, parts))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"temperature": 2, "top_p": 0.9, "seed": 3},
        {"echo": True, "prompt": [TEXT, OTHER + " "]},
        {"prompt": ["a", "", OTHER], "temperature": 3.0, "seed": 1},
    ],
)
def test_a_stream_of_completions_is_the_whole_in_parts(more, served):
    body = {"model": "model", "prompt": TEXT, "max_tokens": 6, **more}
    _, whole = served.ask("POST", COMPLETE, body)
    events = events_of(served, COMPLETE, {**body, "stream_options": {"include_usage": True}})
    for choice in whole["choices"]:
        text, reason, parts = joined(events, choice["index"])
        assert (text, reason) == (choice["text"], choice["finish_reason"])
    assert any(joined(events, choice["index"])[2] > 1 for choice in whole["choices"])
    assert events[-1]["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    assert all(event["usage"] is None for event in events[:-1])


def test_a_chat_is_that_of_the_model(generator, served):
    messages = [{"role": "user", "content": "a"}]
    body = {"model": "model", "messages": messages, "max_completion_tokens": 4}
    expected = Chat(generator, search=Greedy(4))
    answer = expected.send("a")
    status, whole = served.ask("POST", CHAT, body)
    (choice,) = whole["choices"]
    assert status == 200 and choice["message"]["content"] == answer
    assert choice["finish_reason"] == ("stop" if expected.complete else "length")
    prompt = expected.ids(messages)
    assert whole["usage"]["prompt_tokens"] == len(prompt) + 1
    usage = whole["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    events = events_of(served, CHAT, {**body, "stream_options": {"include_usage": True}})
    assert joined(events)[:2] == (answer, choice["finish_reason"])
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[-1]["choices"] == [] and events[-1]["usage"] == usage
    parts = [{"type": "text", "text": "a"}]
    body = {**body, "messages": [{"role": "user", "content": parts}], "n": 1, "user": "me"}
    assert served.ask("POST", CHAT, body)[1]["choices"] == [choice]


def test_a_stop_ends_a_text_before_itself(generator, served):
    (whole,) = generator.answer([TEXT], search=Greedy(max_length=6))
    text = whole.text.removeprefix(TEXT)
    stop = text[2:4]
    body = {"model": "model", "prompt": TEXT, "max_tokens": 6, "stop": [stop, "\0"]}
    _, answer = served.ask("POST", COMPLETE, body)
    expected = text[: text.find(stop)]
    assert answer["choices"][0]["text"] == expected
    assert joined(events_of(served, COMPLETE, body))[:2] == (expected, "stop")


def cut(text, stops):
    """Returns the text before the stop that is complete first, by looking at every beginning."""
    for end in range(len(text) + 1):
        begins = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if begins:
            return text[: min(begins)]
    return text


def test_the_parts_of_a_text_with_stops_are_the_text_before_the_first_one():
    rng = random.Random(7)
    for _ in range(3000):
        stops = tuple("".join(rng.choices("ab", k=rng.randint(1, 4))) for _ in range(2))
        text, stopping, sent = "".join(rng.choices("abc", k=13)), Stops(stops), ""
        rest = text
        while rest:
            size = rng.randint(0, 3)
            sent += stopping.add(rest[:size])
            rest = rest[size:]
            assert cut(text, stops).startswith(sent)
        sent += stopping.end()
        assert sent == cut(text, stops) and stopping.reached == (sent != text)
    assert Stops(("stop",)).add("a b") == "a b"  # nothing is held back without a reason


@pytest.mark.parametrize(
    "more, words",
    [
        ({"messages": []}, "`messages` must not be empty."),
        ({"messages": [{"role": "tool", "content": "a"}]}, "there are no tools."),
        ({"messages": [{"role": "user"}]}, "`content` is missing."),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "type text."),
        ({"messages": [{"role": "user", "content": "a " * 20}]}, "and the model has 11 positions"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "exclude each other."),
        ({"tools": [{"type": "function"}]}, "`tools` is not supported."),
        ({"prompt": "a"}, "Unrecognized request argument supplied: prompt"),
        ({"stream": True, "stream_options": {"x": 1}}, "`stream_options` has no x."),
        ({"stream": True, "top_p": 2}, "`top_p` must be"),
        ({"stream": True, "min_p": 2}, "`min_p` must be"),
        ({"top_k": 2.0}, "`top_k` must be of type int."),
        ({"top_k": -2}, "`top_k` must be"),
        ({"top_k": 2**31}, "`top_k` must be"),
        ({"temperature": 10**400}, "`temperature` is too large."),
        ({"repetition_penalty": 10**400}, "`repetition_penalty` is too large."),
        ({"repetition_penalty": 0}, "`repetition_penalty` must be"),
        ({"repeat_penalty": 1}, "supplied: repeat_penalty"),
    ],
)
def test_what_chats_do_not_have(more, words, served):
    body = {"model": "model", "messages": [{"role": "user", "content": "a"}], **more}
    status, answer = served.ask("POST", CHAT, body)
    assert status == 400 and words in answer["error"]["message"]


def test_a_model_without_a_template_has_no_chat_and_one_without_tokens_answers_in_one_piece():
    with serving(Whole()) as served:
        body = {"model": "model", "messages": [{"role": "user", "content": "a"}]}
        status, answer = served.ask("POST", CHAT, body)
        assert status == 400 and "no chat template" in answer["error"]["message"]
        body = {"prompt": "a", "stream_options": {"include_usage": True}}
        (event,) = events_of(served, COMPLETE, body)
        assert event["choices"][0]["text"] == " b"


@contextlib.contextmanager
def open_stream(served, prompt):
    """A context with the response to a stream, of which the first event has arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    body = json.dumps({"model": "model", "prompt": prompt, "stream": True})
    connection.request("POST", COMPLETE, body, {"content-type": "application/json"})
    response = connection.getresponse()
    with contextlib.closing(connection), response:
        assert response.status == 200 and response.readline().startswith(b'data: {"id"')
        yield response


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def endless():
    return Endless()


def test_a_client_that_leaves_ends_its_text_and_another_one_takes_its_place(endless):
    with serving(endless, max_streams=1, max_queue=1) as served:
        with open_stream(served, "a"):
            waiting = threading.Thread(target=events_of, args=(served, COMPLETE, {"prompt": "b"}))
            waiting.start()
            until(lambda: served.service.streams._waiting == 1)
            body = {"model": "model", "prompt": "c", "stream": True}
            assert served.ask("POST", COMPLETE, body)[0] == 429
            assert endless.begun == 1
        until(lambda: endless.begun == 2)
        assert endless.closed == 1
        waiting.join(10)
        until(lambda: endless.closed == 2)
        assert "keras_transformer_streams 0.0" in served.ask("GET", "/metrics")[1]


def test_an_error_in_the_middle_of_a_stream_is_its_last_event(endless):
    with serving(endless) as served:
        body = {"model": "model", "prompt": "fail", "stream": True}
        status, text = served.ask("POST", COMPLETE, body)
        *_, last, rest = text.split("\n\n")
        assert status == 200 and not rest and "[DONE]" not in text
        error = json.loads(last.removeprefix("data: "))["error"]
        assert error["type"] == "server_error" and "secret" not in error["message"]
        assert "secret" in str(served.reports.pop())
        until(lambda: endless.closed == 1)


def test_a_text_that_does_not_begin_in_time_is_refused(endless):
    endless.opened.clear()
    with serving(endless, timeout=0.2) as served:
        body = {"model": "model", "prompt": "a", "stream": True}
        assert served.ask("POST", COMPLETE, body)[0] == 504
        endless.opened.set()
        until(lambda: endless.closed == 1)


def test_streams_that_have_begun_are_finished_when_the_server_stops(endless):
    with serving(endless) as served, open_stream(served, "a") as response:
        served.server.handle_exit(15, None)
        assert response.read().count(b'"x"') == LONG - 1


def test_a_stream_that_takes_too_long_is_cut_off_when_the_server_stops(endless):
    with (
        serving(endless, timeout=0.5, read_timeout=0.5) as served,
        open_stream(served, "a") as response,
    ):
        endless.opened.clear()  # its next token does not come
        begin = time.monotonic()
        served.server.handle_exit(15, None)
        with contextlib.suppress(http.client.IncompleteRead):
            assert b"[DONE]" not in response.read()
        assert 1.5 < time.monotonic() - begin < 8  # `graceful_seconds` are 2
        endless.opened.set()


def test_clients_share_turns_and_get_what_they_get_alone(served):
    bodies = [
        {"prompt": prompt, "max_tokens": 1 + number % 6, **sampling}
        for number, prompt in enumerate([TEXT, "", "a", OTHER, "the", "a cat", OTHER + " a"])
        for sampling in ({}, {"temperature": 2.0, "seed": number}, {"top_p": 0.8, "seed": 3})
    ]
    alone = [joined(events_of(served, COMPLETE, body)) for body in bodies]
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as clients:
        events = clients.map(lambda body: events_of(served, COMPLETE, body), bodies)
        assert [joined(one) for one in events] == alone
    lines = served.ask("GET", "/metrics")[1].splitlines()
    name = "keras_transformer_stream_batch_size_"
    numbers = {line.split()[0].removeprefix(name): float(line.split()[1]) for line in lines[2:]
               if line.startswith(name)}  # fmt: skip
    assert numbers['bucket{le="8.0"}'] == numbers["count"] > numbers['bucket{le="2.0"}']


def test_all_texts_have_a_turn_at_a_time(endless):
    with serving(endless, max_streams=3) as served:
        with open_stream(served, "a"), open_stream(served, "b"), open_stream(served, "c"):
            until(lambda: endless.together == 3)
        until(lambda: endless.closed == 3)


def test_warming_up_fails_with_the_model(endless):
    endless.prompt = lambda text: "fail"

    async def main():
        with pytest.raises(RuntimeError, match="secret"):
            Streams(endless, 1, 1, None, None).warm_up()

    asyncio.run(main())
    assert endless.begun == endless.closed == 1


def test_a_text_whose_client_takes_no_parts_waits():
    async def main():
        taken = []
        stream = Stream(EndlessText("a"), lambda: taken.append(1))
        stream.put(None)  # its prompt is being read
        for number in range(AHEAD):
            assert stream.is_wanted
            stream.text.tokens += 1
            stream.put(str(number))
        assert not stream.is_wanted
        assert await anext(stream) == "0" and stream.tokens == 1 and taken == [1]
        assert stream.is_wanted
        stream.put(END)
        assert not stream.is_wanted
        assert [part async for part in stream] == [str(n) for n in range(1, AHEAD)]
        assert stream.tokens == AHEAD and not stream.is_wanted

    asyncio.run(main())


MORE = [
    ({"repetition_penalty": 3}, Greedy(6, repetition_penalty=3.0)),
    ({"temperature": 0, "repetition_penalty": 3, "top_k": 2}, Greedy(6, repetition_penalty=3.0)),
    ({"top_k": 2, "seed": 3}, Sample(top_k=2, seed=3, max_length=6)),
    ({"top_k": -1, "seed": 3, "temperature": 5}, Sample(5.0, seed=3, max_length=6)),
    ({"min_p": 0.5, "seed": 3, "temperature": 5}, Sample(5.0, min_p=0.5, seed=3, max_length=6)),
    (
        {"seed": 3, "temperature": 5, "repetition_penalty": 9},
        Sample(5.0, seed=3, repetition_penalty=9.0, max_length=6),
    ),
]


@pytest.mark.parametrize("more, search", MORE)
def test_settings_of_other_servers_are_those_of_the_search(more, search, generator, served):
    body = {"prompt": TEXT, "max_tokens": 6, **more}
    expected = after(TEXT, generator.answer([TEXT], search=search)[0].text)
    _, whole = served.ask("POST", COMPLETE, {"model": "model", **body})
    assert whole["choices"][0]["text"] == joined(events_of(served, COMPLETE, body))[0] == expected


def test_a_setting_that_a_model_does_not_have_is_refused_by_name():
    class Fixed(Whole):
        def with_search(self, search):
            raise OptionError("repetition_penalty", "is fixed in this file. Received: 3.0.")

        def sample_with(self, **settings):
            raise OptionError(min({*settings} - {"max_length", "seed"}), "has no effect here.")

    with serving(Fixed()) as served:
        for name, value in (("repetition_penalty", 3), ("min_p", 0.5), ("top_k", 4)):
            for stream in (True, False):
                body = {"model": "model", "prompt": "a", name: value, "stream": stream}
                status, answer = served.ask("POST", COMPLETE, body)
                assert status == 400 and f"`{name}`" in answer["error"]["message"]
