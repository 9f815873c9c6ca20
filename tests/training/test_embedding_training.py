"""Training of sentence embeddings: batches of pairs, refusals, and whole runs."""

import types

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer
from small_runs import At, assert_same_end, run_quietly

from keras_transformer.models import EmbedderConfig
from keras_transformer.pipelines import Embedder
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tasks import training_class

PAIRS = [("a cat runs", "zebra dog"), ("the big", "dog"), ("dog", "the big"), ("a", "dog")]


def training():
    config = EmbedderConfig(vocab_size=30, **SIZES, similarity_scale=7.0, symmetric=True)
    return training_class(TASKS["embedding"])(tokenizer(), config)


def corpus(pairs=PAIRS):
    rows = tf.data.Dataset.from_tensor_slices(tuple(map(list, zip(*pairs, strict=True))))
    return Corpus.from_rows(rows, training(), 11)


def test_a_batch_is_the_first_texts_and_then_the_second():
    seen = []
    for tokens, labels in corpus().batches(200):
        count = len(labels)
        assert tokens.shape[0] == 2 * count
        np.testing.assert_array_equal(training().weigh(tokens, labels), [1.0] * count)
        rows = [row[row != 0].tolist() for row in tokens.numpy()]
        seen += zip(rows[:count], rows[count:], strict=True)
        equal = labels.numpy()[:, 1]
        texts = [tuple(row) for row in rows[count:]]
        for i, j in np.ndindex(count, count):
            assert (equal[i] == equal[j]) == (texts[i] == texts[j])
    encoded = [[tokenizer().encode([x]).to_list()[0] for x in pair] for pair in PAIRS]
    assert sorted(seen) == sorted(map(tuple, encoded))


def test_the_loss_has_the_settings_of_the_model():
    loss = training().loss(None)
    assert (loss.scale, loss.symmetric) == (7.0, True) and training().metrics() == []


def test_batches_of_one_pair_are_refused():
    settings = types.SimpleNamespace(
        training=types.SimpleNamespace(seed=1, subword_sampling=0.0),
        data=types.SimpleNamespace(size_of_batch=8, widths=16),
    )
    with pytest.raises(ValueError, match="large enough for several pairs: .*batch_tokens=8, one"):
        training().epochs(corpus(PAIRS[:1]), settings)


def test_several_replicas_are_refused():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        training().loss(None)  # one replica is one device
    several = types.SimpleNamespace(num_replicas_in_sync=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.distribute, "get_strategy", lambda: several)
        with pytest.raises(ValueError, match="embedding are trained on one device: .* --strategy"):
            training().loss(None)


CONFIG = """
[task]
kind = "embedding"

[model]
num_layers = 1
d_model = 8
d_ff = 12
num_heads = 2
dropout = 0.1
max_length = 20

[data]
source = "text"
train = "train.tsv"
validation = "validation.tsv"
test = "validation.tsv"
max_length = 14
batch_tokens = 90

[vocabulary]
size = 15

[schedule]
warmup_steps = 1
peak = 0.02

[training]
updates = 6
validate_every = 2
checkpoint_every = 1
best_by = "recall_at_1"
final_model = "best"
"""


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.accumulate=2", "`training.accumulate` must be 1 for embedding: every text is"),
        ("training.r_drop=1.0", "`training.r_drop` has no effect on embedding; remove it."),
        ("training.label_smoothing=0.2", "`training.label_smoothing` has no effect on embedding"),
        ("model.dimensions=9", "`dimensions` must not exceed `d_model`, .*=9, where there are 8"),
    ],
)
def test_settings_without_a_sense_are_refused(tmp_path, override, message):
    (tmp_path / "config.toml").write_text(CONFIG)
    with pytest.raises(SettingsError, match=message):
        load_settings(tmp_path / "config.toml", [override])


def write(folder):
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("validation", 9)):
        rows = ["".join(map(str, rng.integers(0, 10, rng.integers(2, 6)))) for _ in range(count)]
        (folder / f"{split}.tsv").write_text("".join(f"{row}\t{row[::-1]}\n" for row in rows))
    (folder / "config.toml").write_text(CONFIG)


@pytest.mark.long
@pytest.mark.slow
def test_a_run_resumes_and_is_evaluated(tmp_path):
    write(tmp_path)
    settings = load_settings(tmp_path / "config.toml")
    figures, _ = run_quietly(settings, tmp_path / "whole")
    assert set(figures["validation"]) == {"loss", "recall_at_1"}
    assert isinstance(open_run(tmp_path / "whole"), Embedder)

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "twice", [At(3, interrupt)])[0] is None
    run_quietly(settings, tmp_path / "twice")
    assert_same_end(tmp_path / "twice", (tmp_path / "whole", figures))


@pytest.mark.long
@pytest.mark.slow
def test_training_brings_pairs_together(tmp_path):
    """A text and itself without its last digit: a loss below that of equal vectors."""
    write(tmp_path)
    overrides = ["training.updates=60", "training.validate_every=60", "model.dropout=0.0"]
    figures, _ = run_quietly(load_settings(tmp_path / "config.toml", overrides), tmp_path / "run")
    assert figures["validation"]["loss"] < 0.5 * np.log(9)  # of nine pairs in one batch
