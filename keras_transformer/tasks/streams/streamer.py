"""`Streamer`: several texts of a language model that grow token by token, their caches kept."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.tasks.streams.continuation import TextParts
from keras_transformer.tasks.streams.prompts import Prompt, conversation_ids
from keras_transformer.tasks.streams.turns import END


@dataclasses.dataclass(frozen=True, eq=False)
class RunningText:
    """The text after a prompt, while a `Streamer` generates it.

    Args:
        text: The `KeptText`.
        row: Its row in the `Turns`.
        parts: The `TextParts`.
    """

    text: Any
    row: Any
    parts: TextParts

    @property
    def tokens(self) -> int:
        """Number of the tokens so far, with the end token."""
        return self.parts.tokens

    @property
    def complete(self) -> bool:
        """`True` if the text has ended before its maximum length."""
        return self.parts.complete


class Streamer:
    """Continuations of texts, and answers in conversations, up to `count` at a time.

    Keys and values of the last texts are kept. A new prompt takes the place of the one with which
    it shares most tokens, and these are not read again.

    Args:
        generator: A `TextGenerator`, or an export with the same attributes.
        count: Maximum number of texts at a time.

    Attributes:
        template: The `ChatTemplate` of the model. `None`: there are no conversations.

    Raises:
        ValueError: See `TextGenerator.kept_text`.
    """

    def __init__(self, generator: Any, count: int):
        self.template, self._length = generator.chat_template, generator.max_length
        self._tokenizer, self._hides_start = generator.target_tokenizer, generator.hides_start
        text = generator.kept_text()
        self._group = text.group()
        self._free = [text, *(text.another() for _ in range(count - 1))]

    def prompt(self, text: str) -> Prompt:
        """Returns the prompt that a text is.

        Raises:
            ValueError: If it leaves no position for a token.
        """
        (ids,) = self._tokenizer.tokenize(tf.constant([text], tf.string)).to_list()
        return self._checked(Prompt(ids, text))

    def conversation(self, messages: list[dict[str, str]]) -> Prompt:
        """Returns the prompt of the next answer in a conversation.

        Args:
            messages: See `ChatTemplate.render`.

        Raises:
            TypeError: See `ChatTemplate.render`.
            ValueError: If there is no template, it refuses the messages, or they leave no position
                for a token.
        """
        if self.template is None:
            raise ValueError("the model has no chat template.")
        ids = conversation_ids(self.template, messages, self._tokenizer, self._hides_start)
        return self._checked(Prompt(ids, silent=frozenset(self.template.special.values())))

    def begin(self, prompt: Prompt, search: Any, number: int = 0) -> RunningText:
        """Returns the `RunningText` of a prompt, which must be ended.

        Args:
            prompt: The `Prompt`.
            search: A `Greedy` or a `Sample`.
            number: Index of the prompt in its request, by which samples differ.

        Raises:
            TypeError, ValueError: If the search is another one.
        """
        text = max(self._free, key=lambda text: text.shared(prompt.ids))
        row = self._group.begin(text, prompt.ids, search, number)
        self._free.remove(text)
        return RunningText(text, row, TextParts(prompt, self._tokenizer))

    def advance(self, texts: Sequence[RunningText]) -> list[Any]:
        """Gives each of several texts a turn, all together.

        Args:
            texts: From `begin`, not ended.

        Returns:
            For each text its next part; `None` if its prompt is still being read; `END` after the
            last part; or the exception that ended it.
        """
        turns = self._group.advance([text.row for text in texts])
        return [_part(text, turn) for text, turn in zip(texts, turns, strict=True)]

    def end(self, text: RunningText) -> None:
        """Ends a text where it is. Its keys and values are kept, and another one may begin."""
        try:
            self._group.end(text.row)
        finally:
            self._free.append(text.text)

    def tokens_of(self, prompt: Prompt) -> int:
        """Returns the number of tokens that the model reads of a prompt."""
        return len(prompt.ids) + (not self._hides_start)

    def _checked(self, prompt):
        if len(prompt.ids) < self._length:
            return prompt
        raise ValueError(
            f"the prompt has {len(prompt.ids)} tokens, and the model has {self._length} positions "
            "for prompt and answer."
        )


def _part(text, turn):
    """Returns what a turn of a text is for its client; see `Streamer.advance`."""
    if turn is None or isinstance(turn, Exception):
        return turn
    return text.parts.rest() or END if turn is END else text.parts.add(turn)
