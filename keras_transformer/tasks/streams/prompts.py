"""Prompts of language models: a text to continue, or a conversation to answer, as token ids."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.text.chat_template import FIRST, ChatTemplate


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A prompt, and how the text after it is read.

    Args:
        ids: Token ids, without the one that begins a text.
        text: The text that is continued. `None`: a conversation, whose answer is a text of its own.
        silent: Ids of the special tokens that are no part of an answer.
    """

    ids: list[int]
    text: str | None = None
    silent: frozenset[int] = frozenset()

    def reading(self, tokenizer: Any) -> Any:
        """Returns the function from the token ids after the prompt to their text.

        Args:
            tokenizer: The `Tokenizer`.
        """

        def decode(ids):
            return tokenizer.decode(tf.constant([ids], tf.int32))[0].numpy().decode()

        if self.text is None:
            return lambda ids: decode(ids) if ids else ""
        return lambda ids: after(self.text, decode([*self.ids, *ids])) if ids else ""


def after(prompt: str, text: str) -> str:
    """Returns the continuation in a text that begins with its prompt.

    A tokenizer may normalise white space, so that the prompt has another length in the text: the
    continuation then begins after as many characters that are not white space.

    Args:
        prompt: The prompt as it was given.
        text: Prompt and continuation, decoded from their tokens.
    """
    if text.startswith(prompt):
        return text[len(prompt) :]
    left = sum(not character.isspace() for character in prompt)
    for place, character in enumerate(text):
        if not left:
            return text[place:]
        left -= not character.isspace()
    return ""


def conversation_ids(
    template: ChatTemplate, messages: list[dict[str, str]], tokenizer: Any, hides_start: bool
) -> list[int]:
    """Returns the token ids of a conversation, without the token that begins a text.

    Args:
        template: The `ChatTemplate`.
        messages: See `ChatTemplate.render`.
        tokenizer: The `Tokenizer`.
        hides_start: See `TextGenerator.hides_start`.

    Raises:
        TypeError, ValueError: See `ChatTemplate.render`.
    """
    parts = template.parts(messages)
    # Texts after a special token may have no space in front, see `ChatTemplate.spaces`.
    bare = [template.spaces == FIRST and place > 0 for place in range(len(parts))]
    tokens = {
        **_tokens(parts, [not one for one in bare], tokenizer),
        **_tokens(parts, bare, tokenizer.without_prefix()),
    }
    ids = [token for place, part in enumerate(parts) for token in tokens.get(place, [part])]
    if not hides_start and ids[:1] == [tokenizer.bos_id]:
        return ids[1:]  # the model begins every text with it
    return ids


def _tokens(parts, chosen, tokenizer):
    """Returns the token ids of the chosen texts among parts, a dictionary by place."""
    texts = {n: part for n, part in enumerate(parts) if isinstance(part, str) and chosen[n]}
    if not texts:
        return {}
    rows = tokenizer.tokenize(tf.constant([*texts.values()], tf.string)).to_list()
    return dict(zip(texts, rows, strict=True))
