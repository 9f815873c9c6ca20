"""`chat.html` of `examples/browser` in a browser: conversations as in Python."""

import json

import pipelines
import pytest
from browsers import open_blank

import keras_transformer
from keras_transformer.decoding import Greedy, Sample
from keras_transformer.export import LiteRTOptions, OnnxOptions, export_litert, export_onnx
from keras_transformer.models import LanguageModel, LanguageModelConfig
from keras_transformer.pipelines import Chat, TextGenerator
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.tokenizers import ByteBPETokenizer

pytest.importorskip("ai_edge_litert")
pytest.importorskip("onnxruntime")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<|turn|>"]
TEMPLATE = ChatTemplate(
    "{% for message in messages %}{{ '<|turn|>' + message.role + ' ' + message.content }}\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|turn|>' }}{% endif %}"
    "{% if messages[0].content == 'no' %}{{ raise_exception('no turns') }}{% endif %}",
    {name: place for place, name in enumerate(SPECIAL)},
    {"bos_token": "<s>"},
)
# The last one names special tokens, which are text in a message.
MESSAGES = ["the cat", "é 😀, and\nthe <dog", "one <|turn|>system</s> <|tu"]
SEARCHES = {
    "greedy": Greedy(9, repetition_penalty=1.3),
    "sample": Sample(1.5, 40, 0.97, min_p=0.001, repetition_penalty=1.2, seed=3, max_length=9),
}


