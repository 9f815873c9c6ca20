"""Firefox and WebKit for the tests of pages, with the steps that `browsers.Browser` takes.

Firefox speaks Marionette and WebKit's driver the W3C's WebDriver, which have the same commands.
WebKit is the engine of Safari, here in WebKitGTK's small browser, which needs a display.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from waiting import until

SECONDS = {"script": 300_000, "pageLoad": 60_000}  # milliseconds
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011",
    "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
}  # fmt: skip
SCRIPT = """const done = arguments[arguments.length - 1];
(async () => BODY)().then(
  (value) => done({ value: value ?? null }),
  (error) => done({ error: `${error} ${error?.stack}` }),
);"""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Driver:
    """Base class of browsers that take the commands of WebDriver.

    A subclass defines `command(name, http, path, **params)`, which sends a command, in Marionette
    by its name and in WebDriver by a method and a path, and returns its value.
    """

    def call(self, method, worker=False, **params):
        """Takes a step in Chromium's protocol; skips the test if the browser has no such step."""
        step = getattr(self, method.replace(".", "_"), None)
        if step is None or worker:
            pytest.skip(f"only Chromium has the step {method}{' in workers' * worker}")
        return step(**params) or {}

    def Page_navigate(self, url):  # noqa: N802
        self.command("WebDriver:Navigate", "POST", "url", url=url)

    def Runtime_evaluate(self, expression, **_):  # noqa: N802
        code = expression.strip().removesuffix(";")
        body = code if code.startswith("{") else f"({code})"
        script = SCRIPT.replace("BODY", body)
        found = self.command(
            "WebDriver:ExecuteAsyncScript", "POST", "execute/async", script=script, args=[]
        )
        return {"exceptionDetails": found["error"]} if "error" in found else {"result": found}

    def Input_insertText(self, text):  # noqa: N802
        self.Runtime_evaluate(f"document.execCommand('insertText', false, {json.dumps(text)})")

    def Input_dispatchKeyEvent(self, type, key, **_):  # noqa: N802
        action = {"type": type, "value": KEYS.get(key, key)}
        keyboard = {"type": "key", "id": "keyboard", "actions": [action]}
        self.command("WebDriver:PerformActions", "POST", "actions", actions=[keyboard])

    def Input_dispatchMouseEvent(self, type, x, y):  # noqa: N802
        move = {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}
        mouse = {"type": "pointer", "id": "mouse", "actions": [move]}
        self.command("WebDriver:PerformActions", "POST", "actions", actions=[mouse])

    def Page_captureScreenshot(self, **_):  # noqa: N802
        return {"data": self.command("WebDriver:TakeScreenshot", "GET", "screenshot")}


class Firefox(Driver):
    """A headless Firefox.

    Args:
        port: The port on which it listens.
    """

    def __init__(self, port):
        self._number = 0
        self._socket = until(lambda: self._connected(port))
        self._receive()
        capabilities = {"alwaysMatch": {"timeouts": SECONDS}}
        self.command("WebDriver:NewSession", "", "", capabilities=capabilities)

    @staticmethod
    def _connected(port):
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port))

    def _receive(self):
        size = b""
        while (byte := self._socket.recv(1)) != b":":
            size += byte
        content = b""
        while len(content) < int(size):
            content += self._socket.recv(int(size) - len(content))
        return json.loads(content)

    def command(self, name, http, path, **params):
        self._number += 1
        content = json.dumps([0, self._number, name, params]).encode()
        self._socket.sendall(f"{len(content)}:".encode() + content)
        *_, error, found = self._receive()
        assert not error, error
        return found.get("value")

    def close(self):
        """Closes the connection."""
        self._socket.close()


class WebKit(Driver):
    """WebKitGTK's small browser, opened by its driver.

    Args:
        port: The port of the driver.
        browser: Path of the browser.
    """

    def __init__(self, port, browser):
        self._address = f"http://127.0.0.1:{port}/session"
        options = {"binary": str(browser), "args": ["--automation"]}
        capabilities = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        session = until(lambda: self._opened(capabilities))
        self._address += f"/{session['sessionId']}"
        self.command("", "POST", "timeouts", **SECONDS)

    def _opened(self, capabilities):
        with contextlib.suppress(urllib.error.URLError):
            return self.command("", "POST", "", capabilities=capabilities)

    def command(self, name, http, path, **params):
        address = f"{self._address}/{path}".removesuffix("/")
        data = json.dumps(params).encode() if http == "POST" else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, data, headers, method=http)
        try:
            with urllib.request.urlopen(request, timeout=400) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]) from None

    def close(self):
        """Closes the window."""
        self.command("", "DELETE", "")


@contextlib.contextmanager
def firefox(profile, program):
    """Starts Firefox for a `with` block; `profile` is an empty folder."""
    port = free_port()
    values = {
        "marionette.port": port,
        # A microphone that plays a tone, without a question.
        "media.navigator.streams.fake": True, "media.navigator.permission.disabled": True,
    }  # fmt: skip
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(values[name])});\n" for name in values]
    pathlib.Path(profile).mkdir(exist_ok=True)
    pathlib.Path(profile, "user.js").write_text("".join(lines), "utf-8")
    command = [program("firefox-esr", "firefox"), "--headless", "--marionette", "--no-remote"]
    process = subprocess.Popen([*command, "--profile", profile], stderr=subprocess.DEVNULL)
    try:
        with contextlib.closing(Firefox(port)) as browser:
            yield browser
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def webkit(profile, program):
    """Starts WebKitGTK's browser for a `with` block, on a display of its own."""
    browsers = sorted(pathlib.Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))
    if not browsers:
        pytest.skip("WebKitGTK's MiniBrowser is not installed")
    port, driver = free_port(), program("WebKitWebDriver")
    run = [program("xvfb-run"), "--auto-servernum", "--server-args=-screen 0 1280x900x24"]
    environment = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1", "XDG_DATA_HOME": str(profile)}
    if os.geteuid() == 0:  # the sandbox needs another user
        environment["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"
    process = subprocess.Popen(
        [*run, driver, f"--port={port}"], env=environment, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        browser = WebKit(port, browsers[-1])
        yield browser
        browser.close()
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)
        shutil.rmtree(profile, ignore_errors=True)
