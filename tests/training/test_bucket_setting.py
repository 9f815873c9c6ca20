"""`data.buckets`: the number of widths of the batches of a run."""

import pytest
from small_runs import run_quietly, write_small_corpus

from keras_transformer.training.data import corpus
from keras_transformer.training.settings.toml import SettingsError, load_settings


@pytest.mark.parametrize("sampling", ["0.0", "0.1"])
def test_batches_of_training_and_validation_have_at_most_so_many_widths(
    sampling, tmp_path, monkeypatch
):
    write_small_corpus(tmp_path)
    widths, plan_batches = [], corpus.plan_batches

    def watched(counts, size, chosen):
        widths.append(len(chosen))
        return plan_batches(counts, size, chosen)

    monkeypatch.setattr(corpus, "plan_batches", watched)
    monkeypatch.setattr("keras_transformer.training.data.sampling.plan_batches", watched)
    changes = ["training.updates=2", f"training.subword_sampling={sampling}"]
    for buckets, most in (([], 16), (["data.buckets=1"], 2)):
        widths.clear()
        settings = load_settings(tmp_path / "config.toml", [*changes, *buckets])
        run_quietly(settings, tmp_path / f"run{most}")
        assert len(widths) >= 2, "of both splits"
        # Segmentations of other windows may be longer, which adds a width.
        assert max(widths) > 2 if most > 2 else max(widths) <= most


def test_no_bucket_is_an_error(tmp_path):
    write_small_corpus(tmp_path)
    with pytest.raises(SettingsError, match="data.buckets.*greater than 0"):
        load_settings(tmp_path / "config.toml", ["data.buckets=0"])
