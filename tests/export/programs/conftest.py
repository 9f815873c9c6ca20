"""The pages of `examples/browser`, served to a headless Chromium."""

import functools
import http.server
import shutil
import threading

import pytest
from chromium import PAGE, Browser, chromium, missing


class Quiet(http.server.SimpleHTTPRequestHandler):
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
