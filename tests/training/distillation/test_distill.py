"""Distillation: the student learns exactly the texts that its teachers generate."""

import dataclasses
import pathlib
import shutil
import types

import numpy as np
import pytest
from distillations import CONFIG, LONG, ORIGIN, call, lines, settings_of, write_run
from marks import slow
from mixer_rows import MIXERS, model_options, stacks_with
from pipelines import SIZES, classifier, tokenizer, translator, with_larger_weights
from support import randomise

from keras_transformer import Beam, Transformer, TransformerConfig, Translator, files
from keras_transformer.decoding import Ensemble, SearchOptions
from keras_transformer.pipelines import Run
from keras_transformer.shards import Shard
from keras_transformer.tasks import TASKS
from keras_transformer.training.distillation import distill as module
from keras_transformer.training.distillation import student as student_files
from keras_transformer.training.distillation import translations
from keras_transformer.training.distillation.distill import distill
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.distillation.student import prepare_run, size_warning
from keras_transformer.training.distillation.teachers import Searcher, Teacher, open_teachers
from keras_transformer.training.loop.checkpoint import Checkpoints, read_state
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tasks import training_class


@pytest.fixture(scope="module")
def student(folder, tmp_path_factory):
    """A run of two updates, and the result of its distillation."""
    run = Run(tmp_path_factory.mktemp("student") / "run")
    figures, shown = call(folder, run.path)
    return types.SimpleNamespace(run=run, figures=figures, shown=shown.getvalue())


@pytest.mark.slow
def test_a_student_that_is_not_smaller_than_its_teacher_is_a_warning(folder, student):
    (teacher,) = open_teachers([folder / "one"], TASKS["translation"])
    settings, count = load_settings(student.run.config), student.run.load_model().count_params()
    for theirs, warned in ((count + 1, False), (count, True), (None, False)):
        metrics = {} if theirs is None else {"parameters": theirs}
        run = types.SimpleNamespace(read_metrics=lambda metrics=metrics: metrics)
        text = size_warning(settings, dataclasses.replace(teacher, run=run))
        beginning = f"Warning: the student has {count:,} parameters and its teacher {count:,}: a s"
        assert text.startswith(beginning) if warned else text == ""
    assert size_warning(settings, None) == ""


def test_the_texts_are_those_of_the_teacher_with_the_same_search(folder, student):
    written = [lines(student.run.distillation / f"train.{side}") for side in ("source", "target")]
    sources = lines(folder / "train.a")
    expected = [best for best, *_ in translator().n_best(sources, 1, Beam(3))]
    truncated = sum(best.truncated for best in expected)
    pairs = [
        (source, best.text)
        for source, best in zip(sources, expected, strict=True)
        if best.text.strip() and not best.truncated
    ]
    assert list(zip(*written, strict=True)) == pairs and len(pairs) > 5 and truncated
    assert not {text for _, text in pairs} & set(lines(folder / "train.b"))
    assert student.figures["distilled"] == {
        "teachers": [{"run": str(folder / "one"), **ORIGIN}],
        "search": "beam 3, gnmt 0.6",
        "best_of": None,
        "sentences": 11,
        "monolingual": 0,
        "kept": len(pairs),
        "truncated": truncated,
        "empty": sum(not best.text.strip() for best in expected),
    }
    assert f"The student learns {len(pairs)} of 11 sentences" in student.shown
    assert "generated 11 of 11" in student.shown and "sentences/s  0:00 left" in student.shown


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", MIXERS)
def test_a_student_with_a_mixer_learns_from_a_teacher_with_it(kind, folder, tmp_path):
    config = TransformerConfig(vocab_size=30, **{**SIZES, **model_options(kind)})
    teacher = Translator(randomise(Transformer(config)), tokenizer())
    write_run(Run(tmp_path / "teacher"), teacher)
    settings = settings_of(folder, f"model.{stacks_with(kind)}={kind}")
    figures, _ = call(tmp_path, tmp_path / "run", "teacher", settings=settings)
    sources = lines(folder / "train.a")
    best = [best for best, *_ in teacher.n_best(sources, 1, Beam(3))]
    texts = [output.text for output in best if output.text.strip() and not output.truncated]
    run = Run(tmp_path / "run")
    assert lines(run.distillation / "train.target") == texts
    assert figures["distilled"]["kept"] == len(texts) > 0
    assert kind in run.config.read_text("utf-8")
    assert len(Translator.from_run(run.path)(sources[:2])) == 2