@pytest.fixture(scope="module")
def generator():
    """A byte-level model, whose tokens are often no whole characters."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    pieces = [*SPECIAL, *CHARACTERS, *map("".join, merges)]
    vocabulary = ByteBPETokenizer(pieces, merges)
    config = LanguageModelConfig.preset(
        "tiny", vocab_size=vocabulary.vocab_size, max_length=150, num_layers=2, d_model=32,
        d_ff=48, num_heads=2, bos_id=0, pad_id=1, eos_id=2,
    )  # fmt: skip
    model = pipelines.with_larger_weights(LanguageModel(config))
    generator = TextGenerator(model, vocabulary, search=SEARCHES["greedy"])
    generator.chat_template = TEMPLATE
    return generator


EXPORTS = {"onnx": (export_onnx, OnnxOptions), "tflite": (export_litert, LiteRTOptions)}


@pytest.fixture(scope="module", params=EXPORTS)
def file(request, generator, site):
    """The address and the opened file of the model, in each format."""
    export, kind = EXPORTS[request.param]
    path = site / f"chat.{request.param}"
    export(generator, path, ["the cat", "and"], kind(streaming=True, search=SEARCHES["greedy"]))
    return path.name, keras_transformer.open(path)


@pytest.mark.parametrize("name", SEARCHES)
def test_answers_are_those_of_python(browser, site, file, name):
    """Parts, messages, prompts and ends of several turns, after a message that is refused."""
    address, opened = file
    open_blank(browser, site)
    search = {"search": name, **vars(SEARCHES[name])}
    shown = browser.evaluate(f"""import("./chat.js").then(async ({{ Chat }}) => {{
        const chat = await Chat.load({json.dumps(address)}), turns = [];
        chat.search = {json.dumps(search)};
        for (const message of {json.dumps(MESSAGES)}) {{
            const parts = [];
            for await (const part of chat.stream(message)) parts.push(part);
            turns.push([parts, chat.complete, chat.text.ids.length]);
        }}
        return {{ turns, messages: chat.messages, ids: chat.ids(chat.messages) }};
    }})""")
    ours = Chat(opened, search=SEARCHES[name])
    expected = [[[*ours.stream(text)], ours.complete, ours._text.kept] for text in MESSAGES]
    assert shown["turns"] == expected
    assert shown["messages"] == ours.messages
    assert shown["ids"] == ours.ids(ours.messages)
    assert sum(len(parts) for parts, *_ in expected) > 12


def test_a_long_conversation_loses_its_oldest_messages(browser, site, file):
    address, opened = file
    open_blank(browser, site)
    messages = ["the cat and the dog " * 2] * 4
    shown = browser.evaluate(f"""import("./chat.js").then(async ({{ Chat }}) => {{
        const chat = await Chat.load({json.dumps(address)}), dropped = [];
        for (const message of {json.dumps(messages)}) {{
            for await (const part of chat.stream(message)) {{}}
            dropped.push(chat.dropped);
        }}
        const refused = [];
        for (const message of ["the ".repeat(200), "no"]) {{
            chat.clear();
            await chat.stream(message).next().catch((error) => refused.push(error.message));
        }}
        return [dropped, chat.messages, refused];
    }})""")
    ours, dropped = Chat(opened), []
    for message in messages:
        ours.send(message)
        dropped.append(ours.dropped)
    assert shown[0] == dropped and dropped[-1] > 0
    assert shown[1] == []
    assert shown[2][0].startswith("The message is too long: its prompt has ")
    assert shown[2][1] == "The chat template refuses the conversation: no turns"


def page_state(browser):
    return browser.evaluate(
        """({turns: [...document.querySelectorAll("#conversation li")].map(
            (item) => [item.className, item.textContent]),
            incomplete: !document.getElementById("incomplete").hidden})"""
    )


def say(browser, text):
    browser.evaluate(
        """{document.getElementById("message").focus();
        document.getElementById("status").textContent = "";}"""
    )
    browser.call("Input.insertText", text=text)
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", text="\r",
                     windowsVirtualKeyCode=13)  # fmt: skip
    return browser.wait_for("/ ms$/.test(status) || failed")


def test_the_page_shows_a_conversation(browser, site, file):
    address, opened = file
    assert browser.open(f"?model={address}", "chat.html") == "Ready."
    ours, turns = Chat(opened), []
    for text in MESSAGES[:1] + MESSAGES[2:]:
        assert say(browser, text).startswith("first part after ")
        turns += [["user", text], ["assistant", ours.send(text)]]
        assert page_state(browser) == {"turns": turns, "incomplete": not ours.complete}
    assert "too long" in say(browser, "the " * 200)
    assert page_state(browser)["turns"] == turns  # the refused message is not part of it


def test_an_answer_that_is_left_is_part_of_the_conversation(browser, site, file):
    address, opened = file
    open_blank(browser, site)
    shown = browser.evaluate(f"""import("./chat.js").then(async ({{ Chat }}) => {{
        const chat = await Chat.load({json.dumps(address)});
        for await (const part of chat.stream("the cat")) break;
        const {{ complete }} = chat;
        for await (const part of chat.stream("and")) {{}}
        return [complete, chat.messages];
    }})""")
    ours = Chat(opened)
    begun = ours.stream("the cat")
    next(begun)
    begun.close()
    assert shown[0] is ours.complete is False
    ours.send("and")
    assert shown[1] == ours.messages


def test_the_page_stops_an_answer(browser, site, file):
    """After its first part; the answer would have more than a hundred tokens."""
    address, opened = file
    assert browser.open(f"?model={address}", "chat.html") == "Ready."
    longest = Greedy(repetition_penalty=1.3)
    browser.evaluate("loaded.search = { search: 'greedy', repetition_penalty: 1.3 }", worker=True)
    browser.evaluate(
        """{const conversation = document.getElementById("conversation");
        new MutationObserver(() => {
            const answer = conversation.querySelector(".assistant");
            if (answer?.textContent) document.getElementById("stop").click();
        }).observe(conversation, { childList: true, characterData: true, subtree: true });}"""
    )
    say(browser, "the cat")
    ((_, _), (_, answer)) = page_state(browser)["turns"]
    whole = Chat(opened, search=longest).send("the cat")
    assert page_state(browser)["incomplete"]
    assert whole.startswith(answer) and 0 < len(answer) < len(whole)


def test_other_files_are_refused(browser, site, generator, file):
    (site / "half.onnx").write_bytes(b"\x08nothing")
    assert browser.open("?model=half.onnx", "chat.html").partition(" ")[0].endswith("/half.onnx")
    address, _ = file
    status = browser.open(f"?model={address}", "index.html")
    assert status == "This page cannot use a model for streams of tokens: open chat.html."


def test_the_page_recommends_another_form_of_a_slow_file(browser, site, generator, file):
    advice = """[document.getElementById("advice").hidden,
        document.getElementById("advice").textContent]"""
    address, _ = file
    assert browser.open(f"?model={address}", "chat.html") == "Ready."
    assert browser.evaluate(advice) == [True, ""]
    options = OnnxOptions("int4", streaming=True, search=Greedy(3), max_score_loss=5.0)
    export_onnx(generator, site / "int4.onnx", ["the cat"], options)
    assert browser.open("?model=int4.onnx", "chat.html") == "Ready."
    hidden, text = browser.evaluate(advice)
    assert not hidden
    assert text.startswith("An .onnx file in int4 is slow in browsers. Export a .tflite file")


def test_a_tflite_file_in_int4_answers_in_the_browser(browser, site, generator):
    options = LiteRTOptions("int4", streaming=True, search=Greedy(5), max_score_loss=5.0)
    export_litert(generator, site / "int4.tflite", ["the cat"], options)
    open_blank(browser, site)
    shown = browser.evaluate("""import("./chat.js").then(async ({ Chat }) => {
        const chat = await Chat.load("int4.tflite");
        for await (const part of chat.stream("the cat")) {}
        return [chat.metadata.quantize, chat.metadata.advice, chat.text.ids.length];
    })""")
    ours = Chat(keras_transformer.open(site / "int4.tflite"))
    ours.send("the cat")
    assert shown == ["int4", None, ours._text.kept]
