"""The tokens of language, task and timestamps before Whisper's transcripts, in its settings."""

import functools
from typing import Any

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.language_names import NAMES, code_of
from keras_transformer.text.languages import (
    DETECTED,
    ENGLISH,
    TRANSCRIBE,
    TRANSLATE,
    Languages,
    task_for,
)

FORCED = "forced_decoder_ids"
ENGLISH_SIZE = 51_864  # entries of the vocabulary of every checkpoint for English alone
WITHOUT_TIMES = "<|notimestamps|>"


def lacks_names(settings, others) -> bool:
    """Returns true for a multilingual checkpoint whose settings do not name its languages.

    Checkpoints that were fine-tuned in 2022 and 2023 have no `lang_to_id`.

    Args:
        settings: The `CheckpointSettings` for outputs.
        others: The `CheckpointSettings` of `config.json`.
    """
    if settings.get("lang_to_id") is not None:
        return False
    return is_multilingual(settings, others.count("vocab_size") != ENGLISH_SIZE)


def is_multilingual(settings, default) -> bool:
    """Returns the setting `is_multilingual`; `default` if it is missing or `null`."""
    return default if settings.get("is_multilingual") is None else settings.flag("is_multilingual")


def with_names(settings, pieces, start) -> CheckpointSettings:
    """Returns settings with the ids of languages and tasks that the vocabulary names.

    Args:
        settings: The `CheckpointSettings` for outputs.
        pieces: The tokens in the order of their ids.
        start: The id of the token that begins an output. The tokens of languages follow it.

    Returns:
        The same settings if there are no tokens of languages.
    """
    names = {piece: number for number, piece in enumerate(pieces)}
    tasks = {task: names.get(f"<|{task}|>") for task in (TRANSLATE, TRANSCRIBE)}
    end = min((number for number in tasks.values() if number is not None), default=len(pieces))
    codes = ((piece.removeprefix("<|").removesuffix("|>"), piece) for piece in pieces[start:end])
    languages = {piece: names[piece] for code, piece in codes if code in NAMES}
    if not languages:
        return settings
    known = {"lang_to_id": languages}
    if settings.get("task_to_id") is None:
        known["task_to_id"] = {task: n for task, n in tasks.items() if n is not None}
    if settings.get("no_timestamps_token_id") is None and WITHOUT_TIMES in names:
        known["no_timestamps_token_id"] = names[WITHOUT_TIMES]
    return CheckpointSettings({**settings.content, **known}, settings.path)


