"""Training of masked language models: batches, vocabularies, and the weights it starts with."""

import csv
import io
import os
import signal

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from pipelines import LINES, SIZES, tokenizer
from small_runs import At, assert_same_end, run_quietly

from keras_transformer.models import MaskedLanguageModelConfig
from keras_transformer.pipelines import MaskFiller
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.evaluate import evaluate_files
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks import training_class
from keras_transformer.training.vocabulary import learn_vocabulary

KNOWN = tokenizer(control=("<mask>",))
TEXTS = [f"{line} and {other}" for line in LINES for other in LINES]
CONFIG = """
[task]
kind = "masked_language_modelling"
[model]
{model}
[data]
source = "text"
train = "train.txt"
validation = "train.txt"
max_length = 20
batch_tokens = 400
[schedule]
kind = "linear"
warmup_steps = 1
peak = {peak}
[training]
label_smoothing = 0.0
updates = {updates}
validate_every = {updates}
checkpoint_every = {updates}
"""


def corpus(texts=TEXTS, sampled=False):
    config = MaskedLanguageModelConfig(vocab_size=30, **SIZES)
    training = training_class(TASKS["masked_language_modelling"])(KNOWN, config)
    rows = tf.data.Dataset.from_tensor_slices((texts,))
    made = Corpus.from_rows(rows, training, 40, texts=("text",) if sampled else ())
    return Corpus(made.store, training, training.variation(None)), training


def texts_of(batches):
    """Returns the hidden places of each text, by its tokens, in all batches."""
    found = {}
    for tokens, labels in batches:
        for row, hidden in zip(tokens.numpy(), labels.numpy(), strict=True):
            places = np.flatnonzero(hidden)
            assert len(places) and not hidden[row == 0].any()
            whole = np.where(hidden != 0, hidden, row)
            found[tuple(whole[whole != 0].tolist())] = tuple(places), row[places].tolist()
    return found


@pytest.mark.slow
def test_an_epoch_has_its_own_masks_and_a_validation_always_the_same():
    made, _ = corpus()
    epochs = made.epochs(90, seed=3)
    first, again, second = (texts_of(epochs.batches(epoch)) for epoch in (0, 0, 1))
    assert first == again and first.keys() == second.keys() and len(first) == len(TEXTS)
    assert sum(first[text] != second[text] for text in first) > len(TEXTS) / 2
    usual = texts_of(made.batches(90))
    assert usual == texts_of(made.batches(150))
    ids = [tuple(row) for row in KNOWN.encode(TEXTS).to_list()]
    assert {*first} == {*usual} == {*ids}


