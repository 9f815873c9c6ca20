"""A program that renders chat templates, in a process of its own: see `TemplateProcess`.

A template comes with a checkpoint and is an untrusted program. It runs in Jinja's sandbox, with the
settings of `transformers`, and the operating system limits the time and memory of the process.
"""

import datetime
import json
import signal
import sys
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 10  # for one rendering
MEMORY = 512 * 2**20  # bytes of address space
LARGEST = 4 * 2**20  # characters of a rendered text


class AnswerBlock(Extension):
    """The block `generation` of `transformers`, which marks answers for training: its content."""

    tags = {"generation"}

    def parse(self, parser):  # noqa: D102
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment() -> ImmutableSandboxedEnvironment:
    """Returns the environment in which `transformers` renders chat templates."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def now(format):
        return datetime.datetime.now().strftime(format)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[AnswerBlock, loopcontrols]
    )
    made.filters["tojson"] = to_json
    functions: Any = made.globals
    functions.update({"raise_exception": raise_exception, "strftime_now": now})
    return made


def rendered(template, variables) -> str:
    """Returns the text of a template that has been compiled.

    Raises:
        ValueError: If the text is too long.
    """
    parts, length = [], 0
    for part in template.generate(**variables):
        parts.append(part)
        length += len(part)
        if length > LARGEST:
            raise ValueError(f"its text has more than {LARGEST:,} characters")
    return "".join(parts)


def limit_resources() -> None:
    """Limits the memory of the process where the system can; time limits end it in any case."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops an answer, not the conversation
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Renders one line of JSON after another: the template first, then variables."""
    limit_resources()
    alarm = getattr(signal, "alarm", lambda seconds: None)  # ends the process
    template = None
    for line in sys.stdin:
        alarm(SECONDS)
        try:
            request = json.loads(line)
            if template is None:
                template, answer = environment().from_string(request), {}
            else:
                answer = {"text": rendered(template, request)}
        except MemoryError:
            answer = {"error": "it needs too much memory"}
        except Exception as error:
            answer = {"error": " ".join(str(error).split())[:500] or type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        alarm(0)


if __name__ == "__main__":
    main()
