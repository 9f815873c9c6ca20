"""The check of English in `make lint` finds what it names, and nothing in good sentences."""

import runpy

import pytest
from documents import ROOT

prose = runpy.run_path(str(ROOT / ".ci" / "prose.py"))
findings, main = prose["findings"], prose["main"]

BAD = {
    "The model has not any padding.": "does not have",
    "A file of an encoder has not the beginning.": "does not have",
    "A batch of 32 takes 0.36 of CTranslate2's time.": "inverse ratio",
    "It is at 0.91 of llama.cpp's speed.": "inverse ratio",
    "Ids equal those of BERT, and scores those of Marian.": "those of",
    "Validation has other sentences than training.": "other ... than",
    "A mask, which the caller gives, and which has an axis, is added.": "which",
    "A type that is not ViT's, a factor of 2, padding, a crop of another size, and small images "
    "with three or four channels are refused.": "long subject",
    "Rows are filled up.": "padded",
    "The end token and the padding behind it count.": "after",
    "All times are those of a busy machine, measured while other programs ran.": "NOTES.md",
    "The file is smaller, too.": "'too'",
    "Ids end with `eos_id` or else with padding.": "otherwise",
    "This mends the file.": "fix",
    "The search says which tokens it takes.": "returns",
    "Texts are tokenized first.": "British",
    "The normalization is in the file.": "British",
    " ".join(["word"] * 36) + ".": "36 words",
    "| a | 1.2 ms; 3.4 ms; 5 ms |": "cell",
    "| a | takes 0.36 of the time of `b` |": "inverse ratio",
}
GOOD = [
    "It has not run on a phone, and has not yet been measured.",
    "It takes 0.36 seconds, 2.8 times as long as Marian, with a dropout of 0.1 of the paper.",
    "A proxy stands behind this server, which names its certificate.",
    "Ids are those of BERT, but nothing else is needed.",
    "Other words than these are unknown.",
    "The tokenizer and the optimizer have a size; a picture is resized, and the prize is small.",
    "In other words, a ratio of 0.5 is refused.",
    "`normalization` and [`tokenize`](color.md) are names, as is `has not a`.",
    'It prints "the color has not a name".',
    " ".join(["word"] * 30) + "; " + " ".join(["word"] * 30) + ".",
    "| Llama 2; Llama 3; Llama 3.2 | summarization | 1.2 ms |",
    "```\nA text is tokenized in code.\n```",
    "[A link](https://example.org/" + "a-" * 60 + ") of [two words](x.md) counts once.",
]


@pytest.mark.parametrize("sentence", BAD)
def test_a_bad_sentence_is_found(sentence):
    found = list(findings(f"# Title\n\n{sentence}\n"))
    assert [line for line, _, _ in found] == [3], found
    assert BAD[sentence] in found[0][1]


@pytest.mark.parametrize("sentence", GOOD)
def test_a_good_sentence_passes(sentence):
    assert not list(findings(f"{sentence}\n"))


def test_docstrings_and_help_texts_are_read_and_examples_are_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(main.__globals__, "ROOT", tmp_path.resolve())
    path = tmp_path / "module.py"
    path.write_text(
        '"""A module.\n\nTexts are tokenized.\n\nExample:\n    tokenized = 1\n\nIt mends.\n"""\n\n'
        'option("--a", help="Color of a plot.")\nlabel = "a color"\n'
    )
    assert main([str(path)]) == 1
    lines = [line.split(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["module.py:3", "module.py:8", "module.py:11"]
    path.write_text('"""A module."""\n')
    assert main([str(path)]) == 0 and capsys.readouterr().out == ""


def test_the_repository_passes(capsys):
    assert main([]) == 0, capsys.readouterr().out
