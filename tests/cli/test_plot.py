"""`plot`: each subcommand draws the figure of its function from the given runs and settings."""

import json

import keras
import numpy as np
import pytest
from click.testing import CliRunner
from marks import slow
from pipelines import classifier, generator, speech_recognizer, translator, write_run
from support import randomise
from tasks.test_speech_recognizer import RECORDINGS

from keras_transformer.cli import plot
from keras_transformer.cli.main import cli
from keras_transformer.models import ImageClassifier, ImageClassifierConfig
from keras_transformer.pipelines import ImageClassificationPipeline, Run
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.training.loop.history import History, columns_of

SENTENCE = "the big dog"
CONFIG = '[data]\nsource = "cldr"\n[schedule]\nwarmup_steps = {warmup}\n[training]\nupdates = 30\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of runs of each kind, with untrained models."""
    made = {}
    for pipeline in (translator(), classifier(), generator()):
        run = Run(tmp_path_factory.mktemp("runs") / pipeline.task)
        run.path.mkdir()
        run.write_tokenizers(pipeline.tokenizers)
        pipeline.model.save(run.model)
        made[pipeline.task] = run.path
    return made


def test_a_schedule_that_depends_on_the_data_cannot_be_drawn(tmp_path):
    path = tmp_path / "open.toml"
    path.write_text('[data]\nsource = "cldr"\n[schedule]\nwarmup_steps = 3\n')
    done = CliRunner().invoke(cli, ["plot", "schedule", str(path), "--output", "x.png"])
    assert done.exit_code == 2
    assert f"{path}: training.updates would be derived from the training data. Set" in done.stderr


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures = []
    monkeypatch.setattr(plot, "save_figure", lambda figure, path: figures.append(figure))
    return figures


def call(*arguments):
    return CliRunner().invoke(cli, ["plot", *map(str, arguments)])


def draw(*arguments):
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    return done


def images(figure):
    return [axes.images[0].get_array() for axes in figure.axes if axes.images]


def lines(figure):
    return [[line.get_data() for line in axes.get_lines()] for axes in figure.axes]


PIPELINES = {
    "translation": (translator, ["cross", "encoder", "decoder"]),
    "classification": (classifier, ["encoder"]),
    "language_modelling": (generator, ["decoder"]),
}


@pytest.mark.parametrize("task", [slow("translation"), "language_modelling"])
def test_attention_of_a_run(runs, drawn, task, tmp_path):
    pipeline, kinds = PIPELINES[task]
    output = tmp_path / "x.png"
    attentions = pipeline().attention(SENTENCE)
    done = draw("attention", runs[task], SENTENCE, "--output", output)
    assert done.stdout == f"{output}\n"
    np.testing.assert_allclose(images(drawn[0])[0], attentions[kinds[0]].mean(), atol=1e-5)
    for kind in kinds:
        draw("attention", runs[task], SENTENCE, "--output", output, "--kind", kind, "--layers")
        layers, heads, *size = attentions[kind].weights.shape
        panels = np.reshape(images(drawn[-1]), (layers, heads, *size))
        np.testing.assert_allclose(panels, attentions[kind].weights, atol=1e-5)
    other = {"cross", "encoder", "decoder"} - {*kinds}
    for kind in other:
        done = call("attention", runs[task], SENTENCE, "--output", output, "--kind", kind)
        line = f"--kind must be one of {', '.join(kinds)}. Received: --kind '{kind}'."
        assert (done.exit_code, done.stderr) == (2, f"Error: {line}\n")


@pytest.fixture(scope="module")
def image_run(tmp_path_factory):
    """The folder of an image run with an untrained model, and the path of an image."""
    run = Run(tmp_path_factory.mktemp("images") / "run")
    run.path.mkdir()
    config = ImageClassifierConfig(
        labels=("a", "b"), image_height=4, image_width=6, channels=1, patch_size=2, num_layers=2,
        num_heads=3, d_model=12, d_ff=8, pooling="class",
    )  # fmt: skip
    randomise(ImageClassifier(config)).save(run.model)
    path = run.path / "seven.png"
    keras.utils.save_img(path, np.random.default_rng(0).integers(0, 256, (4, 6, 1)), scale=False)
    return run.path, path


