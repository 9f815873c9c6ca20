"""LoRA: only adapters are trained, and merged into the kernels they give an ordinary model."""

import numpy as np
import pytest
import tensorflow as tf
from batches import batch
from small_runs import At, assert_same_end, run_quietly
from support import randomise, small_config
from test_frozen import TUNING, unfinished  # noqa: F401 - a fixture

from keras_transformer import Transformer
from keras_transformer.models.parts import copy_parts
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.factory import make_optimizer
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.settings.training_sections import LoraSettings
from keras_transformer.training.tuning.adapters import add_adapters, merged_weights
from keras_transformer.training.tuning.frozen import trained_parameters
from keras_transformer.training.tuning.layer_rates import distances

RANK, ALPHA = 3, 5.0
SETTINGS = LoraSettings(rank=RANK, alpha=ALPHA)


def is_adapter(path):
    return path.rsplit("/", 1)[-1].startswith("lora_kernel")


def adapted(settings=SETTINGS, copied=None, dtype=None, **options):
    model = randomise(Transformer(small_config(tie="none", **options), dtype=dtype))
    add_adapters(model, settings, copied)
    return model


def test_only_the_chosen_projections_have_adapters():
    model = adapted(LoraSettings(rank=RANK, targets=["key", "output"]))
    found = {w.path.rsplit("/", 1)[0] for w in model.trainable_variables}
    assert all(is_adapter(w.path) for w in model.trainable_variables)
    blocks = ["encoder/block_0/self_attention", *(
        f"decoder/block_{number}/{name}"
        for number in (0, 1) for name in ("self_attention", "cross_attention")
    )]  # fmt: skip
    assert found == {f"{block}/{target}" for block in blocks for target in ("key", "output")}
    assert distances(model).keys() == {id(w) for w in model.weights}  # for `layer_decay`
    # D = 22, H K = 3 * 5 and H KV = 3 * 7.
    assert trained_parameters(model) == len(blocks) * RANK * ((22 + 15) + (21 + 22))


def test_a_new_part_is_trained_whole():
    model = adapted(copied=["input", "encoder"])
    trained = {w.path.split("/")[0] for w in model.trainable_variables if not is_adapter(w.path)}
    assert trained == {"target_embedding", "decoder", "output"}
    assert {w.path.split("/")[0] for w in model.trainable_variables if is_adapter(w.path)} == {
        "encoder"
    }


def test_adapters_take_no_part_in_copies():
    other = randomise(Transformer(small_config(tie="none")), seed=3)
    model = adapted()
    assert not copy_parts(model, other).new
    for ours, theirs in zip(merged_weights(model), other.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)  # adapters begin without effect


def learner_of(model, kind=None):
    settings = kind or OptimizerSettings(kind="adamw", weight_decay=0.1)
    learner = Learner(model)
    learner.compile(
        make_optimizer(settings, 0.05, model.trainable_variables), LabelSmoothedCrossEntropy(0.1)
    )
    learner.optimizer.build(learner.trainable_variables)
    return learner


@pytest.mark.slow
def test_only_adapters_change_and_merged_equals_unmerged():
    learner = learner_of(adapted(dropout=0.1))
    model = learner.model
    before = {w.path: np.array(w.numpy(), copy=True) for w in model.weights}
    inputs, labels = tf.nest.map_structure(tf.constant, batch([(7, 5), (2, 3)]))
    for _ in range(2):
        learner.train_step((inputs, labels))
    for weight in model.weights:
        changed = not np.array_equal(weight.numpy(), before[weight.path])
        assert changed == is_adapter(weight.path), weight.path
    slots = [v for v in learner.optimizer.variables if v.shape != ()]
    assert len(slots) == 2 * len(model.trainable_variables)
    plain = Transformer(model.config)
    plain.set_weights(merged_weights(model))
    arrays = {w.path: w.numpy().astype("float64") for w in model.weights}
    for weight in plain.weights:
        kernel, path = arrays[weight.path], weight.path.replace("kernel", "lora_kernel_")
        if weight.path.endswith(("query/kernel", "value/kernel")):
            kernel = kernel + ALPHA / RANK * (arrays[f"{path}a"] @ arrays[f"{path}b"])
        np.testing.assert_allclose(weight.numpy(), kernel, atol=1e-7, err_msg=weight.path)
    unmerged, merged = (one(inputs, training=False).numpy() for one in (model, plain))
    np.testing.assert_allclose(unmerged, merged, atol=1e-5)
    with_no_adapters = Transformer(model.config)
    with_no_adapters.set_weights([w.numpy() for w in model.weights if not is_adapter(w.path)])
    assert np.abs(with_no_adapters(inputs).numpy() - merged).max() > 0.01


