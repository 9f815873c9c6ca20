"""Schema of a training configuration: its sections and the rules between them.

Every section is frozen and strict: an unknown key, a string instead of a number or a number out of
range is an error. The sections, with types, ranges, defaults and descriptions, are in
`*_sections.py`, `vocabulary_section.py`, and the `settings.py` of tasks and demos;
`toml.py` reads and writes them; the command `settings` prints them, and the pages
`docs/settings.md` and `docs/settings/*.md` show them.
"""

import functools
from typing import Annotated, Any, Union

from pydantic import Discriminator, Tag, ValidationInfo, create_model, model_validator

from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import Section
from keras_transformer.training.settings.model_sections import (
    ModelSettings,
    TaskSettings,
    model_settings,
)
from keras_transformer.training.settings.optimizer_sections import (
    RATES,
    OptimizerSettings,
    ScheduleSettings,
)
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.training_sections import TrainingSettings
from keras_transformer.training.settings.tuning import check_tuning
from keras_transformer.training.settings.vocabulary_section import VocabularySettings


def _any_of(kinds):
    """Returns the type of a `[data]` section, of which pydantic chooses the kind by its tag."""
    tagged = tuple(Annotated[kind, Tag(name)] for name, kind in kinds.items())
    return Annotated[Union[tagged], Discriminator(_data_kind)]  # noqa: UP007


def _data_kind(value):
    """Returns the tag of `[data]`; pydantic passes a table or an instance."""
    return value.get("source") if isinstance(value, dict) else getattr(value, "source", None)


