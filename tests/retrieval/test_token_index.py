"""Indexes of vectors of tokens: equal to MaxSim in loops, whatever interrupts them."""

import hashlib
import importlib.util

import numpy as np
import pipelines
import pytest
from click.testing import CliRunner

import keras_transformer
from keras_transformer.cli.main import cli
from keras_transformer.retrieval import index as module
from keras_transformer.retrieval import tokens
from keras_transformer.retrieval.index import TextIndex

FEATURES = 4
FILES = ("index.json", "vectors.bin", "ends.bin", "texts.txt", "rows.bin")
USEARCH = importlib.util.find_spec("usearch") is not None


class Words:
    """A function in place of a model: a vector for each word, which its hash draws.

    Queries have a vector more, and a passage has none for the word "nothing".
    """

    task = "late_interaction"

    def __init__(self, salt="", fails_at=None):
        self.salt, self.fails_at = salt, fails_at

    def vector(self, word):
        digest = hashlib.sha256(f"{self.salt}{word}".encode()).digest()
        values = np.frombuffer(digest[:FEATURES], "uint8").astype("float32") - 127
        return values / np.linalg.norm(values)

    def part_vectors(self, part, texts, batch_size=64):
        if self.fails_at in texts:
            raise KeyboardInterrupt
        more = [] if part == "passages" else ["[Q]"]
        rows = [[self.vector(w) for w in (*more, *t.split()) if w != "nothing"] for t in texts]
        return [np.array(row, "float32").reshape(-1, FEATURES) for row in rows]


TEXTS = [f"text {n} of {n % 7} words" for n in range(41)]
TEXTS += ["", "nothing", "  ", "text 3 of 3 words", "nothing", "end"]
QUERIES = ["text 7", "3 words", "something else", "end"]


def in_loops(model, texts, query, top):
    """MaxSim, one product at a time in float64."""
    hits = []
    (wanted,) = model.part_vectors("queries", [query])
    for line, text in enumerate(texts, 1):
        if text.strip():
            (known,) = model.part_vectors("passages", [text])
            score = 0.0
            for ours in wanted if len(known) else ():
                score += max(
                    sum(float(a) * float(b) for a, b in zip(ours, one, strict=True))
                    for one in known
                )
            hits.append((score, line, text))
    return sorted(hits, key=lambda hit: (-np.float32(hit[0]), hit[1]))[:top]


def require_hits(found, expected, tolerance=2e-6):
    """Requires the same texts; those whose scores are almost equal may change places."""
    scores, expected_scores = ([hit[0] for hit in hits] for hits in (found, expected))
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=tolerance)
    known = {(line, text): score for score, line, text in expected}
    for hit in found:
        if hit[1:] in known:
            assert hit[0] == pytest.approx(known[hit[1:]], abs=tolerance)
        else:  # as good as the last one
            assert hit[0] == pytest.approx(expected_scores[-1], abs=tolerance)


