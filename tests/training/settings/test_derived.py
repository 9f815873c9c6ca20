"""Settings that a configuration leaves out are derived from the size of the data."""

import io
import re
import signal

import pytest
import rich.console
from corpora import WORDS
from small_runs import At, run_quietly, write_pairs, write_small_corpus

from keras_transformer.files import write_text
from keras_transformer.tasks.run import Run
from keras_transformer.training.changes import describe_derived, describe_rate
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.inputs import take_tokenizers
from keras_transformer.training.schedule import make_schedule
from keras_transformer.training.settings.derived import (
    check_length,
    complete,
    derive,
    left_out,
)
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings

BASE = 512  # d_model


def settings(training=None, schedule=None, **sections):
    values = {"training": training or {}, "schedule": schedule or {}, **sections}
    return Settings.model_validate({"data": {"source": "cldr"}, **values})


def numbers(derived):
    training, schedule = derived.training, derived.schedule
    return (
        training.updates,
        schedule.warmup_steps,
        training.validate_every,
        training.checkpoint_every,
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (3, (1000, 100, 100, 100)),  # a few hundred sentences
        (120, (2400, 240, 240, 240)),  # 29,000 pairs in batches of 4,096 tokens
        (237, (4740, 474, 474, 474)),
        (1000, (20_000, 2000, 1000, 1000)),
        (5000, (100_000, 4000, 1000, 1000)),  # the paper's pairs and batches
        (90_000, (100_000, 4000, 1000, 1000)),
    ],
)
def test_numbers_depend_on_the_size_of_the_data(steps, expected):
    derived = derive(settings(), steps, BASE, vocab_size=4000)
    assert numbers(derived) == expected
    assert left_out(derived) == []
    assert derived.vocabulary.size == 4000


def test_the_papers_corpus_gives_the_papers_schedule():
    schedule = derive(settings(), 5000, BASE).schedule
    assert (schedule.kind, schedule.warmup_steps) == ("inverse_sqrt", 4000)
    assert schedule.peak is schedule.scale is None  # Eq. 3
    whole = derive(settings(), 5000, BASE, 4000)
    assert describe_derived(settings(), whole) == (
        "Settings chosen from the size of the data: vocabulary.size = 4000, "
        "schedule.warmup_steps = 4000, training.updates = 100000, training.validate_every = 1000, "
        "training.checkpoint_every = 1000."
    )
    assert describe_derived(whole, whole) == ""


def learned(tmp_path, source, target, **vocabulary):
    """Returns the sizes of the vocabularies of some texts, and the messages."""
    data = MemoryData({"train": list(zip(source, target, strict=True))}, "texts")
    console = rich.console.Console(file=io.StringIO())
    tmp_path.mkdir()
    values = {"model": {"tie": "none"}, "vocabulary": vocabulary}
    tokenizers = take_tokenizers(Run(tmp_path), settings(**values), data, console)
    sizes = [tokenizer.vocab_size for tokenizer in tokenizers]
    return sizes, console.file.getvalue().splitlines()


@pytest.mark.slow
def test_the_default_vocabulary_size_fits_the_text(tmp_path):
    numbers = [str(n) for n in range(100)]
    (size, same), shown = learned(tmp_path / "few", numbers, numbers[::-1])
    assert size == same < 40
    assert shown == [
        "Learning a vocabulary of 4,000 tokens.",
        f"4,000 tokens are too many for this text: learning {size} instead.",
    ]
    with pytest.raises(
        ValueError,
        match=f"vocabulary.size. must be at most {size} .*size=4000",
    ):
        learned(tmp_path / "set", numbers, numbers, size=4000)
    # Chinese characters, alone and combined to words of two.
    many = [chr(0x4E00 + n) for n in range(4100)]
    pairs = [first + second for first in many[:90] for second in many[:90]]
    (size, _), shown = learned(tmp_path / "many", [*many, *pairs], [*many, *pairs])
    assert 4100 < size <= 2 * 4105
    assert re.fullmatch(
        r"4,000 tokens are too few for this text: learning 8,\d+ instead\.", shown[1]
    )
    few, more = WORDS[:9] * 9, [first + second for first in WORDS[:9] for second in WORDS[:9]]
    (size, _), _ = learned(tmp_path / "one", few, few)
    sizes, shown = learned(tmp_path / "two", more, few, shared=False)
    assert sizes == [size, size] and shown[0] == "Learning two vocabularies of 4,000 tokens."
    assert shown[-1].endswith(f" tokens are too many for this text: learning {size} instead.")
    with pytest.raises(
        ValueError, match="no vocabulary size fits both source and target of the tr"
    ):
        learned(tmp_path / "no", numbers, [f"{n} {n}x" for n in numbers], shared=False)