def test_the_student_is_trained_on_them_and_validated_on_references(folder, student):
    settings = load_settings(student.run.config)
    task, training = settings.task.get(), training_class(TASKS["translation"])(tokenizer())
    data = open_source(settings.data, task.columns)
    checkpoint = Checkpoints(student.run.checkpoints).paths()[-1]
    trained = read_state(checkpoint)["corpus"][-1]
    assert trained == training.corpus(data, "train", settings.data).fingerprint
    original = open_source(settings_of(folder).data, task.columns)
    assert trained != training.corpus(original, "train", settings.data).fingerprint
    theirs, ours = ([*source.rows("validation").as_numpy_iterator()] for source in (original, data))
    assert ours == theirs and len(ours) == 3
    assert settings.data.source_language == "en" and settings.data.target_language == "xx"


def test_vocabulary_and_provenance_are_copied_and_no_draft_is_left(folder, student):
    run = student.run
    assert run.load_tokenizers().files() == Run(folder / "one").load_tokenizers().files()
    assert run.read_origin() == {
        "format": "distilled",
        "name": "student of opus-mt-xx-yy",
        "license": "CC-BY 4.0",
    }
    assert run.read_metrics()["distilled"] == student.figures["distilled"]
    names = {
        f"{split}.{side}" for split in ("train", "validation") for side in ("source", "target")
    }
    assert {path.name for path in run.distillation.iterdir()} == names | {"metadata.json"}
    assert len(Translator.from_run(run.path)(["a cat runs"])) == 1


def test_a_finished_student_stays_finished_and_may_be_moved(folder, student, tmp_path, reader):
    moved = Run(student.run.path.rename(tmp_path / "moved"))
    try:
        assert (
            moved.path.parent
            == pathlib.Path(load_settings(moved.config).data.train_source[0]).parents[2]
        )
        figures, shown = call(folder, moved.path)
        assert figures == student.figures and not reader.calls
    finally:
        moved.path.rename(student.run.path)


@pytest.mark.slow
def test_several_teachers_search_as_an_ensemble(folder):
    teachers = open_teachers([folder / "one", folder / "two"], settings_of(folder).task.get())
    both, alone = Searcher(teachers), Searcher(teachers[1:])
    assert isinstance(both.searched, Ensemble) and both.max_length == 11
    for member, name in zip(both.searched.members, ("one", "two"), strict=True):
        assert_same_weights(member.model, Run(folder / name).load_model())
    assert_same_weights(alone.searched, Run(folder / "two").load_model())


def assert_same_weights(ours, theirs):
    for one, two in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())


@pytest.mark.long
@pytest.mark.slow
def test_several_teachers_search_with_the_mean_of_their_probabilities(folder):
    teachers = open_teachers([folder / "one", folder / "two"], settings_of(folder).task.get())
    sources = lines(folder / "train.a")
    outputs = Searcher(teachers)(sources, Beam(3), 2)
    models = [Run(folder / name).load_model() for name in ("one", "two")]
    source = translator().encode(sources)[0]
    tokens, scores, *_ = Beam(3)(Ensemble(models), source, SearchOptions(n_best=2, cache_length=11))
    texts = tokenizer().decode(tokens[:, 0]).numpy()
    assert [best.text.encode() for best, *_ in outputs] == texts.tolist()
    np.testing.assert_allclose([best.score for best, *_ in outputs], scores[:, 0], rtol=1e-5)
    alone = Searcher(teachers[:1])(sources, Beam(3), 2)
    assert [best.text for best, *_ in alone] != [best.text for best, *_ in outputs]


