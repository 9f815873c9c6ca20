"""Indexes of texts: exact search against loops, appending, interruption, and other models."""

import hashlib
import json
import types

import numpy as np
import pipelines
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.lock import FolderLocked
from keras_transformer.retrieval import graph
from keras_transformer.retrieval import index as module
from keras_transformer.retrieval.index import Hit, TextIndex
from keras_transformer.retrieval.nearest import nearest
from keras_transformer.retrieval.store import IndexStore

WIDTH = 6


class Hashes:
    """A function in place of a model: the vector of a text is drawn by its hash."""

    task = "embedding"

    def __init__(self, salt="", scale=1.0, prompt="", fails_at=None):
        self.salt, self.scale, self.prompt, self.fails_at = salt, scale, prompt, fails_at

    def with_settings(self, prompt):
        return Hashes(self.salt, self.scale, prompt, self.fails_at)

    def vector(self, text):
        digest = hashlib.sha256(f"{self.salt}{self.prompt}{text}".encode()).digest()
        vector = np.frombuffer(digest[:WIDTH], "uint8") - 127.5
        return (self.scale * vector / np.linalg.norm(vector)).astype("float32")

    def answer(self, texts, batch_size=64, progress=None):
        if self.fails_at in texts:
            raise KeyboardInterrupt
        return [types.SimpleNamespace(values=self.vector(text)) for text in texts]


TEXTS = [f"text {number}" for number in range(23)] + ["", "  ", "the last one", "text 3"]


def in_loops(model, texts, query, top, cosine=False):
    """The nearest texts in float64, one at a time; equal scores in the order of the lines."""
    hits = []
    wanted = model.vector(query).astype(float)
    for line, text in enumerate(texts, 1):
        if text.strip():
            vector = model.vector(text).astype(float)
            score = sum(a * b for a, b in zip(wanted, vector, strict=True))
            if cosine:
                score /= sum(a * a for a in wanted) ** 0.5 * sum(b * b for b in vector) ** 0.5
            hits.append((score, line, text))
    return sorted(hits, key=lambda hit: (-round(hit[0], 9), hit[1]))[:top]


def assert_hits(found, expected, atol=1e-6):
    assert [(hit.line, hit.text) for hit in found] == [(line, text) for _, line, text in expected]
    np.testing.assert_allclose([hit.score for hit in found], [x[0] for x in expected], atol=atol)


@pytest.mark.parametrize("options", [{}, {"dtype": "float16"}, {"similarity": "cosine"}])
def test_the_nearest_texts_equal_those_of_loops(tmp_path, monkeypatch, options):
    monkeypatch.setattr(module, "BLOCK", 5)
    model = Hashes(scale=3.0)
    TextIndex.build(model, TEXTS, tmp_path, **options)
    index = TextIndex(tmp_path, model)
    assert len(index) == 25 and not index.has_graph
    queries = ["text 7", "something", "text 3"]
    cosine = options.get("similarity") == "cosine"
    for top in (1, 4, 99):
        for query, hits in zip(queries, index.search(queries, top), strict=True):
            expected = in_loops(model, TEXTS, query, top, cosine)
            if "dtype" in options and top > 1:
                expected = expected[: len(hits)]
                assert {hit.line for hit in hits} == {line for _, line, _ in expected}
            else:
                assert_hits(hits, expected, 1e-2 if "dtype" in options else 1e-5)
    assert index.search([]) == []


@pytest.mark.parametrize("block", [1, 4, 7, 100])
def test_blocks_change_nothing_and_ties_are_in_order(block):
    rng = np.random.default_rng(0)
    vectors = rng.integers(-2, 3, (31, 3)).astype("float32")  # many equal scores
    queries = rng.integers(-2, 3, (5, 3)).astype("float32")
    found = nearest(vectors, queries, 6, block)
    for query, scores, rows in zip(queries, *found, strict=True):
        products = [float(sum(query * vector)) for vector in vectors]
        expected = sorted(range(31), key=lambda row: (-products[row], row))[:6]
        assert rows.tolist() == expected
        assert scores.tolist() == [products[row] for row in expected]
    assert nearest(vectors[:0], queries, 6).rows.shape == (5, 0)


