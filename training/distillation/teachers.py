"""Teachers: finished runs whose outputs a student learns, one or several that search as one."""

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
    """A run that teaches, whose model is not loaded yet.

    Args:
        run: The `Run`.
        settings: Its `Settings`.
        tokenizers: Its `Tokenizers`.
    """

    run: Run
    settings: Settings
    tokenizers: Tokenizers

    @property
    def name(self):
        """What it is called: as the checkpoint that it was converted from, or as its folder."""
        return self.run.read_origin().get("name") or self.run.path.resolve().name

    def digest(self):
        """Returns a checksum of all that decides what it generates: its model and vocabulary."""
        checksum = hashlib.sha256()
        with open(self.run.model, "rb") as file:
            for block in iter(functools.partial(file.read, 2**20), b""):
                checksum.update(block)
        for _, content in sorted(self.tokenizers.files().items()):
            checksum.update(content)
        checksum.update(repr(read_rules([self.run.path])).encode())
        return checksum.hexdigest()


def open_teachers(paths, task):
    """Returns the `Teacher`s of runs.

    Args:
        paths: Folders of the runs, one or more.
        task: The `Task` of the student.

    Raises:
        ValueError: If one is not finished or has another task, or two have different vocabularies.
    """
    teachers = []
    for path in paths:
        run = Run(path)
        run.require_finished(vocabulary=False)
        settings = load_settings(run.config)
        if settings.task.get() is not task:
            raise ValueError(
                f"{path} is a run for {settings.task.kind}: it cannot teach a student for "
                f"{task.name}, which learns the outputs of models for {task.name}."
            )
        teachers.append(Teacher(run, settings, run.load_tokenizers()))
    first, *others = teachers
    for other in others:
        if other.tokenizers.files() != first.tokenizers.files():
            raise ValueError(
                f"{other.run.path} has another vocabulary than {first.run.path}: teachers that "
                "search together need the same one."
            )
    return teachers


class Searcher:
    """The models of teachers, which search together: see `Ensemble`.

    Args:
        teachers: `Teacher`s with one vocabulary.

    Raises:
        ValueError: If a file of a run is damaged.
    """

    def __init__(self, teachers):
        self._pipeline = open_run([teacher.run.path for teacher in teachers])
        self.searched, self.max_length = self._pipeline.searched, self._pipeline.max_length

    def check(self, search, n, sentences):
        """Raises a `ValueError` if a search does not fit the models, or into memory.

        Args:
            search: A `Beam`.
            n: Outputs of each sentence.
            sentences: A batch of those that take most memory.
        """
        self._pipeline.check(search, n)
        length = self._pipeline.encode(tf.constant(sentences))[0].shape[1]
        configs = [model.config for model in self._pipeline.models]
        check_memory(configs, len(sentences), search.size, min(length, self.max_length))

    def __call__(self, sentences, search, n=1):
        """Returns for each of a list of strings a list of at most `n` results, the best first."""
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        values = search.values(range(len(sentences)))
        outputs = self._pipeline.graph(search, n)(batch, *values)
        return to_n_best(outputs, n, self._pipeline.result)