@pytest.mark.parametrize("d_model", [128, BASE])
def test_a_short_warm_up_does_not_raise_the_peak_of_equation_3(d_model):
    schedule = derive(settings(), 3, d_model).schedule
    assert schedule.peak == pytest.approx((d_model * 4000) ** -0.5, rel=0.005)


def test_given_settings_stay_and_others_are_derived_from_them():
    assert numbers(derive(settings({"updates": 3000}), 3, BASE)) == (3000, 300, 300, 300)
    assert numbers(derive(settings({"updates": 3}), 3, BASE)) == (3, 1, 1, 1)
    assert numbers(derive(settings(None, {"warmup_steps": 4000}), 3, BASE))[:2] == (8000, 4000)
    given = {"updates": 7, "validate_every": 5, "checkpoint_every": 6}
    schedule = {"warmup_steps": 4, "scale": 0.5}
    whole = settings(given, schedule, vocabulary={"size": 50})
    assert left_out(whole) == [] and derive(whole, 1000, BASE, 60) == whole
    falling = settings({"updates": 2}, {"kind": "linear", "peak": 0.5})
    assert numbers(derive(falling, 3, BASE))[:2] == (2, 1)
    assert derive(falling, 3, BASE).schedule.peak == 0.5
    assert derive(settings(None, {"scale": 2.0}), 3, BASE).schedule.peak is None
    assert derive(settings(None, {"warmup_steps": 9}), 3, BASE).schedule.peak is None


def test_an_interval_in_epochs_replaces_one_in_updates():
    of_epochs = settings({"checkpoint_epochs": 2})
    derived = derive(of_epochs, 120, BASE, 4000)
    assert derived.training.checkpoint_every is None
    assert derived.training.validate_every == 240
    assert complete(of_epochs, derived) == derived
    before = derive(settings(), 120, BASE, 4000)  # the run may resume with the other interval
    assert complete(of_epochs, before).training.checkpoint_every is None
    again = derive(complete(settings(), derived), 120, BASE, 4000)
    assert again == before


def test_a_task_without_text_has_no_vocabulary():
    images = Settings.model_validate(
        {"task": {"kind": "image_classification"}, "data": {"source": "digits"}}
    )
    assert "vocabulary.size" not in left_out(images)


def test_a_resumed_run_keeps_its_derived_numbers():
    before = derive(settings(), 120, BASE, 4000)
    assert complete(settings(), before) == before
    longer = complete(settings({"updates": 5000}), before)
    assert numbers(longer) == (5000, 240, 240, 240)
    assert longer.schedule.peak == before.schedule.peak
    assert (
        complete(Settings.model_validate({"data": {"source": "cldr"}}), settings()) == settings()
    )  # a run without derived numbers
    shorter = settings({"updates": 239})
    with pytest.raises(ValueError, match="`training.updates` must be at least 240: the run beg"):
        check_length(shorter, complete(shorter, before))
    check_length(settings({"updates": 240}), complete(settings({"updates": 240}), before))


@pytest.mark.parametrize(
    ("kind", "data", "training", "peak"),
    [
        ("classification", "text", {}, 5e-5),
        ("translation", "cldr", {}, 3e-5),
        ("speech_recognition", "morse_demo", {}, 1e-5),
        ("classification", "text", {"lora": {}}, 5e-4),
    ],
)
def test_a_run_that_starts_from_another_one_has_a_rate_for_fine_tuning(kind, data, training, peak):
    files = {"train": "a", "validation": "b"} if data == "text" else {}
    sections = {"task": {"kind": kind}, "model": {"start_from": "run"}}
    ours = settings({"updates": 500, **training}, data={"source": data, **files}, **sections)
    schedule = derive(ours, 3, BASE, 4000).schedule
    assert (schedule.kind, schedule.warmup_steps) == ("linear", 50)
    assert schedule.peak == pytest.approx(peak)
    rate = make_schedule(schedule, BASE, 500)
    assert float(rate(49)) == pytest.approx(peak) and float(rate(499)) == 0.0


TUNED = {"model": {"start_from": "run"}}


def test_a_given_rate_replaces_that_of_fine_tuning():
    for given in ({"peak": 0.1}, {"kind": "inverse_sqrt"}, {"scale": 2.0}):
        schedule = derive(settings({"updates": 50}, given, **TUNED), 3, BASE, 4000).schedule
        assert schedule.kind == "inverse_sqrt" and schedule.peak != 3e-5
    schedule = derive(settings({"updates": 50}, {"warmup_steps": 7}, **TUNED), 3, BASE).schedule
    assert (schedule.kind, schedule.warmup_steps, schedule.peak) == ("linear", 7, 3e-5)
    one = derive(settings({"updates": 1}, **TUNED), 3, BASE)  # nothing to rise and fall
    assert one.schedule.kind == "constant"
    make_schedule(one.schedule, BASE, 1)


