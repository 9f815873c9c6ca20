"""A run and its exports have one interface, whatever their form."""

import contextlib
import json
import re
import subprocess
import sys

import pytest
from pipelines import embedder, write_run

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Sample, Shortlist
from keras_transformer.export import (
    ExportError,
    export_ctranslate2,
    export_onnx,
    export_saved_model,
)
from keras_transformer.opening import forms
from keras_transformer.options import OptionError
from keras_transformer.pipelines import Answering, Documents
from keras_transformer.tasks import TASKS

ONE, OTHER = "in 3 weeks", "after 12 hours and 30 minutes"
TAG = re.compile("<[^>]*>")
SLOW = pytest.mark.slow
FORMS = ("run", "saved-model", "litert", "onnx", "ctranslate2")
ONE_SEARCH = ("litert", "onnx")  # exported for greedy search
# Arguments of `open` that the form takes, of those that not all forms take.
TAKEN = {
    "run": {"max_length"},
    "saved-model": set(),
    "litert": {"num_threads", "num_parallel_calls"},
    "onnx": {"num_threads"},
    "ctranslate2": {"num_threads", "num_parallel_calls", "compute_type"},
}


@pytest.fixture(scope="module")
def paths(request, translator, tmp_path_factory):
    """A function that returns the path of a form of one model."""
    folder, made = tmp_path_factory.mktemp("forms"), {}

    def write(name):
        if name == "run":
            return write_run(translator, folder / "run")
        if name == "saved-model":
            return request.getfixturevalue("serving")[0]
        if name == "litert":
            pytest.importorskip("ai_edge_litert")
            return request.getfixturevalue("export")("none")[0]
        if name == "onnx":
            pytest.importorskip("onnxruntime")
            export_onnx(translator, folder / "x.onnx", [ONE, OTHER])
            return folder / "x.onnx"
        pytest.importorskip("ctranslate2")
        export_ctranslate2(translator, folder / "ct2", [ONE, OTHER])
        return folder / "ct2"

    def path(name):
        if name not in made:
            made[name] = write(name)
        return made[name]

    return path


@pytest.fixture(scope="module", params=["run", *(pytest.param(n, marks=SLOW) for n in FORMS[1:])])
def form(request):
    return request.param


@pytest.fixture(scope="module")
def path(form, paths):
    return paths(form)


@pytest.fixture(scope="module")
def opened(path):
    """The opened form, which no test may change."""
    opened = keras_transformer.open(path)
    before = state(opened)
    yield opened
    assert state(opened) == before


def state(opened):
    """Returns what a change would change."""
    return opened.search, opened.max_outputs, opened(ONE), opened.tokenizers is None


@contextlib.contextmanager
def refused(name, words="has no effect"):
    """Requires an error of one line that names an option first."""
    with pytest.raises(OptionError, match=rf"^`{name}` .*{words}") as caught:
        yield
    assert "\n" not in str(caught.value)


def test_the_form_is_found_by_its_files(form, path):
    assert forms.form_of(path).name == form


def test_one_input_and_lists_are_answered(opened, translator):
    assert isinstance(opened, Answering) and opened.generates and opened.has_source
    expected = translator([ONE, OTHER])
    assert expected[0] != expected[1]
    assert opened(ONE) == expected[0]
    assert opened([OTHER, ONE, OTHER], batch_size=2) == [expected[1], *expected]
    assert opened([]) == opened.answer([]) == opened.answer_batch([]) == []
    assert opened("") == "" and opened([""]) == [""]


def test_answers_have_scores_in_the_order_of_the_inputs(opened, translator):
    counts = []
    results = opened.answer([OTHER, ONE, OTHER], batch_size=2, progress=counts.append)
    expected = translator.answer([OTHER, ONE, OTHER])
    assert [one.text for one in results] == [one.text for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in results] == pytest.approx(scores, abs=1e-4)
    assert type(opened.answer(ONE)) is type(translator.answer(ONE)) and counts == [2, 3]


def test_documents_keep_their_tags(opened, translator):
    """The text is that of the sentences alone, and the tags are those of the page."""
    page = f"<h1>{ONE}</h1>\n<p title='a'>After <b>12 hours</b>? <i>{ONE}</i>!</p>"
    answer = Documents(opened, "html").answer(page)
    assert sorted(TAG.findall(answer.text)) == sorted(TAG.findall(page))
    heading, *others = (translator(text) for text in (ONE, "After 12 hours?", f"{ONE}!"))
    assert TAG.sub("", answer.text) == f"{heading}\n{' '.join(others)}"
    assert answer.placed_by_order == (0 if opened.aligns else 2)