class Settings(Section):
    """A whole configuration."""

    task: TaskSettings = TaskSettings()
    model: ModelSettings = ModelSettings()
    data: _any_of(data_kinds())
    vocabulary: VocabularySettings = VocabularySettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    training: TrainingSettings = TrainingSettings()

    @classmethod
    def model_validate(cls, obj, **kwargs) -> "Settings":
        """Returns the settings in nested dictionaries; `[model]` has the keys of the task's model.

        Args:
            obj: The nested dictionaries.
            **kwargs: Arguments of pydantic. `context`: other `Settings`; the result has their
                configuration if it describes the same model, instead of another one that is equal.

        Raises:
            pydantic.ValidationError: If a key or a value is wrong.
        """
        task = obj.get("task", {})
        kind = task.get("kind", "translation") if isinstance(task, dict) else None
        if cls is Settings and isinstance(kind, str) and kind in TASKS:
            kinds = tuple(data_kinds().items())
            return _settings_for(TASKS[kind].config_class, kinds).model_validate(obj, **kwargs)
        return super().model_validate(obj, **kwargs)

    @model_validator(mode="after")
    def _rules_between_sections(self, info: ValidationInfo):
        task = self.task.get()
        if isinstance(info.context, Settings):
            self._share(info.context)
        try:
            config = self.config()  # the configuration checks ranges and combinations
        except (TypeError, ValueError) as error:
            raise ValueError(f"[model] {error}") from None
        self.data.check_columns(task)
        self._check_unused(task)
        if task.texts and getattr(self.data, "max_length", 0) > config.max_length:
            ours = "max_length", config.max_length, "model.max_length", "the preset's"
            raise ValueError(
                "`data.max_length` must not exceed `model.max_length`. Received: "
                f"{self.data.received('max_length', name='data.max_length')}, "
                f"{self.model.received(*ours)}."
            )
        self.model.check_start()
        self.model.check_vectors(config, task)
        check_tuning(self, config)
        self.schedule.check_length(self.training.updates)
        if getattr(self.data, "truncate_source", False):
            _require_two_sides(task, "`data.truncate_source`")
        self._check_directions(task)
        self._check_packed(task, config)
        self._check_distributions()
        self._check_vocabulary(task)
        self._check_best(task)
        task.check(self)
        return self

    def _check_directions(self, task):
        if not getattr(self.data, "bidirectional", False):
            return
        _require_two_sides(task, "`data.bidirectional`")
        if not self.vocabulary.shared:
            raise ValueError(
                "`data.bidirectional` needs one vocabulary for source and target: set "
                "`vocabulary.shared = true`, or `vocabulary.from` to one vocabulary."
            )

    def _check_packed(self, task, config):
        if not getattr(self.data, "packed", False):
            return
        if not task.can_pack:
            raise ValueError(f"`data.packed` has no effect on {task.name}.")
        if config.decoder.has_state and self.training.jit_compile:
            raise ValueError(
                "`training.jit_compile` must be false for packed texts and a `mixer` with a state: "
                "each batch has another number of texts. Received: data.packed=true, "
                f"model.mixer={config.decoder.mixer.kind!r}."
            )
        for key, value in (
            ("data.train_weights", self.data.train_weights),
            ("training.subword_sampling", self.training.subword_sampling),
        ):
            if value:
                raise ValueError(
                    f"`data.packed` and `{key}` cannot be combined: packed rows are the same in "
                    "every epoch."
                )

    def _check_distributions(self):
        taught = getattr(self.data, "train_distributions", None) is not None
        if taught and self.training.subword_sampling:
            raise ValueError(
                "`training.subword_sampling` and `data.train_distributions` cannot be combined: "
                "teachers have predicted the tokens of one segmentation."
            )
        if taught and getattr(self.data, "bidirectional", False):
            raise ValueError(
                "`data.bidirectional` and `data.train_distributions` cannot be combined: teachers "
                "have predicted the targets of one direction."
            )

    def _check_unused(self, task):
        for name in _unused(task):
            section, _, key = name.partition(".")
            given = section in self.model_fields_set
            if given and key:
                given = key in getattr(self, section).model_fields_set
            if given:
                raise ValueError(
                    f"{f'`{name}`' if key else f'[{name}]'} has no effect on {task.name}; remove "
                    "it."
                )

    @property
    def is_tuning(self) -> bool:
        """`True` if a run starts from another one and leaves its learning rate open."""
        return self.model.start_from is not None and not RATES & self.schedule.model_fields_set

    def used(self) -> dict[str, Any]:
        """Returns all values that have an effect on the task, as nested dictionaries."""
        unused: dict[str, Any] = {}
        for name in _unused(self.task.get()):
            section, _, key = name.partition(".")
            if key:
                unused.setdefault(section, set()).add(key)
            else:
                unused[section] = True
        if self.is_tuning:  # the default would read as a choice of another rate
            unused.setdefault("schedule", set()).add("kind")
        return self.model_dump(exclude_none=True, exclude=unused)

    def _check_vocabulary(self, task):
        if self.vocabulary.shared:
            return
        taken = self.vocabulary.places is not None  # then the user has not set `shared`
        given = (
            "`vocabulary.from` with two vocabularies" if taken else "`vocabulary.shared = false`"
        )
        _require_two_sides(task, given)
        if self.config().head.tie == "all":
            raise ValueError(
                f'{given} needs `model.tie = "target"` or `"none"`: source and '
                "target cannot share one matrix."
            )

    def _check_best(self, task):
        best_by = self.training.best_by
        if best_by is None:
            return
        if best_by not in task.metrics:
            raise ValueError(
                f"`training.best_by` must be one of {', '.join(task.metrics)} for {task.name}. "
                f"Received: {best_by!r}."
            )
        metric = task.metrics[best_by]
        needed = {metric.needs, "validate_sentences" if metric.of_answers else None} - {None}
        missing = sorted(name for name in needed if not getattr(self.training, name))
        if missing:
            names = " and ".join(f"`training.{name}`" for name in missing)
            raise ValueError(f'`training.best_by = "{best_by}"` needs {names}.')

    def config(self, **data) -> Any:
        """Returns the configuration of the model, which is built once.

        Args:
            **data: Fields that tokenizers and data determine, whose defaults are replaced.
        """
        return self.configuration.with_data(**data) if data else self.configuration

    @functools.cached_property
    def configuration(self) -> Any:
        """The configuration of the model, with the defaults of what the data determine."""
        return self.model.config(self.task.get())

    def _share(self, other):
        """Takes over the configuration of other settings if it describes the same model."""
        kinds = {settings.task.get().config_class for settings in (self, other)}
        described = [(one.model.preset, one.model.options()) for one in (self, other)]
        if len(kinds) == 1 and described[0] == described[1]:
            self.__dict__["configuration"] = other.configuration

    def model_copy(self, *, update: Any = None, deep: bool = False) -> "Settings":
        """Returns a copy, whose configuration is built again if its model is another one."""
        copy = super().model_copy(update=update, deep=deep)
        if {"task", "model"} & {*(update or ())}:
            copy.__dict__.pop("configuration", None)
        return copy


def _require_two_sides(task, what):
    if not task.has_two_sides:
        raise ValueError(
            f"{what} needs a source and a target: {task.name} has {' and '.join(task.columns)}."
        )


def _unused(task):
    """Returns the sections and keys that have no effect on a task."""
    cutoff = () if task.truncates_tokens else ("training.simcut", "training.token_cutoff")
    ctc = () if task.has_frames else ("training.ctc_weight",)
    return *task.unused, *cutoff, *ctc


@functools.cache
def _settings_for(config_class, kinds):
    """Returns the subclass of `Settings` for a kind of model, and with some kinds of data."""
    model = model_settings(config_class)
    data = _any_of(dict(kinds)), ...
    return create_model("Settings", __base__=Settings, model=(model, model()), data=data)
