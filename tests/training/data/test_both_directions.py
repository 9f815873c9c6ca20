"""Pairs in both directions: in training only, and known to everything that counts examples."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from pipelines import tokenizer
from small_runs import At, assert_same_end, run_quietly

from keras_transformer.pipelines import Run
from keras_transformer.text.languages import Languages
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.inputs import take_tokenizers
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings

PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "drei")]


def text_data(folder, pairs=PAIRS, **changes):
    """The settings of a file of pairs, which also are the validation data."""
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    fields = {"source": "text", "train": [str(path)], "validation": str(path)}
    return SimpleNamespace(**{**fields, "bidirectional": True, **changes})


def pairs_of(rows):
    return [tuple(text.decode() for text in row) for row in rows.as_numpy_iterator()]


def test_every_pair_of_training_is_there_in_both_directions(tmp_path):
    data = open_source(text_data(tmp_path))
    assert pairs_of(data.rows("train")) == PAIRS + [pair[::-1] for pair in PAIRS]
    assert data.count("train") == 6
    assert pairs_of(data.rows("validation")) == PAIRS
    assert data.count("validation") == 3
    for split in ("train", "validation"):  # for an evaluation
        assert pairs_of(data.requests(split)) == PAIRS


def test_a_pair_with_an_empty_side_is_left_out_in_both_directions(tmp_path):
    data = open_source(text_data(tmp_path, [*PAIRS, ("four", "")]))
    assert (data.count("train"), data.left_out("train")) == (6, 2)
    assert (data.count("validation"), data.left_out("validation")) == (3, 1)


def test_weights_belong_to_both_directions(tmp_path):
    rows = text_data(tmp_path, PAIRS[:2]).train * 2
    data = open_source(text_data(tmp_path, PAIRS[:2], train=rows, train_weights=[0.5, 2]))
    np.testing.assert_array_equal(data.weights("train"), [0.5, 0.5, 2, 2] * 2)
    assert len(data.weights("train")) == data.count("train")
    assert open_source(text_data(tmp_path)).weights("train") is None


def test_stored_examples_of_one_direction_are_not_used_for_two(tmp_path):
    both, one = (open_source(text_data(tmp_path, bidirectional=b)) for b in (True, False))
    assert both.identity("train") != one.identity("train")
    assert both.identity("validation") == one.identity("validation")


def test_errors_of_the_files_are_reported(tmp_path):
    (tmp_path / "bad.tsv").write_text("no tab\n")
    with pytest.raises(ValueError, match=r"bad.tsv, line 1: must have a tab between"):
        open_source(text_data(tmp_path, train=[str(tmp_path / "bad.tsv")]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["vocabulary.shared=false", "model.tie=none"],
            "`data.bidirectional` needs one vocabulary for source and target: set",
        ),
        (
            ["task.kind=language_modelling"],
            "`data.bidirectional` needs a source and a target: language_modelling has text",
        ),
    ],
)
def test_a_run_that_cannot_have_both_directions_is_refused(changes, message, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[data]\nsource = "text"\ntrain = "t"\nvalidation = "v"\n')
    with pytest.raises(SettingsError, match=message):
        load_settings(config, ["data.bidirectional=true", *changes])


def test_a_vocabulary_with_tokens_of_languages_is_refused(tmp_path):
    """A model with one table, whose sources begin with the tokens of both languages."""
    model = tokenizer().model
    special = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    special |= {"names": {30: "en", 31: "de"}}
    sides = []
    for of_source in (True, False):
        languages = Languages({"en": 30, "de": 31}, "en", "de", of_source)
        piece_table = PieceTable(range(30), 32, languages=languages, **special)
        sides.append(SentencePieceTokenizer(model, piece_table))
    start = SimpleNamespace(tokenizers=Tokenizers.of(sides), run=None)
    config = tmp_path / "config.toml"
    config.write_text('[data]\nsource = "text"\ntrain = "t"\nvalidation = "v"\n')
    settings = load_settings(config, ["data.bidirectional=true"])
    with pytest.raises(ValueError, match="`data.bidirectional` needs the same tokens for source"):
        take_tokenizers(Run(tmp_path / "run"), settings, None, None, start)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("keys", ['"cldr"', '"tfds"\nname = "x"\nfeatures = ["a", "b"]'])
def test_every_source_of_pairs_has_the_setting(keys, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f"[data]\nsource = {keys}\nbidirectional = true\n")
    assert load_settings(config).data.bidirectional


@pytest.mark.long
@pytest.mark.slow
def test_a_run_in_both_directions_resumes_exactly(six_updates, tmp_path):
    both = ["training.updates=6", "data.bidirectional=true"]
    settings = load_settings(six_updates.corpus / "config.toml", both)
    figures, shown = run_quietly(settings, tmp_path / "whole")
    assert "80 examples" in " ".join(shown.split()), "40 pairs, twice"

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "again", [At(2, interrupt)])[0] is None
    _, shown = run_quietly(settings, tmp_path / "again")
    assert_same_end(tmp_path / "again", (tmp_path / "whole", figures))
    saved = max((tmp_path / "whole" / "checkpoints").iterdir())
    assert json.loads(str(np.load(saved)["state"]))["corpus"][0] == 80
    one = load_settings(six_updates.corpus / "config.toml", both[:1])
    with pytest.raises(SettingsError, match=r"data.bidirectional \(True, now False\) cannot chang"):
        run_quietly(one, tmp_path / "whole")
