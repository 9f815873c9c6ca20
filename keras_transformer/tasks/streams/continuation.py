"""`Continuation`, the text of tokens while a model generates them."""

from collections.abc import Callable, Iterator
from typing import Any

UNFINISHED = "\ufffd"  # stands for bytes that are no character, perhaps not yet


class Continuation:
    """The text after a prompt, an iterator with a part for each token; a part may be empty.

    Together the parts are the text. None ends within a character.

    Args:
        text: The `Continued` that generates the tokens.
        prompt: The `Prompt`.
        search: A `Greedy` or a `Sample`.
        tokenizer: The `Tokenizer`.
        number: Index of the prompt in its request, by which samples differ.
        closed: Function that is called when the tokens have ended or `close` is called.

    Attributes:
        tokens: Number of the tokens so far, with the end token.
        complete: Whether the text has ended before its maximum length.

    Raises:
        TypeError, ValueError: See `Continued.generate`.
    """

    def __init__(
        self,
        text: Any,
        prompt: Any,
        search: Any,
        tokenizer: Any,
        number: int = 0,
        closed: Callable[[], object] = lambda: None,
    ):
        self.tokens, self.complete = 0, False
        self._silent, self._end, self._closed = prompt.silent, tokenizer.eos_id, closed
        self._read = prompt.reading(tokenizer)
        self._tokens = text.generate(prompt.ids, search, number)
        self._parts = self._generate()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._parts)

    def close(self) -> None:
        """Ends the text where it is."""
        self._parts.close()
        self._tokens.close()
        closed, self._closed = self._closed, lambda: None
        closed()

    def _generate(self):
        ids, text = [], ""
        for token in self._tokens:
            self.tokens += 1
            if token == self._end:
                self.complete = True
                break
            part = ""
            if token not in self._silent:
                ids.append(token)
                whole = self._read(ids)
                if whole.startswith(text):
                    part = whole.rstrip(UNFINISHED)[len(text) :]
            text += part
            yield part
        yield self._read(ids)[len(text) :]
