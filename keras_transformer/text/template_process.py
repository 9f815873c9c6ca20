"""`TemplateProcess`, which renders a chat template in a process with limits."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import Any

from keras_transformer.text import template_worker

SLACK = 2  # seconds in which the process should have ended itself


class TemplateProcess:
    """A process that renders one template; it starts with the first text, or again after its end.

    The template is an untrusted program. It has no access to attributes of objects that Jinja's
    sandbox hides, to this process, or to its environment variables. A text must be complete within
    10 seconds, 512 MiB (not limited on Windows) and 4 MiB of characters.

    Args:
        template: Text of the template, in Jinja's language.
    """

    def __init__(self, template: str):
        self._template = template
        self._process: subprocess.Popen | None = None

    def render(self, variables: dict[str, Any]) -> str:
        """Returns the text of the template.

        Args:
            variables: Values by name, which JSON can represent.

        Raises:
            ValueError: If the template is damaged, raises an error, or exceeds a limit.
        """
        if self._process is None:
            self._process = _start()
            self._ask(self._template)
        return self._ask(variables)["text"]

    def close(self) -> None:
        """Ends the process."""
        process: Any = self._process
        self._process = None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()

    def _ask(self, request):
        process: Any = self._process
        timer = threading.Timer(template_worker.SECONDS + SLACK, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            raise ValueError(
                "The chat template was stopped: a text must be complete within "
                f"{template_worker.SECONDS} seconds and {template_worker.MEMORY // 2**20} MiB."
            )
        answer = json.loads(line)
        if "error" in answer:
            if request is self._template:
                self.close()
                raise ValueError(f"The chat template cannot be read: {answer['error']}.")
            raise ValueError(f"The chat template refuses these messages: {answer['error']}.")
        return answer

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _start():
    """Returns the process of `template_worker`, without the environment of this one."""
    kept = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    return subprocess.Popen(
        [sys.executable, "-I", template_worker.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in kept if name in os.environ},
    )
