"""`Continuation`, the text of tokens while a model generates them."""

from collections.abc import Iterator
from typing import Any

UNFINISHED = "\ufffd"  # stands for bytes that are no character, perhaps not yet


class TextParts:
    """The text after a prompt, in parts, one for each token; a part may be empty.

    Together the parts are the text. None ends within a character.

    Args:
        prompt: The `Prompt`.
        tokenizer: The `Tokenizer`.

    Attributes:
        tokens: Number of the tokens so far, with the end token.
        complete: Whether the end token was among them.
    """

    def __init__(self, prompt: Any, tokenizer: Any):
        self.tokens, self.complete = 0, False
        self._silent, self._end = prompt.silent, tokenizer.eos_id
        self._read = prompt.reading(tokenizer)
        self._ids: list[int] = []
        self._text = ""

    def add(self, token: int) -> str:
        """Returns the part that a further token adds."""
        self.tokens += 1
        if token == self._end:
            self.complete = True
        if self.complete or token in self._silent:
            return ""
        self._ids.append(token)
        whole, part = self._read(self._ids), ""
        if whole.startswith(self._text):
            part = whole.rstrip(UNFINISHED)[len(self._text) :]
        self._text += part
        return part

    def rest(self) -> str:
        """Returns the last part, after all tokens; nothing when called again."""
        part = self._read(self._ids)[len(self._text) :]
        self._text += part
        return part


class Continuation:
    """The text after a prompt, an iterator of its `TextParts`.

    Args:
        text: The `KeptText` that generates the tokens.
        prompt: The `Prompt`.
        search: A `Greedy` or a `Sample`.
        tokenizer: The `Tokenizer`.

    Raises:
        TypeError, ValueError: See `KeptText.generate`.
    """

    def __init__(self, text: Any, prompt: Any, search: Any, tokenizer: Any):
        self._parts = TextParts(prompt, tokenizer)
        self._tokens = text.generate(prompt.ids, search)
        self._iterator = self._generate()

    @property
    def tokens(self) -> int:
        """Number of the tokens so far, with the end token."""
        return self._parts.tokens

    @property
    def complete(self) -> bool:
        """`True` if the text has ended before its maximum length."""
        return self._parts.complete

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._iterator)

    def close(self) -> None:
        """Ends the text where it is."""
        self._iterator.close()
        self._tokens.close()

    def _generate(self):
        for token in self._tokens:
            part = self._parts.add(token)
            if self.complete:
                break
            yield part
        yield self._parts.rest()
