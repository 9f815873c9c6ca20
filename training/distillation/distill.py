"""Sequence-level distillation (Kim & Rush, 2016) in one call, which resumes when repeated."""

import dataclasses
import os
import shutil
from collections.abc import Sequence
from typing import Any

import rich.console

from keras_transformer.checks import check_count
from keras_transformer.decoding import Beam
from keras_transformer.decoding.search import check_search
from keras_transformer.shards import Shard
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.lock import RunLock
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.distillation.assignments import assign, digest, distinct
from keras_transformer.training.distillation.corpus import Files, Texts
from keras_transformer.training.distillation.facts import (
    check_plan,
    is_complete,
    read_facts,
    write_facts,
)
from keras_transformer.training.distillation.pace import Pace
from keras_transformer.training.distillation.student import (
    check_student,
    origin_of,
    prepare_run,
    student_settings,
)
from keras_transformer.training.distillation.teachers import (
    Searcher,
    open_backward,
    open_teachers,
    vocabulary_teacher,
)
from keras_transformer.training.distillation.translations import Parts
from keras_transformer.training.distillation.word_level import check_word_level, predict_words
from keras_transformer.training.loop.messages import say
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.train import is_trained, train

PARTS = "parts"
# Keys of the teachers of an assignment and of their inputs, by `is_backward`.
KEYS = {False: ("teachers", "sources"), True: ("backward", "targets")}


@dataclasses.dataclass(frozen=True)
class Distillation:
    """Options of a distillation.

    Args:
        search: The `Beam` search of the teachers.
        best_of: Number of outputs for each source, of which the student learns the one with the
            highest chrF against the reference. For a source without a reference it learns the most
            probable output. `None`: it learns the most probable output for every source.
        original: How often an epoch contains each of the original pairs, on average, in addition to
            the teachers' outputs, which it contains once. `None`: never.
        monolingual: Paths of files with more sources, one per line, which have no references.
        backward: Folders of finished runs that translate in the other direction. They translate the
            targets of the training data; the student learns these targets from the generated
            sources as well. Several are an ensemble. With `best_of`, it learns from the source with
            the highest chrF against the original source.
        monolingual_targets: Paths of files with more targets for the backward teachers, one per
            line, which have no sources.
        separate: Whether each teacher translates alone, which gives a pair for each of them. If
            not, the teachers of a direction are an ensemble.
        word_level: Number of tokens at each position whose probabilities the student also learns
            (word-level distillation), for example 8. The forward teachers predict them, as an
            ensemble, for all pairs that it is trained on. `None`: it learns from texts only.
        own_vocabulary: Whether the student learns a vocabulary of its own, as its settings
            describe it, instead of using the teachers'.
        batch_size: Number of sentences in a batch of the teachers; it does not affect the result.
        shard: The `Shard` of the sources to translate. The call ends after it; when the outputs of
            all shards exist, a call without a shard trains the student. `None`: all sources.

    Raises:
        TypeError: If `search` is not a `Beam`.
        ValueError: If a value is out of range.
    """

    search: Beam = Beam(8)
    best_of: int | None = None
    original: float | None = None
    monolingual: Sequence[str | os.PathLike] = ()
    backward: Sequence[str | os.PathLike] = ()
    monolingual_targets: Sequence[str | os.PathLike] = ()
    separate: bool = False
    word_level: int | None = None
    own_vocabulary: bool = False
    batch_size: int = 64
    shard: Shard | None = None

    def __post_init__(self) -> None:
        check_search(self.search, Beam)
        check_count("batch_size", self.batch_size)
        if self.best_of is not None and not 2 <= self.best_of <= self.search.size:
            raise ValueError(
                "`best_of` must be between 2 and the `size` of the beam. "
                f"Received: best_of={self.best_of}, size={self.search.size}."
            )
        if self.word_level is not None:
            check_count("word_level", self.word_level)
            if self.own_vocabulary:
                raise ValueError(
                    "`word_level` needs the vocabulary of the teachers, who predict its tokens: it "
                    "cannot be combined with `own_vocabulary`."
                )
        if self.original is not None and not 0 < self.original < float("inf"):
            raise ValueError(f"`original` must be positive. Received: original={self.original}.")

    @property
    def is_diverse(self) -> bool:
        """`True` if several teachers or directions give pairs, of which each is learned once."""
        return bool(self.backward) or self.separate


