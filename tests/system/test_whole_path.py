"""The commands of `make demo`, one after the other, on a model too small to be good."""

import importlib
import json
import os
import shlex

import pytest
from click.testing import CliRunner
from documents import PAGES, ROOT, blocks, run, spans, unrun_examples

import keras_transformer
from keras_transformer.cli.main import cli
from keras_transformer.pipelines import Run

SMALL = {
    "data.examples": 4000,
    "vocabulary.size": 800,
    "model.num_layers": 1,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 2,
    "schedule.warmup_steps": 50,
    "schedule.peak": 0.005,
    "training.updates": 300,
    "training.precision": '"mixed_bfloat16"',
    "training.validate_sentences": 10,
}


# Requirements that this test provides; tests/pretrained covers checkpoints.
NEEDS = ("run", "saved_model", "litert")
WITH_MODEL = [page for page in PAGES if any(b.needs in NEEDS for b in blocks(page, "python"))]


def command(*arguments, data=None):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `runs/demo` and its exports, made by the commands of `make demo`."""
    folder = tmp_path_factory.mktemp("path")
    settings = {**SMALL, "data.data_dir": json.dumps(str(folder / "data"))}
    changes = [
        argument for item in settings.items() for argument in ("--set", "{}={}".format(*item))
    ]
    run = folder / "runs" / "demo"
    command("train", "demo", "--output", run, *changes)
    command("evaluate", run)
    command("export", "saved-model", run, run / "serving")
    command("export", "litert", run, run / "demo.tflite")
    command("plot", "attention", run, "in 17 weeks", "--output", run / "attention.png")
    return folder


@pytest.mark.slow
def test_the_run_contains_the_files_listed_in_the_readme(folder):
    run = folder / "runs" / "demo"
    for name in ("config.toml", "tokenizer.model", "model.keras", "metrics.json", "attention.png"):
        assert (run / name).stat().st_size > 0
    assert (run / "serving" / "1" / "saved_model.pb").exists()
    assert list((run / "checkpoints").iterdir()) and list((run / "logs").iterdir())
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["saved_model_agreement"] == 100
    assert metrics["litert_agreement"] == 100
    assert metrics["litert_bytes"] == (run / "demo.tflite").stat().st_size
    for name in ("exact_match", "bleu", "chrf"):
        assert 0 <= metrics[name] <= 100
    assert metrics["train_seconds"] > 0 and metrics["parameters"] > 30_000


@pytest.mark.slow
def test_the_commands_of_the_readme_work_after_the_demo(folder, tmp_path, monkeypatch):
    """Each alone. `serve` would not end; other tests run it."""
    (tmp_path / "runs").symlink_to(folder / "runs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples" / "browser").mkdir(parents=True)
    lines = "\n".join(block.code for block in blocks("README.md", "sh")).split("\n")
    ours = [shlex.split(line, comments=True) for line in lines if "keras-transformer" in line]
    ours = [words[words.index("keras-transformer") + 1 :] for words in ours if "runs/demo" in words]
    for words in ours:
        if words[0] != "serve":
            command(*words, data=b"in 17 weeks\n")
    assert len(ours) == 5 and (tmp_path / "serving" / "translator" / "1").is_dir()
    (call,) = [span for span in spans("README.md") if "runs/demo" in span and ".open(" in span]
    translation = eval(call, {"keras_transformer": keras_transformer})
    (line,) = command("translate", "runs/demo", data=b"in 17 weeks\n").stdout.splitlines()
    assert translation == line


@pytest.mark.slow
def test_the_model_computes_in_float32_for_any_training_precision(folder):
    assert Run(folder / "runs" / "demo").load_model().policy.name == "float32"


@pytest.mark.slow
def test_run_saved_model_and_litert_translate_alike(folder):
    run = folder / "runs" / "demo"
    lines = ["in 17 weeks", "", "Japan", "France, Japan, and Brazil " * 9, "March 5, 2031", "Ω≠∞"]
    data = "\n".join(lines).encode() + b"\n\xff\xfe\nin 3 days"
    results = [
        command("translate", model, data=data)
        for model in (run, run / "serving", run / "serving" / "1", run / "demo.tflite")
    ]
    assert len({result.stdout for result in results}) == 1
    assert len({result.stderr for result in results}) == 1
    output = results[0].stdout.split("\n")
    assert len(output) == 9 and output[8] == ""
    assert output[1] == "" and output[6] == ""
    assert output[0] and output[2]
    assert "line 4: longer than the model's limit" in results[0].stderr
    assert "line 7: not UTF-8" in results[0].stderr


@pytest.mark.slow
def test_repeating_the_command_reports_that_the_run_is_finished(folder):
    run = folder / "runs" / "demo"
    before = (run / "model.keras").read_bytes()
    done = command("train", run / "config.toml", "--output", run)
    assert "is finished" in done.stderr
    assert (run / "model.keras").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_MODEL)
def test_the_python_of_a_page_that_needs_a_model_runs(folder, page, monkeypatch):
    (folder / "serving").mkdir(exist_ok=True)
    for made, name in (("demo.tflite", "demo.tflite"), ("serving", "serving/translator")):
        if not (folder / name).exists():
            os.symlink(folder / "runs" / "demo" / made, folder / name)
    monkeypatch.chdir(folder)
    run([block for block in blocks(page, "python") if block.needs in NEEDS])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "file"),
    [
        (
            "keras_transformer.text.tokenizers.sentencepiece",
            "keras_transformer/text/tokenizers/sentencepiece.py",
        ),
        (
            "keras_transformer.tasks.translation.pipeline",
            "keras_transformer/tasks/translation/pipeline.py",
        ),
        ("keras_transformer.documents.documents", "keras_transformer/documents/documents.py"),
        ("keras_transformer.export", "export/ctranslate2/translator.py"),
    ],
)
def test_the_examples_of_docstrings_that_need_a_model_run(folder, module, file, monkeypatch):
    if file.startswith("export/ctranslate2") and not (folder / "model").exists():
        pytest.importorskip("ctranslate2")
        command("export", "ctranslate2", folder / "runs" / "demo", folder / "model")
    monkeypatch.chdir(folder)
    examples = dict(unrun_examples(ROOT / file))
    assert examples
    for name, code in examples.items():
        names = {name: getattr(importlib.import_module(module), name)}
        exec(compile(code, f"{file}: {name}", "exec"), names)