def test_strings_may_be_bytes(opened):
    assert opened(ONE.encode()) == opened(ONE)
    assert opened([ONE.encode(), OTHER]) == opened(one for one in (ONE, OTHER))


def test_a_setting_of_a_beam_that_an_export_fixes_is_refused(opened, form):
    beam = Beam(4, min_length=3)
    if form == "run":
        assert opened.with_search(beam).search == beam
        return
    message = {
        "saved-model": "^`min_length` of the beam of .* is 1, which is fixed in the export",
        "litert": "exported for greedy search only",
        "onnx": "exported for greedy search only",
        "ctranslate2": "^`normalization` of a beam in CTranslate2 must be",
    }[form]
    with pytest.raises(ValueError, match=message):
        opened.with_search(beam)


@SLOW
def test_an_export_is_not_exported_again(opened, form, tmp_path):
    if form == "run":
        return
    with pytest.raises(ExportError, match="opened from an export cannot be exported"):
        export_ctranslate2(opened, tmp_path / "again", [ONE])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [7, None, [7], ["in 3", None]])
def test_other_inputs_are_refused(opened, wrong):
    with pytest.raises(TypeError, match=r"^`sentences` must be a list of strings\. Received: "):
        opened(wrong)


@pytest.mark.slow
def test_n_best_lists_are_as_long_as_the_form_allows(opened, translator):
    (best,) = opened.n_best(ONE, 1)
    ((same,), _) = opened.n_best([ONE, OTHER], 1)
    assert best.text == same.text == translator(ONE)
    assert best.score == pytest.approx(same.score, abs=1e-4)
    assert opened.n_best([], 1) == []
    most = opened.max_outputs
    if most is not None:
        with refused("n", f"between 1 and the number of outputs that the export returns, {most}"):
            opened.n_best(ONE, most + 1)
    if most != 1:
        first, second = opened.n_best(ONE, 2)
        assert first.text != second.text and first.score >= second.score


@pytest.mark.slow
def test_a_search_makes_a_new_object(opened, form, translator):
    search = Greedy() if form in ONE_SEARCH else opened.beam_with(size=2)
    other = opened.with_search(search)
    assert type(other) is type(opened) and other is not opened
    assert other.search == search and opened.search != Beam(2)
    expected = translator(ONE, search)
    assert other(ONE) == opened(ONE, search=search) == opened(ONE, search) == expected
    if form not in ONE_SEARCH:
        outputs = other.n_best(ONE, 2, other.search)
        assert len(outputs) == 2 and outputs[0].text == expected


def test_a_beam_takes_what_is_fixed_from_the_form(opened, form):
    fixed = dict.fromkeys(("run", "saved-model", "litert", "onnx"), Beam(3))
    average = Beam(3, normalization="average", extra_length=None)
    assert opened.beam_with(size=3) == fixed.get(form, average)
    with pytest.raises(TypeError, match="width"):
        opened.beam_with(width=3)


def test_another_kind_of_search_is_refused(opened, form, path):
    wrong = "beam" if form in ("run", "onnx") else Sample()  # these also know sampling
    for attempt in (
        lambda: opened.with_search(wrong),
        lambda: opened(ONE, search=wrong),
        lambda: keras_transformer.open(path, search=wrong),
    ):
        with pytest.raises(TypeError, match=r"^`search` must be a `"):
            attempt()


def test_languages_and_settings_of_other_models_are_refused(opened, form, path):
    assert not opened.has_languages
    words = {"glossary", "banned", "prefix", "token_scores"} if form == "run" else {*()}
    assert {*opened.settings} == words
    assert opened.with_languages() is opened.with_settings() is opened
    if form != "saved-model":  # its signatures say that its languages are fixed
        with refused("source_language", "the languages are fixed"):
            opened.with_languages("de")
        with refused("target_language", "the languages are fixed"):
            keras_transformer.open(path, target_language="de")
    for name in ("spans", "dimensions", "no_such_setting"):
        with refused(name, f"no effect on a model for .*{name}=True"):
            opened.with_settings(**{name: True})
        with refused(name, f"no effect on a model for .*{name}=True"):
            keras_transformer.open(path, **{name: True})


