"""Codecs of models that put a prompt in front of a text, such as `query: `."""

from typing import Any, ClassVar, TypeVar

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.single_pass.text import TextCodec
from keras_transformer.tasks.strings import utf8
from keras_transformer.tensors import Tensor
from keras_transformer.text.prompts import TextPrompts

Kind = TypeVar("Kind", bound="PromptedCodec")


class PromptedCodec(TextCodec):
    """The codec of a model that reads a text after a prompt.

    Args:
        tokenizer, max_length: See `TextCodec`.
        choices: The `TextPrompts` of the model. `None`: it has none.

    Attributes:
        further: Names of further arguments, plain values that are part of the metadata.
    """

    choices = TextPrompts()
    settings = ("prompt",)
    further: ClassVar[tuple[str, ...]] = ()

    def __init__(self, tokenizer, max_length, choices=None):
        super().__init__(tokenizer, max_length)
        self.choices = self.choices if choices is None else choices

    @property
    def option_specs(self) -> dict[str, Any]:  # noqa: D102
        if not self.choices.texts:
            return {}
        return {"prompt": tf.TensorSpec([None], tf.string, name="prompt")}

    def with_choices(self: Kind, choices) -> Kind:
        """Returns a codec that differs in its `TextPrompts`."""
        return self.replaced(choices=choices)

    def replaced(self: Kind, **changes: Any) -> Kind:
        """Returns a codec that differs in some of its arguments."""
        values = {"choices": self.choices, **{name: getattr(self, name) for name in self.further}}
        return type(self)(self.tokenizer, self.longest, **{**values, **changes})

    def changed(self: Kind, **settings: Any) -> Kind:
        """Returns a codec that differs in the default of its prompts; see `TextPrompts`."""
        return self.with_choices(self.choices.replaced(**settings))

    def options(self, examples) -> dict[str, Tensor]:  # noqa: D102
        return self.choices.request(len(examples))

    def encode(self, sentences, prompt=None) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, padded token ids `[B, S]`, and `truncated`, `[B]`.

        Args:
            sentences: Texts, string `[B]`.
            prompt: Names of their prompts, string `[B]`; `""`: none. `None`: the default.
        """
        text = self.choices.text if prompt is None else self.choices.looked_up(prompt)
        if prompt is not None or text:
            sentences = tf.strings.join([text, sentences])
        return super().encode(sentences)

    def plainly_encoded(self, examples) -> Any | None:  # noqa: D102
        if type(self).encode is not PromptedCodec.encode or self.tokenizer.plain is None:
            return None
        text = self.choices.text
        texts = [*map(utf8, examples)]
        return self._plain_rows([utf8(text) + x for x in texts] if text else texts)

    @classmethod
    def of_lines(cls, metadata) -> type[Any]:
        """Returns the class with the `TextPrompts` of a SavedModel, which may have none."""
        if "prompts" not in metadata:
            return cls
        return type(cls.__name__, (cls,), {"choices": TextPrompts.from_dict(metadata["prompts"])})

    def line_metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"prompts": self.choices.to_dict()} if self.choices.texts else {}

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        further = {name: getattr(self, name) for name in self.further}
        return {**super().metadata(), **further, **self.line_metadata()}

    @classmethod
    def from_metadata(cls: type[Kind], metadata, tokenizers) -> Kind:  # noqa: D102
        prompts = TextPrompts.from_dict(metadata.get("prompts", {}))
        further = {name: metadata[name] for name in cls.further}
        return cls(tokenizers, metadata["max_length"], prompts, **further)

    def notes(self) -> list[str]:  # noqa: D102
        texts, strings = super().notes()
        prompts = self.choices
        if prompts.texts:
            names = ", ".join(f"`{name}` ({text!r})" for name, text in prompts.texts.items())
            default = "no prompt" if prompts.default is None else f"`{prompts.default}`"
            strings += (
                f" A prompt is put in front of each text, by default {default}. The signature "
                f"`options` has the name of each text's prompt as `prompt`: {names}, or an empty "
                "string for none."
            )
        return [texts, strings]
