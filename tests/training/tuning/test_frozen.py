"""Frozen parts: no gradients, no optimizer slots, no weight decay, no change bit for bit."""

import numpy as np
import pytest
import tensorflow as tf
from batches import batch
from small_runs import At, assert_same_end, run_quietly
from support import on_two_devices, randomise, small_config

from keras_transformer import Transformer
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.factory import make_optimizer
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tuning.frozen import freeze_parts, trained_parameters

OPTIMIZER = OptimizerSettings(kind="adamw", weight_decay=0.1, ema_momentum=0.5, clip_norm=1.0)


def layers_of(model, names):
    """Returns the variables below layers with some names, by path, from the model itself."""
    return {w.path: w for w in model.weights if w.path.split("/")[0] in names}


@pytest.mark.parametrize(
    ("tie", "parts", "layers"),
    [
        ("all", ["encoder"], ["encoder"]),
        ("all", ["head"], ["embedding"]),  # the shared table
        ("none", ["head"], ["output"]),
        ("none", ["input", "encoder"], ["source_embedding", "encoder"]),
        ("none", ["decoder"], ["target_embedding", "decoder"]),
    ],
)
def test_the_variables_of_the_parts_are_not_trainable(tie, parts, layers):
    model = Transformer(small_config(tie=tie))
    wanted = layers_of(model, layers)
    assert wanted
    freeze_parts(model, parts)
    frozen = {w.path for w in model.weights if not w.trainable}
    assert frozen == wanted.keys()
    sizes = [np.prod(w.shape) for w in model.weights if w.path not in frozen]
    assert trained_parameters(model) == sum(sizes) < model.count_params()


def test_learned_positions_are_no_part_of_a_tied_head():
    model = Transformer(small_config(position="learned"))
    freeze_parts(model, ["head"])
    assert [w.name for w in model.weights if not w.trainable] == ["table"]


def test_a_table_shared_with_a_part_of_random_weights_is_not_frozen():
    model = Transformer(small_config(tie="all"))
    with pytest.raises(ValueError, match="weights of input, whose table decoder shares: add"):
        freeze_parts(model, ["decoder"], ["encoder", "decoder"])


def learner_of(parts):
    model = randomise(Transformer(small_config(tie="none", dropout=0.1)))
    freeze_parts(model, parts)
    learner = Learner(model)
    learner.compile(
        make_optimizer(OPTIMIZER, 0.01, model.trainable_variables), LabelSmoothedCrossEntropy(0.1)
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


@pytest.mark.slow
def test_frozen_parts_do_not_change_and_all_others_do():
    learner = learner_of(["input", "encoder"])
    model = learner.model
    before = [np.array(weight.numpy(), copy=True) for weight in model.weights]
    for seed in range(2):
        learner.train_step(tf.nest.map_structure(tf.constant, batch([(7, 5), (2, 3)], seed)))
    frozen = layers_of(model, ["source_embedding", "encoder"])
    for weight, old in zip(model.weights, before, strict=True):
        same = np.array_equal(weight.numpy(), old)
        assert same == (weight.path in frozen), weight.path
    # Means, squares and moving averages of the trained variables, and two counters.
    slots = [v for v in learner.optimizer.variables if v.shape != ()]
    assert len(slots) == 3 * (len(model.weights) - len(frozen))


@pytest.mark.long
@pytest.mark.slow
def test_frozen_parts_do_not_change_on_two_devices():
    changed = on_two_devices("""
from test_frozen import batch, layers_of, learner_of
from keras_transformer.training.data.shards import cut_batches

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    learner = learner_of(["input", "encoder"])
    before = [weight.numpy() for weight in learner.model.weights]
    batches = cut_batches(datasets(batch([(7, 5), (2, 3)])).repeat(), strategy, 0)
    learner.fit(batches, steps_per_epoch=2, verbose=0)
pairs = zip(learner.model.weights, before)
print(json.dumps({w.path: bool((w.numpy() != old).any()) for w, old in pairs}))
""")
    for path, moved in changed.items():
        assert moved != path.startswith(("source_embedding/", "encoder/")), path


TUNING = """
[model]
start_from = "first"
dropout = 0.1

[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
max_length = 14
batch_tokens = 60

[optimizer]
kind = "adamw"
weight_decay = 0.01
ema_momentum = 0.9

[schedule]
warmup_steps = 1
peak = 0.01

[training]
updates = 4
validate_every = 2
validate_sentences = 0
checkpoint_every = 1
"""


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """A configuration that starts from a run without weights, for settings that are refused."""
    folder = tmp_path_factory.mktemp("settings")
    run = Run(folder / "first")
    run.path.mkdir()
    run.config.write_text('[data]\nsource = "cldr"\n[vocabulary]\nsize = 15\n')
    run.model.touch()
    (folder / "tuning.toml").write_text(TUNING)
    return folder / "tuning.toml"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (['training.freeze=["body"]'], "training.freeze.0 must be 'input', 'encoder', 'decoder' "),
        (["training.freeze=[]"], "training.freeze .* at least 1 item"),
        (
            ['training.freeze=["input", "encoder", "decoder", "head"]'],
            "must leave a part to train, one of input, encoder, decoder, head. Received: ",
        ),
        (
            ['training.freeze=["encoder", "decoder"]', 'model.parts=["input", "encoder"]'],
            "among `model.parts`: other parts begin with random weights.*; remove decoder.",
        ),
    ],
)
def test_a_wrong_part_is_refused_in_one_line(unfinished, overrides, message):
    with pytest.raises(SettingsError, match=message) as error:
        load_settings(unfinished, overrides)
    assert "\n" not in str(error.value)


def test_random_weights_are_not_frozen(tmp_path):
    text = TUNING.replace('start_from = "first"', "")
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"`training.freeze` needs `model.start_from`: parts"):
        load_settings(tmp_path / "config.toml", ['training.freeze=["encoder"]'])


def test_a_part_of_another_model_is_refused(unfinished):
    text = unfinished.read_text().replace("_source", "").replace("train_target", "# ")
    config = unfinished.with_name("language_model.toml")
    config.write_text(text.replace("validation_target", "# "))
    with pytest.raises(SettingsError, match=r"among input, decoder, head, the parts .* encoder\.$"):
        load_settings(config, ['training.freeze=["encoder"]', "task.kind=language_modelling"])


@pytest.mark.long
@pytest.mark.slow
def test_a_run_with_frozen_parts_resumes_and_is_averaged(six_updates, tmp_path):
    tuning = six_updates.corpus / "frozen.toml"
    tuning.write_text(TUNING.replace('"first"', f'"{six_updates.run}"'))
    freeze = 'training.freeze=["input", "encoder"]'
    settings = load_settings(tuning, [freeze, "training.layer_decay=0.9"])
    figures, shown = run_quietly(settings, tmp_path / "whole")
    assert f"{figures['parameters']:,} parameters, " in " ".join(shown.split())

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "twice", [At(2, interrupt)])[0] is None
    run_quietly(settings, tmp_path / "twice")
    assert_same_end(tmp_path / "twice", (tmp_path / "whole", figures))
    average = average_checkpoints(tmp_path / "whole", 2, tmp_path / "average")
    first = {w.path: w.numpy() for w in Run(six_updates.run).load_model().weights}
    for folder in (tmp_path / "whole", average):
        for weight in Run(folder).load_model().weights:
            # The table of this model is tied, and frozen as a part of the input.
            same = weight.path.startswith(("embedding/", "encoder/"))
            assert np.array_equal(weight.numpy(), first[weight.path]) == same, weight.path