@pytest.mark.slow
def test_sources_too_long_for_the_teacher_are_left_out(folder, tmp_path, reader):
    file = tmp_path / "more"
    file.write_text(f"{LONG}\n\nthe cat\n")
    metadata = call(folder, tmp_path / "run", monolingual=[file])[0]["distilled"]
    assert [metadata[name] for name in ("sentences", "monolingual", "kept", "truncated")] == [
        13,
        2,
        12,
        1,
    ]
    written = lines(tmp_path / "run" / "distillation" / "train.source")
    assert written == [*lines(folder / "train.a"), "the cat"]
    settings = settings_of(folder, "data.truncate_source=true")
    metadata = call(folder, tmp_path / "truncated", monolingual=[file], settings=settings)[0][
        "distilled"
    ]
    assert metadata["kept"] == 13 and metadata["truncated"] == 1
    teachers = open_teachers([folder / "one"], settings.task.get())
    assert [best.truncated for best, *_ in Searcher(teachers)([LONG, "a"], Beam(1))] == [
        True,
        False,
    ]


def test_an_interrupted_call_resumes_where_it_stopped(folder, tmp_path, reader, stop=4):
    """Parts of four sentences: stops after the first, third or fourth batch of two."""
    whole, run = Run(tmp_path / "whole"), Run(tmp_path / "run")
    call(folder, whole.path, batch_size=2)
    assert reader.calls == 6
    reader.calls, reader.stop = 0, stop
    with pytest.raises(KeyboardInterrupt):
        call(folder, run.path, batch_size=2)
    assert not (run.distillation / "train.target").exists() and not run.config.exists()
    reader.calls, reader.stop = 0, None
    shown = call(folder, run.path, batch_size=2)[1].getvalue()
    assert reader.calls == 6 - (stop - 1) // 2 * 2 and "generated 11 of 11" in shown
    for path in whole.distillation.iterdir():
        assert (run.distillation / path.name).read_text() == path.read_text(), path.name


class Disk:
    """A fake `replacing` that fails at write number `full`, counted from 1."""

    count = full = 0

    def __init__(self, replacing):
        self._replacing = replacing

    def __call__(self, path):
        self.count += 1
        if self.count == self.full:
            raise OSError("the disk is full")
        return self._replacing(path)


@pytest.mark.slow
def test_a_call_that_fails_at_any_write_resumes_there(folder, tmp_path, reader, monkeypatch):
    disk, texts = Disk(files.replacing), module.Texts.read(settings_of(folder))
    monkeypatch.setattr(module.Texts, "read", lambda *arguments: texts)  # generating once is enough
    for writer in (files, student_files):
        monkeypatch.setattr(writer, "replacing", disk)
    whole = contents(folder, tmp_path / "whole")
    writes = disk.count
    # Writes: parts, metadata and texts; then provenance, settings, tokenizer and metrics.
    assert writes == 4 + 2 + 6 + 4
    for disk.full in range(1, writes + 1):
        run, disk.count = tmp_path / str(disk.full), 0
        with pytest.raises(OSError, match="full"):
            contents(folder, run)
        assert disk.count == disk.full
        assert contents(folder, run) == whole


def contents(folder, run):
    """Returns the files of a distillation, a dictionary from names to bytes."""
    call(folder, run, original=2.0)
    return {path.relative_to(run): path.is_file() and path.read_bytes() for path in run.rglob("*")}


