"""The pages of `examples/browser`, served to a headless Chromium."""

import functools
import http.server
import re
import shutil
import threading

import pytest
from chromium import PAGE, Browser, chromium, missing

from keras_transformer.export import export_onnx

README = PAGE / "README.md"
POLICY = "; ".join(re.findall(r"`((?:script|worker)-src [^`]+)`", README.read_text("utf-8")))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that restricts the page as its README says, and logs nothing."""

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder with the page as it would be served, but without a model."""
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


@pytest.fixture(scope="session")
def onnx_file(translator, sentences, tmp_path_factory):
    """The .onnx file of the small model, with its greedy search."""
    pytest.importorskip("onnxruntime")
    path = tmp_path_factory.mktemp("onnx") / "demo.onnx"
    export_onnx(translator, path, sentences)
    return path
