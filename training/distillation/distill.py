"""Sequence-level distillation (Kim & Rush, 2016) in one call, which resumes when repeated."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import rich.console

from keras_transformer.checks import check_count
from keras_transformer.decoding import Beam
from keras_transformer.decoding.search import check_search
from keras_transformer.files import write_text
from keras_transformer.shards import Shard
from keras_transformer.tasks.run import Run
from keras_transformer.training.data.lock import RunLock
from keras_transformer.training.distillation.corpus import Files, Texts
from keras_transformer.training.distillation.pace import Pace
from keras_transformer.training.distillation.student import (
    check_student,
    origin_of,
    prepare_run,
    student_settings,
)
from keras_transformer.training.distillation.teachers import Searcher, open_teachers
from keras_transformer.training.distillation.translations import Parts
from keras_transformer.training.loop.messages import say
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.train import is_trained, train

FACTS, PARTS = "facts.json", "parts"


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
        if self.original is not None and not 0 < self.original < float("inf"):
            raise ValueError(f"`original` must be positive. Received: original={self.original}.")


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
        teachers: Folders of one or more finished runs for the same task. Several teachers form an
            ensemble, which averages their probabilities.
        distillation: A `Distillation`.
        console: The `rich.console.Console` for the progress. Default: stderr.

    Returns:
        The content of `metrics.json`, see `train`, with the metadata of the distillation under
        `distilled`. With a shard, only this metadata.

    Raises:
        ValueError: If teachers, settings or data do not fit together, or the folder contains
            something else, such as the outputs of other teachers.
        KeyboardInterrupt: After Ctrl-C or SIGTERM; all complete parts are kept.

    Reference: Kim and Rush (2016), "Sequence-Level Knowledge Distillation", sections 3.2 and 3.3.
    """
    console = console or rich.console.Console(stderr=True)
    run, task = Run(run_dir), settings.task.get()
    check_student(settings)
    task.require(settings)
    teachers = open_teachers(teachers, task)
    _check_folder(run, teachers)
    texts = Texts.read(settings, distillation.monolingual)
    files = Files(run.distillation)
    section = files.section(settings.data, texts.splits, distillation.original)
    first, own = teachers[0], distillation.own_vocabulary
    student = student_settings(settings, section, first, own)
    if distillation.shard is not None:  # no lock: other shards are written to the same folder
        return _generate(run, settings, distillation, teachers, texts, files, console)
    with RunLock(run.path):
        facts = _generate(run, settings, distillation, teachers, texts, files, console)
        _keep_vocabulary(run, files.folder, own)
        if not is_trained(run):
            for split in texts.splits.keys() - {"train"}:
                files.write(split, *texts.splits[split])
            if distillation.original is not None:
                files.write("original", *texts.splits["train"])
            prepare_run(run, student, None if own else first, origin_of(teachers))
    train(student, run.path, console=console)
    if distillation.original is not None:
        facts = {**facts, "original": distillation.original}
    run.update_metrics(distilled=facts)
    return run.read_metrics()


def holds_distillation(folder) -> bool:
    """Returns `True` if a folder contains outputs of teachers, or a trained student."""
    parts = folder / "distillation" / PARTS
    return any(parts.glob("*.json")) or _is_complete(folder) or is_trained(Run(folder))


def _is_complete(folder):
    return "kept" in _read_facts(Run(folder).distillation)


def _check_folder(run, teachers):
    """Raises a `ValueError` if the folder belongs to a teacher or to an ordinary run."""
    if any(run.path.resolve() == teacher.run.path.resolve() for teacher in teachers):
        raise ValueError(f"{run.path} is the teacher's own folder: choose another for the student.")
    if is_trained(run) and not _is_complete(run.path):
        raise ValueError(
            f"{run.path} is a run that was trained without a teacher: choose another folder."
        )