def test_a_teacher_of_summaries_can_have_students(folder, tmp_path, reader):
    pytest.importorskip("rouge_score")
    kind = '[task]\nkind = "summarization"\n'
    config = CONFIG.replace('source_language = "en"\ntarget_language = "xx"\n', "")
    (tmp_path / "student.toml").write_text(kind + config)
    for name in ("train", "validation"):
        for side in "ab":
            shutil.copy(folder / f"{name}.{side}", tmp_path)
    shutil.copytree(folder / "two", tmp_path / "teacher")
    with open(tmp_path / "teacher" / "config.toml", "a") as file:
        file.write(kind)
    call(tmp_path, tmp_path / "run", "teacher", settings=load_settings(tmp_path / "student.toml"))
    settings = load_settings(tmp_path / "run" / "config.toml")
    assert settings.task.kind == "summarization" and settings.data.source == "text"
    assert lines(tmp_path / "run" / "distillation" / "train.target")


def test_the_output_closest_to_the_reference_is_learned(folder, tmp_path, reader):
    file = tmp_path / "more"
    file.write_text("the cat\n")
    sources = lines(folder / "train.a")
    references = [
        f"{text[::-1]} {'x' * (number % 3)}".strip() for number, text in enumerate(sources)
    ]
    (tmp_path / "b").write_text("\n".join(references) + "\n")
    settings = settings_of(folder, f"data.train_target={tmp_path}/b")
    call(folder, tmp_path / "run", settings=settings, best_of=3, monolingual=[file])
    written = lines(tmp_path / "run" / "distillation" / "train.target")
    assert written == [*references, "tac eht"]


def test_original_pairs_are_learned_as_often_as_requested(folder, tmp_path, reader):
    call(folder, tmp_path / "run", original=0.5)
    data = load_settings(tmp_path / "run" / "config.toml").data
    source = open_source(data, ("source", "target"))
    pairs = [tuple(map(bytes.decode, row)) for row in source.rows("train").as_numpy_iterator()]
    ours = lines(folder / "train.a")
    assert pairs[:11] == [(text, text[::-1]) for text in ours]
    assert pairs[11:] == list(zip(ours, lines(folder / "train.b"), strict=True))
    np.testing.assert_array_equal(source.weights("train"), [1.0] * 11 + [0.5] * 11)


def test_a_vocabulary_of_the_student_is_learned_in_training(folder, tmp_path, reader):
    call(folder, tmp_path / "run")
    assert Run(tmp_path / "run").vocabulary()
    settings = settings_of(folder, "vocabulary.size=25")
    call(folder, tmp_path / "run", settings=settings, own_vocabulary=True)
    assert not Run(tmp_path / "run").vocabulary()
    assert load_settings(tmp_path / "run" / "config.toml").vocabulary.size == 25
    with pytest.raises(SettingsError, match=r"`vocabulary.size` is 30 there and 25 here\. Remove"):
        call(folder, tmp_path / "other", settings=settings)


