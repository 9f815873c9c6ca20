"""The examples: pages in Python whose numbers are those stated in their texts."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from documents import ROOT, read

FILES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
HEADINGS = ["Introduction", "Setup", "Data", "Model", "Training", "Evaluation", "Conclusion"]
# The one that shows the package's own training loop; the others train with `fit`.
WITH_TRAINING = {"multi30k"}
# These use a published checkpoint as it is.
WITHOUT_TRAINING = {"search_notes", "transcription"}
DATA = pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", ROOT.parent / "shared" / "data"))


def page(name):
    """The text of an example: its cells of Markdown, one after the other."""
    cells = re.findall(
        r'^# %% \[markdown\](?: tags=\["page"\])?\n"""\n(.*?)\n"""$',
        read(f"examples/{name}.py"),
        re.DOTALL | re.MULTILINE,
    )
    return "\n\n".join(cells)


def run_example(name, folder=None, **environment):
    """Runs an example as a program; plots are not shown, whatever the display."""
    environment = {**os.environ, "MPLBACKEND": "Agg", **environment}
    environment.pop("DISPLAY", None)
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", ROOT / "examples" / f"{name}.py"],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )


def figures(name, epochs, folder=None, **environment):
    """Runs an example and returns what it prints as `title: number`."""
    done = run_example(name, folder, EPOCHS=str(epochs), **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = re.findall(r"^(.+): ([\d.]+)$", done.stdout, re.MULTILINE)
    return {title: float(number) for title, number in lines}


def require(name):
    """Skips a test if a set of real data is missing."""
    if not (DATA / name).is_dir():
        pytest.skip(f"KERAS_TRANSFORMER_DATA must name a folder with {name}/: see docs/data.md")


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_a_page_with_all_sections(name):
    text = page(name)
    assert re.match(r"# .+\n\n[^#]+\.\n\nCreated .+\n\nInstall the package", text)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    expected = [x for x in HEADINGS if x != "Training" or name not in WITHOUT_TRAINING]
    assert [heading for heading in headings if heading in HEADINGS] == expected
    modules = re.findall(r"keras_transformer\.(\w+)", read(f"examples/{name}.py"))
    assert ("training" in modules) == (name in WITH_TRAINING)


@pytest.mark.parametrize("name", FILES)
def test_an_example_begins_with_how_to_run_it_and_ends_with_what_to_read_next(name):
    (first, *_), (*_, last) = [re.split(r"^## ", page(name), flags=re.MULTILINE)] * 2
    assert 'pip install -e ".[plot' in first and f"python examples/{name}.py\n" in first
    assert f"]({name}.ipynb)" in first
    assert ("`EPOCHS`" in first) == (name not in WITHOUT_TRAINING)
    assert last.startswith("Read next\n") and "](" in last


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "missing"),
    [("fine_tuning", "hf download"), ("transcription", "apt-get download")],
)
def test_without_its_data_an_example_tells_in_a_line_how_to_get_them(tmp_path, name, missing):
    empty = {"KERAS_TRANSFORMER_DATA": str(tmp_path), "CHECKPOINT": "", "RECORDINGS": ""}
    done = run_example(name, tmp_path, **empty)
    assert done.returncode == 1 and not done.stdout
    assert re.fullmatch(r"Set [A-Z_]+ to .*\.", done.stderr.strip().split("\n")[-1])
    assert missing in done.stderr.split("\n")[-2]


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
@pytest.mark.long
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
    results = figures("token_classification", epochs=4)
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
    results = figures("image_classification", epochs=8)
    assert results["Logistic regression, accuracy"] > 0.94
    assert results["Vision transformer, accuracy"] > 0.94


@pytest.mark.slow
@pytest.mark.long
def test_frozen_vectors_classify_words_without_an_example():
    results = figures("word_vectors", epochs=15)
    for name in ("Frozen", "Learned"):
        assert results[f"{name} vectors, accuracy with words seen in training"] > 0.95
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
    assert results["Frozen vectors, accuracy with words seen in training"] > 0.75


@pytest.mark.slow
@pytest.mark.long
def test_an_exported_translator_is_called_without_the_package():
    done = run_example("saved_model")
    assert done.returncode == 0, done.stderr[-3000:]
    exact = re.search(r"^Exact translations: ([\d.]+)$", done.stdout, re.MULTILINE)
    assert float(exact[1]) > 0.99
    assert "20 of 20 answers are identical" in done.stdout
    assert "translation: [b'the 5th of March" in done.stdout


# Real data


@pytest.mark.slow
@pytest.mark.long
def test_reviews_of_films_are_classified():
    require("sst2")
    results = figures("sentiment", epochs=4, KERAS_TRANSFORMER_DATA=str(DATA))
    assert results["Most frequent label, accuracy"] < 0.55
    assert results["Encoder, accuracy"] > 0.75 and results["Mean of embeddings, accuracy"] > 0.75


@pytest.mark.slow
@pytest.mark.long
def test_captions_are_translated(tmp_path):
    require("multi30k")
    results = figures("multi30k", epochs=2, folder=tmp_path, KERAS_TRANSFORMER_DATA=str(DATA))
    assert results["Greedy search, BLEU"] > 5 and results["Beam of 4, BLEU"] > 5
