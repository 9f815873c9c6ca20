"""`ChatTemplate`, which turns the messages of a conversation into the prompt of a model."""

import dataclasses
import functools
import re
from typing import Any

from keras_transformer.text.template_process import TemplateProcess

ROLES = ("system", "user", "assistant")
EACH, FIRST = "each", "first"  # values of `spaces`
# Characters that Unicode reserves for programs, one of which marks what a user has written.
MARKERS = [chr(number) for number in range(0xFDD0, 0xFDF0)]


@dataclasses.dataclass(frozen=True)
class ChatTemplate:
    """The chat template of an instruct model, with the special tokens that it may write.

    Special tokens in the text of the template become their ids. The same characters in a message
    are ordinary text: a user who writes `<|im_end|>` does not end the turn.

    Differs from `transformers`, whose `apply_chat_template` turns them into ids wherever they
    stand, so that a message can contain turns of others (prompt injection).

    Args:
        template: Text of the template, in Jinja's language.
        special: Dictionary from the special tokens to their ids.
        variables: Dictionary of the names of tokens, such as `bos_token`, for the template.
        spaces: Which texts between special tokens are tokenised on their own, so that a tokenizer
            may begin them with a space: `"each"`, or only the `"first"` one, and only if no special
            token precedes it. The others then begin as they are.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `spaces` is something else.
    """

    template: str
    special: dict[str, int] = dataclasses.field(default_factory=dict)
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    spaces: str = EACH

    def __post_init__(self) -> None:
        if not isinstance(self.template, str):
            raise TypeError(f"`template` must be a string. Received: {self.template!r:.60}.")
        if self.spaces not in (EACH, FIRST):
            raise ValueError(f"`spaces` must be {EACH!r} or {FIRST!r}. Received: {self.spaces!r}.")
        for name, kind in (("special", int), ("variables", str)):
            values = getattr(self, name)
            valid = isinstance(values, dict) and all(
                isinstance(key, str) and key and isinstance(value, kind)
                for key, value in values.items()
            )
            if not valid:
                raise TypeError(f"`{name}` must be a dictionary of names. Received: {values!r:.60}")

    @functools.cached_property
    def _process(self):
        return TemplateProcess(self.template)

    def render(self, messages: list[dict[str, str]], answers: bool = True) -> str:
        """Returns the text of a conversation, with the tokens of messages as they are written.

        Args:
            messages: Dictionaries of `role`, one of `ROLES`, and `content`.
            answers: Whether the text ends with the beginning of the model's next answer.

        Raises:
            TypeError: If `messages` is something else.
            ValueError: If the template is damaged, refuses the messages or exceeds a limit.
        """
        return self._render(check_messages(messages), answers)

    def parts(self, messages: list[dict[str, str]], answers: bool = True) -> list[str | int]:
        """Returns the text of a conversation as texts and the ids of special tokens between them.

        Args:
            messages, answers: See `render`.

        Raises:
            TypeError, ValueError: See `render`.
        """
        messages = check_messages(messages)
        written = "".join(message["content"] for message in messages)
        marker = next((mark for mark in MARKERS if mark not in written), None)
        if marker is None:
            raise ValueError("`messages` must not contain every character from U+FDD0 to U+FDEF.")
        marked = [{**m, "content": self._marked(m["content"], marker)} for m in messages]
        names = self._names()
        pieces = re.split(f"({names})", self._render(marked, answers)) if names else []
        pieces = pieces or [self._render(marked, answers)]
        parts = [
            self.special[piece] if place % 2 else piece.replace(marker, "")
            for place, piece in enumerate(pieces)
        ]
        return [part for part in parts if part != ""]

    def close(self) -> None:
        """Ends the process that renders the template; `render` starts it again."""
        self._process.close()

    def _render(self, messages, answers):
        variables = {**self.variables, "messages": messages, "add_generation_prompt": answers}
        variables |= {"tools": None, "documents": None}
        return self._process.render(variables)

    def _names(self):
        """Returns the pattern of a special token, the longest ones first."""
        return "|".join(re.escape(name) for name in sorted(self.special, key=len, reverse=True))

    def _marked(self, text, marker):
        """Returns a text in which no special token is found, and none begins at the end."""
        names = self._names()
        if not names:
            return text
        text = re.sub(names, lambda found: found[0][0] + marker + found[0][1:], text)
        for name in self.special:
            for size in range(len(name) - 1, 0, -1):
                if text.endswith(name[:size]):
                    cut = len(text) - size + 1
                    text = text[:cut] + marker + text[cut:]
                    break
        return text

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for `from_dict`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ChatTemplate":
        """Returns the template from the result of `to_dict`.

        Raises:
            TypeError, ValueError: If it is something else.
        """
        return cls(**values)


def check_messages(messages: Any) -> list[dict[str, str]]:
    """Returns a list of messages.

    Raises:
        TypeError: If it is something else than a list of messages with texts.
        ValueError: If there is no message, or a role is unknown.
    """
    if not isinstance(messages, list | tuple) or not all(isinstance(m, dict) for m in messages):
        raise TypeError(f"`messages` must be a list of dictionaries. Received: {messages!r:.60}.")
    if not messages:
        raise ValueError("`messages` must not be empty.")
    for message in messages:
        if {*message} != {"role", "content"} or not isinstance(message["content"], str):
            raise TypeError(
                "A message must have a `role` and a `content`, which is a string. "
                f"Received: {message!r:.60}."
            )
        if message["role"] not in ROLES:
            raise ValueError(
                f"The `role` of a message must be one of {', '.join(ROLES)}. "
                f"Received: {message['role']!r}."
            )
    return list(messages)
