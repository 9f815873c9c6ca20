"""Outputs of all teachers for the inputs of a distillation, and the texts that they become."""

import dataclasses
import shutil
from typing import Any

from keras_transformer.training.distillation.assignments import digest, distinct
from keras_transformer.training.distillation.corpus import Files
from keras_transformer.training.distillation.metadata import (
    check_plan,
    read_metadata,
    write_metadata,
)
from keras_transformer.training.distillation.pace import Pace
from keras_transformer.training.distillation.teachers import Searcher
from keras_transformer.training.distillation.translations import Parts
from keras_transformer.training.loop.messages import say

PARTS = "parts"
# Keys of the teachers of an assignment and of their inputs, by `is_backward`.
KEYS = {False: ("teachers", "sources"), True: ("backward", "targets")}


def has_parts(folder) -> bool:
    """Returns `True` if the folder of a distillation contains outputs of teachers."""
    return any((folder / PARTS).glob("*/*.json"))


def generate(run, settings, distillation, work, console) -> dict[str, Any]:
    """Generates the missing outputs and writes the texts.

    Args:
        run: The `Run` of the student.
        settings: Its `Settings`, with the original data.
        distillation: The `Distillation`.
        work: List of `Assignment`s.
        console: The `rich.console.Console` for the progress.

    Returns:
        The metadata that `metadata.json` keeps, without the plan.

    Raises:
        ValueError: If the folder contains outputs of another plan, or no output is usable.
        KeyboardInterrupt: After Ctrl-C or SIGTERM; all complete parts are kept.
    """
    folder, best_of = run.distillation, distillation.best_of
    plan = _plan(work, distillation, settings.data.truncate_source)
    before = read_metadata(folder)
    if "kept" in before or has_parts(folder):
        check_plan(folder, before.get("plan", {}), plan)
    metadata = {key: value for key, value in before.items() if key != "plan"}
    if "kept" not in before:
        folder.mkdir(parents=True, exist_ok=True)
        metadata = _describe(work, distillation)
        write_metadata(folder, {"plan": plan, **metadata})
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
            return metadata
        results = [parts.read() for parts in outputs]
        keep_truncated, is_diverse = settings.data.truncate_source, distillation.is_diverse
        metadata |= _write_generated(Files(folder), work, results, keep_truncated, is_diverse)
        write_metadata(folder, {"plan": plan, **metadata})
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    say(console, _summary(metadata, folder))
    return metadata


def _plan(work, distillation, truncate_source):
    """Returns everything that the outputs depend on, a dictionary of plain values."""
    plan: dict[str, Any] = {
        "teachers": [],
        "backward": [],
        "separate": distillation.separate,
        "search": dataclasses.asdict(distillation.search),
        "best_of": distillation.best_of,
        "sources": None,
        "targets": None,
        "truncate_source": truncate_source,
    }
    for assignment in work:  # teachers of a direction read the same inputs
        teachers, inputs = KEYS[assignment.is_backward]
        plan[teachers] += [teacher.digest() for teacher in assignment.teachers]
        references = assignment.references if distillation.best_of is not None else ()
        plan[inputs] = digest(assignment.inputs, references)
    return plan


def _describe(work, distillation):
    """Returns the metadata that are known before the outputs, a dictionary."""
    metadata: dict[str, Any] = {
        "teachers": [],
        "search": str(distillation.search),
        "best_of": distillation.best_of,
        "sentences": sum(len(assignment.inputs) for assignment in work),
        "monolingual": sum(
            reference is None for assignment in work for reference in assignment.references
        ),
    }
    if distillation.is_diverse:
        metadata |= {"backward": [], "separate": distillation.separate}
    for assignment in work:
        metadata[KEYS[assignment.is_backward][0]] += [
            {"run": str(teacher.run.path), **teacher.run.read_origin()}
            for teacher in assignment.teachers
        ]
    return metadata


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


def _names(teachers):
    return " and ".join(str(teacher.run.path) for teacher in teachers)


def _write_generated(files, work, results, keep_truncated, is_diverse):
    """Writes the pairs that the student learns; returns their counts."""
    metadata, pairs = {"kept": 0, "truncated": 0, "empty": 0}, []
    for assignment, outputs in zip(work, results, strict=True):
        metadata["truncated"] += sum(truncated for _, truncated in outputs)
        metadata["empty"] += sum(not text.strip() for text, _ in outputs)
        pairs += assignment.pairs(outputs, keep_truncated)
    if not pairs:
        count = sum(map(len, results))
        raise ValueError(f"the teachers generated no usable text for any of {count:,} sentences.")
    if is_diverse:
        unique = distinct(pairs)
        metadata["duplicates"], pairs = len(pairs) - len(unique), unique
    files.write("train", *zip(*pairs, strict=True))
    return {**metadata, "kept": len(pairs)}


def _summary(metadata, folder):
    text = f"The student learns {metadata['kept']:,} of {metadata['sentences']:,} sentences"
    if "duplicates" in metadata:
        text = f"{text}; {metadata['duplicates']:,} are duplicates"
    text = f"{text}; {metadata['truncated']:,} were truncated"
    return f"{text}, {metadata['empty']:,} have no output: {folder}."
