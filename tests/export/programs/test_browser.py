"""The page of `examples/browser` in a headless Chromium."""

import functools
import http.server
import json
import os
import shutil
import threading
import time
import zipfile

import numpy as np
import pytest
from chromium import PAGE, Browser, chromium, missing

from keras_transformer.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator

pytest.importorskip("ai_edge_litert")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder with the page, as it would be served, yet without a model."""
    modules = PAGE / "node_modules"
    if not modules.exists():
        missing(f"{modules} is missing: run `npm install` in examples/browser to test the page")
    folder = tmp_path_factory.mktemp("site")
    for path in PAGE.iterdir():
        if path.suffix in {".html", ".css", ".js"}:
            shutil.copy(path, folder)
    (folder / "node_modules").symlink_to(modules)
    return folder


@pytest.fixture(scope="session")
def browser(site, tmp_path_factory):
    handler = functools.partial(Quiet, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium(tmp_path_factory.mktemp("profile")) as process:
        yield Browser(process, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()


@pytest.fixture
def page(browser, site, export):
    """The page with the small model, ready."""
    if not (site / "model.tflite").exists():
        shutil.copy(export("none")[0], site / "model.tflite")
    assert browser.open() == "Ready."
    return browser


def test_the_page_translates_as_the_interpreter_does(page, site, sentences):
    expected = LiteRTTranslator(site / "model.tflite").translate_batch(sentences)
    assert len({output.text for output in expected}) > 25
    assert {output.truncated for output in expected} == {True, False}
    for sentence, translation in zip(sentences, expected, strict=True):
        shown = page.translate(sentence)
        assert shown == {
            "text": translation.text, "cut": translation.truncated, "attention": False
        }, sentence  # fmt: skip
    assert page.evaluate("document.getElementById('facts').textContent").endswith("20 pieces")


def test_many_sentences_are_translated_a_batch_at_a_time(browser, site, translator, sentences):
    """Of those that are not empty some are left for the signatures of one."""
    sentences = sentences[1:]
    path = site / "batched.tflite"
    export_litert(translator, path, sentences, lengths=[16, 20], batch_sizes=[1, 4])
    expected = LiteRTTranslator(path).translate_batch(sentences)
    text = (site / "index.html").read_text("utf-8")
    script = '<script type="module" src="page.js"></script>'
    assert script in text  # without it, as the page would load the runtime as well
    (site / "batched.html").write_text(text.replace(script, ""), "utf-8")
    browser.call("Page.navigate", url=f"{browser.address}/batched.html")
    for _ in range(100):
        if browser.evaluate("location.pathname + document.readyState") == "/batched.htmlcomplete":
            break
        time.sleep(0.1)
    code = f"""import("./translate.js").then(async ({{ Translator }}) => {{
        const translator = await Translator.load("batched.tflite");
        const run = translator.run, sizes = [];
        translator.run = (signature, rows) => {{
            sizes.push(rows.length);
            return run.call(translator, signature, rows);
        }};
        return [await translator.translateAll({json.dumps(sentences)}), sizes];
    }})"""
    translations, sizes = browser.evaluate(code)
    assert [translation["text"] for translation in translations] == [
        output.text for output in expected
    ]
    assert [translation["cut"] for translation in translations] == [
        output.truncated for output in expected
    ]
    filled = sum(map(bool, map(str.strip, sentences)))
    assert sizes == [4] * (filled // 4) + [1] * (filled % 4) and filled % 4


def test_every_tensor_is_freed(page):
    page.evaluate(
        """import("@litertjs/core").then(({ Tensor }) => {
            const free = Tensor.prototype.delete;
            globalThis.freed = 0;
            Tensor.prototype.delete = function () { globalThis.freed += 1; free.call(this); };
        })"""
    )
    page.translate("in 17 weeks")
    assert page.evaluate("freed") == 4  # the source, the tokens, their number, and the score


FAKE_ALIGNMENT = """import("@litertjs/core").then(({ CompiledModel, Tensor }) => {
    const run = CompiledModel.prototype.run;
    CompiledModel.prototype.run = async function (name, inputs) {
        const outputs = await run.call(this, name, inputs);
        const weights = Float32Array.from({ length: 20 * 16 }, (_, at) => at / 1000);
        return { ...outputs, alignment: new Tensor(weights, [1, 20, 16]) };
    };
})"""
READ_TABLE = """[...document.querySelectorAll("#weights tr")].map((row) =>
    [...row.cells].map((cell) => cell.style.getPropertyValue("--weight") || cell.textContent))"""


def test_the_attention_is_drawn_when_the_model_returns_it(page, site):
    """Position t of the output is row t, and the weights of the padding are left out."""
    page.evaluate(FAKE_ALIGNMENT)
    assert page.translate("in 17 weeks")["attention"]
    tokenizer = LiteRTTranslator(site / "model.tflite").tokenizers.source
    shown = page.evaluate("document.getElementById('target').textContent")
    source, target = (
        tokenizer.pieces(ids) for ids in tokenizer.encode(["in 17 weeks", shown]).to_list()
    )
    weights = [
        [f"{(16 * row + column) / 1000:.3f}" for column in range(len(source))]
        for row in range(len(target))
    ]
    assert page.evaluate(READ_TABLE) == [
        ["", *source], *([piece, *row] for piece, row in zip(target, weights, strict=True))
    ]  # fmt: skip
    assert not page.translate("")["attention"]


def test_the_attention_is_that_of_the_model_in_memory(browser, site, translator, sentences):
    path = site / "aligned.tflite"
    export_litert(translator, path, sentences, lengths=[20], alignment=(-1, None))
    assert browser.open("?model=aligned.tflite") == "Ready."
    for sentence in sentences[:5]:
        assert browser.translate(sentence)["attention"]
        (header, *rows), (expected,) = browser.evaluate(READ_TABLE), translator.align([sentence])
        assert header == ["", *expected.source]
        assert [row[0] for row in rows] == expected.target
        weights = [[float(weight) for weight in row[1:]] for row in rows]
        np.testing.assert_allclose(weights, expected.weights, atol=6e-4)  # three decimals


def test_a_missing_model_is_reported_in_one_line(browser):
    status = browser.open("?model=other.tflite")
    assert status.startswith("There is no model at other.tflite (404). Write it with: keras-")
    assert browser.evaluate("document.getElementById('translate').disabled")


def test_another_file_is_reported_in_one_line(browser, site):
    (site / "text.tflite").write_bytes(b"something else" * 9)
    status = browser.open("?model=text.tflite")
    assert status.startswith("text.tflite was not written by `keras-transformer export litert`")


def test_a_file_of_another_format_is_reported_in_one_line(browser, site):
    with zipfile.ZipFile(site / "old.tflite", "w") as archive:
        archive.writestr("tokenizer.model", b"")
        archive.writestr("facts.json", '{"format": 1}')
    status = browser.open("?model=old.tflite")
    assert status == "old.tflite has format 1; this page reads format 2."


def test_a_damaged_model_is_reported_in_one_line(page, site):
    content = bytearray((site / "model.tflite").read_bytes())
    content[:2000] = b"\xff" * 2000
    (site / "damaged.tflite").write_bytes(content)
    assert page.open("?model=damaged.tflite").startswith("LiteRT.js cannot read damaged.tflite: ")


def test_a_missing_runtime_is_reported_in_one_line(browser, site):
    browser.call("Network.enable")
    browser.call("Network.setCacheDisabled", cacheDisabled=True)
    os.rename(site / "node_modules", site / "elsewhere")
    try:
        seen = {browser.open("?model=text.tflite") for _ in range(10)}  # whichever arrives first
    finally:
        os.rename(site / "elsewhere", site / "node_modules")
    assert seen == {
        "LiteRT.js is missing or damaged: run `npm install` in the folder of this page."
    }