def distill(
    settings: Settings,
    run_dir: str | os.PathLike,
    teachers: Sequence[str | os.PathLike],
    distillation: Distillation = Distillation(),
    *,
    console: rich.console.Console | None = None,
) -> dict[str, Any]:
    """Trains a student on the outputs of its teachers for the sources of its training data.

    The folder `distillation` of the run contains the generated texts, `train.source` and
    `train.target`, the other splits with their own references, and metadata in `facts.json`. The
    outputs are written in parts. Repeat an interrupted call: it resumes after the last complete
    part, or resumes training as `train` does. The texts are the same as those of an
    uninterrupted call.

    A source is left out if the teachers generate nothing for it, or if it is longer than their
    maximum input and `data.cut_source` is not set.

    Args:
        settings: The `Settings` of the student, with the original data.
        run_dir: Folder of the student's run.
        teachers: Folders of finished runs for the same task. Several teachers form an ensemble,
            which averages their probabilities, unless they are `separate`. There may be none if
            there are backward teachers, and the student has a vocabulary of its own.
        distillation: A `Distillation`.
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
    if distillation.shard is not None:  # no lock: other shards are written to the same folder
        return _generate(run, settings, distillation, work, console)
    with RunLock(run.path):
        facts = _generate(run, settings, distillation, work, console)
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
        facts = {**facts, "original": distillation.original}
    if word_level is not None:
        facts = {**facts, "word_level": word_level}
    run.update_metrics(distilled=facts)
    return run.read_metrics()


def holds_distillation(folder) -> bool:
    """Returns `True` if a folder contains outputs of teachers, or a trained student."""
    run = Run(folder)
    return _has_parts(run.distillation) or is_complete(run.distillation) or is_trained(run)


def _has_parts(folder):
    return any((folder / PARTS).glob("*/*.json"))


def _check_folder(run, teachers):
    """Raises a `ValueError` if the folder belongs to a teacher or to an ordinary run."""
    if any(run.path.resolve() == teacher.run.path.resolve() for teacher in teachers):
        raise ValueError(f"{run.path} is the teacher's own folder: choose another for the student.")
    if is_trained(run) and not is_complete(run.distillation):
        raise ValueError(
            f"{run.path} is a run that was trained without a teacher: choose another folder."
        )


def _generate(run, settings, distillation, work, console):
    """Generates the missing outputs and writes the texts; returns the metadata."""
    folder, best_of = run.distillation, distillation.best_of
    plan = _plan(work, distillation, settings.data.cut_source)
    before = read_facts(folder)
    if "kept" in before or _has_parts(folder):
        check_plan(folder, before.get("plan", {}), plan)
    facts = {key: value for key, value in before.items() if key != "plan"}
    if "kept" not in before:
        folder.mkdir(parents=True, exist_ok=True)
        facts = _describe(work, distillation)
        write_facts(folder, {"plan": plan, **facts})
        outputs = []
        for assignment in work:
            parts = Parts(
                folder / PARTS / assignment.name,
                assignment.inputs,
                assignment.references if best_of else None,
            )
            _run_teachers(assignment, parts, distillation, settings, console)
            outputs.append(parts)
        if distillation.shard is not None:
            return facts
        results = [parts.read() for parts in outputs]
        keep_cut, is_diverse = settings.data.cut_source, distillation.is_diverse
        facts |= _write_generated(Files(folder), work, results, keep_cut, is_diverse)
        write_facts(folder, {"plan": plan, **facts})
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    say(console, _summary(facts, folder))
    return facts


def _plan(work, distillation, cut_source):
    """Returns everything that the outputs depend on, a dictionary of plain values."""
    plan = {
        "teachers": [],
        "backward": [],
        "separate": distillation.separate,
        "search": dataclasses.asdict(distillation.search),
        "best_of": distillation.best_of,
        "sources": None,
        "targets": None,
        "cut_source": cut_source,
    }
    for assignment in work:  # teachers of a direction read the same inputs
        teachers, inputs = KEYS[assignment.is_backward]
        plan[teachers] += [teacher.digest() for teacher in assignment.teachers]
        references = assignment.references if distillation.best_of is not None else ()
        plan[inputs] = digest(assignment.inputs, references)
    return plan


def _describe(work, distillation):
    """Returns the metadata that are known before the outputs, a dictionary."""
    facts = {
        "teachers": [],
        "search": str(distillation.search),
        "best_of": distillation.best_of,
        "sentences": sum(len(assignment.inputs) for assignment in work),
        "monolingual": sum(
            reference is None for assignment in work for reference in assignment.references
        ),
    }
    if distillation.is_diverse:
        facts |= {"backward": [], "separate": distillation.separate}
    for assignment in work:
        facts[KEYS[assignment.is_backward][0]] += [
            {"run": str(teacher.run.path), **teacher.run.read_origin()}
            for teacher in assignment.teachers
        ]
    return facts


def _run_teachers(assignment, parts, distillation, settings, console):
    """Generates the missing outputs of an assignment; no model is loaded if there are none."""
    if parts.are_complete(distillation.shard):
        return
    search, n, inputs = distillation.search, distillation.best_of or 1, assignment.inputs
    back = ", translated back" * assignment.is_backward
    say(console, f"{len(inputs):,} sentences for {_names(assignment.teachers)}{back}, {search}.")
    searcher = Searcher(assignment.teachers)
    with Pace(inputs, console, settings.training.progress_seconds) as pace:
        try:
            parts.generate(searcher, search, n, distillation.batch_size, pace, distillation.shard)
        except KeyboardInterrupt:
            say(
                console,
                f"Stopped after {pace.count:,} of {len(inputs):,} sentences. "
                "The same command resumes after the last complete part.",
            )
            raise


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


def _names(teachers):
    return " and ".join(str(teacher.run.path) for teacher in teachers)


def _write_generated(files, work, results, keep_cut, is_diverse):
    """Writes the pairs that the student learns; returns how many were kept, cut, empty, doubled."""
    facts, pairs = {"kept": 0, "cut": 0, "empty": 0}, []
    for assignment, outputs in zip(work, results, strict=True):
        facts["cut"] += sum(cut for _, cut in outputs)
        facts["empty"] += sum(not text.strip() for text, _ in outputs)
        pairs += assignment.pairs(outputs, keep_cut)
    if not pairs:
        count = sum(map(len, results))
        raise ValueError(f"the teachers generated no usable text for any of {count:,} sentences.")
    if is_diverse:
        unique = distinct(pairs)
        facts["duplicates"], pairs = len(pairs) - len(unique), unique
    files.write("train", *zip(*pairs, strict=True))
    return {**facts, "kept": len(pairs)}


def _original_pairs(files, texts, distillation):
    """Returns the original pairs to learn, or `None`; with diverse pairs, those that are new."""
    if distillation.original is None:
        return None
    pairs = list(zip(*texts.splits["train"], strict=True))
    return distinct(pairs, files.read("train")) if distillation.is_diverse else pairs


def _summary(facts, folder):
    text = f"The student learns {facts['kept']:,} of {facts['sentences']:,} sentences"
    if "duplicates" in facts:
        text = f"{text}; {facts['duplicates']:,} are duplicates"
    return f"{text}; {facts['cut']:,} were cut, {facts['empty']:,} have no output: {folder}."


def _keep_vocabulary(run, folder, own):
    """Records whether the student has a vocabulary of its own, which training cannot change."""
    facts = read_facts(folder)
    if is_trained(run) and facts["plan"].get("own_vocabulary", own) != own:
        whose = "the teacher's" if own else "its own"
        raise ValueError(f"{run.path} was trained with {whose} vocabulary: choose another folder.")
    write_facts(folder, {**facts, "plan": {**facts["plan"], "own_vocabulary": own}})
