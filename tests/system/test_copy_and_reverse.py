"""The whole path on a task that needs attention to the source: copy or reverse digits."""

import io

import numpy as np
import pytest
import rich.console
from exporting import asked

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.export import (
    LiteRTOptions,
    SavedModelOptions,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.pipelines import Run
from keras_transformer.training import distill, load_settings, train
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.evaluate import evaluate_files

CONFIG = """
[model]
preset = "tiny"
num_layers = 1
d_model = 64
d_ff = 128
num_heads = 4
dropout = 0.0
max_length = 16

[data]
source = "text"
train_source = "train.source"
train_target = "train.target"
validation_source = "validation.source"
validation_target = "validation.target"
max_length = 16
batch_tokens = 512

[vocabulary]
size = 17

[schedule]
kind = "linear"
warmup_steps = 60
peak = 0.004

[training]
updates = 900
validate_every = 900
"""


def write_task(folder, split, count, seed):
    """Writes "c 7 1 4" -> "7 1 4" and "r 7 1 4" -> "4 1 7", with 1 to 6 digits."""
    rng = np.random.default_rng(seed)
    sources, targets = [], []
    for number in range(count):
        digits = rng.integers(0, 10, rng.integers(1, 7)).astype(str)
        order, step = (("c", 1), ("r", -1))[number % 2]
        sources.append(" ".join([order, *digits]))
        targets.append(" ".join(digits[::step]))
    for side, lines in (("source", sources), ("target", targets)):
        (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that takes the kind of decoder and returns the folder of a training run."""
    folders = {}

    def of(decoder):
        if decoder not in folders:
            folder = folders[decoder] = tmp_path_factory.mktemp(decoder)
            write_task(folder, "train", 20_000, seed=0)
            write_task(folder, "validation", 200, seed=1)
            write_task(folder, "test", 200, seed=2)
            (folder / "config.toml").write_text(CONFIG)
            start = {"self_attention": "token", "ssru": "zeros"}[decoder]
            changes = [f"model.decoder={decoder}", f"model.decoder_start={start}"]
            settings = load_settings(folder / "config.toml", changes)
            train(settings, folder / "run", console=rich.console.Console(file=io.StringIO()))
        return folders[decoder]

    return of


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["self_attention", "ssru"])
def test_a_model_learns_to_copy_and_to_reverse(decoder, trained):
    folder = trained(decoder)
    figures = Run(folder / "run").read_metrics()
    assert figures["validation"]["token_accuracy"] > 0.99
    results = evaluate_files(folder / "run", folder / "test.source", folder / "test.target")
    assert results["sentences"] == 200
    assert results["exact_match"] > 95
    translator = Translator.from_run(folder / "run")
    assert translator(["r 3 1 4 1 5", "c 3 1 4 1 5", "c 0"]) == ["5 1 4 1 3", "3 1 4 1 5", "0"]


def lines(folder, name):
    return (folder / name).read_text().splitlines()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_saved_model_of_a_recurrent_decoder_translates_as_the_run(jit, trained, tmp_path):
    """The export also checks this with a newly loaded copy and the session loader."""
    folder = trained("ssru")
    translator, sources = Translator.from_run(folder / "run"), lines(folder, "test.source")
    shapes = {"batch_sizes": (4,), "lengths": (16,)} if jit else {}
    export_saved_model(
        translator, tmp_path / "served", sources[:50], **asked(SavedModelOptions, jit=jit, **shapes)
    )
    loaded = SavedModelTranslator(tmp_path / "served")
    outputs = [output.text for output in loaded.answer_batch(sources)]
    assert outputs == translator(sources)
    targets = lines(folder, "test.target")
    assert np.mean([one == two for one, two in zip(outputs, targets, strict=True)]) > 0.95


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "quantize",
    [
        "none",
        pytest.param("float16", marks=pytest.mark.long),
        "int8",
        pytest.param("int8_static", marks=pytest.mark.long),
    ],
)
def test_a_litert_file_of_a_recurrent_decoder_passes_its_agreement_check(
    quantize, trained, tmp_path
):
    pytest.importorskip("ai_edge_litert")
    folder, path = trained("ssru"), tmp_path / "x.tflite"
    translator, sources = Translator.from_run(folder / "run"), lines(folder, "test.source")
    options = {"lengths": [16], "batch_sizes": [1, 8], "searches": [Greedy(), Beam(3)]}
    if quantize == "int8_static":
        options["calibration"] = lines(folder, "train.source")[:300]
    references = lines(folder, "test.target")
    export_litert(
        translator,
        path,
        sources,
        references=references,
        **asked(LiteRTOptions, quantize, **options),
    )
    for search in (Greedy(), Beam(3)):
        expected = translator(sources, search)
        outputs = [output.text for output in LiteRTTranslator(path, search).answer_batch(sources)]
        same = np.mean([one == two for one, two in zip(outputs, expected, strict=True)])
        assert same == 1 if quantize == "none" else same > 0.95


@pytest.mark.slow
@pytest.mark.long
def test_a_student_learns_from_its_teacher_only_and_can_be_exported(trained, tmp_path):
    """The references of its training data are wrong; those of the validation data are right."""
    folder = trained("self_attention")
    (tmp_path / "wrong").write_text("0 0\n" * 20_000)
    student = [
        f"data.train_target={tmp_path}/wrong",
        "model.decoder=ssru",
        "model.decoder_start=zeros",
        "model.d_model=48",
    ]
    settings = load_settings(folder / "config.toml", student)
    console = rich.console.Console(file=io.StringIO())
    teachers, run = [folder / "run"], tmp_path / "run"
    distil = Distillation(Beam(2), batch_size=256)
    figures = distill(settings, run, teachers, distil, console=console)
    assert figures["validation"]["token_accuracy"] > 0.98
    assert figures["parameters"] < Run(folder / "run").read_metrics()["parameters"]
    results = evaluate_files(run, folder / "test.source", folder / "test.target")
    assert results["exact_match"] > 90
    sources = lines(folder, "test.source")
    export_saved_model(Translator.from_run(run), tmp_path / "served", sources[:20])
    loaded = SavedModelTranslator(tmp_path / "served")
    outputs = loaded.answer_batch(["r 3 1 4 1 5", "c 3 1 4 1 5"])
    assert [output.text for output in outputs] == ["5 1 4 1 3", "3 1 4 1 5"]
