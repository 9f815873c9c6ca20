"""The sections `[task]` and `[model]`, whose keys are the options of the task's own model."""

import functools
import typing
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model, field_validator

from keras_transformer.config import PRESETS
from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import PathText, Section


def _known_task(name):
    if name not in TASKS:
        raise ValueError(f"must be one of {', '.join(TASKS)}")
    return name


class TaskSettings(Section):
    """What the model is for. It decides what the columns of the data are."""

    kind: Annotated[str, AfterValidator(_known_task)] = Field(
        "translation",
        description="The task: "
        + "; ".join(
            f"`{task.name}`, whose data have the columns {' and '.join(task.columns)}"
            for task in TASKS.values()
        )
        + ".",
        json_schema_extra={"enum": list(TASKS)},
    )

    def get(self):
        """Returns the `Task`."""
        return TASKS[self.kind]


class ModelSettings(Section):
    """A preset of the model's configuration and the options that differ from it.

    The sizes and special ids of the vocabulary are not set here: they come from the tokenizer, as
    the labels of a classifier come from the data. An option of an encoder-decoder is that of both
    stacks; what differs in one is in `[model.encoder]` or `[model.decoder]`.
    """

    start_from: PathText | None = Field(
        None,
        description="A finished run whose weights the training begins with (fine-tuning). Its "
        "vocabulary is taken over, and so are its sizes where `preset` and they are left out.",
    )
    parts: list[Literal[PARTS]] | None = Field(
        None,
        min_length=1,
        description="Parts of the model that begin with the weights of `start_from`, which may be "
        "a run of another task: its encoder, or the decoder of a language model, fits any encoder "
        "of the same sizes. The other parts begin anew. Left out: all parts, of a run of the same "
        "task.",
    )
    preset: str = Field(
        "tiny",
        description="A row of the paper's Table 3 (`base`, `big`, `c_layers_2` ...), `tiny`, which "
        "trains in minutes, `small`, for some ten thousand pairs, or `student_tiny` and "
        "`student_base_memory`, encoder-decoders of the size that browsers have.",
    )
    vectors: PathText | None = Field(
        None,
        description="A file of word vectors, of GloVe or of word2vec as text, gzip if its name "
        "ends in `.gz`: the embedding of sources (of all texts where they share one) begins with "
        "those of its pieces. A piece is looked up without the mark of the space before it, as it "
        "is written; pieces that are not in the file begin as they would without it.",
    )
    freeze_vectors: bool | None = Field(
        None,
        description="Whether that embedding stays as it is, the pieces without a vector included. "
        "It must not be tied to the output weights. Left out: no.",
    )

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name):
        if name not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return name

    def check_start(self):
        """Raises a `ValueError` if `parts` has no effect."""
        if self.parts is not None and self.start_from is None:
            raise ValueError("`model.parts` has no effect without `model.start_from`.")

    def check_vectors(self, config, task):
        """Raises a `ValueError` unless word vectors have the effect that is wanted.

        Args:
            config: What `config` returned.
            task: The `Task`.
        """
        if self.vectors is None:
            if self.freeze_vectors is not None:
                raise ValueError("`model.freeze_vectors` has no effect without `model.vectors`.")
            return
        if not config.has_vocabulary:
            raise ValueError(f"`model.vectors` has no effect on {task.name}, which has no words.")
        if self.start_from is not None:
            raise ValueError(
                "`model.vectors` has no effect with `model.start_from`, whose run has all weights."
            )
        if self.freeze_vectors and getattr(config, "tie", "none") == "all":
            raise ValueError(
                '`model.freeze_vectors` needs `model.tie = "none"`: the embedding is the output '
                "weights as well, which must learn."
            )

    def options(self):
        """Returns the options of the model that are given, as plain values by name."""
        return self.model_dump(exclude=set(ModelSettings.model_fields), exclude_none=True)

    def config(self, task, **data):
        """Returns the configuration of a task's model.

        Args:
            task: The `Task`.
            **data: What the tokenizers and the data decide.

        Raises:
            ValueError: If a value is out of range, two contradict each other, or one has no effect.
        """
        changes = self.options()
        unused = task.config_class.without_effect(changes)
        for name in changes:
            if name in unused:
                raise ValueError(f"`{name}` has no effect on a model for {task.name}; remove it.")
        return task.config_class.preset(self.preset, **changes, **data)


@functools.cache
def model_settings(config_class):
    """Returns the `ModelSettings` with the options of a model that are settings of a training.

    Args:
        config_class: The class of the model's configuration, a `ModelConfig`.
    """
    fields = {}
    for part in config_class.description.values():
        defaults = part.default.to_flat()
        for name, field in part.options().items():
            if field.metadata["set_by"] is None and name not in config_class.follow:
                fields[name] = _setting(field, defaults.get(name, field.default))
    for alias, (stack, name) in config_class.aliases.items():
        fields[alias] = (
            int | None,
            Field(
                None,
                description=f"`{name}` of the {stack}. Left out: that of the model.",
                json_schema_extra={"base": None},
            ),
        )
    for stack, part in config_class.description.items():
        if stack in STACKS:
            fields[stack] = _table(stack, part)
    return create_model(
        "ModelSettings", __base__=ModelSettings, __doc__=ModelSettings.__doc__, **fields
    )


def _table(stack, part):
    """The type and the pydantic field of the options of one stack alone."""
    fields, kind = (
        {name: _setting(f, None) for name, f in part.options().items()},
        part.kind_option(),
    )
    meaning = (
        f"Options of the {stack} alone that differ from those of the model: a table "
        f"`[model.{stack}]` with keys of `[model]`."
    )
    if kind is not None:
        choices = (*part.more_kinds, *typing.get_args(_plain(kind.type)))
        fields[kind.name] = (
            Literal[choices] | None,
            Field(None, description=kind.metadata["help"]),
        )
        meaning += (
            f" Or a text, the `{kind.name}` of the {stack}, one of "
            f"{', '.join(f'`{choice}`' for choice in choices)}: {kind.metadata['help']}"
        )
    table = create_model(f"{stack.title()}Settings", __base__=Section, **fields)

    def read(value):
        return {part.kind: value} if kind is not None and isinstance(value, str) else value

    return (
        typing.Annotated[table, BeforeValidator(read)] | None,
        Field(None, description=meaning, json_schema_extra={"in_words": "table"}),
    )


def _setting(field, default):
    """The type and the pydantic field of an option; its checks are the configuration's."""
    meaning = field.metadata["help"].replace("`None`:", "Left out:")
    return (
        _plain(field.type) | None,
        Field(None, description=meaning, json_schema_extra={"base": default}),
    )


def _plain(kind):
    """A type without its checks."""
    is_checked = typing.get_origin(kind) is typing.Annotated
    return typing.get_args(kind)[0] if is_checked else kind
