"""Choices of a request for a transcript: language, task and timestamps."""

import dataclasses
import typing
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.decoding.prompts import DETECTED as DETECTED_ID
from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tensors import Tensor
from keras_transformer.text.language_names import code_of
from keras_transformer.text.languages import DETECTED, ENGLISH, Languages, look_up, task_for

DETECT = -1  # in place of the id of a language in a request


@dataclasses.dataclass(frozen=True)
class Choices:
    """The choices of a model of speech, with their defaults; some models have none.

    Args:
        prompt: Token ids with which an output begins by default, without `no_timestamps_id`.
        languages: Dictionary from the codes of languages to their token ids.
        tasks: Dictionary from the names of tasks to their token ids.
        no_timestamps_id: Token at the end of a prompt without timestamps. `None`: timestamps are
            not a choice.
        timestamp_id: First token of the timestamps, or `None`.
        language: Code of the default language, or `"auto"`: it is detected. `None`: there is none.
        task: Name of the default task, or `None`.
        timestamps: Whether outputs have timestamps by default.
    """

    # Options of the command line for a model that may have choices.
    command_options: typing.ClassVar = (
        *("source_language", "target_language", "timestamps", "subtitles"),
    )
    prompt: tuple = ()
    languages: dict = dataclasses.field(default_factory=dict)
    tasks: dict = dataclasses.field(default_factory=dict)
    no_timestamps_id: int | None = None
    timestamp_id: int | None = None
    language: str | None = None
    task: str | None = None
    timestamps: bool = False

    @classmethod
    def of(cls, config: Any, tokenizer: Any) -> "Choices":
        """Returns the choices of a model.

        Args:
            config: The `SpeechTransformerConfig`.
            tokenizer: The `Tokenizer` of its outputs, whose pieces such as `<|en|>` are the names.
        """
        rules = config.head.rules
        without = rules.no_timestamps_id
        languages, tasks = (
            dict(zip(map(_name, tokenizer.pieces(ids)), ids, strict=True))
            for ids in (rules.language_ids, rules.task_ids)
        )
        prompt = tuple(token for token in rules.prompt_ids if token != without)
        names = {number: name for name, number in (languages | tasks).items()}
        chosen = [names[token] for token in prompt if token in names]
        return cls(
            prompt,
            languages,
            tasks,
            without,
            rules.timestamp_id,
            DETECTED
            if rules.detect_language
            else next((x for x in chosen if x in languages), None),
            next((name for name in chosen if name in tasks), None),
            rules.timestamp_id is not None and without not in rules.prompt_ids,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The choices that the model has, some of `"language"`, `"task"` and `"timestamps"`."""
        has = {
            "language": bool(self.languages),
            "task": bool(self.tasks),
            "timestamps": self.no_timestamps_id is not None,
        }
        return tuple(name for name in has if has[name])

    @property
    def has_languages(self) -> bool:
        """`True` if a request may choose a language."""
        return bool(self.languages)

    @property
    def longest_prompt(self) -> int:
        """Number of tokens of the longest prompt that a request may choose."""
        return len(self.prompt) + (self.no_timestamps_id is not None)

    def replaced(self, **chosen: Any) -> "Choices":
        """Returns choices with other defaults; `None` keeps one.

        Args:
            **chosen: Values by name. A language may also have its English name; see `code_of`.

        Raises:
            TypeError, ValueError: If the model does not have a choice or a value.
        """
        chosen = {name: value for name, value in chosen.items() if value is not None}
        if "language" in chosen:
            chosen["language"] = code_of(chosen["language"], {*self.languages, DETECTED})
        for name, value in chosen.items():
            self._check(name, value)
        if "timestamps" in chosen:
            chosen["timestamps"] = bool(chosen["timestamps"])  # JSON knows none of NumPy's
        return dataclasses.replace(self, **chosen)

    def for_languages(self, source: str | None = None, target: str | None = None) -> dict[str, Any]:
        """Returns the settings `language` and `task` for two languages, a dictionary.

        Args:
            source: Code or name of the language of recordings, `"auto"`, or `None`: the default.
            target: The same language, for transcripts; English, for translations; or `None`: the
                task is the default.

        Raises:
            ValueError: If the model does not have the language or the task.
        """
        language = self.replaced(language=source).language
        target = code_of(target, {*self.languages, ENGLISH})
        settings = {"language": source and language, "task": task_for(language, target)}
        return {name: value for name, value in settings.items() if value is not None}

    def _check(self, name, value):
        if name not in self.names:
            raise ValueError(f"`{name}` is not a choice of the model. Received: {name}={value!r}.")
        if name == "language" and value != DETECTED:
            Languages(self.languages).check_named(name, value)
        elif name == "task" and value not in self.tasks:
            known = " or ".join(map(repr, self.tasks))
            raise ValueError(f"`task` must be {known}. Received: task={value!r}.")
        elif name == "timestamps" and not isinstance(value, bool | np.bool_):
            raise TypeError(f"`timestamps` must be a boolean. Received: timestamps={value!r}.")

    def rows(self, count: int, **chosen: Any) -> dict[str, np.ndarray]:
        """Returns the numbers of the choices of each recording, int32 `[count]`.

        Args:
            count: Number of recordings.
            **chosen: For some of the `names` a value for all recordings, or a list with one for
                each; `None` is the default.

        Raises:
            TypeError, ValueError: If a list has another length, or the model does not have a choice
                or a value.
        """
        self.replaced(**{name: x for name, x in chosen.items() if not _is_list(x)})
        lists = {name: _listed(name, value, count) for name, value in chosen.items()}
        rows = [
            self.replaced(**{name: values[row] for name, values in lists.items()}).numbers()
            for row in range(count)
        ]
        return {name: np.array([row[name] for row in rows], np.int32) for name in self.names}

    def numbers(self) -> dict[str, int]:
        """Returns the numbers of the defaults, by name."""
        known = {"language": {**self.languages, DETECTED: DETECT}, "task": self.tasks}
        return {
            name: known[name][getattr(self, name)] if name in known else int(self.timestamps)
            for name in self.names
        }

    def specs(self, rows: int | None = None) -> dict[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of the numbers, by name."""
        return {name: tf.TensorSpec([rows], tf.int32, name=name) for name in self.names}

    def request_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the `tf.TensorSpec`s of the choices in a request with names, by name."""
        dtypes = {"timestamps": tf.bool}
        return {
            name: tf.TensorSpec([None], dtypes.get(name, tf.string), name=name)
            for name in self.names
        }

    def request(self, count: int) -> dict[str, Tensor]:
        """Returns the names of the defaults as a request, `[count]`."""
        return {name: tf.fill([count], getattr(self, name)) for name in self.names}

    def looked_up(self, count: Tensor, **named: Tensor) -> dict[str, Tensor]:
        """Returns the numbers of a request, in a graph, after an assertion for each rule.

        Args:
            count: Number of recordings, a scalar tensor.
            **named: `language` and `task`, string `[B]`, empty for the default; `timestamps`,
                boolean `[B]`. Those that are missing are the defaults.
        """
        known = {"language": {**self.languages, DETECTED: DETECT}, "task": self.tasks}
        numbers, checks = {}, {}
        for name, default in self.numbers().items():
            if name not in named:
                numbers[name] = tf.fill([count], default)
                continue
            if name == "timestamps":
                numbers[name] = tf.cast(named[name], tf.int32)
            else:
                numbers[name], found = look_up({**known[name], "": default}, named[name])
                shown = ", ".join([*known[name]][:5])
                checks[f"`{name}` must be known to the model, such as {shown}, or empty."] = found
            equal = tf.equal(tf.size(named[name]), count)
            checks[f"`{name}` must have one value for each of `recordings`."] = equal
        with tf.control_dependencies(assertions(checks)):
            return {name: tf.identity(values) for name, values in numbers.items()}

    def valid(self, **numbers: Tensor) -> dict[str, Tensor]:
        """Returns which numbers the model has, a dictionary of booleans `[B]`."""
        return {
            name: tf.reduce_any(tf.equal(tf.expand_dims(numbers[name], 1), known), axis=1)
            for name, known in self._known().items()
        }

    def rules(self) -> dict[str, str]:
        """Returns a rule for each of the numbers, for errors and for the metadata of files."""
        texts = {
            "language": f"`language` must be the id of a language, or {DETECT}: it is detected.",
            "task": "`task` must be the id of a task.",
            "timestamps": "`timestamps` must be 0 or 1.",
        }
        return {name: texts[name] for name in self.names}

    def _known(self):
        known = {
            "language": [*self.languages.values(), DETECT],
            "task": [*self.tasks.values()],
            "timestamps": [0, 1],
        }
        return {name: tf.constant(known[name], tf.int32) for name in self.names}

    def prompts(self, **numbers: Tensor) -> Tensor:
        """Returns the prompts of `Prompted` for valid numbers, int32 `[B, P]`, in a graph."""
        some = next(iter(numbers.values()))
        columns = [tf.fill(tf.shape(some), token) for token in self.prompt]
        if "language" in numbers:
            language = numbers["language"]
            columns[0] = tf.where(tf.equal(language, DETECT), DETECTED_ID, language)
        if "task" in numbers:
            place = next(n for n, token in enumerate(self.prompt) if token in self.tasks.values())
            columns[place] = numbers["task"]
        if "timestamps" in numbers:
            has = tf.equal(numbers["timestamps"], 1)
            columns.append(tf.where(has, NO_TOKEN, self.no_timestamps_id))
        return tf.stack(columns, axis=1)

    def prompt_of(self, numbers: dict[str, int]) -> list[int]:
        """Returns the tokens of language and task for the numbers of the choices of a recording."""
        rows = {name: tf.constant([number], tf.int32) for name, number in numbers.items()}
        prompt = self.prompts(**rows).numpy()[0].tolist() if rows else [*self.prompt]
        return [token for token in prompt if token not in (NO_TOKEN, self.no_timestamps_id)]

    def language_names(self, tokens: Tensor) -> Tensor:
        """Returns the codes of the languages with which outputs `[B, L]` begin, string `[B]`."""
        equal = tf.equal(tokens[:, :1], [*self.languages.values()])  # [B, number of languages]
        names = tf.gather([*self.languages], tf.argmax(tf.cast(equal, tf.int32), axis=1))
        return tf.where(tf.reduce_any(equal, axis=1), names, "")

    def has_timestamps(self, tokens: Tensor) -> Tensor:
        """Returns which outputs `[B, L]` have timestamps, boolean `[B]`, in a graph."""
        if self.no_timestamps_id is None:
            return tf.fill([tf.shape(tokens)[0]], self.timestamp_id is not None)
        prompt = tokens[:, : len(self.prompt) + 1]
        return tf.reduce_all(tf.not_equal(prompt, self.no_timestamps_id), axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Returns a dictionary of plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Choices":
        """Returns the `Choices` from a result of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: If `fields` are not such a result.
        """
        choices = cls(**{**fields, "prompt": tuple(fields["prompt"])})
        choices._check_fields()
        return choices

    def _check_fields(self):
        """Raises a `ValueError` unless the fields fit together; it names the broken rule."""
        known = {**self.languages, **self.tasks}  # a `TypeError` if they are not dictionaries
        times = [n for n in (self.no_timestamps_id, self.timestamp_id) if n is not None]
        ids = [*self.prompt, *known.values(), *times]
        languages, tasks = self.languages, self.tasks
        rules = {
            "ids must be integers of at least 0": all(is_integer(n) and n >= 0 for n in ids),
            "names of languages and tasks must be texts": all(isinstance(n, str) for n in known),
            "`language` must be one of `languages`, or auto": not languages
            or self.language in {*languages, DETECTED},
            "`prompt` must begin with the id of one of `languages`": not languages
            or self.prompt[:1] in [(number,) for number in languages.values()],
            "`task` must be one of `tasks`": not tasks or self.task in tasks,
            "`prompt` must contain the id of one of `tasks`": not tasks
            or any(number in self.prompt for number in tasks.values()),
            "`no_timestamps_id` needs `timestamp_id`": self.no_timestamps_id is None
            or self.timestamp_id is not None,
            "`timestamps` must be true or false": isinstance(self.timestamps, bool),
        }
        broken = next((rule for rule, is_kept in rules.items() if not is_kept), None)
        if broken is not None:
            raise ValueError(f"`choices` of a model of speech: {broken}. Received: {self}.")


def _name(piece):
    return piece.removeprefix("<|").removesuffix("|>")


def _is_list(value):
    return isinstance(value, (list, tuple, np.ndarray))


def _listed(name, value, count):
    """Returns a list of a value for each of `count` recordings."""
    if not _is_list(value):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"`{name}` must have one value for each recording. "
            f"Received: {len(value)} values, {count} recordings."
        )
    return list(value)
