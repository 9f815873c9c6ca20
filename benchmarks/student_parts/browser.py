"""Engines in a web page in headless Chromium; this process serves the page and drives Chromium."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse

from student_parts.task import Student, sentences, tokens_of

ROOT = pathlib.Path(__file__).parents[2]
PAGES = pathlib.Path(__file__).with_name("pages")
EXAMPLE = ROOT / "examples" / "browser"
DRIVER = ROOT / "tests" / "export" / "programs" / "browser" / "drive.mjs"
CHROMIUM = ("chromium", "google-chrome")
WORKER, FACTOR = "/bergamot/worker/translator-worker.js", "max-length-factor: 2.0"
SECONDS = 60  # time limit for loading the page


def chromium():
    """Returns the path of Chromium, or `None` if it is not installed."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def missing():
    """Returns what the page of the browser example lacks here, `""` if it can run."""
    needs = {
        "Node": shutil.which("node"),
        "Chromium": chromium(),
        "`npm install` in examples/browser": (EXAMPLE / "node_modules").is_dir(),
    }
    return ", ".join(name for name, is_there in needs.items() if not is_there)


def make(order):
    """Opens the page and loads the engine."""
    page = Page(order, sentences(Student(**order["student"]), order["batch"]))
    page.metadata = {"tokens": [tokens_of(text) for text in page.answers]}
    return page


class Page:
    """A web page with an engine, and one batch.

    Args:
        order: Dictionary of the `engine`, its `files`, a `folder` for temporary files, and for
            Bergamot its `package` and `length_factor`.
        texts: The batch, a list of strings.

    Attributes:
        answers: The translations of the batch, a list of strings.
    """

    def __init__(self, order, texts):
        self._server = serve(order)
        self._profile = tempfile.mkdtemp(dir=order["folder"])
        command = ["node", str(DRIVER), chromium(), self._profile]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self.answers = self._open(order, texts)
        except BaseException:
            self.close()
            raise

    def _open(self, order, texts):
        """Opens the page, loads the engine, and returns its translations of the batch."""
        self._call("Page.navigate", url=f"http://127.0.0.1:{self._server.server_port}/index.html")
        end = time.monotonic() + SECONDS
        while not self._evaluate("typeof students === 'object'") and time.monotonic() < end:
            time.sleep(0.1)
        files = [f"/files/{number}" for number in range(len(order["files"]))]
        arguments = ", ".join(map(json.dumps, (f"/{order['engine']}.js", files, texts)))
        return self._evaluate(f"students.load({arguments})")

    def run(self, steps):
        """Translates the batch `steps` times; returns memory and processor time of the page."""
        before = seconds_of_page(self._process.pid)
        self._evaluate(f"students.run({steps})")
        return {
            "page_bytes": peak_of_page(self._process.pid),
            "page_seconds": seconds_of_page(self._process.pid) - before,
        }

    def close(self):
        """Closes the page and stops the server."""
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _evaluate(self, code):
        answer = self._call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        return answer["result"].get("value")

    def _call(self, method, **params):
        self._process.stdin.write(json.dumps({"method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the page: Chromium or its driver has ended")
        answer = json.loads(line)
        if "error" in answer or "exceptionDetails" in answer:
            raise RuntimeError(f"the page: {json.dumps(answer)[:2000]}")
        return answer


def serve(order):
    """Serves the pages, the browser example, Bergamot's engine and the files, in a thread."""
    handler = functools.partial(Handler, order)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Handler(http.server.SimpleHTTPRequestHandler):
    """Handler of the page's requests."""

    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def __init__(self, order, *arguments):
        self._order = order
        super().__init__(*arguments)

    def translate_path(self, path):
        """Returns the file for an address: one in a known folder, or a numbered file."""
        first, _, rest = urllib.parse.urlparse(path).path.lstrip("/").partition("/")
        if first == "files":
            return self._order["files"][int(rest)]
        folders = {"page": EXAMPLE, "bergamot": self._order.get("package", "")}
        return str(pathlib.Path(folders[first], rest) if first in folders else PAGES / first)

    def do_GET(self):
        """Serves a file; patches the output length in Bergamot's worker, which has no setting."""
        if self.path != WORKER:
            return super().do_GET()
        text = pathlib.Path(self.translate_path(self.path)).read_text("utf-8")
        if FACTOR not in text:
            raise RuntimeError(f"{WORKER} does not contain {FACTOR!r}: it is another version.")
        wanted = f"max-length-factor: {self._order['length_factor']}"
        content = text.replace(FACTOR, wanted).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Logs nothing."""


def peak_of_page(parent):
    """Returns the peak memory of the page's process in bytes; `None` if /proc does not have it."""
    peaks = [
        1024 * int(status.get("VmHWM", "0 kB").split()[0]) for _, status in processes_of(parent)
    ]
    return max(peaks, default=None)


def seconds_of_page(parent):
    """Returns the processor time of the page's process until now; 0 if /proc does not have it."""
    times = []
    for number, _ in processes_of(parent):
        with contextlib.suppress(OSError):  # the process has ended
            stat = pathlib.Path(f"/proc/{number}/stat").read_text()
            times += map(int, stat.rpartition(")")[2].split()[11:13])  # utime, stime
    return sum(times) / os.sysconf("SC_CLK_TCK") if times else 0.0


def processes_of(parent):
    """Returns pairs of the number of each process of pages, below `parent`, and its status."""
    processes = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":\t", 1) for line in (path / "status").read_text().splitlines()
            )
            line = (path / "cmdline").read_text()
        except (OSError, ValueError):  # the process has ended
            continue
        processes[int(path.name)] = int(status["PPid"]), status, line
    return [
        (number, status)
        for number, (_, status, line) in processes.items()
        if "--type=renderer" in line and parent in ancestors(number, processes)
    ]


def ancestors(number, processes):
    """Yields the ids of the parent process, its parent and so on."""
    while number in processes:
        number = processes[number][0]
        yield number
