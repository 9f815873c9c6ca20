"""Training of classifiers, language models and models with two vocabularies.

Each is trained, stopped, resumed and averaged.
"""

import csv
import os
import shutil
import signal

import numpy as np
import pytest
from documents import ROOT, unrun_examples
from marks import long, slow
from small_runs import At, assert_same_end, finished_runs, run_quietly

from keras_transformer import LanguageModel, Translator
from keras_transformer.models import MaskedLanguageModel, TextClassifier, TokenClassifier
from keras_transformer.pipelines import (
    MaskFiller,
    Summarizer,
    TextClassificationPipeline,
    TextGenerator,
    TokenClassificationPipeline,
)
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.evaluate import evaluate_files, evaluate_split
from keras_transformer.training.loop.history import columns_of
from keras_transformer.training.settings.toml import SettingsError, load_settings

CONFIG = """
[task]
kind = "{kind}"

[model]
num_layers = 1
d_model = 8
d_ff = 12
num_heads = 2
dropout = 0.2
max_length = 20
{model}

[data]
source = "text"
train = "{kind}.train.tsv"
validation = "{kind}.validation.tsv"
max_length = {max_length}
batch_tokens = 90
{data}

[vocabulary]
size = {size}
{vocabulary}

[schedule]
warmup_steps = 1
peak = 0.02

[training]
updates = 6
validate_every = 2
validate_sentences = 0
checkpoint_every = 1
keep_checkpoints = 3
log_every = 2
{training}
"""
MORE = {
    "classification": {
        "model": 'pooling = "attention"',
        "training": 'best_by = "accuracy"\nfinal_model = "best"',
    },
    "token_classification": {},
    "language_modelling": {},
    "masked_language_modelling": {"training": "label_smoothing = 0.0"},
    # Some sources are longer than four tokens; no target is.
    "summarization": {"data": "truncate_source = true"},
    # Words of letters and words of digits: no token is in both vocabularies.
    "translation": {"model": 'tie = "target"', "vocabulary": "shared = false"},
}
KINDS = list(MORE)
LABELS = ("2", "3", "10")  # sorted as numbers, not as text


def line_of(kind, digits):
    text = "".join(map(str, digits))
    if kind == "classification":
        return f"{text}\t{LABELS[digits[0] % 3]}"
    if kind == "token_classification":
        labels = ["B-ODD" if digit % 2 else "O" for digit in digits]
        return f"{' '.join(text)}\t{' '.join(labels)}"
    if kind == "summarization":
        return f"{text}\t{digits[0]}"
    letters = "".join("abcdefghij"[digit] for digit in digits)
    return f"{letters}\t{text}" if kind == "translation" else text


def write(folder, kind, split, count, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 10, rng.integers(1, 6)).tolist() for _ in range(count)]
    lines = [line_of(kind, row) for row in rows]
    (folder / f"{kind}.{split}.tsv").write_text("\n".join(lines) + "\n")


def configuration(kind):
    fields = {"model": "", "data": "", "vocabulary": "", "training": "", **MORE[kind]}
    fields["max_length"] = 5 if kind == "summarization" else 14
    fields["size"] = 16 if kind == "masked_language_modelling" else 15  # the mask is a token
    return CONFIG.format(kind=kind, **fields)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for kind in KINDS:
        write(folder, kind, "train", 40, seed=1)
        write(folder, kind, "validation", 9, seed=2)
        (folder / f"{kind}.toml").write_text(configuration(kind))
    return folder


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    return finished_runs(corpus, tmp_path_factory)


def columns(corpus, kind, split="validation"):
    lines = (corpus / f"{kind}.{split}.tsv").read_text().splitlines()
    return [list(column) for column in zip(*(line.split("\t") for line in lines), strict=True)]


def table(folder):
    with open(Run(folder).history, newline="") as file:
        return list(csv.DictReader(file))


CLASSES = {
    "classification": (TextClassifier, TextClassificationPipeline, "examples_seen"),
    "token_classification": (TokenClassifier, TokenClassificationPipeline, "labels_seen"),
    "language_modelling": (LanguageModel, TextGenerator, "tokens_seen"),
    "masked_language_modelling": (MaskedLanguageModel, MaskFiller, "tokens_seen"),
    "summarization": (None, Summarizer, "tokens_seen"),
    "translation": (None, Translator, "tokens_seen"),
}