@pytest.mark.parametrize("at_once", [1, 30, 10**6])
def test_scores_equal_those_of_loops(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(module, "BLOCK", 5)
    monkeypatch.setattr(tokens, "BLOCK_VALUES", at_once)
    model = Words()
    built = TextIndex.build(model, TEXTS, tmp_path)
    words = sum(len(text.split()) for text in TEXTS if "nothing" not in text)
    assert built.described == f"{words} vectors of 4 features" and len(built) == 45
    index = TextIndex(tmp_path, model)
    for top in (1, 4, 99):
        for query, hits in zip(QUERIES, index.search(QUERIES, top), strict=True):
            require_hits([tuple(hit) for hit in hits], in_loops(model, TEXTS, query, top))
    assert index.search([]) == []


def test_texts_without_vectors_have_a_score_of_zero(tmp_path):
    model = Words()
    TextIndex.build(model, ["nothing", "nothing"], tmp_path)
    hits = TextIndex(tmp_path, model).search(["text"])
    assert [tuple(hit) for hit in hits[0]] == [(0.0, 1, "nothing"), (0.0, 2, "nothing")]
    TextIndex.build(model, ["a text", "nothing"], tmp_path, append=True)
    hits = TextIndex(tmp_path, model).search(["text"])
    require_hits(
        [tuple(hit) for hit in hits[0]],
        in_loops(model, ["nothing", "nothing", "a text", "nothing"], "text", 9),
    )


def test_half_the_size_in_float16(tmp_path):
    sizes = {}
    for dtype in ("float32", "float16"):
        folder = tmp_path / dtype
        TextIndex.build(Words(), TEXTS, folder, dtype=dtype)
        sizes[dtype] = (folder / "vectors.bin").stat().st_size
        for query, hits in zip(QUERIES, TextIndex(folder, Words()).search(QUERIES, 3), strict=True):
            require_hits([tuple(hit) for hit in hits], in_loops(Words(), TEXTS, query, 3), 2e-3)
    assert sizes["float32"] == 2 * sizes["float16"]


def test_an_interrupted_index_continues_and_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    whole = TextIndex.build(Words(), TEXTS, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        TextIndex.build(Words(fails_at=TEXTS[14]), TEXTS, tmp_path / "part")
    for name in FILES[1:]:  # killed while it wrote
        with (tmp_path / "part" / name).open("ab") as file:
            file.write(b"half")
    again = TextIndex.build(Words(), TEXTS, tmp_path / "part")
    for name in FILES:
        ours, theirs = ((tmp_path / folder / name).read_bytes() for folder in ("whole", "part"))
        assert ours == theirs
    assert whole.store.manifest == again.store.manifest


@pytest.mark.skipif(not USEARCH, reason="needs usearch")
def test_a_graph_leads_to_the_best_texts_with_exact_scores(tmp_path):
    model = Words()
    TextIndex.build(model, TEXTS[:30], tmp_path, approximate=True)
    TextIndex.build(model, TEXTS[30:], tmp_path, append=True, approximate=True)
    index = TextIndex(tmp_path, model)
    assert index.has_graph
    for query in QUERIES:
        (near,), (exact,) = (index.search([query], 3, exact=exact) for exact in (False, True))
        require_hits([tuple(hit) for hit in near], [tuple(hit) for hit in exact])
    (every,) = index.search(["text 7"], 99)  # more than the graph leads to
    assert len(every) == len(index)


def test_other_models_options_and_damaged_files_are_refused(tmp_path):
    TextIndex.build(Words(), TEXTS, tmp_path, model="runs/a")
    with pytest.raises(ValueError, match="built by runs/a, and this model gives other vectors"):
        TextIndex(tmp_path, Words("other"))
    with pytest.raises(
        ValueError, match="`similarity` has no effect on an index of vectors of tok"
    ):
        TextIndex.build(Words(), TEXTS, tmp_path / "new", similarity="cosine")
    with pytest.raises(ValueError, match="`dtype` must be"):
        TextIndex.build(Words(), TEXTS, tmp_path / "new", dtype="int8")
    ends = np.fromfile(tmp_path / "ends.bin", "<i8")
    ends[3] += 100
    ends.tofile(tmp_path / "ends.bin")
    with pytest.raises(ValueError, match=r"ends\.bin is damaged or missing: build the index"):
        TextIndex(tmp_path, Words()).search(["text"])
    (tmp_path / "ends.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"ends\.bin is damaged or missing: build the index"):
        TextIndex(tmp_path, Words())


SENTENCES = ["the big dog", "a cat runs", "a dog and a cat", "the cat " * 20, "dog", "a", "big"]
ASKED = ["a cat", "the big dog runs", "a dog and a cat and the big dog " * 2]


def test_search_of_a_model_ranks_as_the_model_does(tmp_path):
    ranker = pipelines.ranker()
    TextIndex.build(ranker, SENTENCES, tmp_path)
    expected = ranker.similarities(ASKED, SENTENCES)  # [A, B]
    for row, hits in zip(expected, TextIndex(tmp_path, ranker).search(ASKED, 9), strict=True):
        best = [(row[n], n + 1, SENTENCES[n]) for n in np.argsort(-row, kind="stable")]
        require_hits([tuple(hit) for hit in hits], best, 1e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ranker"
    pipelines.write_run(pipelines.ranker(), folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", ["saved-model", "litert", "onnx"])
def test_an_export_has_the_vectors_of_the_run(form, run, tmp_path):
    place = {"litert": "x.tflite", "onnx": "x.onnx"}.get(form, "saved_model")
    if form == "onnx":
        pytest.importorskip("onnxruntime")
    samples = tmp_path / "pairs.tsv"
    samples.write_text("a cat\tthe big dog\n", encoding="utf-8")
    ask = CliRunner().invoke
    words = ["export", form, run, tmp_path / place, "--sentences", samples]
    done = ask(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    opened, ranker = keras_transformer.open(tmp_path / place), pipelines.ranker()
    for part, texts in (("queries", ASKED), ("passages", SENTENCES)):
        pairs = zip(*(x.part_vectors(part, texts, 2) for x in (opened, ranker)), strict=True)
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{text}\n" for text in SENTENCES), encoding="utf-8")
    done = ask(cli, ["index", str(run), "--input", str(texts), "--output", str(tmp_path / "index")])
    assert done.exit_code == 0, done.output
    found = [
        ask(cli, ["search", str(tmp_path / "index"), "a cat", "--model", str(model)])
        for model in (run, tmp_path / place)
    ]
    ours, theirs = ([line.split("\t") for line in one.stdout.splitlines()] for one in found)
    assert [row[2:] for row in ours] == [row[2:] for row in theirs] and len(ours) == len(SENTENCES)
    scores = ([float(row[1]) for row in rows] for rows in (ours, theirs))
    np.testing.assert_allclose(*scores, rtol=0, atol=2e-5)
