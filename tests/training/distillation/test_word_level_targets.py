"""Word-level targets: the teachers' probabilities follow their pairs into batches and the loss."""

import io
import json

import numpy as np
import pytest
import rich.console
import tensorflow as tf
from distillations import LONG, call, lines, settings_of
from marks import slow
from pipelines import SIZES, tokenizer, translator, with_larger_weights

from keras_transformer import Transformer, TransformerConfig
from keras_transformer.pipelines import Run
from keras_transformer.training.data.distributions import Distributions, part_path
from keras_transformer.training.distillation import word_level
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.distillation.student import prepare_run
from keras_transformer.training.distillation.teachers import open_teachers
from keras_transformer.training.distillation.word_level import Predictions
from keras_transformer.training.loop.objectives import ProjectedObjective, RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings, make_settings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.training_run import train

K = 3


def pairs_of(folder):
    sources, targets = (lines(folder / f"train.{side}") for side in "ab")
    return [
        (source.encode(), target.encode()) for source, target in zip(sources, targets, strict=True)
    ]


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.setattr(word_level, "PART", 4)


@pytest.fixture(scope="module")
def predicted(folder):
    """Both teachers' predictions for all pairs, and one that is too long for them."""
    teachers = open_teachers([folder / "one", folder / "two"], settings_of(folder).task.get())
    pairs = [*pairs_of(folder), (LONG.encode(), b"the cat"), (b"the cat", LONG.encode())]
    return pairs, Predictions(teachers, K, 4)(pairs)


@pytest.mark.slow
def test_probabilities_are_the_mean_of_those_that_teachers_give_to_each_prefix(folder, predicted):
    """One prefix at a time, without padding, with the models themselves."""
    pairs, arrays = predicted
    models = [Run(folder / name).load_model() for name in ("one", "two")]
    config, ends = models[0].config, np.cumsum(arrays["lengths"])
    for number in (0, 10):
        source, target = (tokenizer().encode([text])[0].numpy() for text in pairs[number])
        assert arrays["lengths"][number] == len(target)
        for place in range(len(target)):
            prefix = np.array([[config.tokens.bos_id, *target[:place]]])
            logits = [
                model({"source": source[None], "target": prefix})[0, -1].numpy() for model in models
            ]
            p = np.mean([np.exp(z) / np.exp(z).sum() for z in logits], axis=0)
            at = ends[number] - len(target) + place
            np.testing.assert_allclose(arrays["probabilities"][at], np.sort(p)[::-1][:K], rtol=2e-3)
            np.testing.assert_allclose(p[arrays["tokens"][at]], np.sort(p)[::-1][:K], rtol=1e-5)


def test_pairs_too_long_for_a_teacher_have_no_probabilities(predicted):
    pairs, arrays = predicted
    starts = np.cumsum(arrays["lengths"]) - arrays["lengths"]
    known = np.add.reduceat(arrays["probabilities"].astype(float).sum(axis=1), starts)
    lengths = [[len(tokenizer().encode([text])[0]) for text in pair] for pair in pairs]
    np.testing.assert_array_equal(arrays["lengths"], [target for _, target in lengths])
    fits = [max(pair) <= 11 for pair in lengths]
    np.testing.assert_array_equal(known > 0, fits)
    assert fits[-2:] == [False] * 2 and sum(fits) > 8


@pytest.mark.slow
def test_predictions_follow_their_examples_into_batches(folder, tmp_path, parts):
    """The batches of a shuffled epoch have the arrays of each pair, whatever its place."""
    settings = with_predictions(folder, tmp_path / "d")
    training = SourceToTargetTraining(tokenizer()).of_train_split(settings.data)
    data = open_source(settings.data)
    corpus = training.corpus(data, "train", settings.data)
    known, ends = arrays_in(tmp_path / "d")
    keys = {}
    for number, (source, target) in enumerate(pairs_of(folder)):
        ids = [tuple(tokenizer().encode([text])[0].numpy()) for text in (source, target)]
        keys.setdefault(tuple(ids), number)
    seen = 0
    for inputs, labels in corpus.batches(60, shuffle=True, epoch=1):
        assert labels.shape == inputs["teacher_tokens"].shape[:2]
        for row, label in enumerate(labels.numpy()):
            length = np.count_nonzero(label)
            source = inputs["source"][row].numpy()
            number = keys[tuple(source[source != 0]), tuple(label[:length])]
            begin = ends[number] - length
            for name in ("tokens", "probabilities"):
                rows = inputs[f"teacher_{name}"][row].numpy()
                np.testing.assert_array_equal(rows[:length], known[name][begin : ends[number]])
                assert not rows[length:].any()
            seen += 1
    assert seen == 11
    validation = SourceToTargetTraining(tokenizer()).corpus(data, "validation", settings.data)
    assert set(next(iter(validation.batches(60)))[0]) == {"source", "target"}


