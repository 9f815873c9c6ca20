"""Labels that do not occur in the training data: the error names the file and the line."""

import gzip
import io
import json

import pytest
import rich.console

from keras_transformer.training import evaluate_split, load_settings, train
from keras_transformer.training.data.sources.both_directions import BothDirections
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.data.sources.text import TextData
from keras_transformer.training.evaluate import evaluate_files

CONFIG = """
task = {{ kind = "{kind}" }}
model = {{ num_layers = 1, d_model = 8, d_ff = 12, num_heads = 2, max_length = 16 }}
vocabulary = {{ size = 24 }}
schedule = {{ warmup_steps = 1, peak = 0.01 }}
training = {{ updates = 1, validate_sentences = 0 }}

[data]
source = "text"
train = "train.tsv"
validation = "validation.tsv"
test = "test.tsv"
max_length = 16
batch_tokens = 200
"""
# Two labels of each task, and one that is misspelt.
GOOD = {
    "classification": ("garden", "kitchen", "gardn"),
    "multi_label_classification": ("garden,old", "kitchen", "old,gardn"),
    "token_classification": ("B-TOOL", "O", "B-TOLL"),
}
WORDS = ("spade", "whisk", "rake", "ladle")


def write(folder, kind, changes=()):
    """Writes data whose lines are correct, except for `changes`: (split, line number) to line."""
    for split in ("train", "validation", "test"):
        lines = [f"{WORDS[n % 4]}\t{GOOD[kind][n % 2]}" for n in range(9)]
        for (name, number), line in dict(changes).items():
            if name == split:
                lines[number - 1] = line
        (folder / f"{split}.tsv").write_text("".join(f"{line}\n" for line in lines))
    config = folder / "config.toml"
    config.write_text(CONFIG.format(kind=kind))
    return config


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_train_names_the_line_of_an_unknown_label_before_it_learns_anything(tmp_path, kind, split):
    *good, bad = GOOD[kind]
    incomplete = {(split, 2): "spade\t", (split, 4): f" \t{good[0]}"}
    config = write(tmp_path, kind, {**incomplete, (split, 7): f"rake\t{bad}"})
    console = rich.console.Console(file=io.StringIO(), width=200)
    if kind == "multi_label_classification":  # an empty set of labels is allowed
        good = ("garden", "kitchen", "old")
    with pytest.raises(ValueError, match=rf"{split}\.tsv, line 7: `label") as error:
        train(load_settings(config), tmp_path / "run", console=console)
    assert f"Received: {bad!r}" in str(error.value).replace("\\n", ",")
    assert all(label in str(error.value) for label in good)
    assert "Learning" not in console.file.getvalue()
    assert not (tmp_path / "run").exists()


def test_train_prints_the_labels_before_it_learns_anything(tmp_path):
    config = write(tmp_path, "classification", {("train", 2): "whisk\tkitchn"})
    console = rich.console.Console(file=io.StringIO(), width=200)
    train(load_settings(config), tmp_path / "run", console=console)
    first, second, third, *_ = console.file.getvalue().splitlines()
    assert first == "3 labels: 'garden' (5), 'kitchen' (3), 'kitchn' (1)."
    assert second.endswith("typing error: 'kitchn' (did you mean 'kitchen'?).")
    assert third.startswith("Learning a vocabulary of 24 tokens")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folders = {}

    def finished(kind):
        if kind not in folders:
            folders[kind] = folder = tmp_path_factory.mktemp(kind)
            config = load_settings(write(folder, kind))
            train(config, folder / "run", console=rich.console.Console(quiet=True))
        return folders[kind]

    return finished


@pytest.mark.parametrize("kind", GOOD)
def test_evaluate_names_the_line_of_an_unknown_label(run, kind):
    folder, (good, _, bad) = run(kind), GOOD[kind]
    write(folder, kind, {("test", 1): f" \t{good}", ("test", 6): f"rake\t{bad}"})
    with pytest.raises(ValueError, match=r"test\.tsv, line 6: .*Received: '(gardn|B-TOLL)'"):
        evaluate_split(folder / "run")
    (folder / "texts.txt").write_text("spade\nwhisk\nrake\n")
    (folder / "labels.txt").write_text(f"{good}\n{good}\n{bad}\n")
    with pytest.raises(ValueError, match=r"labels\.txt, line 3: .*Received: '(gardn|B-TOLL)'"):
        evaluate_files(folder / "run", folder / "texts.txt", folder / "labels.txt")


def test_places_of_examples(tmp_path):
    """Examples are counted from 1; each line that is left out moves later ones by a line."""
    pairs = [("a", "A"), ("", "B"), (" ", ""), ("d", "D"), ("e", "E"), ("f", "")]
    sides = [tmp_path / name for name in ("x.en", "x.de")]
    for path, side in zip(sides, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side))
    tabs = tmp_path / "y.tsv.gz"
    tabs.write_bytes(gzip.compress("".join(f"{s}\t{t}\n" for s, t in pairs).encode()))
    objects = tmp_path / "z.jsonl"
    rows = [json.dumps({"source": s, "target": t}) for s, t in pairs]
    objects.write_text("".join(f"{row}\n" for row in rows))
    data = TextData({"train": [tuple(sides), tabs, objects]})
    examples = [*data.rows("train").as_numpy_iterator()]
    lines = [number for number, pair in enumerate(pairs, start=1) if all(map(str.strip, pair))]
    paths = [f"{sides[0]} and {sides[1]}", tabs, objects]
    expected = [(f"{path}, line {line}", pairs[line - 1]) for path in paths for line in lines]
    for number, (example, (place, pair)) in enumerate(zip(examples, expected, strict=True), 1):
        assert tuple(text.decode() for text in example) == pair
        assert data.place("train", number) == place
    assert data.place("train", 2, "target") == f"{sides[1]}, line 4"
    assert data.place("train", 5, "target") == f"{tabs}, line 4"
    both = BothDirections(data)
    assert both.place("train", len(examples) + 5) == data.place("train", 5)
    memory = MemoryData({"validation": [("a", "b")]}, "pairs")
    assert memory.place("validation", 1) == "the validation split of the data, example 1"
