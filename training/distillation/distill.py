"""Sequence-level distillation (Kim & Rush, 2016) in one call, which resumes when repeated."""

import os
from collections.abc import Sequence
from typing import Any

import rich.console

from keras_transformer.lock import FolderLock
from keras_transformer.tasks.run import Run
from keras_transformer.training.distillation.assignments import assign, distinct
from keras_transformer.training.distillation.corpus import Files, Texts
from keras_transformer.training.distillation.generation import generate, has_parts
from keras_transformer.training.distillation.metadata import (
    is_complete,
    read_metadata,
    write_metadata,
)
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.distillation.student import (
    check_student,
    origin_of,
    prepare_run,
    size_warning,
    student_settings,
)
from keras_transformer.training.distillation.teachers import (
    open_backward,
    open_teachers,
    vocabulary_teacher,
)
from keras_transformer.training.distillation.word_level import check_word_level, predict_words
from keras_transformer.training.loop.messages import say
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.training_run import is_trained, train


def distill(
    settings: Settings,
    run_dir: str | os.PathLike,
    teachers: Sequence[str | os.PathLike],
    distillation: Distillation | None = None,
    *,
    console: rich.console.Console | None = None,
) -> dict[str, Any]:
    """Trains a student on the outputs of its teachers for the sources of its training data.

    The folder `distillation` of the run contains the generated texts, `train.source` and
    `train.target`, the other splits with their own references, and metadata in `metadata.json`. The
    outputs are written in parts. Repeat an interrupted call: it resumes after the last complete
    part, or resumes training as `train` does. The texts are the same as those of an
    uninterrupted call.

    A source is left out if the teachers generate nothing for it, or if it is longer than their
    maximum input and `data.truncate_source` is not set.

    Args:
        settings: The `Settings` of the student, with the original data.
        run_dir: Folder of the student's run.
        teachers: Folders of finished runs for the same task. Several teachers form an ensemble,
            which averages their probabilities, unless they are `separate`. There may be none if
            there are backward teachers, and the student has a vocabulary of its own.
        distillation: A `Distillation`. Default: one with its default options.
        console: The `rich.console.Console` for the progress. Default: stderr.

    Returns:
        The content of `metrics.json`, see `train`, with the metadata of the distillation under
        `distilled`. With a shard, only this metadata.

    Raises:
        ValueError: If teachers, settings or data do not fit together, or the folder contains
            something else, such as the outputs of other teachers.
        KeyboardInterrupt: After Ctrl-C or SIGTERM; all complete parts are kept.

    Reference: Kim and Rush (2016), "Sequence-Level Knowledge Distillation", section 3;
        Nguyen et al. (2020), "Data Diversification", for pairs of several teachers and directions.
    """
    console = console or rich.console.Console(stderr=True)
    distillation = distillation or Distillation()
    run, task = Run(run_dir), settings.task.get()
    check_student(settings, distillation.word_level)
    task.require(settings)
    forward = open_teachers(teachers, task, together=not distillation.separate)
    backward = open_backward(distillation.backward, settings, together=not distillation.separate)
    everyone, own = [*forward, *backward], distillation.own_vocabulary
    word_level = distillation.word_level
    if word_level is not None:
        check_word_level(forward, word_level)
    _check_folder(run, everyone)
    texts = Texts.read(settings, distillation.monolingual, distillation.monolingual_targets)
    work = assign(texts, forward, backward, distillation.separate)
    first = None if own else vocabulary_teacher(forward)
    files = Files(run.distillation)

    def student_of(original):
        section = files.section(settings.data, texts.splits, original, word_level is not None)
        return student_settings(settings, section, first)

    student = student_of(distillation.original)
    if warning := size_warning(student, first):
        say(console, warning)
    if distillation.shard is not None:  # no lock: other shards are written to the same folder
        return generate(run, settings, distillation, work, console)
    with FolderLock(run.path):
        metadata = generate(run, settings, distillation, work, console)
        _keep_vocabulary(run, files.folder, own)
        original = _original_pairs(files, texts, distillation)
        if distillation.original is not None and not original:
            student = student_of(None)  # the teachers generated all of them
        if not is_trained(run):
            for split in texts.splits.keys() - {"train"}:
                files.write(split, *texts.splits[split])
            if original:
                files.write("original", *zip(*original, strict=True))
            prepare_run(run, student, first, origin_of(everyone))
        if word_level is not None:
            _predict_words(run, student, forward, distillation, console)
    train(student, run.path, console=console)
    if distillation.original is not None:
        metadata = {**metadata, "original": distillation.original}
    if word_level is not None:
        metadata = {**metadata, "word_level": word_level}
    run.update_metrics(distilled=metadata)
    return run.read_metrics()


def holds_distillation(folder) -> bool:
    """Returns `True` if a folder contains outputs of teachers, or a trained student."""
    run = Run(folder)
    return has_parts(run.distillation) or is_complete(run.distillation) or is_trained(run)


def _check_folder(run, teachers):
    """Raises a `ValueError` if the folder belongs to a teacher or to an ordinary run."""
    if any(run.path.resolve() == teacher.run.path.resolve() for teacher in teachers):
        raise ValueError(f"{run.path} is the teacher's own folder: choose another for the student.")
    if is_trained(run) and not is_complete(run.distillation):
        raise ValueError(
            f"{run.path} is a run that was trained without a teacher: choose another folder."
        )


def _predict_words(run, student, teachers, distillation, console):
    """Writes the teachers' predictions for the pairs that a student with such `Settings` learns."""
    data = open_source(student.data, student.task.get().columns)
    pairs = [tuple(pair) for pair in data.rows("train").as_numpy_iterator()]
    predict_words(
        Files(run.distillation).distributions,
        pairs,
        teachers,
        distillation.word_level,
        distillation.batch_size,
        console,
        student.training.progress_seconds,
        is_trained(run),
    )


def _original_pairs(files, texts, distillation):
    """Returns the original pairs to learn, or `None`; with diverse pairs, those that are new."""
    if distillation.original is None:
        return None
    pairs = list(zip(*texts.splits["train"], strict=True))
    return distinct(pairs, files.read("train")) if distillation.is_diverse else pairs


def _keep_vocabulary(run, folder, own):
    """Records whether the student has a vocabulary of its own, which training cannot change."""
    metadata = read_metadata(folder)
    if is_trained(run) and metadata["plan"].get("own_vocabulary", own) != own:
        whose = "the teacher's" if own else "its own"
        raise ValueError(f"{run.path} was trained with {whose} vocabulary: choose another folder.")
    write_metadata(folder, {**metadata, "plan": {**metadata["plan"], "own_vocabulary": own}})