@pytest.mark.parametrize("name", ["max_length", "num_threads", "num_parallel_calls"])
def test_an_argument_without_effect_names_itself(path, form, name):
    if name in TAKEN[form]:
        assert keras_transformer.open(path, **{name: 2}).answer_batch([]) == []
        return
    title = forms.form_of(path).title
    with refused(name, rf"on .*, {title}\. Received: {name}=2\.$"):
        keras_transformer.open(path, **{name: 2})


def test_a_type_of_numbers_is_for_ctranslate2(path, form):
    if "compute_type" in TAKEN[form]:
        opened = keras_transformer.open(path, compute_type="float32")
        assert opened(ONE) == keras_transformer.open(path)(ONE)
        return
    with refused("compute_type"):
        keras_transformer.open(path, compute_type="float32")


def test_a_shortlist_is_for_runs(path, form, translator):
    size = translator.tokenizers.target.vocab_size
    shortlist = Shortlist.from_counts([], size, first=size)
    if form == "run":
        assert keras_transformer.open(path, shortlist=shortlist)(ONE) == translator(ONE)
        return
    with refused("shortlist", "needs a run that generates a text from a text"):
        keras_transformer.open(path, shortlist=shortlist)


def test_attention_is_that_of_the_run_or_refused(opened, form):
    if form in ("run", "saved-model"):
        assert opened.attention(ONE)["cross"].weights.shape[0] == 1
        return
    with pytest.raises(ValueError, match="has no attention weights to show"):
        opened.attention(ONE)


@SLOW
def test_opening_imports_no_other_task_and_no_training(path):
    """In a new process: a model of translation needs nothing of Whisper, Exif or river series."""
    code = (
        "import sys, keras_transformer; K = 'keras_transformer.';"
        f"keras_transformer.open({str(path)!r})({ONE!r});"
        "names = [name.split('.')[1:3] for name in sys.modules if name[:18] == K];"
        "print(*{name[-1] for name in names if name[0] == 'tasks'});"
        "print(*{name[0] for name in names})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tasks, packages = map(str.split, done.stdout.splitlines())
    others = {name for name in TASKS if name != "translation"} | {"images", "series"}
    assert "answering" in tasks and not {*tasks} & others
    assert "opening" in packages and not {"training", "cli", "plots"} & {*packages}


@SLOW
def test_a_saved_model_imports_its_own_task_only(tmp_path):
    """Its metadata names the task, also one that is registered after translation."""
    export_saved_model(embedder(), tmp_path / "m", ["a", "b"])
    code = (
        "import sys, keras_transformer; from keras_transformer.tasks import TASKS;"
        f"keras_transformer.open({str(tmp_path / 'm')!r})(['a']);"
        "names = {name.split('.')[2] for name in sys.modules if '.tasks.' in name[:24]};"
        "print(*names & {*TASKS})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["embedding"]


@SLOW
@pytest.mark.parametrize("form", FORMS[1:])
def test_without_the_package_of_exports_the_error_is_one_line(form, paths, monkeypatch):
    path = paths(form)
    monkeypatch.setattr(forms.importlib.util, "find_spec", lambda name: None)
    message = (
        rf"^{path} holds no model: a model is a run; exports are opened by "
        r"keras_transformer.export, which is not installed\.$"
    )
    with pytest.raises(ValueError, match=message):
        keras_transformer.open(path)


@SLOW
def test_several_paths_are_runs(paths, translator):
    run = paths("run")
    both = keras_transformer.open([run, run])
    assert len(both.models) == 2 and both(ONE) == translator(ONE)
    with pytest.raises(ValueError, match="is not a run: only runs form an ensemble"):
        keras_transformer.open([run, paths("litert")])


@pytest.mark.parametrize("path", [None, 7, ["a", None], {"a": 1}])
def test_a_path_of_another_type_is_refused(path):
    with pytest.raises(TypeError, match=r"^`path` must be a path or a list of paths\. Received: "):
        keras_transformer.open(path)


def test_paths_without_a_model_are_reported(tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist: a model is a run or an export"):
        keras_transformer.open(tmp_path / "nowhere")
    with pytest.raises(
        ValueError, match="holds no model: a model is a run, a SavedModel, a .tflite"
    ):
        keras_transformer.open(tmp_path)
    (tmp_path / "decoder.yml").write_text(json.dumps({}))
    with pytest.raises(ValueError, match="is a folder for Marian: `marian-decoder -c "):
        keras_transformer.open(tmp_path)
