"""The examples: pages in Python whose numbers are those stated in their texts."""

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from documents import ROOT, read

FILES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
HEADINGS = ["Introduction", "Setup", "Data", "Model", "Training", "Evaluation", "Conclusion"]


def page(name):
    """Returns the text of an example: its top-level strings in order."""
    body = ast.parse(read(f"examples/{name}.py")).body
    strings = [node.value for node in body if isinstance(node, ast.Expr)]
    return "\n".join(x.value for x in strings if isinstance(getattr(x, "value", None), str))


def figures(name, epochs, **environment):
    """Runs an example and returns its printed metrics as `title: number`."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", ROOT / "examples" / f"{name}.py"],
        env={**os.environ, "EPOCHS": str(epochs), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = re.findall(r"^(.+): ([\d.]+)$", done.stdout, re.MULTILINE)
    return {title: float(number) for title, number in lines}


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_a_page_with_all_sections(name):
    text = page(name)
    assert re.match(r"\nTitle: .+\nDate created: .+\nLast modified: .+\nDescription: .+\.\n", text)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in HEADINGS] == HEADINGS
    assert "training" not in re.findall(r"keras_transformer\.(\w+)", read(f"examples/{name}.py"))


@pytest.mark.parametrize("table", ["examples/README.md", "docs/examples.md"])
def test_every_example_is_in_the_tables(table):
    assert (
        sorted(re.findall(r"^\| \[?`(?:examples/)?(\w+)\.py`", read(table), re.MULTILINE)) == FILES
    )


# Results. Training is shorter than by default; the statements must hold by a wide margin.


@pytest.mark.slow
@pytest.mark.long
def test_an_encoder_classifies_better_than_the_mean_of_embeddings():
    results = figures("text_classification", epochs=4)
    assert results["Encoder, accuracy"] > 0.85 and results["LSTM, accuracy"] > 0.7
    assert results["Mean of embeddings, accuracy"] < 0.7
    assert results["Most frequent label, accuracy"] < 0.6


@pytest.mark.slow
@pytest.mark.long
def test_texts_of_a_file_are_classified(tmp_path):
    lines = [f"this was number {n} and it was {word}\t{word.upper()}" for n in range(400)
             for word in ("fine", "poor")]  # fmt: skip
    path = tmp_path / "texts.tsv"
    path.write_text("\n".join(lines) + "\n")
    results = figures("text_classification", epochs=10, DATA=str(path))
    assert results["Encoder, accuracy"] > 0.95


@pytest.mark.slow
def test_a_transformer_translates_numbers():
    assert figures("translation", epochs=4)["Exact translations"] > 0.9


@pytest.mark.slow
@pytest.mark.long
def test_a_language_model_comes_close_to_the_perplexity_of_the_grammar():
    results = figures("language_model", epochs=4)
    best, pairs = results["Best possible perplexity"], results["Pairs of words, perplexity"]
    assert pairs > 1.15 * best
    assert 0.98 * best < results["Model, perplexity"] < 1.05 * best
    assert results["Sampled sentences that agree"] > 0.9


@pytest.mark.slow
@pytest.mark.long
def test_words_are_labelled_by_their_context():
    results = figures("token_labelling", epochs=4)
    assert results["Most frequent label of a word, accuracy"] < 0.8
    assert results["Encoder, accuracy"] > 0.98 and results["Encoder, F1 of names"] > 0.95
    assert results["Largest change of a logit by padding"] < 1e-4


@pytest.mark.slow
@pytest.mark.long
def test_answers_are_marked_in_a_text():
    results = figures("question_answering", epochs=6)
    assert results["A sentence by chance, exact answers"] < 0.4
    assert results["Encoder, exact answers"] > 0.9


@pytest.mark.slow
@pytest.mark.long
def test_summaries_are_exact():
    results = figures("summarization", epochs=10)
    assert results["First sentence, ROUGE-1"] < 0.5
    assert results["Model, ROUGE-1"] > 0.9 and results["Model, exact summaries"] > 0.5


@pytest.mark.slow
@pytest.mark.long
def test_three_models_of_a_series_track_the_state_of_the_soil():
    results = figures("time_series", epochs=6)
    assert results["Linear model of seven days, NSE"] < 0.65
    for name in ("Encoder", "LSTM", "GRU"):
        assert results[f"{name}, NSE"] > 0.85


@pytest.mark.slow
@pytest.mark.long
def test_patches_of_digits_are_recognised():
    pytest.importorskip("sklearn")
    results = figures("images", epochs=8)
    assert results["Logistic regression, accuracy"] > 0.94
    assert results["Vision transformer, accuracy"] > 0.94


@pytest.mark.slow
@pytest.mark.long
def test_frozen_vectors_classify_words_without_an_example():
    results = figures("word_vectors", epochs=15)
    for name in ("Frozen", "Learned"):
        assert results[f"{name} vectors, accuracy with words of the training"] > 0.95
    assert results["Frozen vectors, accuracy with new words"] > 0.85
    assert results["Learned vectors, accuracy with new words"] < 0.7


@pytest.mark.slow
@pytest.mark.long
def test_vectors_are_read_from_a_file(tmp_path):
    """The vectors are random: one for each word of the file's own text."""
    rng = np.random.default_rng(0)
    words = sorted(set(re.findall(r"[a-z]+", read("examples/word_vectors.py"))))
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, rng.normal(size=7)))}\n" for word in words))
    results = figures("word_vectors", epochs=15, DATA=str(path))
    assert results["Numbers of a vector"] == 7
    assert results["Frozen vectors, accuracy with words of the training"] > 0.75
