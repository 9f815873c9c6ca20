"""Teachers: finished runs whose outputs a student learns, one run or an ensemble of several."""

import dataclasses
import functools
import hashlib

import tensorflow as tf

from keras_transformer.tasks import open_run
from keras_transformer.tasks.memory import check_memory
from keras_transformer.tasks.results import to_n_best
from keras_transformer.tasks.run import Run
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.taken_vocabulary import read_rules
from keras_transformer.training.settings.toml import load_settings


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A run that teaches, with its settings and vocabulary; its model is not loaded.

    Args:
        run: The `Run`.
        settings: The `Settings` of the run.
        tokenizers: The `Tokenizers` of the run.
    """

    run: Run
    settings: Settings
    tokenizers: Tokenizers

    @property
    def name(self) -> str:
        """Name of the checkpoint that the run was converted from; otherwise that of its folder."""
        return self.run.read_origin().get("name") or self.run.path.resolve().name

    def digest(self) -> str:
        """Returns a checksum of everything its outputs depend on: model, vocabulary, rules."""
        checksum = hashlib.sha256()
        with open(self.run.model, "rb") as file:
            for block in iter(functools.partial(file.read, 2**20), b""):
                checksum.update(block)
        for _, content in sorted(self.tokenizers.files().items()):
            checksum.update(content)
        checksum.update(repr(read_rules([self.run.path])).encode())
        return checksum.hexdigest()


def open_teachers(paths, task, together=True) -> list[Teacher]:
    """Returns the `Teacher`s in some folders.

    Args:
        paths: Folders of runs.
        task: The `Task` of the student.
        together: Whether they are an ensemble, which needs a common vocabulary.

    Raises:
        ValueError: If a run is not finished or has another task, or two runs of an ensemble have
            different vocabularies.
    """
    teachers = []
    for path in paths:
        run = Run(path)
        run.require_finished(vocabulary=False)
        settings = load_settings(run.config)
        if settings.task.get() is not task:
            raise ValueError(
                f"{path} is a run for {settings.task.kind}: it cannot teach a student for "
                f"{task.name}, whose teachers must be models for {task.name}."
            )
        teachers.append(Teacher(run, settings, run.load_tokenizers()))
    for other in teachers[1:] if together else ():
        if other.tokenizers.files() != teachers[0].tokenizers.files():
            raise ValueError(
                f"{other.run.path} has a different vocabulary from {teachers[0].run.path}: "
                "teachers in an ensemble need the same vocabulary; `separate` ones do not."
            )
    return teachers


def open_backward(paths, settings, together=True) -> list[Teacher]:
    """Returns the backward `Teacher`s in some folders, which translate targets of the student.

    They may have any vocabulary, because the student reads their outputs as text.

    Args:
        paths: Folders of runs.
        settings: The `Settings` of the student.
        together: See `open_teachers`.

    Raises:
        ValueError: See `open_teachers`; also if a run states the same languages as the student.
    """
    teachers = open_teachers(paths, settings.task.get(), together)
    source, target = _languages(settings)
    for teacher in teachers:
        if source != target and _languages(teacher.settings) == (source, target):
            raise ValueError(
                f"{teacher.run.path} translates from {source} to {target}, as the student does: a "
                f"backward teacher translates from {target} to {source}."
            )
    return teachers


def _languages(settings):
    """Returns the languages of source and target that settings state, or `None` for each."""
    return tuple(getattr(settings.data, f"{side}_language", None) for side in ("source", "target"))


def vocabulary_teacher(teachers) -> Teacher:
    """Returns the teacher whose vocabulary a student has by default, the first forward one.

    Raises:
        ValueError: If there is none.
    """
    if not teachers:
        raise ValueError(
            "a student with backward teachers only needs a vocabulary of its own "
            "(`--vocabulary own`): their vocabularies and rules are those of the other direction."
        )
    return teachers[0]


class Searcher:
    """Search with the models of the teachers as an `Ensemble`.

    Args:
        teachers: `Teacher`s with the same vocabulary.

    Raises:
        ValueError: If a file of a run is damaged.
    """

    def __init__(self, teachers):
        self._pipeline = open_run([teacher.run.path for teacher in teachers])
        self.searched, self.max_length = self._pipeline.searched, self._pipeline.max_length

    def check(self, search, n, sentences) -> None:
        """Raises a `ValueError` if the models do not support a search, or it exceeds the memory.

        Args:
            search: A `Beam`.
            n: Number of outputs per sentence.
            sentences: The batch that takes most memory, a list of strings.
        """
        self._pipeline.check(search, n)
        length = self._pipeline.encode(tf.constant(sentences))[0].shape[1]
        configs = [model.config for model in self._pipeline.models]
        check_memory(configs, len(sentences), search.size, min(length, self.max_length))

    def __call__(self, sentences, search, n=1) -> list[list]:
        """Returns a list of at most `n` results, the best first, for each of a list of strings."""
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        values = search.values(range(len(sentences)))
        front = self._pipeline.front(sentences)
        outputs = self._pipeline.graph(search, n)(batch, *front, *values)
        return to_n_best(outputs, n, self._pipeline.result)
