"""The programs in the pages on `.tflite` files, exactly as on the pages."""

import pytest
from documents import blocks, run

from keras_transformer.export.litert.runtime import LiteRTTranslator

pytest.importorskip("ai_edge_litert")


@pytest.fixture
def program(export, tmp_path, monkeypatch, capsys):
    """The names and the output of the program, run next to a file of the name that it opens."""
    (tmp_path / "demo.tflite").symlink_to(export("none")[0])
    monkeypatch.chdir(tmp_path)
    page = blocks("docs/litert_files.md", "python")
    names = run([block for block in page if block.needs == "litert"])
    return names, capsys.readouterr().out


def test_it_prints_the_translation_of_its_sentence(program, translator):
    assert program[1] == f"{(translator(['in 17 weeks'])[0], False)}\n"


@pytest.mark.parametrize("page", ["docs/litert.md", "docs/litert_speed.md"])
def test_a_page_opens_the_file(page, export, tmp_path, monkeypatch, capsys, translator):
    (tmp_path / "demo.tflite").symlink_to(export("none")[0])
    monkeypatch.chdir(tmp_path)
    run(blocks(page, "python"))
    if page == "docs/litert.md":
        assert capsys.readouterr().out == f"{translator('in 17 weeks')}\n"


def test_it_translates_sentences_of_every_length_and_reports_truncation(program, export, sentences):
    translate, vocabulary = program[0]["translate"], program[0]["vocabulary"]
    limit = 64 * 20  # in bytes, for 20 tokens; the rest is not read
    longest = ["in 17 weeks" + "\u3000" * limit, "ж" * (limit // 2), "a" + "ж" * (limit // 2)]
    edges = ["weeks " * words for words in (15, 16, 19, 20)]
    sentences = [*sentences, *edges, *longest]
    lengths = {len(vocabulary.encode(sentence)) + 1 for sentence in sentences}
    assert {16, 17, 20, 21} <= lengths  # the signatures take 16 and 20 tokens
    expected = LiteRTTranslator(export("none")[0]).answer_batch(sentences)
    assert {output.truncated for output in expected} == {True, False}
    assert [translate(sentence) for sentence in sentences] == [
        (output.text, output.truncated) for output in expected
    ]
