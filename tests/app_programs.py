"""The programs of `examples/android` and `examples/ios`, and what they answer to texts and ids."""

import json
import struct

import kotlin_program
import pytest
import swift_program

LANGUAGES = {"kotlin": kotlin_program, "swift": swift_program}
each_language = pytest.mark.parametrize(
    "language",
    [
        pytest.param(
            program,
            id=name,
            marks=pytest.mark.skipif(
                bool(program.missing()), reason=f"needs {program.missing()}"
            ),
        )
        for name, program in LANGUAGES.items()
    ],
)  # fmt: skip


def tokenized(language, path, texts, rows, marks=(2, 3)):
    """Returns what a program answers: `[ids, ids for 7 tokens, truncated, places]` and texts.

    Args:
        language: One of the values of `LANGUAGES`.
        path: A .tflite file.
        texts: Texts, which may contain halves of characters.
        rows: Rows of ids.
        marks: Ids of the tokens before and after a text.

    Returns:
        A list with an element for each text, and a list of strings, one for each row.
    """
    lines = [*map(_text_line, texts), *(f"r{' '.join(map(str, row))}" for row in rows)]
    found = language.run("tokens", path, *marks, lines=lines)
    tokens = [json.loads(line) for line in found[: len(texts)]]
    return tokens, [bytes.fromhex(line).decode() for line in found[len(texts) :]]


def _text_line(text):
    content = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(content) // 2}H", content)
    return f"t{' '.join(f'{unit:x}' for unit in units)}"


def assert_translations(language, path, sentences, expected):
    """Compares the translations of a program with those of Python.

    LiteRT for Python takes the place of LiteRT for Android and for Swift.

    Args:
        language: One of the values of `LANGUAGES`.
        path: A .tflite file.
        sentences: Sentences, without line ends.
        expected: The answers of `keras_transformer.open(path).answer(sentences)`.
    """
    rows = language.run("translate", path, lines=sentences)
    for row, one in zip(rows, expected, strict=True):
        text, score, truncated, complete = row.split("\t")
        flags = (truncated == "true", complete == "true")
        assert (text, *flags) == (one.text, one.truncated, one.complete)
        assert float(score) == pytest.approx(one.score, abs=1e-4)