def test_saved_settings_leave_the_rate_of_fine_tuning_open(tmp_path):
    """A run that was interrupted before its first update has the settings as they were written."""
    written = {"vocabulary": {"size": 4000}, "model": {"start_from": "run", "preset": "tiny"}}
    for schedule in ({}, {"warmup_steps": 7}, {"kind": "inverse_sqrt"}):
        ours = settings({"updates": 500}, schedule, **written)
        assert ours.is_tuning == ("kind" not in ours.used()["schedule"]) == ("kind" not in schedule)
        save_settings(ours, tmp_path / "config.toml")
        again = load_settings(tmp_path / "config.toml")
        assert again.schedule == ours.schedule and left_out(again) == left_out(ours)
        derived = derive(ours, 3, BASE, 4000)
        assert derive(again, 3, BASE, 4000).schedule == derived.schedule
        save_settings(derived, tmp_path / "config.toml")
        assert load_settings(tmp_path / "config.toml").schedule == derived.schedule


def test_a_fine_tuning_resumes_with_the_rate_that_it_began_with():
    derived = derive(settings({"updates": 500}, **TUNED), 3, BASE, 4000)
    assert complete(settings({"updates": 500}, **TUNED), derived) == derived
    scratch = {"kind": "inverse_sqrt", "warmup_steps": 50, "peak": 0.0007}
    every = {"validate_every": 9, "checkpoint_every": 9}
    before = settings({"updates": 500, **every}, scratch, **TUNED)
    resumed = complete(settings({"updates": 500}, **TUNED), before)
    assert resumed.schedule == before.schedule
    whole = settings({}, derived.schedule.model_dump(exclude_none=True), **TUNED)
    assert "schedule.kind" not in left_out(whole)


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (
            {},
            "Learning rate: 3e-05 at update 50, then falling in a straight line to 0 "
            "at update 500.",
        ),
        ({"kind": "constant", "peak": 0.1}, "Learning rate: 0.1 at update 50, then constant."),
        (
            {"scale": 2.0},
            "Learning rate: 0.0125 at update 50, then falling with the inverse square root of the "
            "update.",
        ),
    ],
)
def test_training_states_its_learning_rate(schedule, shown):
    ours = settings({"updates": 500}, schedule, **TUNED)
    derived = derive(ours, 3, BASE, 4000)
    assert describe_rate(derived, BASE) == shown
    chosen = describe_derived(ours, derived)
    assert "schedule.warmup_steps = 50" in chosen and "schedule.peak" not in chosen


SMALL = """
[model]
num_layers = 1
d_model = 8
d_ff = 12
num_heads = 2
max_length = 20

[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
max_length = 14
batch_tokens = 60

[training]
validate_sentences = 0
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_run_of_a_small_corpus_keeps_its_numbers(tmp_path):
    """It is stopped after two updates and shortened; then its corpus grows."""
    write_small_corpus(tmp_path)
    config, run = tmp_path / "small.toml", Run(tmp_path / "run")
    write_text(config, SMALL)
    stop = At(2, lambda: signal.raise_signal(signal.SIGINT))
    _, shown = run_quietly(load_settings(config), run.path, [stop])
    assert "Stopped after update 2 of 1,000; everything is saved." in shown
    kept = load_settings(run.config)
    size = kept.vocabulary.size
    assert 10 < size < 40, "digits, what begins a word and a few pairs"
    assert run.load_tokenizers().source.vocab_size == size
    assert (
        f"Settings chosen from the size of the data: vocabulary.size = {size}, "
        "schedule.warmup_steps = 100, schedule.peak = 0.00559, training.updates = 1000, "
        "training.validate_every = 100, training.checkpoint_every = 100.\n"
    ) in shown
    assert left_out(kept) == [] and numbers(kept) == (1000, 100, 100, 100)
    with pytest.raises(ValueError, match="`training.updates` must be at least 100: the run began"):
        run_quietly(load_settings(config, ["training.updates=3"]), run.path)
    stop = At(1, lambda: signal.raise_signal(signal.SIGINT))
    overrides = ["training.updates=200"]
    _, shown = run_quietly(load_settings(config, overrides), run.path, [stop])
    assert "changed settings: training.updates from 1000 to 200.\nResuming after update 2" in shown
    assert "Stopped after update 3 of 200" in shown and "from the size of the data" not in shown
    assert load_settings(run.config) == complete(load_settings(config, overrides), kept)
    write_pairs(tmp_path, "train", 400, seed=1)
    with pytest.raises(ValueError, match="the training data of .* have changed since training"):
        run_quietly(load_settings(config), run.path)
    with pytest.raises(
        SettingsError, match=r"other settings: schedule.warmup_steps \(100, now 2\) "
    ):
        run_quietly(load_settings(config, ["schedule.warmup_steps=2"]), run.path)