def with_predictions(folder, place, pairs=None, k=K, is_trained=False):
    pairs = pairs or pairs_of(folder)
    teachers = open_teachers([folder / "one"], settings_of(folder).task.get())
    console = type("Quiet", (), {"is_terminal": False, "print": lambda *a, **k: None})()
    word_level.predict_words(place, pairs, teachers, k, 4, console, 99, is_trained)
    return settings_of(folder, f"data.train_distributions={place}")


def arrays_in(place):
    """Returns the arrays of all parts, and the end of each pair."""
    parts = [np.load(path) for path in sorted(place.glob("*.npz"))]
    assert len(parts) == 3
    names = ("lengths", "tokens", "probabilities")
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return arrays, np.cumsum(arrays["lengths"])


@pytest.mark.slow
def test_an_interrupted_call_continues_with_the_first_missing_part(folder, tmp_path, parts):
    with_predictions(folder, tmp_path / "whole")
    with_predictions(folder, tmp_path / "d")
    for name in ("manifest.json", "part-000001.npz"):
        (tmp_path / "d" / name).unlink()
    with pytest.raises(ValueError, match="does not contain all predictions.*repeat `distill`"):
        Distributions(tmp_path / "d")
    kept = part_path(tmp_path / "d", 0).stat().st_mtime_ns
    with_predictions(folder, tmp_path / "d")
    assert part_path(tmp_path / "d", 0).stat().st_mtime_ns == kept
    assert arrays_equal(tmp_path / "d", tmp_path / "whole")


def arrays_equal(one, other):
    first, second = (arrays_in(place)[0] for place in (one, other))
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_predictions_that_do_not_belong_to_the_pairs_are_reported(folder, tmp_path, parts):
    place = tmp_path / "d"
    settings = with_predictions(folder, place)

    def read(*changes, kind=None):
        changed = settings_of(folder, f"data.train_distributions={place}", *changes)
        training = SourceToTargetTraining(kind or tokenizer()).of_train_split(changed.data)
        return training.corpus(open_source(changed.data), "train", changed.data)

    assert read().size == 11
    texts = lines(folder / "train.b")
    (tmp_path / "b").write_text("\n".join([texts[0], "dog dog dog", *texts[2:]]) + "\n")
    with pytest.raises(ValueError, match="b, line 2: `teacher_tokens` mus"):
        read(f"data.train_target={tmp_path}/b")
    with pytest.raises(ValueError, match="has predictions for 11 pairs, but the training .* has 3"):
        read(f"data.train_source={folder}/validation.a", f"data.train_target={folder}/validation.b")
    with pytest.raises(ValueError, match="d has predictions for another vocabulary: a student"):
        read(kind=tokenizer(31))
    part = part_path(place, 1)
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(ValueError, match="part-000001.npz is missing or damaged: remove .*d and"):
        read()
    (place / "manifest.json").write_text(json.dumps({"k": 3}))
    with pytest.raises(ValueError, match="manifest.json is damaged"):
        read()
    assert settings.data.train_distributions == str(place)


def test_predictions_that_a_student_was_trained_on_stay(folder, tmp_path, parts):
    place = tmp_path / "run" / "distillation" / "distributions"
    with_predictions(folder, place, is_trained=False)
    with_predictions(folder, place, is_trained=True)
    for options in ({"k": K + 1}, {"pairs": pairs_of(folder)[1:]}):
        with pytest.raises(ValueError, match="run was trained with other word-level targets, or"):
            with_predictions(folder, place, is_trained=True, **options)
    assert Distributions(place).k == K