def _generate(run, settings, distillation, teachers, texts, files, console):
    """Generates the missing outputs and writes the texts; returns the metadata."""
    search, best_of = distillation.search, distillation.best_of
    keep_cut = settings.data.cut_source
    plan = {
        "teachers": [teacher.digest() for teacher in teachers],
        "search": dataclasses.asdict(search),
        "best_of": best_of,
        "sources": texts.digest(references=best_of is not None),
        "cut_source": keep_cut,
    }
    parts = Parts(files.folder / PARTS, texts.sources, texts.references if best_of else None)
    before = _read_facts(files.folder)
    if "kept" in before or any(parts.folder.glob("*.json")):
        _check_plan(files.folder, before.get("plan", {}), plan)
    facts = {key: value for key, value in before.items() if key != "plan"}
    if "kept" not in before:
        files.folder.mkdir(parents=True, exist_ok=True)
        facts = {
            "teachers": [
                {"run": str(teacher.run.path), **teacher.run.read_origin()} for teacher in teachers
            ],
            "search": str(search),
            "best_of": best_of,
            "sentences": len(texts.sources),
            "monolingual": len(texts.alone),
        }
        _write_facts(files.folder, {"plan": plan, **facts})
        _run_teachers(teachers, texts, parts, distillation, settings, console)
        if distillation.shard is not None:
            return facts
        facts |= _write_generated(files, texts.sources, parts.read(), keep_cut)
        _write_facts(files.folder, {"plan": plan, **facts})
    parts.remove()
    say(console, _summary(facts, files.folder))
    return facts


def _run_teachers(teachers, texts, parts, distillation, settings, console):
    search, n = distillation.search, distillation.best_of or 1
    say(console, f"{len(texts.sources):,} sentences for {_names(teachers)}, {search}.")
    searcher = Searcher(teachers)
    with Pace(texts.sources, console, settings.training.progress_seconds) as pace:
        try:
            parts.generate(searcher, search, n, distillation.batch_size, pace, distillation.shard)
        except KeyboardInterrupt:
            say(
                console,
                f"Stopped after {pace.count:,} of {len(texts.sources):,} sentences. "
                "The same command resumes after the last complete part.",
            )
            raise


def _names(teachers):
    return " and ".join(str(teacher.run.path) for teacher in teachers)


def _write_generated(files, sources, results, keep_cut):
    """Writes the pairs that the student learns; returns how many were kept, cut and empty."""
    facts, pairs = {"kept": 0, "cut": 0, "empty": 0}, []
    for source, (target, cut) in zip(sources, results, strict=True):
        facts["cut"] += cut
        facts["empty"] += not target.strip()
        if target.strip() and (keep_cut or not cut):
            pairs.append((source, target))
    if not pairs:
        raise ValueError(
            f"the teachers generated no usable text for any of {len(sources):,} sentences."
        )
    files.write("train", *zip(*pairs, strict=True))
    return {**facts, "kept": len(pairs)}


def _summary(facts, folder):
    text = f"The student learns {facts['kept']:,} of {facts['sentences']:,} sentences"
    return f"{text}; {facts['cut']:,} were cut, {facts['empty']:,} have no output: {folder}."


def _check_plan(folder, before, plan):
    """Raises a `ValueError` if the outputs in a folder were generated with other values."""
    names = {
        "teachers": "other teachers, or teachers that have changed since",
        "search": "another search",
        "best_of": "another number of outputs to choose from",
        "sources": "other data",
        "cut_source": "another value of `data.cut_source`",
    }
    changed = [name for key, name in names.items() if before.get(key) != plan[key]]
    if changed:
        raise ValueError(
            f"{folder} was started with {', '.join(changed)}, and its outputs cannot be mixed with "
            f"new ones. Choose another folder for the run, or remove {folder.parent}."
        )


def _keep_vocabulary(run, folder, own):
    """Records whether the student has a vocabulary of its own, which training cannot change."""
    facts = _read_facts(folder)
    if is_trained(run) and facts["plan"].get("own_vocabulary", own) != own:
        whose = "the teacher's" if own else "its own"
        raise ValueError(f"{run.path} was trained with {whose} vocabulary: choose another folder.")
    _write_facts(folder, {**facts, "plan": {**facts["plan"], "own_vocabulary": own}})


def _read_facts(folder):
    path = pathlib.Path(folder) / FACTS
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove {path.parent.parent}.") from error


def _write_facts(folder, facts):
    write_text(folder / FACTS, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
