"""Inverted indexes of sparse vectors: equal to dot products in loops, whatever interrupts them."""

import errno
import hashlib
import json
import os
import types

import numpy as np
import pipelines
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.retrieval import index as module
from keras_transformer.retrieval import sparse
from keras_transformer.retrieval.index import TextIndex

SIZE = 11
FILES = ("index.json", "postings-0.bin", "texts.txt", "rows.bin", "vectors.bin")


class Hashes:
    """A function in place of a model: the tokens and weights of a text are drawn by its hash."""

    task = "sparse_embedding"

    def __init__(self, salt="", fails_at=None):
        self.salt, self.fails_at = salt, fails_at

    def with_settings(self, prompt):
        return Hashes(f"{self.salt}{prompt}", self.fails_at)

    def weights(self, text):
        """Mostly zeros; all of them for a text with "nothing" in it."""
        digest = hashlib.sha256(f"{self.salt}{text}".encode()).digest()
        values = np.frombuffer(digest[:SIZE], "uint8").astype("float32") / 7
        return np.where(values < 20, 0, values) * ("nothing" not in text)

    def answer(self, texts, batch_size=64, progress=None):
        if self.fails_at in texts:
            raise KeyboardInterrupt
        rows = [self.weights(text) for text in texts]
        order = [[t for t in np.argsort(-row, kind="stable") if row[t]] for row in rows]
        return [
            types.SimpleNamespace(ids=np.array(ids, "int32"), weights=row[ids])
            for ids, row in zip(order, rows, strict=True)
        ]


TEXTS = [f"text {n}" for n in range(41)] + ["", "nothing", "  ", "text 3", "nothing 2", "end"]


