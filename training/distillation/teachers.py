"""Teachers: finished runs whose outputs a student learns, one or several that search as one."""

import dataclasses
import functools
import hashlib

import tensorflow as tf

from keras_transformer.decoding import Ensemble
from keras_transformer.run import Run
from keras_transformer.tasks import open_run
from keras_transformer.tasks.graphs import trace_search
from keras_transformer.tasks.memory import check_memory
from keras_transformer.tasks.results import to_n_best
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.training.settings.schema import Settings
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
        pipelines = [open_run(teacher.run.path) for teacher in teachers]
        first, models = pipelines[0], [pipeline.model for pipeline in pipelines]
        # What the graph of a search needs of a pipeline.
        self.model, self.tokenizers, self.blank = first.model, first.tokenizers, first.blank
        self.max_length = min(pipeline.max_length for pipeline in pipelines)
        self.searched = models[0] if len(models) == 1 else Ensemble(models)
        self._encode, self._result = first.encode, first.result
        self._graph = functools.cache(functools.partial(trace_search, self))

    def check(self, search, n, sentences):
        """Raises a `ValueError` if a search does not fit the models, or into memory.

        Args:
            search: A `Beam`.
            n: Outputs of each sentence.
            sentences: A batch of those that take most memory.
        """
        config = self.model.config
        search.check(self._vocabulary(), self.max_length, n)
        length = self._encode(tf.constant(sentences))[0].shape[1]
        check_memory(config, len(sentences), search.size, min(length, self.max_length))

    def _vocabulary(self):
        from keras_transformer.decoding.predictor import predictor_of

        return predictor_of(self.searched).vocabulary

    def __call__(self, sentences, search, n=1):
        """Returns for each of a list of strings a list of at most `n` results, the best first."""
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        values = search.values(range(len(sentences)))
        return to_n_best(self._graph(search.kind, n)(batch, *values), n, self._result)