def test_an_interrupted_index_continues_and_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    whole = TextIndex.build(Hashes(), TEXTS, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        TextIndex.build(Hashes(fails_at="text 14"), TEXTS, tmp_path / "part")
    for name in ("vectors.bin", "texts.txt", "rows.bin"):  # killed while it wrote
        with (tmp_path / "part" / name).open("ab") as file:
            file.write(b"half")
    with pytest.raises(ValueError, match="is not finished: it has 12 texts. Run the same command"):
        TextIndex(tmp_path / "part")
    with pytest.raises(ValueError, match="its text number 2 differs from that of the input"):
        TextIndex.build(Hashes(), ["text 0", "other"], tmp_path / "part")
    again = TextIndex.build(Hashes(), TEXTS, tmp_path / "part")
    for name in ("vectors.bin", "texts.txt", "rows.bin"):
        ours, theirs = ((tmp_path / folder / name).read_bytes() for folder in ("whole", "part"))
        assert ours == theirs
    assert whole.store.manifest == again.store.manifest


def test_texts_are_appended(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    more = ["new one", "", "new two"]
    TextIndex.build(Hashes(), TEXTS[:11], tmp_path)
    with pytest.raises(KeyboardInterrupt):
        TextIndex.build(Hashes(fails_at="new two"), more, tmp_path, append=True)
    TextIndex.build(Hashes(), more, tmp_path, append=True)
    index = TextIndex(tmp_path, Hashes())
    assert_hits(
        index.search(["new two"], 5)[0], in_loops(Hashes(), TEXTS[:11] + more, "new two", 5)
    )
    with pytest.raises(ValueError, match="holds a finished index of 13 texts: append to it"):
        TextIndex.build(Hashes(), more, tmp_path)
    with pytest.raises(ValueError, match="`dtype` must be that of the index .*'float32'. Received"):
        TextIndex.build(Hashes(), more, tmp_path, append=True, dtype="float16")
    with pytest.raises(ValueError, match="holds no index to append to"):
        TextIndex.build(Hashes(), more, tmp_path / "none", append=True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Hashes(salt="x"), "this model gives other vectors: the cosine of the same text is "),
        (Hashes(scale=2.0), "this model gives vectors of another length"),
    ],
)
def test_another_model_is_refused(tmp_path, other, message):
    TextIndex.build(Hashes(), TEXTS, tmp_path, model="runs/a")
    with pytest.raises(ValueError, match=f"was built by runs/a, and {message}"):
        TextIndex(tmp_path, other)
    with pytest.raises(ValueError, match=message):
        TextIndex.build(other, TEXTS, tmp_path, append=True)
    translator = types.SimpleNamespace(task="translation")
    with pytest.raises(
        ValueError,
        match="needs a model for embedding, sparse_embedding or late_i.*: a model for tra",
    ):
        TextIndex(tmp_path, translator)
    TextIndex(tmp_path, Hashes().with_settings(prompt="query: "))  # a prompt is no other model