def in_loops(model, texts, query, top):
    """The dot products that are above 0, one product at a time in float64."""
    hits = []
    (wanted,) = model.answer([query])
    for line, text in enumerate(texts, 1):
        if text.strip():
            weights, score = model.weights(text), 0.0
            for token, weight in zip(wanted.ids, wanted.weights, strict=True):
                score += float(weight) * float(weights[token])
            hits.append((float(np.float32(score)), line, text))
    return sorted((hit for hit in hits if hit[0] > 0), key=lambda hit: (-hit[0], hit[1]))[:top]


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_scores_equal_those_of_loops(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(module, "BLOCK", 5)
    monkeypatch.setattr(sparse.write_segment, "__defaults__", (at_once,))
    model = Hashes()
    built = TextIndex.build(model, TEXTS, tmp_path)
    weights = sum(np.count_nonzero(model.weights(text)) for text in TEXTS if text.strip())
    assert built.described == f"{weights} weights" and len(built) == 45
    index, queries = TextIndex(tmp_path, model), ["text 7", "something", "text 3", "nothing"]
    for top in (1, 4, 99):
        for query, hits in zip(queries, index.search(queries, top), strict=True):
            assert [tuple(hit) for hit in hits] == in_loops(model, TEXTS, query, top)
    assert index.search([]) == [] and index.search(["nothing"]) == [[]]
    assert (tmp_path / "vectors.bin").stat().st_size == 0


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
    again = TextIndex.build(Hashes(), TEXTS, tmp_path / "part")
    for name in FILES:
        ours, theirs = ((tmp_path / folder / name).read_bytes() for folder in ("whole", "part"))
        assert ours == theirs
    assert whole.store.manifest == again.store.manifest


def test_a_full_disk_is_an_error_and_the_index_continues(tmp_path, monkeypatch):
    def full(self, path):
        path.write_bytes(bytes(self.size // 2))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(sparse.PostingsFile, "reserve", full)
        with pytest.raises(OSError, match="No space left on device"):
            TextIndex.build(Hashes(), TEXTS, tmp_path)
    assert not [*tmp_path.glob("*draft*"), *tmp_path.glob("postings*")]
    TextIndex.build(Hashes(), TEXTS, tmp_path)
    assert TextIndex(tmp_path, Hashes()).search(["text 7"], 1)[0][0].text == "text 7"


def test_the_size_of_postings_is_reserved(tmp_path, monkeypatch):
    monkeypatch.setattr(sparse, "RESERVED", 10)
    postings = sparse.PostingsFile(tokens=3, postings=2)
    postings.reserve(tmp_path / "postings")
    assert (tmp_path / "postings").read_bytes() == bytes(postings.size)


def test_texts_are_appended_as_further_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    more, last = ["new one", "", "new two", "nothing"], ["text 3", "new one"]
    TextIndex.build(Hashes(), TEXTS, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        TextIndex.build(Hashes(fails_at="new two"), more, tmp_path, append=True)
    TextIndex.build(Hashes(), more, tmp_path, append=True)
    TextIndex.build(Hashes(), last, tmp_path, append=True)
    TextIndex.build(Hashes(), ["nothing"], tmp_path, append=True)  # adds no weight
    assert len({path.name for path in tmp_path.glob("postings-*.bin")}) == 3
    index = TextIndex(tmp_path, Hashes())
    for query in ("new two", "text 3"):
        (hits,) = index.search([query], 99)
        every = [*TEXTS, *more, *last]
        assert [tuple(hit) for hit in hits] == in_loops(Hashes(), every, query, 99)


def test_other_models_options_and_damaged_files_are_refused(tmp_path):
    TextIndex.build(Hashes(), TEXTS, tmp_path, model="runs/a")
    with pytest.raises(ValueError, match="built by runs/a, and this model gives other vectors"):
        TextIndex(tmp_path, Hashes("x"))
    dense = types.SimpleNamespace(task="embedding")
    with pytest.raises(ValueError, match="is one of sparse vectors. Received: a model for embedd"):
        TextIndex(tmp_path, dense)
    TextIndex(tmp_path, Hashes().with_settings(prompt=""))
    for name, value in (("dtype", "float16"), ("approximate", True), ("similarity", "cosine")):
        with pytest.raises(ValueError, match=f"`{name}` has no effect on an index of sparse vec"):
            TextIndex.build(Hashes(), TEXTS, tmp_path / "other", **{name: value})
    good = (tmp_path / "index.json").read_text()
    for change in ({"kind": "other"}, {"segments": [{"tokens": 3}]}, {"pending": None}):
        (tmp_path / "index.json").write_text(json.dumps({**json.loads(good), **change}))
        with pytest.raises(ValueError, match="index.json is damaged: build the index again"):
            TextIndex(tmp_path)
    (tmp_path / "index.json").write_text(good)
    (tmp_path / "postings-0.bin").write_bytes(b"123")
    with pytest.raises(ValueError, match="postings-0.bin is damaged or missing"):
        TextIndex(tmp_path, Hashes()).search(["a"])


@pytest.mark.slow
def test_the_commands_write_and_search_an_inverted_index(tmp_path):
    model = pipelines.sparse_embedder()
    run = pipelines.write_run(model, tmp_path / "run")
    texts, queries = tmp_path / "texts.txt", tmp_path / "queries.txt"
    folder = tmp_path / "index"
    texts.write_text("".join(f"{line}\n" for line in pipelines.LINES))
    queries.write_text(f"\n{pipelines.LINES[1]}\n")

    def command(*words):
        return CliRunner().invoke(cli, [*map(str, words)])

    done = command("index", run, "--input", texts, "--output", folder, "--approximate")
    assert done.exit_code == 2
    assert "--approximate has no effect on an index of sparse vectors" in done.output
    done = command("index", run, "--input", texts, "--output", folder)
    assert done.exit_code == 0 and f"{folder}: 4 texts, 36 weights." in done.output
    done = command("search", folder, "--input", queries, "--top", 2)
    assert done.exit_code == 0, done.output
    vectors = model.embed(pipelines.LINES)
    scores = model.similarity(vectors[1:2], vectors)[0]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [
        ("2", pipelines.LINES[number]) for number in np.argsort(-scores, kind="stable")[:2]
    ]
    best = sorted(scores.tolist(), reverse=True)[:2]
    assert [float(row[1]) for row in rows] == pytest.approx(best, rel=1e-4)
