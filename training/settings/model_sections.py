"""The sections `[task]` and `[model]`, whose keys are the options of the model of the task."""

import functools
import typing
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    WithJsonSchema,
    create_model,
    field_validator,
)

from keras_transformer.config import PRESETS
from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.plugins import REMEDY
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import PathText, Section
from keras_transformer.variants import short

# A value that comes in several kinds; the configuration checks it.
TextOrTable = Annotated[Any, WithJsonSchema({"type": "text or table"})]


def _known_task(name):
    if name not in TASKS:
        raise ValueError(
            f"must be one of {', '.join(TASKS)}; for a task of another package, {REMEDY}"
        )
    return name


class TaskSettings(Section):
    """The task of the model, which determines the columns of its data."""

    kind: Annotated[str, AfterValidator(_known_task)] = Field(
        "translation",
        description="The task, with the columns of its data: "
        + "; ".join(f"`{task.name}` ({', '.join(task.columns)})" for task in TASKS.values())
        + ".",
        json_schema_extra={"enum": list(TASKS)},
    )

    def get(self) -> Any:
        """Returns the `Task` that `kind` names."""
        return TASKS[self.kind]


class ModelSettings(Section):
    """A preset of the model's configuration, and the options that differ from it.

    The size and the special ids of the vocabulary are not set here, because they come from the
    tokenizer. The labels of a classifier come from the data. In an encoder-decoder, an option
    applies to both stacks. Options for one stack only are in `[model.encoder]` or
    `[model.decoder]`.
    """

    start_from: PathText | None = Field(
        None,
        description="A finished run whose weights training starts from (fine-tuning). The new "
        "run uses the vocabulary of the finished run. Without `preset`, sizes that are omitted "
        "are also those of the finished run.",
    )
    parts: list[Literal[PARTS]] | None = Field(
        None,
        min_length=1,
        description="Parts of the model that begin with the weights of `start_from`. This may "
        "be a run for a different task: its encoder, or the decoder of a language model, fits "
        "any encoder of the same sizes. All other parts begin with random weights. If omitted: "
        "all parts, from a run for the same task.",
    )
    shrink: bool = Field(
        False,
        description="Whether a stack may have fewer layers than in `start_from` (after "
        "Shleifer and Rush, 2020). It begins with the first layer, the last layer, and layers "
        "evenly spaced between them. A stack of one layer begins with the first layer.",
    )
    preset: str = Field(
        "tiny",
        description="Name of a configuration: a row of the paper's Table 3 (`base`, `big`, "
        "`c_layers_2` ...); `tiny`, which trains in minutes; `small`, for tens of thousands of "
        "pairs; or `student_tiny` and `student_base_memory`, encoder-decoders of the sizes that "
        "browsers use.",
    )
    vectors: PathText | None = Field(
        None,
        description="A file of word vectors in the text format of GloVe or word2vec, "
        "compressed with gzip if its name ends in `.gz`. The source embedding (or the shared "
        "embedding) begins with the vectors of its tokens. A token is looked up with its "
        "capital letters and without the mark of the space before it. Tokens that are not in "
        "the file begin with random vectors.",
    )
    freeze_vectors: bool | None = Field(
        None,
        description="Whether to keep the embedding fixed during training, including tokens "
        "without a vector. It must not be tied to the output weights. If omitted: false.",
    )

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name):
        if name not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return name

    def check_start(self) -> None:
        """Raises a `ValueError` if `parts` or `shrink` has no effect."""
        if self.parts is not None and self.start_from is None:
            raise ValueError("`model.parts` has no effect without `model.start_from`.")
        if self.shrink and self.start_from is None:
            raise ValueError("`model.shrink` has no effect without `model.start_from`.")

    def check_vectors(self, config, task) -> None:
        """Raises a `ValueError` if word vectors cannot have an effect.

        Args:
            config: The configuration of the model.
            task: The `Task`.
        """
        if self.vectors is None:
            if self.freeze_vectors is not None:
                raise ValueError("`model.freeze_vectors` has no effect without `model.vectors`.")
            return
        if config.tokens is not config.input:
            raise ValueError(f"`model.vectors` has no effect on {task.name}, which has no words.")
        if self.start_from is not None:
            raise ValueError(
                "`model.vectors` has no effect with `model.start_from`, whose run provides all "
                "weights."
            )
        if self.freeze_vectors and getattr(config.head, "tie", "none") == "all":
            raise ValueError(
                '`model.freeze_vectors` needs `model.tie = "none"`: otherwise the embedding is '
                "also the output matrix, which must be trained."
            )

    def options(self) -> dict[str, Any]:
        """Returns the options that are given, plain values by name."""
        return self.model_dump(exclude=set(ModelSettings.model_fields), exclude_none=True)

    def config(self, task) -> Any:
        """Returns the configuration of a task's model; see `Settings.config`, which builds it once.

        Args:
            task: The `Task`.

        Raises:
            ValueError: If a value is out of range, two contradict each other, or one has no effect.
        """
        changes = self.options()
        unused = task.config_class.without_effect(changes)
        for name in changes:
            if name in unused:
                raise ValueError(f"`{name}` has no effect on a model for {task.name}; remove it.")
        return task.config_class.preset(self.preset, **changes)


@functools.cache
def model_settings(config_class) -> type[ModelSettings]:
    """Returns the subclass of `ModelSettings` whose keys are the options of a model.

    Options that tokenizers and data determine are not among them.

    Args:
        config_class: The class of the model's configuration, a `ModelConfig`.
    """
    fields: dict[str, Any] = {}
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
                description=f"`{name}` of the {stack}. If omitted: the value for the model.",
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
    """Returns the type and the pydantic field for the options of one stack alone."""
    fields, kind = (
        {name: _setting(f, None) for name, f in part.options().items()},
        part.kind_option(),
    )
    meaning = (
        f"Options of the {stack} that differ from those of the model: a table `[model.{stack}]` "
        "with keys of `[model]`."
    )
    if kind is not None:
        meaning += f" Or a string, the `{kind.name}` of the {stack}"
        if kind.metadata["of"] is None:
            choices = part.more_kinds + typing.get_args(kind.type)
            takes, names = Literal[choices], ", ".join(f"`{choice}`" for choice in choices)
            meaning += f", one of {names}: {kind.metadata['help']}"
        else:  # its kinds are where the model's option is, and can become more
            takes, meaning = TextOrTable, f"{meaning}."
        fields[kind.name] = takes | None, Field(None, description=kind.metadata["help"])
    table = create_model(f"{stack.title()}Settings", __base__=Section, **fields)

    def read(value):
        return {part.kind: value} if kind is not None and isinstance(value, str) else value

    return (
        typing.Annotated[table, BeforeValidator(read)] | None,
        Field(None, description=meaning, json_schema_extra={"in_words": "table"}),
    )


def _setting(field, default):
    """Returns the type and the pydantic field of an option, which the configuration checks."""
    meaning = field.metadata["help"].replace("`None`:", "If omitted:")
    extra = {"base": short(default)}
    kind = _plain(field.type)
    kind = list if kind is tuple else kind
    if field.metadata["of"] is not None:
        kind = TextOrTable
    return kind | None, Field(None, description=meaning, json_schema_extra=extra)


def _plain(kind):
    """Returns a type without its checks."""
    is_checked = typing.get_origin(kind) is typing.Annotated
    return typing.get_args(kind)[0] if is_checked else kind
