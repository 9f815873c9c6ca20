"""Sentences that readers would have to read twice, as far as a program can see them.

    python .ci/prose.py [FILE ...]

Reads the documents, docstrings and help texts. Prints `file:line: what is wrong, and how to rewrite
it: the sentence` for each, and ends with code 1 if there are any. Code counts as one word.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
LONGEST = 35  # words of a sentence, or between two semicolons
# Written from texts that are read elsewhere; and results with the conditions of their measurement.
GENERATED = {"docs/settings.md", "docs/command_line.md"}
RESULTS = {"docs/benchmarks.md"}
CODE = ("keras_transformer", "training", "export")
READ = ("README.md", "CONTRIBUTING.md", "docs/*.md", *(f"{x}/**/*.py" for x in CODE))
CIRCUMSTANCES = "how a figure was measured belongs in benchmarks/NOTES.md"
# What is wrong in a sentence, and how to rewrite it.
RULES = [
    (r"\b(has|have) not(?= (an?|the|any|all|its|their|those)\b|[.,;:)])", "'does not have'"),
    (r"\b(takes?|took|needs?|needed|costs?) (only |about )?0\.\d+ (times )?(of|as)\b|"
     r"\b0\.\d+ (times |of )(the|its|their|\S+'s?) (time|memory|duration|size|speed)\b",
     "an inverse ratio: turn it around ('is 2.8 times as fast', 'takes 19 % less')"),
    (r"\b(those|that) of\b.*\b(those|that) of\b", "two times 'those of': repeat the nouns"),
    (r"\bother (?!words?\b)[\w-]+( [\w-]+)? than\b", "'other ... than': 'different from'"),
    (r", which [^.:;()]*, (and )?which ", "a 'which' after a 'which': make two sentences"),
    (r"^(?=(\S+ ){18})(?=[^:]*,)[^:]*\b(is|are) (refused|errors?)\W*$",
     "a long subject before 'are refused': begin with who refuses, and make a list"),
    (r"\bfill(s|ed|ing)? up\b", "'filled up': 'padded'"),
    (r"\b(padding|zeros|silence|tokens?) behind\b|\bbehind (it|them)\b", "'behind': 'after'"),
    (r"\b(while|when|as) (other programs|another program) \w+|"
     r"\b(loaded|busy) (machine|cores?)\b|\bbusy with\b|\bon another day\b", CIRCUMSTANCES),
    (r", too\.$", "'too' at the end: 'also' before the verb"),
    (r"\bor else\b", "'else': 'otherwise'"),
    (r"\bmend(s|ed|ing)?\b", "'mend': 'fix'"),
    (r"\b(model|search|program) (says|tells)\b", "only people say: 'returns', 'prints'"),
]  # fmt: skip
CELL = (r"\d[^|;]*; *\d[^|;]*; *\d", "three results in a cell: a column for each")
# Words with two spellings. The field and Keras write tokenizer and optimizer.
AMERICAN = re.compile(
    r"\b((?!(?i:(?:re)?siz|priz|seiz|tokenizers?\b|optimizers?\b))"
    r"[A-Za-z][a-z]+iz(?:e[sd]?|ing|ations?)|(?i:behavi|col|fav|neighb)or\w*|"
    r"labeled|labeling|modeling|analyz\w+|gray)\b"
)
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|al|Figs?|Eqs?|sec|pp?|vs|cf|approx|No)\.$")
MARKUP = [
    (re.compile(r"<!--.*?-->|^Reference: .*|^[\w*]+(, [\w*]+)*: ", re.DOTALL), ""),
    (re.compile(r"``[^`]+``|`[^`]+`|\$[^$\s][^$]*\$"), "`x`"),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"https?://\S+"), "`x`"),
    (re.compile(r"<[^>]+>|[*_]{2}"), ""),
    (re.compile(r'"[^"]*?([.!?]?)"'), r'"x\1"'),  # somebody else's words
]
# Lines that begin a paragraph of their own: items, headings, rows, entries of `Args`.
NEW = re.compile(r"\s*([-*+] |\d+\. |#|\||>|:--|\w+:$|[\w`*]+(, [\w`*]+)*: )")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yields the paragraphs, items and rows of a page: the number of the first line, the text."""
    begin, lines, in_code = 0, [], False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        if (fence or in_code or not line.strip() or NEW.match(line)) and lines:
            yield begin, " ".join(lines)
            lines = []
        in_code ^= fence
        if line.strip() and not fence and not in_code and not line.startswith("!!! "):
            begin = begin if lines else number
            lines.append(re.sub(r"^([-*+>]|\d+\.) ", "", line.strip()))


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a paragraph; code and formulas in them become a single word."""
    for pattern, replacement in MARKUP:
        text = pattern.sub(replacement, text)
    begin = 0
    for end in re.finditer(r"[.!?][\"')”]*(?=\s+[\"'(“`A-Z0-9]|\s*$)", text):
        if not ABBREVIATION.search(text[: end.start() + 1]):
            yield text[begin : end.end()].strip()
            begin = end.end()
    yield text[begin:].strip()


def faults(sentence: str) -> Iterator[str]:
    """Yields what is wrong in a sentence, and how to rewrite it."""
    count = max(len(re.findall(r"\S*\w\S*", clause)) for clause in sentence.split("; "))
    if count > LONGEST:
        yield f"{count} words: make two sentences, or a list"
    yield from (what for pattern, what in RULES if re.search(pattern, sentence))


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields what is wrong in a text: the number of the line, what, and the sentence."""
    for line, paragraph in paragraphs(text):
        row = paragraph.startswith("|")
        for part in paragraph.split("|") if row else [paragraph]:
            if row and re.search(CELL[0], part):
                yield line, CELL[1], part.strip()
            for sentence in sentences(part):
                yield from ((line, what, sentence) for what in faults(sentence))
                # Cells may name a task or a library.
                for word in AMERICAN.findall(sentence) if not row else ():
                    yield line, f"'{word}': British spelling, as everywhere else", sentence


def without_examples(docstring: str) -> str:
    """Returns a docstring without its examples and aligned columns, with as many lines."""
    example = r"^ *Example:\n((?: .*)?(?:\n|$))+|^ *>>>.*$|^.*\S {3,}\S.*$"
    return re.sub(example, lambda x: "\n" * x[0].count("\n"), docstring, flags=re.MULTILINE)


def texts(path: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yields the texts of a page or of a Python file, each with the number of its first line."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        yield 1, source
    for node in ast.walk(ast.parse(source)) if path.suffix == ".py" else ():
        value, body = None, getattr(node, "body", None)
        if isinstance(node, ast.keyword) and node.arg == "help":
            value = node.value
        elif isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, without_examples(value.value)


def main(names: list[str]) -> int:
    """Prints the findings; returns 1 if there are any."""
    paths, count = [pathlib.Path(x).resolve() for x in names], 0
    for pattern in () if names else READ:
        paths += sorted(ROOT.glob(pattern))
    for path in paths:
        name = str(path.relative_to(ROOT))
        for begin, text in texts(path) if name not in GENERATED else ():
            for line, what, sentence in findings(text):
                if what != CIRCUMSTANCES or name not in RESULTS:
                    print(f"{name}:{begin + line - 1}: {what}: {sentence}")  # noqa: T201
                    count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
