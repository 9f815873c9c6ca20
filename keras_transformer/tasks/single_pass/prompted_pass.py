"""Pipelines of models that put a prompt in front of a text, such as `query: `."""

import functools
from typing import Any, TypeVar

from keras_transformer.tasks.single_pass.text_pass import TextPass
from keras_transformer.text.prompts import TextPrompts

Pass = TypeVar("Pass", bound="PromptedPass")


class PromptedPass(TextPass):
    """A `TextPass` whose codec is a `PromptedCodec`."""

    settings = ("prompt",)

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        # Hidden in a closure: a SavedModel of this pipeline would contain the others.
        prompted = functools.cache(lambda prompt: self.with_settings(prompt=prompt))
        self.prompted = lambda prompt: prompted(prompt)

    @classmethod
    def with_files_of(  # noqa: D102
        cls: type[Pass], run: Any, model: Any, max_length: int | None = None
    ) -> Pass:
        return super().with_files_of(run, model, max_length).with_prompts(run.read_prompts())

    @classmethod
    def of_checkpoint(  # noqa: D102
        cls: type[Pass], checkpoint: Any, max_length: int | None = None
    ) -> Pass:
        return super().of_checkpoint(checkpoint, max_length).with_prompts(checkpoint.prompts)

    def with_model(self: Pass, model: Any) -> Pass:  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.codec = self.codec
        return pipeline

    def with_prompts(self: Pass, prompts: TextPrompts | None) -> Pass:
        """Returns a pipeline that differs in its `TextPrompts`; `None`: it has none."""
        pipeline = self.with_model(self.model if len(self.models) == 1 else list(self.models))
        pipeline.codec = self.codec.with_choices(prompts)
        return pipeline

    def _set(self, name, value):
        self.codec = self.codec.with_choices(self.codec.choices.replaced(value))
