"""Training of sparse vectors: the loss of its settings, and a run that resumes."""

import types

import pytest
from pipelines import SIZES, tokenizer
from small_runs import At, assert_same_end, run_quietly
from test_embedding_training import CONFIG, write

from keras_transformer.models import SparseEmbedderConfig
from keras_transformer.pipelines import SparseEmbedder
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.tasks import training_class


@pytest.mark.parametrize(("updates", "growth"), [(None, 30), (7, 7)])
def test_the_loss_has_the_settings_of_the_model(updates, growth):
    options = {"query_flops": 0.3, "text_flops": 0.2, "flops_updates": updates}
    config = SparseEmbedderConfig(vocab_size=30, **SIZES, **options, symmetric=True)
    training = training_class(TASKS["sparse_embedding"])(tokenizer(), config)
    loss = training.loss(types.SimpleNamespace(updates=90))
    assert (loss.query_flops, loss.text_flops, loss.flops_updates) == (0.3, 0.2, growth)
    assert (loss.scale, loss.symmetric) == (1.0, True) and training.metrics() == []


@pytest.mark.long
@pytest.mark.slow
def test_a_run_resumes_while_the_factors_grow(tmp_path):
    write(tmp_path)
    text = CONFIG.replace('"embedding"', '"sparse_embedding"')
    (tmp_path / "config.toml").write_text(text.replace("[model]", "[model]\nflops_updates = 5"))
    settings = load_settings(tmp_path / "config.toml", ["model.text_flops=0.5"])
    figures, _ = run_quietly(settings, tmp_path / "whole")
    names = {"loss", "recall_at_1", "query_active", "text_active"}
    assert set(figures["validation"]) == names
    assert isinstance(open_run(tmp_path / "whole"), SparseEmbedder)

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "twice", [At(3, interrupt)])[0] is None
    run_quietly(settings, tmp_path / "twice")
    assert_same_end(tmp_path / "twice", (tmp_path / "whole", figures))


@pytest.mark.long
@pytest.mark.slow
def test_flops_remove_tokens(tmp_path):
    """With the same data and seed, a large factor leaves fewer tokens than none."""
    write(tmp_path)
    text = CONFIG.replace('"embedding"', '"sparse_embedding"').replace(
        "updates = 6", "updates = 60"
    )
    (tmp_path / "config.toml").write_text(text.replace("_every = 2", "_every = 60"))
    counts = []
    for factor in (0.0, 3.0):
        changes = [f"model.{side}_flops={factor}" for side in ("query", "text")]
        settings = load_settings(tmp_path / "config.toml", [*changes, "model.flops_updates=1"])
        figures, _ = run_quietly(settings, tmp_path / str(factor))
        counts.append(figures["validation"]["text_active"])
    assert counts[1] < counts[0]