@pytest.mark.long
@pytest.mark.slow
def test_attention_between_words(runs, drawn, tmp_path):
    output = tmp_path / "x.png"
    draw("attention", runs["translation"], SENTENCE, "--output", output, "--words")
    expected = translator().attention(SENTENCE)["cross"].by_words()
    assert expected.keys[:3] == SENTENCE.split()
    np.testing.assert_allclose(images(drawn[0])[0], expected.mean(), atol=1e-5)
    done = call(
        "attention", runs["translation"], SENTENCE, "--output", output, "--words", "--layers"
    )
    assert "--words shows the mean over layers and heads" in done.stderr
    page = tmp_path / "x.html"
    done = call("attention", runs["translation"], SENTENCE, "--html", page, "--words")
    assert "--words has no effect without --output" in done.stderr


def test_attention_of_an_image(image_run, drawn, tmp_path):
    folder, image = image_run
    attention = ImageClassificationPipeline.from_run(folder).attention(image)["class"]
    for options in ([], ["--kind", "class", "--layers"]):
        draw("attention", folder, image, "--output", tmp_path / "x.png", *options)
    of_last, of_all = ([axis.images[-1].get_array() for axis in f.axes] for f in drawn)
    np.testing.assert_allclose(of_last[1], attention.weights[-1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(of_all[-1], attention.weights[1, 2], atol=1e-6)
    assert drawn[0].axes[0].get_title() == attention.label
    for words, code, line in (
        ([image, "--output", tmp_path / "x.png", "--kind", "cross"], 2,
         "--kind must be one of class. Received: --kind 'cross'."),
        ([image, "--html", tmp_path / "x.html"], 1,
         "`attentions` must be attention between tokens, which the page lists; draw a figure "
         "instead. Received: kind='class'."),
        (["none.png", "--output", tmp_path / "x.png"], 1,
         "none.png: cannot be read: No such file or directory."),
    ):  # fmt: skip
        done = call("attention", folder, *words)
        assert (done.exit_code, done.stderr) == (code, f"Error: {line}\n")


@pytest.mark.long
@pytest.mark.slow
def test_attention_of_a_recording(drawn, tmp_path):
    pipeline = speech_recognizer()
    folder, path = write_run(pipeline, tmp_path / "speech"), tmp_path / "a.wav"
    sound = [one for one in RECORDINGS if pipeline([one])[0]][0]  # with words
    path.write_bytes(encode_wav(sound, 1000))
    attention = pipeline.attention(path)["sound"]
    output = tmp_path / "x.png"
    for options in ([], ["--kind", "sound", "--layers"]):
        done = draw("attention", folder, path, "--output", output, *options)
        assert done.stdout == f"{output}\n"
    spectrogram, words = images(drawn[0])
    np.testing.assert_allclose(spectrogram, attention.frames.T, atol=1e-5)
    np.testing.assert_allclose(words, attention.mean(), atol=1e-5)
    np.testing.assert_allclose(images(drawn[1])[-1], attention.weights[-1, -1], atol=1e-5)
    path.write_bytes(encode_wav(np.tile(sound, 3), 1000))
    done = draw("attention", folder, path, "--output", output)
    assert "SENTENCE is longer than the model's limit; its end was cut off" in done.stderr
    done = call("attention", folder, path, "--output", output, "--words")
    assert "--words draws attention between texts. Received: attention of the kind sound" in (
        done.stderr
    )
    done = call("attention", folder, path, "--html", tmp_path / "x.html")
    assert done.exit_code == 1 and "kind='sound'" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_page_and_a_figure_are_written_together(runs, tmp_path):
    picture, page = tmp_path / "new" / "x.pdf", tmp_path / "new" / "x.html"
    done = draw("attention", runs["translation"], SENTENCE, "--output", picture, "--html", page)
    assert done.stdout == f"{picture}\n{page}\n"
    assert picture.read_bytes().startswith(b"%PDF")
    text = page.read_text("utf-8").split('type="application/json">')[1].split("</script>")[0]
    expected = translator().attention(SENTENCE)
    shown = json.loads(text)
    assert [len(kind["weights"]) for kind in shown] == [1, 2, 1]  # number of layers
    for kind, attention in zip(shown, expected.values(), strict=True):
        assert (kind["queries"], kind["keys"]) == (attention.queries, attention.keys)
        weights = np.array(kind["weights"]) / 1000
        np.testing.assert_allclose(weights, attention.weights, atol=6e-4)
    assert sorted(page.parent.iterdir()) == [page, picture]


def test_a_truncated_sentence_is_reported(runs, drawn, tmp_path):
    done = draw("attention", runs["classification"], "a dog " * 20, "--output", tmp_path / "x.png")
    warning = "SENTENCE is longer than the model's limit; its end was cut off"
    assert done.stderr == f"Warning: {warning}\n"


def test_letters_without_a_font_are_reported(tmp_path):
    from keras_transformer.plots.figure import new_figure

    figure = new_figure(2, 1)
    figure.text(0.1, 0.1, "\U0001fa7a\ue123")
    with CliRunner().isolation() as (_, stderr, *_):
        plot._save(figure, tmp_path / "x.png")
        assert b"no font of this machine has some of the letters" in stderr.getvalue()


def test_every_offered_kind_of_position_is_drawn(drawn, tmp_path):
    (kind,) = (p for p in cli.commands["plot"].commands["positions"].params if p.name == "kind")
    assert kind.type.choices == ("binary", "sinusoidal")
    for choice in kind.type.choices:
        draw("positions", "--output", tmp_path / "x.svg", "--kind", choice, "--length", 7)
    assert len(drawn) == len(kind.type.choices)


def test_positions_and_masks(drawn, tmp_path):
    draw("positions", "--output", tmp_path / "x.svg", "--length", 7, "--d-model", 12)
    draw("masks", "--output", tmp_path / "x.svg", "--length", 6, "--real", 4)
    assert [image.shape for image in images(drawn[0])] == [(7, 12), (7, 7)]
    assert [image.sum() for image in images(drawn[1])] == [24, 21, 18]


def test_schedules_of_configurations(drawn, tmp_path):
    for warmup in (3, 9):
        (tmp_path / f"{warmup}.toml").write_text(CONFIG.format(warmup=warmup))
    configs = [tmp_path / f"{warmup}.toml" for warmup in (3, 9)]
    draw("schedule", *configs, "--output", tmp_path / "x.png", "--scale", "log")
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    for warmup, (updates, rates) in zip((3, 9), lines(drawn[0])[0], strict=True):
        assert (updates[0], updates[-1]) == (1, 30)
        assert updates[np.argmax(rates)] == warmup
        assert max(rates) == pytest.approx((128 * warmup) ** -0.5)  # the width of the preset "tiny"
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names == [str(path) for path in configs]


def test_curves_of_unfinished_runs_are_drawn(drawn, tmp_path):
    for name, loss in (("one", 3.0), ("two", 4.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(CONFIG.format(warmup=3))
        history = History(tmp_path / name / "history.csv", columns_of(TASKS["translation"]))
        history.restore(0)
        history.add(5, {"validation/loss": loss, "validation/perplexity": 20})
        history.flush()
    draw("curves", tmp_path / "one", tmp_path / "two", "--output", tmp_path / "x.png")
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert titles == ["loss per token", "perplexity"]
    assert [y.tolist() for _, y in lines(drawn[0])[0]] == [[3.0], [4.0]]


def test_structure_of_a_run_and_of_a_configuration(runs, drawn, tmp_path):
    run = runs["translation"]
    for model in (run, "wmt14_en_de_base"):
        draw("structure", model, "--output", tmp_path / "x.png")
    of_run, of_config = ([text.get_text() for text in figure.axes[0].texts] for figure in drawn)
    assert f"Transformer: {translator().model.count_params():,} parameters" in of_run
    assert "Transformer: 63,045,632 parameters" in of_config