@pytest.mark.slow
def test_weights_are_merged_in_float32_whatever_the_arithmetic():
    both = [adapted(dtype=policy) for policy in ("float32", "mixed_bfloat16")]
    for model in both:
        randomise(model)
    for ours, theirs in zip(*map(merged_weights, both), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_rank_above_the_width_is_refused():
    with pytest.raises(
        ValueError, match=r"rank` must be at most 15, .*query/kernel. Received: .*=16"
    ):
        adapted(LoraSettings(rank=16))


def test_a_model_without_attention_is_refused():
    with pytest.raises(ValueError, match=r"needs attention in every stack .*attention: input\."):
        adapted(copied=["input"])
    with pytest.raises(ValueError, match=r"needs attention in every stack .*attention: encoder\."):
        adapted(mixer="gru")  # the decoder attends to the encoder


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.lora.rank=0"], "training.lora.rank must be greater than 0. Received: 0."),
        (["training.lora.alpha=0.0"], "training.lora.alpha must be greater than 0."),
        (
            ["training.lora.rnk=4"],
            "rnk is not a setting; did you mean rank. Valid keys: rank, alpha",
        ),
        (['training.lora.targets=["inner"]'], "targets.0 must be 'query', 'key', 'value' or 'outp"),
        (["training.lora.targets=[]"], "training.lora.targets .* at least 1 item"),
        (['training.lora.targets=["key", "key"]'], "targets must name each projection once"),
        (
            ["training.lora.rank=4", 'training.freeze=["input"]'],
            r"`training.freeze` has no effect with \[training.lora\]",
        ),
        (
            ["training.lora.rank=4", 'model.parts=["input"]'],
            "needs encoder or decoder among `model.parts`: only .* Received: model.parts=.'input'.",
        ),
    ],
)
def test_wrong_adapters_are_refused_in_one_line(unfinished, overrides, message):  # noqa: F811
    with pytest.raises(SettingsError, match=message) as error:
        load_settings(unfinished, overrides)
    assert "\n" not in str(error.value)


def test_random_weights_have_no_adapters(tmp_path):
    (tmp_path / "config.toml").write_text(TUNING.replace('start_from = "first"', ""))
    with pytest.raises(SettingsError, match=r"\[training.lora\] needs `model.start_from`: without"):
        load_settings(tmp_path / "config.toml", ["training.lora.rank=4"])


@pytest.mark.long
@pytest.mark.slow
def test_a_run_with_adapters_resumes_and_is_averaged(six_updates, tmp_path):
    tuning = six_updates.corpus / "adapted.toml"
    text = TUNING.replace('"first"', f'"{six_updates.run}"').replace("ema_momentum = 0.9", "")
    tuning.write_text(text + "\n[training.lora]\nrank = 3\n")
    settings = load_settings(tuning)
    figures, shown = run_quietly(settings, tmp_path / "whole")
    # Three attention layers of width 16, query and value: A and B have 3 * 16 each.
    assert f"{figures['parameters'] + 576:,} parameters, 576 of them trained; " in " ".join(
        shown.split()
    )

    def interrupt():
        raise KeyboardInterrupt

    twice = tmp_path / "twice"
    assert run_quietly(settings, twice, [At(2, interrupt)])[0] is None
    run_quietly(settings, twice)
    assert_same_end(twice, (tmp_path / "whole", figures))
    first = Run(six_updates.run).load_model()
    assert figures["parameters"] == first.count_params()
    _base_is_unchanged(Run(twice), first)
    average = average_checkpoints(twice, 2, tmp_path / "average")
    _average_is_of_merged_weights(Run(twice), Run(average).load_model(), first)


def _arrays(path):
    return {key.split("/", 1)[-1]: value for key, value in np.load(path).items()}


def _base_is_unchanged(run, first):
    arrays = _arrays(Checkpoints(run.checkpoints).path(4))
    for weight in first.weights:
        np.testing.assert_array_equal(arrays[weight.path], weight.numpy(), err_msg=weight.path)
    changed = {
        ours.path
        for ours, theirs in zip(run.load_model().weights, first.weights, strict=True)
        if not np.array_equal(ours.numpy(), theirs.numpy())
    }
    assert len(changed) == 6 and all(
        path.endswith(("query/kernel", "value/kernel")) for path in changed
    )


def _average_is_of_merged_weights(run, average, first):
    both = [_arrays(Checkpoints(run.checkpoints).path(update)) for update in (3, 4)]
    for weight in average.weights:
        kernel, path = weight.numpy(), weight.path.replace("kernel", "lora_kernel_")
        value = both[0][weight.path].astype("float64")
        if f"{path}a" in both[0]:
            products = [
                arrays[f"{path}a"].astype("float64") @ arrays[f"{path}b"] for arrays in both
            ]
            value = value + 16 / 3 * (products[0] + products[1]) / 2
        np.testing.assert_allclose(kernel, value, atol=1e-7, err_msg=weight.path)