class WhisperPrompt:
    """The default prompt of a checkpoint, and the tokens that may replace others in it.

    Args:
        settings: The `CheckpointSettings` for outputs.
        others: The `CheckpointSettings` of `config.json`.

    Attributes:
        source, target: Languages that a user chooses, or `None`.
    """

    def __init__(self, settings, others):
        self._settings, self._others = settings, others
        self._size = others.count("vocab_size")
        self.source = self.target = None

    def choose(self, source, target) -> None:
        """Takes the languages that a user chooses; see `Family.choose_languages`."""
        if self.languages is None and (source or target):
            side, code = ("source", source) if source else ("target", target)
            raise ValueError(
                f"`{side}_language` must be None for a checkpoint without `lang_to_id` in "
                f"{self._settings.path}. Received: {code!r}."
            )
        if self.languages is not None:
            source = code_of(source, {*self.languages.ids, DETECTED})
            target = code_of(target, {*self.languages.ids, ENGLISH})
            if source != DETECTED:
                self.languages.check("source", source)
        self.source, self.target = source, target

    def rules(self) -> dict[str, Any]:
        """Returns fields of `OutputRules`, a dictionary.

        Raises:
            ValueError: If a setting is not valid, or does not fit the chosen languages.
        """
        prompt, detects = self._prompt()
        without, times = self._timestamps()
        prompt = [token for token in prompt if token not in (None, without)]
        if without is not None and not self._settings.flag("return_timestamps", False):
            prompt.append(without)
        return {
            "prompt_ids": tuple(prompt),
            "language_ids": () if self.languages is None else tuple(self.languages.ids.values()),
            "task_ids": () if self.languages is None else tuple(self._tasks.values()),
            "detect_language": detects,
            **times,
        }

    @functools.cached_property
    def languages(self) -> Languages | None:
        """The `Languages` of recordings, or `None` for a checkpoint that has no choice."""
        settings = self._settings
        if settings.get("lang_to_id") is None or not is_multilingual(settings, True):
            return None
        ids = self._named_ids("lang_to_id")
        return Languages({name.removeprefix("<|").removesuffix("|>"): ids[name] for name in ids})

    @property
    def names(self) -> dict[str, int]:
        """Ids of languages and tasks, by name."""
        return {} if self.languages is None else {**self.languages.ids, **self._tasks}

    @property
    def _tasks(self):
        return self._named_ids("task_to_id")

    def _named_ids(self, name):
        """Returns a dictionary of token ids; empty without the setting."""
        settings, size = self._settings, self._size
        ids = {} if settings.get(name) is None else settings.get(name)
        valid = isinstance(ids, dict) and all(is_integer(x) and 0 <= x < size for x in ids.values())
        if not valid or name == "lang_to_id" and not ids:
            raise settings.wrong(name, f"some of the {size} token ids by name")
        return ids

    def _prompt(self):
        """Returns the tokens of language and task, a list, and whether the language is detected."""
        settings, languages, tasks = self._settings, self.languages, self._tasks
        task, code = settings.get("task"), self._language()
        # As in `generate`, a language or a task takes the place of all forced tokens.
        is_free = task is None and settings.get("language") is None and self.source is None
        prompt, detects = self._forced() if is_free else [], False
        if languages is not None:
            first = prompt[0] if prompt else None
            detects = code == DETECTED or code is None and first is None
            if detects:  # training needs a language
                code = ENGLISH if ENGLISH in languages.ids else next(iter(languages.ids))
            prompt[:1] = [first if code is None else languages.ids[code]]
        task = self._chosen_task(DETECTED if detects else prompt[:1]) or task
        if task is None and languages is not None and not {*prompt} & {*tasks.values()}:
            task = TRANSCRIBE if tasks else None
        if task is not None:
            if not isinstance(task, str) or task not in tasks:
                raise settings.wrong("task_to_id", f"the id of the task {task!r} by its name")
            prompt = [token for token in prompt if token not in tasks.values()]
            prompt.insert(int(languages is not None), tasks[task])
        return prompt, detects

    def _chosen_task(self, language):
        """Returns the task that a user has chosen by a target language, or `None`.

        Args:
            language: `DETECTED`, or a list of the id of the source language.
        """
        ids = {} if self.languages is None else self.languages.ids
        codes = [code for code, number in ids.items() if [number] == language]
        return task_for(language if language == DETECTED else "".join(codes), self.target)

    def _language(self):
        """Returns the language that a user or the checkpoint chooses, or `None`."""
        settings, languages = self._settings, self.languages
        named = settings.get("language")
        if languages is None or self.source is not None or named is None:
            return self.source
        code = code_of(named, languages.ids)
        if not isinstance(code, str) or code not in languages.ids:
            rule = "one of the languages in `lang_to_id`, unless a user chooses one"
            raise settings.wrong("language", rule)
        return code

    def _forced(self):
        """Returns the tokens that `forced_decoder_ids` puts before a transcript."""
        settings = self._others if self._settings.get(FORCED) is None else self._settings
        pairs = settings.get(FORCED) or []
        valid = isinstance(pairs, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and pair[0] == number
            and (pair[1] is None or is_integer(pair[1]) and 0 <= pair[1] < self._size)
            for number, pair in enumerate(pairs, start=1)
        )
        if not valid:
            raise settings.wrong(
                FORCED, f"pairs of 1, 2, ... and one of the {self._size} token ids"
            )
        return [token for _, token in pairs]

    def _timestamps(self):
        """Returns the token against timestamps or `None`, and fields for the timestamps."""
        settings = self._settings
        without = settings.token("no_timestamps_token_id", self._size, optional=True)
        if without is None or without + 1 == self._size:
            if settings.flag("return_timestamps", False):
                raise settings.wrong("no_timestamps_token_id", "the id of <|notimestamps|>")
            return without, {}  # a token of the prompt, without a choice
        most = settings.get("max_initial_timestamp_index")
        if most is not None:
            most = settings.count("max_initial_timestamp_index", least=0)
        return without, {
            "no_timestamps_id": without,
            "timestamp_id": without + 1,
            "max_first_timestamp": most,
        }
