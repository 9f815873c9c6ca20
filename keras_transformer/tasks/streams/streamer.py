"""`Streamer`: several texts of a language model that grow token by token, their caches kept."""

from typing import Any

import tensorflow as tf

from keras_transformer.tasks.streams.continuation import Continuation
from keras_transformer.tasks.streams.prompts import Prompt, conversation_ids


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

    def begin(self, prompt: Prompt, search: Any, number: int = 0) -> Continuation:
        """Returns the `Continuation` of a prompt, which must be closed.

        Args:
            prompt: The `Prompt`.
            search: A `Greedy` or a `Sample`.
            number: See `Continuation`.

        Raises:
            TypeError, ValueError: If the search is another one.
        """
        text = max(self._free, key=lambda text: text.shared(prompt.ids))
        self._free.remove(text)

        def free():
            self._free.append(text)

        try:
            return Continuation(text, prompt, search, self._tokenizer, number, free)
        except (TypeError, ValueError):
            free()
            raise

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
