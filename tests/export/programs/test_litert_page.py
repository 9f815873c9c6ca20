"""The program in docs/litert.md, as it stands there."""

import re

import pytest
from documents import blocks, run

pytest.importorskip("ai_edge_litert")


@pytest.fixture
def program(export, tmp_path, monkeypatch, capsys):
    """The names and the output of the program, run beside a file of the name that it opens."""
    (tmp_path / "demo.tflite").symlink_to(export("none")[0])
    monkeypatch.chdir(tmp_path)
    names = run(blocks("docs/litert.md", "python"))
    return names, capsys.readouterr().out


def test_it_prints_the_translation_of_its_sentence(program, translator):
    assert program[1] == translator(["in 17 weeks"])[0] + "\n"


def test_it_translates_sentences_of_every_length(program, translator, sentences):
    translate, vocabulary = program[0]["translate"], program[0]["vocabulary"]
    whole = [
        sentence
        for sentence in sentences
        if sentence.strip() and len(vocabulary.encode(sentence)) < 20
    ]
    lengths = {len(vocabulary.encode(sentence)) + 1 for sentence in whole}
    assert min(lengths) < 16 < max(lengths)  # the signatures are for 16 and 20 tokens
    assert [translate(sentence) for sentence in whole] == translator(whole)


def test_it_refuses_a_sentence_that_is_longer_than_the_model_reads(program, sentences):
    (sentence,) = [text for text in sentences if "far more tokens" in text]
    message = rf"'{re.escape(sentence)}' has \d\d tokens; the model reads 20\."
    with pytest.raises(ValueError, match=message):
        program[0]["translate"](sentence)