@pytest.mark.slow
def test_sampled_texts_have_masks_of_their_own_in_every_epoch():
    """Also those whose tokens are the usual ones in both epochs."""
    made, training = corpus(["a", "c", "n"] * 20, sampled=True)
    sampler = SubwordSampler(made, training, 30, 0.01, seed=3).epochs(90)

    def labels(epoch):
        return np.concatenate([x.numpy().ravel() for _, x in sampler.batches(epoch)])

    first, again, second = (labels(epoch) for epoch in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first.tolist() != second.tolist()


def test_only_hidden_tokens_count():
    _, training = corpus()
    weights = training.weigh(tf.ones((2, 3)), tf.constant([[0, 7, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(weights, [[0, 1, 0], [0, 0, 0]])


def test_a_learned_vocabulary_has_a_mask_that_no_text_is_split_into():
    settings = VocabularySettings(size=30)
    plain = type(KNOWN)(learn_vocabulary(TEXTS, settings))
    masked = type(KNOWN)(learn_vocabulary(TEXTS, settings, "<mask>"))
    assert (plain.mask_id, masked.mask_id, masked.vocab_size) == (None, 4, 30)
    assert 4 not in masked.encode(["<mask> a"]).to_list()[0]
    assert masked.encode_masked(["<mask> a"]).to_list()[0][0] == 4
    with pytest.raises(ValueError, match="must have text to learn"):
        learn_vocabulary([""], settings, "<mask>")


def write_config(folder, updates, peak=0.003, **model):
    (folder / "train.txt").write_text("".join(f"{line}\n" for line in TEXTS))
    lines = "\n".join(f"{key} = {value}" for key, value in model.items())
    (folder / "c.toml").write_text(CONFIG.format(model=lines, updates=updates, peak=peak))
    return folder / "c.toml"


SMALL = {"num_layers": 1, "d_model": 32, "d_ff": 64, "num_heads": 2, "dropout": 0.0}


@pytest.mark.long
@pytest.mark.slow
def test_training_from_scratch_lowers_the_loss(tmp_path):
    config = write_config(tmp_path, 300, **SMALL, max_length=40)
    overrides = ["vocabulary.size=31", "data.max_length=40", "training.validate_every=30"]
    figures, _ = run_quietly(load_settings(config, overrides), tmp_path / "run")
    with open(Run(tmp_path / "run").history, newline="") as file:
        losses = [row["validation/loss"] for row in csv.DictReader(file)]
    losses = [float(loss) for loss in losses if loss]
    assert losses[-1] < 0.8 * losses[0] and losses[-1] == min(losses)
    assert figures["validation"]["token_accuracy"] > 0.2
    results = MaskFiller.from_run(tmp_path / "run").answer([f"{LINES[0]} and <mask> cat"])
    assert len(results[0].words) == 1


@pytest.mark.long
@pytest.mark.slow
def test_a_resumed_training_with_whole_words_ends_like_an_uninterrupted_one(tmp_path):
    """And an evaluation hides the words of its validation."""
    config = write_config(tmp_path, 6, **SMALL, max_length=40, whole_word_masking="true")
    keys = {"vocabulary.size": 31, "data.max_length": 40, "training.checkpoint_every": 1,
            "training.validate_every": 2, "training.validate_sentences": 0}  # fmt: skip
    settings = load_settings(config, [f"{key}={value}" for key, value in keys.items()])
    figures, _ = run_quietly(settings, tmp_path / "whole")
    press = At(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run_quietly(settings, tmp_path / "run", [press])[0] is None
    assert "Resuming after update 3 of 6." in run_quietly(settings, tmp_path / "run")[1]
    assert_same_end(tmp_path / "run", (tmp_path / "whole", figures))
    results = evaluate_files(tmp_path / "whole", tmp_path / "train.txt")
    expected = figures["validation"]
    assert results["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-4)
    assert results["accuracy"] == pytest.approx(100 * expected["token_accuracy"], abs=1e-4)
    tokens = load_settings(config, [*(f"{k}={v}" for k, v in keys.items()),
                                    "model.whole_word_masking=false"])  # fmt: skip
    with pytest.raises(SettingsError, match="model.whole_word_masking .* cannot change"):
        run_quietly(tokens, tmp_path / "whole")


def test_a_vocabulary_without_words_is_reported_in_one_line(tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=31, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, control_symbols=["<mask>"], minloglevel=2,
        treat_whitespace_as_suffix=True,
    )  # fmt: skip
    (tmp_path / "v.model").write_bytes(model.getvalue())
    config = write_config(tmp_path, 2, **SMALL, whole_word_masking="true")
    settings = load_settings(config, [f'vocabulary.from="{tmp_path / "v.model"}"'])
    with pytest.raises(ValueError, match="`whole_word_masking` needs a vocabulary") as error:
        run_quietly(settings, tmp_path / "run")
    assert "\n" not in str(error.value) and not Run(tmp_path / "run").model.exists()


def test_a_vocabulary_without_a_mask_is_reported_in_one_line(tmp_path):
    (tmp_path / "v.model").write_bytes(tokenizer().model)
    config = write_config(tmp_path, 2, **SMALL)
    settings = load_settings(config, [f'vocabulary.from="{tmp_path / "v.model"}"'])
    with pytest.raises(ValueError, match="the vocabulary must have a mask token: learn") as error:
        run_quietly(settings, tmp_path / "run")
    assert "\n" not in str(error.value) and not Run(tmp_path / "run").model.exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.masking_rate=0.0"], "`masking_rate` must be above 0"),
        (["model.labels=3"], "labels is not a setting of a model for masked_language_modelling"),
        (["data.packed=true"], "`data.packed` has no effect on masked_language_modelling"),
        (["vocabulary.shared=false"], "needs a source and a target"),
    ],
)
def test_settings_without_effect_are_reported_in_one_line(tmp_path, overrides, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(write_config(tmp_path, 2, **SMALL), overrides)