@pytest.mark.parametrize(
    "kind",
    [
        long("classification"),
        long("token_classification"),
        "language_modelling",
        slow("masked_language_modelling"),
        long("summarization"),
        long("translation"),
    ],
)
def test_a_run_is_self_contained(finished, corpus, kind):
    folder, figures = finished(kind)
    task, (model_class, pipeline_class, seen) = TASKS[kind], CLASSES[kind]
    run = Run(folder)
    model = run.load_model(model_class)
    assert type(open_run(folder)) is pipeline_class
    assert run.read_metrics() == figures
    assert (figures["updates"], figures["parameters"]) == (6, model.count_params())
    assert figures[seen] > 0 and len([name for name in figures if name.endswith("_seen")]) == 1
    measured = {name for name, figure in task.metrics.items() if not figure.of_answers}
    assert set(figures["validation"]) == measured
    rows = table(folder)
    assert list(rows[0]) == ["update", *columns_of(task)]
    assert [row["update"] for row in rows] == ["2", "4", "6"]
    for name in measured:
        assert all(np.isfinite(float(row[f"validation/{name}"])) for row in rows)
    assert float(rows[-1][f"train/{task.unit}"]) == figures[seen]
    assert run.curve.read_bytes().startswith(b"\x89PNG")
    if kind == "classification":
        assert model.config.head.labels == LABELS and model.config.head.pooling == "attention"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "translation" else pytest.mark.long) for kind in KINDS],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(finished, corpus, tmp_path, kind):
    settings = load_settings(corpus / f"{kind}.toml")
    press = At(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    figures, shown = run_quietly(settings, tmp_path / "run", [press])
    assert figures is None and "Stopped after update 3 of 6" in shown
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Resuming after update 3 of 6." in shown
    assert_same_end(tmp_path / "run", finished(kind))


# Classification


@pytest.mark.long
@pytest.mark.slow
def test_examples_seen_are_counted(finished, corpus):
    """An epoch has 40 texts; six updates of at most 90 tokens see each text at least once."""
    assert 40 <= finished("classification")[1]["examples_seen"] < 6 * 90 / 3


@pytest.mark.slow
def test_the_best_accuracy_becomes_the_model(finished, corpus):
    folder, figures = finished("classification")
    measured = [float(row["validation/accuracy"]) for row in table(folder)]
    best = 2 * (1 + int(np.argmax(measured)))  # the first of equal ones
    assert (figures["best_update"], figures["model_update"]) == (best, best)
    assert figures["validation"]["accuracy"] == max(measured)
    texts, labels = columns(corpus, "classification")
    classifier = TextClassificationPipeline.from_run(folder)
    right = np.mean([ours == label for ours, label in zip(classifier(texts), labels, strict=True)])
    assert right == pytest.approx(max(measured), abs=1e-6)
    results = evaluate_split(folder, "validation")
    assert results["accuracy"] == pytest.approx(100 * max(measured), abs=1e-4)


@pytest.mark.slow
def test_an_average_has_the_labels_and_the_mean_of_the_weights(finished, tmp_path):
    folder, _ = finished("classification")
    output = average_checkpoints(folder, 2, tmp_path / "average")
    model = Run(output).load_model(TextClassifier)
    assert model.config.head.labels == LABELS
    paths = sorted(Run(folder).checkpoints.glob("update-*.npz"))
    archives = [np.load(path) for path in paths if path.stem[-1] in "56"]
    assert len(archives) == 2
    arrays = [{k.split("/", 1)[-1]: archive[k] for k in archive.files} for archive in archives]
    for weight in model.weights:
        mean = np.mean([array[weight.path].astype("float64") for array in arrays], axis=0)
        np.testing.assert_array_equal(weight.numpy(), mean.astype("float32"), err_msg=weight.path)


def changed(corpus, folder, kind, split, lines):
    """Returns a copy of the corpus with other lines in one of its files."""
    copy = shutil.copytree(corpus, folder / "corpus")
    (copy / f"{kind}.{split}.tsv").write_text("".join(f"{line}\n" for line in lines))
    return copy / f"{kind}.toml"


def test_an_unknown_label_is_reported_in_one_line(corpus, tmp_path):
    lines = ["12\t2", "345\tx", "6\t3"]
    config = changed(corpus, tmp_path, "classification", "validation", lines)
    message = (
        r"classification\.validation\.tsv, line 2: `label` must be one of the training data's "
        "labels, 2, 3, 10. Received: 'x'"
    )
    with pytest.raises(ValueError, match=message) as error:
        run_quietly(load_settings(config), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not Run(tmp_path / "run").model.exists()


@pytest.mark.slow
def test_spaces_around_a_label_are_ignored(corpus, tmp_path):
    lines = [
        f"{text}\t {label} " for text, label in zip(*columns(corpus, "classification"), strict=True)
    ]
    config = changed(corpus, tmp_path, "classification", "validation", lines)
    figures, _ = run_quietly(load_settings(config, ["training.updates=2"]), tmp_path / "run")
    assert 0 <= figures["validation"]["accuracy"] <= 1


def test_a_single_label_is_refused(corpus, tmp_path):
    config = changed(corpus, tmp_path, "classification", "train", ["12\ta", "3\ta"])
    message = "the training data must have at least two different labels. Received: a."
    with pytest.raises(ValueError, match=message):
        run_quietly(load_settings(config), tmp_path / "run")


def start_from(run, config, *overrides):
    overrides = [f'model.start_from="{run}"', "training.updates=1", *overrides]
    return load_settings(config, [*overrides, "training.validate_every=1", "schedule.peak=1e-9"])


@pytest.mark.slow
def test_a_classifier_can_start_with_the_weights_of_another(finished, corpus, tmp_path):
    folder, figures = finished("classification")
    settings = start_from(folder, corpus / "classification.toml")
    tuned, shown = run_quietly(settings, tmp_path / "run")
    assert f"Starting with the weights of {folder}." in shown
    assert tuned["validation"]["loss"] == pytest.approx(figures["validation"]["loss"], rel=1e-5)


@pytest.mark.slow
def test_the_weights_of_a_classifier_with_other_labels_are_refused(finished, corpus, tmp_path):
    folder, _ = finished("classification")
    texts, labels = columns(corpus, "classification", "train")
    lines = [
        f"{text}\t{'4' if label == '3' else label}"
        for text, label in zip(texts, labels, strict=True)
    ]
    config = changed(corpus, tmp_path, "classification", "train", lines)
    shutil.copyfile(
        tmp_path / "corpus" / "classification.train.tsv",
        tmp_path / "corpus" / "classification.validation.tsv",
    )
    message = "do not fit: the training data have labels 2, 4, 10 here and 2, 3, 10 there."
    with pytest.raises(ValueError, match=message) as error:
        run_quietly(start_from(folder, config), tmp_path / "run")
    assert "\n" not in str(error.value)


def test_the_weights_of_another_task_are_refused(finished, corpus, tmp_path):
    folder, _ = finished("language_modelling")
    settings = start_from(folder, corpus / "classification.toml")
    with pytest.raises(ValueError, match="must hold a TextClassifier. Received: a LanguageModel"):
        run_quietly(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# Language models


@pytest.mark.long
@pytest.mark.slow
def test_the_perplexity_of_a_validation_equals_an_evaluation(finished, corpus, tmp_path):
    """The learner's without smoothing; `evaluate`'s on the split and on the split as a file."""
    folder, figures = finished("language_modelling")
    results = evaluate_split(folder, "validation")
    assert results["perplexity"] == pytest.approx(figures["validation"]["perplexity"], rel=1e-4)
    assert results["perplexity"] != pytest.approx(np.exp(figures["validation"]["loss"]), rel=1e-3)
    again = evaluate_files(folder, corpus / "language_modelling.validation.tsv")
    assert {**again, "seconds": 0} == {**results, "seconds": 0}
    with pytest.raises(ValueError, match="whose data have text: evaluation needs one file"):
        file = corpus / "language_modelling.validation.tsv"
        evaluate_files(folder, file, file)


def test_tokens_of_texts_are_counted(finished, corpus):
    """Each digit is a token, one token is the space before the text, and one ends it."""
    (texts,) = columns(corpus, "language_modelling")
    results = evaluate_split(finished("language_modelling")[0], "validation")
    assert results["tokens"] == sum(len(text) + 2 for text in texts)
    assert results["characters"] == sum(len(text) + 1 for text in texts)


# Masked language models


@pytest.mark.slow
def test_an_evaluation_hides_the_tokens_of_the_validation(finished, corpus):
    folder, figures = finished("masked_language_modelling")
    expected = figures["validation"]
    results = evaluate_split(folder, "validation")
    assert results["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-4)
    assert results["perplexity"] == pytest.approx(np.exp(expected["loss"]), rel=1e-4)
    assert results["accuracy"] == pytest.approx(100 * expected["token_accuracy"], abs=1e-4)
    (texts,) = columns(corpus, "masked_language_modelling")
    # Each digit is a token, and so is the space before the text: 15 % of them, at least one.
    assert results["tokens"] == len(texts) and results["texts"] == len(texts)
    again = evaluate_files(folder, corpus / "masked_language_modelling.validation.tsv")
    assert {**again, "seconds": 0} == {**results, "seconds": 0}


# Summarisation


@pytest.mark.long
@pytest.mark.slow
def test_truncated_sources_are_counted_at_the_start(corpus, tmp_path):
    settings = load_settings(corpus / "summarization.toml", ["training.updates=1"])
    _, shown = run_quietly(settings, tmp_path / "run")
    texts, _ = columns(corpus, "summarization", "train")
    # The lengths include the space before the text, and the end.
    longer = sum(len(text) + 2 > 5 for text in texts)
    assert 0 < longer < 40
    assert f"; 40 examples, {longer} sources truncated to 5 tokens; " in " ".join(shown.split())


@pytest.mark.slow
def test_a_summarization_run_is_evaluated_by_rouge(finished):
    pytest.importorskip("rouge_score")
    results = evaluate_split(finished("summarization")[0], "validation")
    assert set(results) == {
        "rouge1", "rouge2", "rougeL", "rouge_signature", "summaries", "seconds", "search",
        "truncated", "incomplete",
    }  # fmt: skip
    assert results["truncated"] == 0 and results["summaries"] == 9  # the model reads 20 tokens


@pytest.mark.long
@pytest.mark.slow
def test_a_resumed_packed_training_ends_like_an_uninterrupted_one(corpus, tmp_path):
    overrides = ["data.packed=true", "data.max_length=6", "data.batch_tokens=24"]
    settings = load_settings(corpus / "language_modelling.toml", overrides)
    figures, shown = run_quietly(settings, tmp_path / "whole")
    (texts,) = columns(corpus, "language_modelling", "train")
    assert (
        "40 examples in " in shown and f"{sum(len(text) + 2 > 6 for text in texts)} of th" in shown
    )
    press = At(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run_quietly(settings, tmp_path / "run", [press])[0] is None
    run_quietly(settings, tmp_path / "run")
    assert_same_end(tmp_path / "run", (tmp_path / "whole", figures))


# Two vocabularies


@pytest.mark.slow
def test_source_and_target_have_vocabularies_of_their_own(finished, corpus):
    folder, figures = finished("translation")
    run = Run(folder)
    assert run.vocabulary() == (folder / "source.model", folder / "target.model")
    assert not run.tokenizer.exists()
    translator = Translator.from_run(folder)
    source, target = translator.tokenizers
    assert not translator.tokenizers.shared
    letters, digits = columns(corpus, "translation")
    for tokenizer, own, other in ((source, letters, digits), (target, digits, letters)):
        assert [word.decode() for word in tokenizer.decode(tokenizer.encode(own)).numpy()] == own
        assert 1 in tokenizer.encode(other[:1]).to_list()[0]  # the unknown token
    assert translator.model.config.head.target_vocab_size == 15
    assert not set("".join(translator(letters))) & set("abcdefghij")
    scores = translator.score(letters, digits)
    mean = sum(score.score for score in scores) / sum(score.tokens for score in scores)
    assert np.exp(-mean) == pytest.approx(figures["validation"]["perplexity"], rel=1e-4)


@pytest.mark.long
@pytest.mark.slow
def test_runs_with_two_vocabularies_can_be_averaged_and_started_from(finished, corpus, tmp_path):
    folder, figures = finished("translation")
    output = average_checkpoints(folder, 1, tmp_path / "average")
    files = [path.name for path in Run(output).vocabulary()]
    assert files == ["source.model", "target.model"]
    for name in files:
        assert (output / name).read_bytes() == (folder / name).read_bytes()
    settings = start_from(folder, corpus / "translation.toml")
    tuned, shown = run_quietly(settings, tmp_path / "run")
    assert "Learning two" not in shown
    assert tuned["validation"]["loss"] == pytest.approx(figures["validation"]["loss"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["source.model", "target.model"])
def test_a_missing_one_of_two_vocabularies_is_reported(finished, tmp_path, name):
    folder = shutil.copytree(finished("translation")[0], tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"is not a finished run: {name} is missing"):
        Run(folder).load_tokenizers()


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        slow("classification", "runs/sst2"),
        ("language_modelling", "runs/captions"),
        slow("summarization", "runs/reports"),
    ],
)
def test_the_examples_of_docstrings_run(finished, tmp_path, monkeypatch, kind, folder):
    """tests/system/test_whole_path.py runs the examples of translations."""
    shutil.copytree(finished(kind)[0], tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    file = ROOT / "keras_transformer" / "tasks" / kind / "pipeline.py"
    ((_, code),) = unrun_examples(file)
    assert folder in code
    exec(compile(code, str(file), "exec"), {})


# Settings without effect


@pytest.mark.parametrize(
    ("kind", "overrides", "message"),
    [
        ("classification", ["vocabulary.shared=false"], "`vocabulary.shared = false` needs a sou"),
        ("classification", ["training.best_by=bleu"], "must be one of loss, accuracy for classif"),
        (
            "classification",
            ["model.tie=all"],
            r"model\.tie is not a setting of a model for class",
        ),
        ("classification", ["model.pooling=middle"], r"model.pooling must be .*'middle'"),
        (
            "language_modelling",
            ["model.pooling=max"],
            "pooling is not a setting of a model for l",
        ),
        (
            "language_modelling",
            ["model.num_decoder_layers=2"],
            "decoder_layers is not a setting",
        ),
        ("language_modelling", ["model.tie=target"], r"model\.tie must be 'all' or 'none'"),
        ("language_modelling", ["training.best_by=accuracy"], "must be one of loss, perplexity, "),
        ("language_modelling", ["data.tsv_columns=[1, 2]"], "must have 1 number, for text. Recei"),
        (
            "language_modelling",
            ['data.source_language="en"', 'data.target_language="de"'],
            "`data.source_language` and `data.target_language` have no effect on language_modell",
        ),
        ("classification", ["data.packed=true"], "`data.packed` has no effect on classification"),
        (
            "language_modelling",
            ["data.packed=true", "training.subword_sampling=0.1"],
            "`data.packed` and `training.subword_sampling` cannot be combined",
        ),
        (
            "language_modelling",
            ["data.packed=true", "data.train_weights=[2.0]"],
            "`data.packed` and `data.train_weights` cannot be combined",
        ),
        (
            "language_modelling",
            ["data.truncate_source=true"],
            "`data.truncate_source` needs a source and a",
        ),
        (
            "summarization",
            ["training.best_by=bleu"],
            "one of loss, perplexity, token_accuracy, rou",
        ),
        ("translation", ["training.best_by=rougeL"], "must be one of loss, perplexity, token_ac"),
        ("translation", ["model.tie=all"], '`vocabulary.shared = false` needs `model.tie = "tar'),
        (
            "translation",
            ["model.pooling=max"],
            r"model\.pooling is not a setting of a model for t",
        ),
        ("translation", ["training.best_by=accuracy"], "`training.best_by` must be one of loss"),
        ("translation", ["task.kind=tagging"], "task.kind must be .*'tagging'"),
    ],
)
def test_settings_without_effect_are_reported_in_one_line(corpus, kind, overrides, message):
    with pytest.raises(SettingsError, match=message) as error:
        load_settings(corpus / f"{kind}.toml", overrides)
    assert "\n" not in str(error.value)


def test_data_with_other_columns_are_refused(tmp_path):
    for kind, needed in (("classification", "text and label"), ("language_modelling", "text")):
        config = tmp_path / f"{kind}.toml"
        config.write_text(f'[task]\nkind = "{kind}"\n[data]\nsource = "cldr"\n')
        message = f'`data.source = "cldr"` provides source and target: {kind} needs {needed}, `dat'
        with pytest.raises(SettingsError, match=message):
            load_settings(config)
    config.write_text(
        '[task]\nkind = "language_modelling"\n[data]\nsource = "text"\nvalidation = "v"\n'
        'train_source = "a"\ntrain_target = "b"\n'
    )
    message = "`data.train_source` and `data.train_target` need a task with two columns: for langu"
    with pytest.raises(SettingsError, match=message):
        load_settings(config)
