"""`TextPrompts` of sentence encoders: texts in front of a text, such as `query: `."""

import dataclasses
import typing
from typing import Any

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class TextPrompts:
    """The prompts of a sentence encoder; most have none.

    Args:
        texts: Dictionary from names, such as `"query"`, to the texts that are put in front.
        default: Name of the prompt that is used unless another one is chosen. `None`: none is.

    Raises:
        ValueError: If a name or a text is not a string, a name is empty, or `default` is no name.
    """

    command_options: typing.ClassVar = ("prompt",)
    names: typing.ClassVar = ("prompt",)  # of what a request may choose
    has_languages: typing.ClassVar = False
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    default: str | None = None

    def __post_init__(self) -> None:
        valid = isinstance(self.texts, dict) and all(
            isinstance(name, str) and name and isinstance(text, str)
            for name, text in self.texts.items()
        )
        if not valid:
            raise ValueError(f"`prompts` must be texts by name. Received: {self.texts!r:.60}.")
        if self.default is not None and self.default not in self.texts:
            names = ", ".join(self.texts) or "no name, because there are no prompts"
            raise ValueError(f"`default` must be {names}. Received: {self.default!r}.")

    @property
    def text(self) -> str:
        """The text in front of every text by default."""
        return "" if self.default is None else self.texts[self.default]

    def replaced(self, prompt: str) -> "TextPrompts":
        """Returns prompts with another default.

        Args:
            prompt: Name of a prompt, or `""`: none.

        Raises:
            TypeError: If it is not a string.
            ValueError: If there is no such prompt.
        """
        if not isinstance(prompt, str):
            raise TypeError(f"`prompt` must be a string. Received: prompt={prompt!r}.")
        if prompt and prompt not in self.texts:
            rule = f"must be one of {', '.join(self.texts)}, or empty: no prompt"
            if not self.texts:
                rule = "has no effect on a model without prompts"
            raise ValueError(f"`prompt` {rule}. Received: {prompt!r}.")
        return dataclasses.replace(self, default=prompt or None)

    def request(self, count: int) -> dict[str, Tensor]:
        """Returns the option of a request of `count` texts that stands for the default."""
        return {"prompt": tf.fill([count], self.default or "")}

    def looked_up(self, names: Tensor) -> Tensor:
        """Returns the texts of prompts, string `[B]`, in a graph.

        Args:
            names: Names of prompts, string `[B]`; `""`: none.
        """
        known = tf.constant(["", *self.texts])  # [P]
        is_name = tf.equal(tf.expand_dims(names, 1), known)  # [B, P]
        message = f"`prompt` must be empty or one of {', '.join(self.texts)}."
        found = tf.debugging.Assert(tf.reduce_all(tf.reduce_any(is_name, 1)), [message])
        with tf.control_dependencies([] if found is None else [found]):
            number = tf.argmax(is_name, 1)  # [B]
        return tf.gather(tf.constant(["", *self.texts.values()]), number)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for `from_dict`."""
        return {"texts": dict(self.texts), "default": self.default}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TextPrompts":
        """Returns the prompts from the result of `to_dict`.

        Raises:
            TypeError, ValueError: If it is something else.
        """
        return cls(**values)
