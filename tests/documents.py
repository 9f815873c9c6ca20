"""The parts of the README and of the pages in docs/: blocks of code, spans of code, prose."""

import ast
import contextlib
import dataclasses
import io
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The pages of examples are made from programs, which tests/system/test_examples.py runs.
EXAMPLE_PAGES = tuple(
    sorted(str(x.relative_to(ROOT)) for x in (ROOT / "docs" / "examples").glob("*.md"))
)
PAGES = (
    "README.md",
    *sorted(
        page
        for page in (str(x.relative_to(ROOT)) for x in (ROOT / "docs").rglob("*.md"))
        if page not in EXAMPLE_PAGES
    ),
)
EXAMPLES = (
    "examples/README.md",
    *sorted(str(x.relative_to(ROOT)) for x in (ROOT / "examples").glob("*/README.md")),
)
NEEDS = re.compile(r"<!-- needs: ([a-z_]+) -->")
FENCE = "```"
# Options of tensorflow_model_server, from tensorflow_serving/model_servers/main.cc, that our
# documents mention.
SERVER_OPTIONS = {
    "--allow_version_labels_for_unavailable_models", "--batching_parameters_file",
    "--enable_batching", "--enable_grpc_healthcheck_service", "--enable_model_warmup",
    "--load_retry_interval_micros", "--max_num_load_retries", "--model_config_file",
    "--model_config_file_poll_wait_seconds", "--monitoring_config_file",
    "--rest_api_timeout_in_ms", "--tensorflow_inter_op_parallelism",
    "--tensorflow_intra_op_parallelism", "--xla_cpu_compilation_enabled",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code in a page.

    Args:
        page: Path of the page, from the root of the repository.
        line: Number of its first line of code, from 1.
        language: The language named after the fence.
        code: The code.
        needs: The requirement stated in the comment before the fence, or `None`.
        output: The `text` block directly after it, with the output of the code, or `None`.
    """

    page: str
    line: int
    language: str
    code: str
    needs: str | None
    output: str | None = None


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language=None):
    """Returns the blocks of a page, of one language or of all."""
    all_blocks, lines, opened, closed = [], read(page).split("\n"), None, None
    for number, line in enumerate(lines):
        if not line.startswith(FENCE):
            continue
        if opened is None:
            opened = number
            continue
        needs = NEEDS.fullmatch(lines[opened - 1]) if opened else None
        of, code = lines[opened].removeprefix(FENCE), "\n".join(lines[opened + 1 : number]) + "\n"
        if of == "text" and closed is not None and not any(lines[closed + 1 : opened]):
            all_blocks[-1] = dataclasses.replace(all_blocks[-1], output=code)
        all_blocks.append(Block(page, opened + 2, of, code, needs[1] if needs else None))
        opened, closed = None, number
    assert opened is None, f"{page}:{opened}: the block has no end"
    return [block for block in all_blocks if language in (None, block.language)]


def unrun_examples(path):
    """Yields the `Example` sections of a file's docstrings that no doctest runs: owner and code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            for code in re.findall(r"^Example:\n((?:(?: .*)?(?:\n|$))+)", text, re.MULTILINE):
                if ">>>" not in code:
                    yield node.name, textwrap.dedent(code)


def section(page, heading):
    """Returns the only block of code below a heading, as text."""
    text = read(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```(?:python|toml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return code


def prose(page):
    """Returns a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)


def spans(page):
    """Yields the inline code of a page, without backticks and without the escapes of tables."""
    return [x.replace("\\|", "|") for x in re.findall(r"`([^`\n]+)`", prose(page))]


def shell(page):
    """Yields shell commands from blocks and spans, each joined with its continuation lines."""
    for block in blocks(page, "sh"):
        yield from block.code.replace("\\\n", " ").split("\n")
    yield from spans(page)


def run(blocks):
    """Executes Python blocks in order in one namespace, and returns the namespace.

    What a block prints must equal its `output`, if the page shows an output that depends on no
    model.
    """
    names = {"__name__": "__main__"}
    for block in blocks:
        code = "\n" * (block.line - 1) + block.code  # so that errors show the line of the page
        code = compile(code, str(ROOT / block.page), "exec")
        if block.needs or block.output is None:
            exec(code, names)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue() == block.output, f"{block.page}:{block.line}"
    return names