def test_the_configuration_is_written_after_the_vocabulary(folder, tmp_path, monkeypatch):
    """With only the configuration, `train` would learn another vocabulary."""
    run, settings = Run(tmp_path), settings_of(folder)
    teacher = Teacher(Run(tmp_path / "teacher"), settings, translator().tokenizers)
    prepare_run(run, settings, teacher, ORIGIN)
    assert load_settings(run.config) == settings
    monkeypatch.setattr(Run, "write_tokenizers", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare_run(run, settings, teacher, ORIGIN)
    assert not run.vocabulary() and not run.config.exists()


@pytest.mark.slow
def test_an_unfinished_student_keeps_its_vocabulary(folder, tmp_path, reader):
    """Even if the settings of both are the same."""
    run = tmp_path / "run"
    settings = settings_of(folder, "vocabulary.size=30")
    for own, whose in ((False, "the teacher's"), (True, "its own")):
        call(folder, run / whose, settings=settings, own_vocabulary=own)
        (run / whose / "model.keras").touch()
        call(folder, run / whose, settings=settings, own_vocabulary=own)
        with pytest.raises(
            ValueError, match=f"was trained with {whose} vocabulary: choose another"
        ):
            call(folder, run / whose, settings=settings, own_vocabulary=not own)


CHANGES = {
    "another search": {"search": Beam(4)},
    "another number of outputs to choose from, other data": {"best_of": 2},
    "other teachers": {"names": ["two"]},
    "other data": {
        "settings": ["data.train_source=validation.a", "data.train_target=validation.b"]
    },
    "another value of `data.truncate_source`": {"settings": ["data.truncate_source=true"]},
}


@pytest.mark.parametrize(
    ("complete", "change"),
    [
        slow(True, "another search"),
        slow(True, "another number of outputs to choose from, other data"),
        slow(True, "other teachers"),
        slow(True, "other data"),
        (False, "another value of `data.truncate_source`"),
    ],
)
def test_texts_generated_differently_are_not_mixed(
    folder, tmp_path, reader, change, complete, monkeypatch
):
    monkeypatch.chdir(folder)
    reader.stop = None if complete else 3
    if complete:
        call(folder, tmp_path / "run", batch_size=2)
    else:
        with pytest.raises(KeyboardInterrupt):
            call(folder, tmp_path / "run", batch_size=2)
    options = dict(CHANGES[change])
    names, overrides = options.pop("names", []), options.pop("settings", [])
    with pytest.raises(ValueError, match=f"was started with {change}.*Choose another folder"):
        call(folder, tmp_path / "run", *names, settings=settings_of(folder, *overrides), **options)
    reader.stop = None
    call(folder, tmp_path / "run", batch_size=3)  # the batch size may change


def test_options_may_change_until_texts_are_generated(folder, tmp_path, reader):
    reader.stop = 1
    with pytest.raises(KeyboardInterrupt):
        call(folder, tmp_path / "run")
    assert (
        call(folder, tmp_path / "run", search=Beam(5))[0]["distilled"]["search"]
        == "beam 5, gnmt 0.6"
    )


def test_the_checksum_of_a_teacher_covers_model_and_vocabulary(folder):
    task = settings_of(folder).task.get()
    one, two = open_teachers([folder / "one", folder / "two"], task)
    assert one.digest() == open_teachers([folder / "one"], task)[0].digest() != two.digest()
    other = dataclasses.replace(one, tokenizers=type(one.tokenizers).of(tokenizer(31)))
    assert one.digest() != other.digest()


@pytest.mark.slow
def test_damaged_files_are_reported(folder, tmp_path, reader):
    reader.stop = 5
    with pytest.raises(KeyboardInterrupt):
        call(folder, tmp_path / "run", batch_size=2)
    reader.stop = None
    part = tmp_path / "run" / "distillation" / "parts" / "forward" / "part-000001.json"
    for text in ("[", '[["a", false]]', "3"):
        part.write_text(text)
        with pytest.raises(ValueError, match=r"part-000001.json is damaged \(.*\): remove it"):
            call(folder, tmp_path / "run")
    part.unlink()
    call(folder, tmp_path / "run")
    (tmp_path / "run" / "distillation" / "metadata.json").write_text("{")
    remedy = (
        rf"metadata.json is damaged \(.*\): put .*, or remove {tmp_path}/run/distillation, whose"
    )
    with pytest.raises(ValueError, match=remedy):
        call(folder, tmp_path / "run")


def test_settings_that_do_not_fit_are_reported_in_one_line(folder, tmp_path, student):
    write_other_runs(tmp_path)
    run = tmp_path / "run"
    cases = {
        "wrong is a run for classification: it cannot teach a student for translation": ["wrong"],
        "pieces has a different vocabulary from .*one: teachers in": ["one", "pieces"],
        "none is not a finished run": ["none"],
    }
    for message, names in cases.items():
        teachers = [
            folder / name if (folder / name).exists() else tmp_path / name for name in names
        ]
        with pytest.raises(ValueError, match=message):
            distill(settings_of(folder), run, teachers)
    config = CONFIG.replace('source_language = "en"\ntarget_language = "xx"\n', "")
    (tmp_path / "c.toml").write_text('[task]\nkind = "classification"\n' + config)
    with pytest.raises(ValueError, match="a student for classification cannot be distilled"):
        distill(load_settings(tmp_path / "c.toml"), run, [folder / "one"])
    for override, message in {
        f"model.start_from={student.run.path}": "`model.start_from` cannot be used in a dist",
        "data.train_weights=[2]": "`data.train_weights` has no effect on a distillation",
        "data.bidirectional=true": "`data.bidirectional` has no effect on a distillation",
    }.items():
        with pytest.raises(ValueError, match=message):
            call(folder, run, settings=settings_of(folder, override))
    with pytest.raises(ValueError, match="one is the teacher's own folder"):
        call(folder, folder / "one")
    with pytest.raises(ValueError, match="two is a run that was trained without a teacher"):
        call(folder, folder / "two")
    assert not run.exists()


def write_other_runs(folder):
    config = TransformerConfig(vocab_size=31, **SIZES)
    pieces = Translator(with_larger_weights(Transformer(config)), tokenizer(31))
    write_run(Run(folder / "pieces"), pieces)
    wrong = Run(folder / "wrong")
    wrong.path.mkdir()
    text = (
        '[task]\nkind = "classification"\n[data]\nsource = "text"\ntrain = "a"\nvalidation = "b"\n'
    )
    wrong.config.write_text(text)
    wrong.write_tokenizers(classifier().tokenizers)
    classifier().model.save(wrong.model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"best_of": 9}, "`best_of` must be between 2 and the `size` of the beam. .*best_of=9"),
        ({"best_of": 1}, "`best_of` must be between 2"),
        ({"original": 0.0}, "`original` must be positive"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"search": None}, "`search` must be a `Beam`"),
    ],
)
def test_wrong_values_are_reported_in_one_line(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Distillation(**options)


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([{}], {}),
        ([{"name": "x", "license": None}], ("student of x", None)),
        (
            [{"name": "x", "license": "MIT"}, {"name": "y", "license": "MIT"}],
            ("student of x, y", "MIT"),
        ),
        (
            [{"name": "x", "license": "MIT"}, {"name": "y"}],
            ("student of x, y", "MIT, an unstated licence"),
        ),
        ([{"name": "x", "license": "MIT"}, {}], ("student of x, 1", "MIT")),
    ],
)
def test_the_provenance_names_all_teachers_and_licences(origins, expected, tmp_path):
    from keras_transformer.training.distillation.student import origin_of

    teachers = []
    for number, origin in enumerate(origins):
        run = Run(tmp_path / str(number))
        run.path.mkdir()
        run.write_origin(origin)
        teachers.append(Teacher(run, None, None))
    result = origin_of(teachers)
    if expected:
        expected = {"format": "distilled", "name": expected[0], "license": expected[1]}
    assert result == expected


def test_texts_are_lines(tmp_path):
    assert translations.one_line("a\r\nb\nc\u2028d") == "a  b c\u2028d"


@pytest.mark.slow
def test_shards_search_their_parts_and_a_call_without_a_shard_continues(folder, tmp_path, reader):
    """In any order and into one folder; the texts equal those of a call for everything."""
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    call(folder, whole.path)
    calls = reader.calls
    for index in (2, 0, 1):
        metadata, _ = call(folder, parts.path, shard=Shard(index, 3))
        assert "kept" not in metadata and not list(parts.distillation.glob("train.*"))
    assert reader.calls == 2 * calls, "each part was searched once"
    call(folder, parts.path)
    assert reader.calls == 2 * calls, "nothing was searched again"
    for side in ("source", "target"):
        texts = [lines(run.distillation / f"train.{side}") for run in (whole, parts)]
        assert texts[0] == texts[1] and texts[0]


def test_shards_of_another_search_are_not_mixed(folder, tmp_path, reader):
    call(folder, tmp_path / "run", shard=Shard(0, 2))
    with pytest.raises(ValueError, match="was started with another search"):
        call(folder, tmp_path / "run", shard=Shard(1, 2), search=Beam(4))