def test_damaged_indexes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no index: the file index.json is missing"):
        IndexStore(tmp_path)
    TextIndex.build(Hashes(), TEXTS, tmp_path)
    good = (tmp_path / "index.json").read_text()
    for change, message in (
        ({"dtype": "int3"}, "is damaged"), ({"version": 9}, "is of version 9"),
        ({"count": 99}, "rows.bin is damaged or missing"),
    ):  # fmt: skip
        (tmp_path / "index.json").write_text(json.dumps({**json.loads(good), **change}))
        with pytest.raises(ValueError, match=message):
            TextIndex(tmp_path)
    (tmp_path / "index.json").write_text(good)
    (tmp_path / "vectors.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="vectors.bin is damaged or missing"):
        TextIndex(tmp_path)


def test_a_graph_has_exact_scores_and_grows(tmp_path):
    pytest.importorskip("usearch")
    texts = [f"line {number}" for number in range(150)]
    counts = []
    TextIndex.build(Hashes(), texts[:100], tmp_path, approximate=True, progress=counts.append)
    assert sum(counts) == 100
    TextIndex.build(Hashes(), texts[100:], tmp_path, append=True, approximate=True)
    index = TextIndex(tmp_path, Hashes())
    assert index.has_graph
    queries = texts[::9]
    pairs = list(zip(index.search(queries, 5), index.search(queries, 5, exact=True), strict=True))
    for found, exact in pairs:
        assert found[0].text == exact[0].text
        known = {hit.line: hit.score for hit in exact}
        for hit in found:
            assert hit.score == pytest.approx(known.get(hit.line, hit.score), abs=1e-6)
    lines = [[{hit.line for hit in hits} for hits in pair] for pair in pairs]  # sums differ by CPU
    both = [len(found & exact) / 5 for found, exact in lines]
    assert np.mean(both) > 0.9
    (tmp_path / "graph.usearch").unlink()
    index = TextIndex(tmp_path, Hashes())
    with pytest.raises(ValueError, match="graph.usearch is missing or does not belong"):
        index.search(queries, 5)
    assert index.search(queries, 5, exact=True) == [exact for _, exact in pairs]


def test_a_graph_that_leads_to_too_few_texts_is_not_used(tmp_path, monkeypatch):
    """The texts it does not find are not replaced by one that was found already."""
    pytest.importorskip("usearch")
    texts = [f"line {number}" for number in range(30)]
    TextIndex.build(Hashes(), texts, tmp_path, approximate=True)
    index = TextIndex(tmp_path, Hashes())
    whole = graph.candidates

    def few(*arguments):
        first, *others = whole(*arguments)
        return [first[:3], *others]

    monkeypatch.setattr(graph, "candidates", few)
    for found, exact in zip(
        index.search(texts[:2], 5), index.search(texts[:2], 5, exact=True), strict=True
    ):
        assert [hit.line for hit in found] == [hit.line for hit in exact]
        assert len({hit.line for hit in found}) == 5


def test_files_that_are_no_index_are_kept(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a\n")
    message = "texts.txt exists and belongs to no index: choose another folder"
    with pytest.raises(ValueError, match=message):
        TextIndex.build(Hashes(), ["a"], tmp_path)
    assert path.read_text() == "a\n"
    path.write_text("")  # as a process leaves it that is killed before the manifest is written
    assert len(TextIndex.build(Hashes(), ["a"], tmp_path)) == 1


def test_two_processes_do_not_write_into_one_index(tmp_path):
    class Second(Hashes):
        """Another process that begins while the first one embeds its texts."""

        def answer(self, texts, batch_size=64, progress=None):
            if len(texts) > 3:
                with pytest.raises(FolderLocked, match="is in use by process .* since"):
                    TextIndex.build(Hashes(), TEXTS, tmp_path)
            return super().answer(texts)

    TextIndex.build(Second(), TEXTS, tmp_path)
    assert len(TextIndex(tmp_path)) == 25
    assert {path.name for path in tmp_path.iterdir()} == {
        *("index.json", "vectors.bin", "texts.txt", "rows.bin")
    }


def test_empty_queries_have_no_answers(tmp_path):
    TextIndex.build(Hashes(), ["a"], tmp_path)
    done = CliRunner().invoke(cli, ["search", str(tmp_path), "a", " "])
    assert done.exit_code == 2 and "QUERY must not be empty." in done.output


def test_an_index_that_a_program_built_needs_the_name_of_its_model(tmp_path):
    TextIndex.build(Hashes(), ["a"], tmp_path)
    done = CliRunner().invoke(cli, ["search", str(tmp_path), "a"])
    assert done.exit_code and "does not name its model: use --model." in done.output


@pytest.mark.slow
def test_a_model_finds_its_texts_and_mistakes_are_one_line(tmp_path):
    model = pipelines.embedder()
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{line}\n" for line in [*pipelines.LINES, "", "x y"]))
    TextIndex.build(model, texts.read_text().split("\n")[:-1], tmp_path / "index", model="gone")
    index = TextIndex(tmp_path / "index", model)
    vectors = model.embed(pipelines.LINES)
    (hits,) = index.search(pipelines.LINES[:1], top=3)
    assert hits[0] == Hit(pytest.approx(1.0, abs=1e-5), 1, pipelines.LINES[0])
    expected = sorted((vectors @ vectors[0]).tolist(), reverse=True)
    assert [hit.score for hit in hits[:2]] == pytest.approx(expected[:2], abs=1e-3)
    for arguments, message in (
        (["search", str(tmp_path / "index"), "a"], "gone, which built the index, is missing"),
        (["search", str(tmp_path / "index")], "Give either QUERY or --input."),
        (["search", str(tmp_path / "index"), "a", "--exact"], "has no graph: it is always exact"),
        (["search", str(tmp_path), "a"], "holds no index"),
    ):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code and message in done.output and "Traceback" not in done.output
