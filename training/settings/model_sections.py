"""The sections `[task]` and `[model]`, whose fields are those of the models' configurations."""

import dataclasses
import inspect
import re
import typing
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, create_model, field_validator

from keras_transformer.config import PRESETS
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import PathText, Section
from keras_transformer.training.settings.of_the_data import OF_THE_DATA, OF_THE_VOCABULARY


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


class _Preset(Section):
    start_from: PathText | None = Field(
        None,
        description="A finished run whose weights the training begins with (fine-tuning). Its "
        "vocabulary is taken over, and so are its sizes where `preset` and they are left out.",
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


def _model_fields():
    """The fields of all models' configurations as optional settings, with their docstrings.

    Returns a dictionary from names to a type and a pydantic field each; their checks are the
    dataclasses'. What a file leaves out is the preset's; what that is in `base`, the dataclass's
    own default, is kept for the page of settings.
    """
    kinds, meanings, defaults = {}, {}, {}
    for task in TASKS.values():
        hints, described = typing.get_type_hints(task.config_class), {}
        for documented in reversed(task.config_class.__mro__[:-1]):
            described |= _arguments(documented)
        for field in dataclasses.fields(task.config_class):
            name, kind = field.name, hints[field.name]
            meaning = described.get(name, "").replace("`None`:", "Left out:")
            if name in OF_THE_VOCABULARY or name in OF_THE_DATA:
                continue
            if name not in kinds:
                kinds[name], meanings[name], defaults[name] = kind, meaning, field.default
            elif (both := _either(kinds[name], kind)) != kinds[name]:
                kinds[name] = both
                meanings[name] += f" For {task.name}: {meaning[:1].lower()}{meaning[1:]}"
    return {
        name: (
            kind | None,
            Field(None, description=meanings[name], json_schema_extra={"base": defaults[name]}),
        )
        for name, kind in kinds.items()
    }


def _either(first, second):
    """The type of a field that the models of two tasks have: the choices of both, if it has any."""
    if not typing.get_origin(first) is typing.get_origin(second) is Literal:
        return first
    return Literal[tuple(dict.fromkeys(typing.get_args(first) + typing.get_args(second)))]


def _arguments(documented):
    """Returns the meaning of each argument in the `Args` of a docstring, in one line each."""
    _, _, rest = inspect.cleandoc(documented.__doc__ or "").partition("\nArgs:\n")
    block = re.split(r"\n(?=\S)", rest)[0]
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


class ModelSettings(create_model("_ModelFields", __base__=_Preset, **_model_fields())):
    """A preset of the model's configuration and the fields that differ from it.

    The sizes and special ids of the vocabulary are not set here: they come from the tokenizer, as
    the labels of a classifier come from the data.
    """

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
        if not hasattr(config, "vocab_size"):
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

    def config(self, task, **data):
        """Returns the configuration of a task's model.

        Args:
            task: The `Task`.
            **data: What the tokenizers and the data decide.

        Raises:
            ValueError: If a value is out of range, two contradict each other, or one has no effect.
        """
        changes = self.model_dump(exclude=set(_Preset.model_fields), exclude_none=True)
        known = {field.name for field in dataclasses.fields(task.config_class)}
        known -= task.config_class.without_effect(changes)
        for name in changes:
            if name not in known:
                raise ValueError(f"`{name}` has no effect on a model for {task.name}; remove it.")
        return task.config_class.preset(self.preset, **changes, **data)
