"""A browser for the page of `examples/browser` and others, and Node.js for modules.

`KERAS_TRANSFORMER_BROWSER` chooses it: `chromium`, the default, `firefox` or `webkit`.
"""

import base64
import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest
import web_drivers
from waiting import until

PAGE = pathlib.Path(__file__).parents[1] / "examples" / "browser"
SCRIPTS = pathlib.Path(__file__).parent / "export" / "programs" / "browser"


def program(*names):
    """Returns the path of the first program that is installed, or skips the test."""
    path = next(filter(None, map(shutil.which, names)), None)
    return path or missing(f"the page is not tested: no {names[0]} here")


def missing(what):
    """Skips the test, or fails it if `.ci/run` should have installed what is missing."""
    if os.environ.get("KERAS_TRANSFORMER_REQUIRE_BROWSER"):
        pytest.fail(what)
    pytest.skip(what)


class Chromium:
    """A headless Chromium.

    Args:
        process: The process of `drive.mjs`.
    """

    def __init__(self, process):
        self._process = process

    def call(self, method, worker=False, **params):
        """Takes a step in Chromium's protocol, in the page or in its worker."""
        step = {"method": method, "params": params, "worker": worker}
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def chromium(profile, program):
    """Starts Chromium for a `with` block; `profile` is an empty folder."""
    command = [program("node"), SCRIPTS / "drive.mjs", program("chromium", "google-chrome")]
    process = subprocess.Popen(
        [*command, profile], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield Chromium(process)
    process.stdin.close()
    process.wait(60)


DRIVERS = {"chromium": chromium, "firefox": web_drivers.firefox, "webkit": web_drivers.webkit}
CHOSEN = os.environ.get("KERAS_TRANSFORMER_BROWSER", "chromium")


def not_in(name, reason):
    """A mark that skips a test if the chosen browser is `name`."""
    return pytest.mark.skipif(name == CHOSEN, reason=reason)


def started(profile):
    """Starts the chosen browser for a `with` block and yields its driver."""
    return DRIVERS[CHOSEN](profile, program)


README = PAGE / "README.md"
POLICY = "; ".join(re.findall(r"`((?:script|worker)-src [^`]+)`", README.read_text("utf-8")))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that restricts the page as its README says, and logs nothing."""

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *arguments):
        pass


def copy_page(folder):
    """Copies the page as it would be served, without a model, or skips the test."""
    modules = PAGE / "node_modules"
    if not modules.exists():
        missing(f"{modules} is missing: run `npm install` in examples/browser to test the page")
    for path in PAGE.iterdir():
        if path.suffix in {".html", ".css", ".js"}:
            shutil.copy(path, folder)
    (folder / "node_modules").symlink_to(modules)
    return folder


@contextlib.contextmanager
def served(site, profile):
    """Serves a folder to the browser for a `with` block and yields the `Browser`."""
    handler = functools.partial(Quiet, directory=site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with started(profile) as driver:
        yield Browser(driver, f"http://127.0.0.1:{server.server_port}", server)
    close(server)


def close(server):
    """Ends a server, which may have ended before."""
    server.shutdown()
    server.server_close()


class Browser:
    """The page as a user sees it."""

    def __init__(self, driver, address="", server=None):
        self.driver, self.address, self.server = driver, address, server

    def call(self, method, worker=False, **params):
        answer = self.driver.call(method, worker, **params)
        assert "error" not in answer and "exceptionDetails" not in answer, answer
        return answer

    def evaluate(self, code, worker=False):
        """Awaits a JavaScript expression in the page or in its worker and returns the value."""
        answer = self.call(
            "Runtime.evaluate", worker, expression=code, awaitPromise=True, returnByValue=True
        )
        return answer["result"].get("value")

    def open(self, query="", page="index.html"):
        """Opens a page and returns its status line once it is ready or has failed."""
        self.call("Page.navigate", url=f"{self.address}/{page}{query}")
        return self.wait_for("/^Ready/.test(status) || failed")

    def wait_for(self, condition, seconds=120):
        """Waits until a condition holds and returns the status line of the page."""
        code = f"""(() => {{
            const line = document.getElementById("status");
            const status = line?.textContent ?? "", failed = line?.classList.contains("error");
            return {condition} ? status : null;
        }})()"""
        for _ in range(10 * seconds):
            if status := self.evaluate(code):
                return status
            time.sleep(0.1)
        raise AssertionError(self.evaluate("document.body.innerText"))

    def translate(self, sentence):
        """Types a sentence, presses Enter, and returns the text that the page shows."""
        self.evaluate(
            """{const source = document.getElementById("source"); source.value = "";
            source.focus(); document.getElementById("status").textContent = "";}"""
        )
        self.call("Input.insertText", text=sentence)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", text="\r",
                      windowsVirtualKeyCode=13)  # fmt: skip
        status = self.wait_for("/ ms$/.test(status) || failed")
        assert status.endswith(" ms"), status
        return self.evaluate(
            """({
            text: document.getElementById("target").textContent,
            truncated: !document.getElementById("truncated").hidden,
            attention: !document.getElementById("attention").hidden,
            })"""
        )

    def picture(self, path):
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(image["data"]))


def open_blank(browser, site):
    """Opens an empty page of the site, which runs only the page's modules."""
    (site / "blank.html").write_text("<!doctype html><title>Blank</title>", "utf-8")
    browser.call("Page.navigate", url=f"{browser.address}/blank.html")
    place = "location.pathname + document.readyState"
    assert until(lambda: browser.evaluate(place) == "/blank.htmlcomplete"), browser.evaluate(place)


def call(command, **request):
    """Returns the output of the page's modules under Node.js."""
    done = subprocess.run(
        [program("node"), SCRIPTS / "tokenize.mjs", PAGE],
        input=json.dumps({"command": command, **request}),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