@pytest.mark.parametrize("static", [slow(False), True])
def test_the_loss_of_a_batch_mixes_labels_and_predictions(static):
    """A teacher that is certain of other labels: the mean of the losses of both labels."""
    config = TransformerConfig(vocab_size=30, **{**SIZES, "dropout": 0.0})
    model, pad_id = with_larger_weights(Transformer(config)), 0
    labels, others = np.array([[5, 6, 3], [7, 3, 0]]), np.array([[8, 9, 3], [4, 3, 0]])
    inputs = {"source": np.array([[4, 5, 3]] * 2), "target": np.array([[2, 5, 6], [2, 7, 0]])}
    inputs = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    weigh = RealLabels(pad_id)

    def loss(labels, weight=0.25, smoothing=0.0, **teacher):
        objective = ProjectedObjective(
            model,
            LabelSmoothedCrossEntropy(smoothing, pad_id),
            weigh,
            distillation_weight=weight,
        )
        return float(objective.sum({**inputs, **teacher}, tf.constant(labels), 5.0, static))

    teacher = {
        "teacher_tokens": tf.constant(np.stack([others, labels], axis=-1), tf.int32),
        "teacher_probabilities": tf.constant([[[0.4, 0.0]] * 3] * 2),
    }
    mixed = loss(labels, smoothing=0.1, **teacher)
    np.testing.assert_allclose(
        mixed, 0.75 * loss(labels, smoothing=0.1) + 0.25 * loss(others), 1e-5
    )
    silent = {**teacher, "teacher_probabilities": tf.zeros([2, 3, 2])}
    np.testing.assert_allclose(loss(labels, **silent), loss(labels), 1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_a_resumed_training_equals_an_uninterrupted_one(folder, tmp_path, parts):
    """Both differ from a training without predictions."""
    settings = with_predictions(folder, tmp_path / "d")
    (teacher,) = open_teachers([folder / "one"], settings.task.get())

    def trained(name, *updates, settings=settings):
        run = Run(tmp_path / name)
        for number in updates:
            values = settings.used()
            values["training"] |= {"updates": number, "validate_every": 2}
            values["vocabulary"] = teacher.settings.vocabulary.description()
            changed = make_settings(values, "test")
            if not run.path.exists():
                run.path.mkdir()
                prepare_run(run, changed, teacher, {})
            train(changed, run.path, console=rich.console.Console(file=io.StringIO()))
        return [weight.numpy() for weight in run.load_model().weights]

    whole, resumed = trained("whole", 4), trained("resumed", 2, 4)
    for one, two in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, two)
    plain = trained("plain", 4, settings=settings_of(folder))
    assert any(np.abs(one - two).max() > 1e-4 for one, two in zip(whole, plain, strict=True))


def test_settings_without_effect_are_reported(folder, tmp_path):
    place = f"data.train_distributions={tmp_path}"
    with pytest.raises(SettingsError, match="`training.subword_sampling` and `data.train_dist"):
        settings_of(folder, place, "training.subword_sampling=0.1")
    with pytest.raises(SettingsError, match="`data.bidirectional` and `data.train_distributions` "):
        settings_of(folder, place, "data.bidirectional=true")
    with pytest.raises(SettingsError, match="`data.train_distributions` has no effect on a dist"):
        call(folder, tmp_path / "run", settings=settings_of(folder, place))
    settings = settings_of(folder, "training.distillation_weight=0.3")
    with pytest.raises(SettingsError, match="`training.distillation_weight` has no effect without"):
        call(folder, tmp_path / "run", settings=settings)
    for options, message in (
        ({"word_level": 0}, "`word_level` must be at least 1"),
        ({"word_level": 8, "own_vocabulary": True}, "`word_level` needs the vocabulary of the"),
    ):
        with pytest.raises(ValueError, match=message):
            Distillation(**options)
    with pytest.raises(ValueError, match="`word_level` must be at most 30, the size of the vocab"):
        call(folder, tmp_path / "run", word_level=31)
    with pytest.raises(ValueError, match="`word_level` needs a teacher that translates sources"):
        call(folder, tmp_path / "run", forward=(), backward=[folder / "two"], word_level=3)


@pytest.mark.long
@pytest.mark.slow
def test_the_student_is_trained_on_all_pairs_with_their_predictions(folder, tmp_path, reader):
    """The predictions are for the texts that the student's configuration names, in their order."""
    run = tmp_path / "run"
    figures, shown = call(folder, run, "one", "two", original=1.0, word_level=K)
    assert "predicted 22 of 22" in shown.getvalue() and figures["distilled"]["word_level"] == K
    data = load_settings(run / "config.toml").data
    distributions = Distributions(data.train_distributions)
    assert distributions.rows == 22 and distributions.k == K
    settings = load_settings(run / "config.toml")
    training = SourceToTargetTraining(translator().tokenizers).of_train_split(data)
    corpus = training.corpus(open_source(data), "train", settings.data)
    inputs, _ = next(iter(corpus.batches(80)))
    assert tf.reduce_max(inputs["teacher_probabilities"]) > 0
    before = (run / "distillation" / "distributions" / "part-000000.npz").stat().st_mtime_ns
    shown = call(folder, run, "one", "two", original=1.0, word_level=K)[1].getvalue()
    assert "predicted" not in shown
    call(folder, run, "one", "two", original=1.0, word_level=K + 1)
    path = run / "distillation" / "distributions" / "part-000000.npz"
    assert Distributions(path.parent).k == K + 1 and path.stat().st_mtime_ns > before
