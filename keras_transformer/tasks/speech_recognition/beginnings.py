"""Beginnings of the outputs for windows of a recording: choices, and the text before a window."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Beginnings:
    """The tokens that a decoder reads before the text of a window.

    Args:
        start: Token id with which it begins.
        previous: Token id in its place before the text of earlier windows. `None`: the model does
            not read such a text.
        most: Maximum number of tokens of this text.

    Raises:
        ValueError: If one of them is not a natural number.
    """

    start: int
    previous: int | None
    most: int

    def __post_init__(self) -> None:
        numbers = self.start, self.most, self.previous or 0
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError(f"`windows` must be natural numbers. Received: {self}.")

    @classmethod
    def of(cls, config: Any) -> "Beginnings":
        """Returns those of a model, given its `SpeechTransformerConfig`."""
        most = config.decoder.max_length // 2 - 1  # as in Whisper
        return cls(config.tokens.bos_id, config.head.rules.previous_id, most)

    def width(self, choices: Any) -> int:
        """Returns the number of tokens of the longest prompt, given the `Choices`."""
        return self.most + 1 + choices.longest_prompt

    def prompts(
        self, choices: Any, numbers: list[dict[str, int]], contexts: list[list[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the prompts `[B, P]` and the first inputs of the decoder `[B]`; see `Prompted`.

        Args:
            choices: The `Choices` of the model.
            numbers: Dictionary of the numbers of the choices of each window.
            contexts: Token ids of the text before each window, lists.
        """
        own = self._own(choices, numbers)
        first = np.full(len(contexts), self.start, np.int32)
        if not any(contexts):
            return own, first
        prompts = np.full([len(contexts), self.width(choices)], NO_TOKEN, np.int32)
        for row, context in enumerate(contexts):
            whole = own[row].tolist()
            if context:
                whole = [*context[-self.most :], self.start, *whole]
                first[row] = self.previous
            prompts[row, : len(whole)] = whole
        return prompts, first

    def of_choices(self, choices: Any, count: Any, numbers: dict[str, Tensor]) -> Tensor:
        """Returns prompts `[B, P]` of the largest width P, without context, in a graph.

        Args:
            choices: The `Choices`.
            count: Number of prompts B.
            numbers: The numbers of all choices, `[B]`.
        """
        own = tf.tile(tf.constant([choices.prompt], tf.int32), [count, 1])
        if numbers:
            own = choices.prompts(**numbers)
        missing = self.width(choices) - own.shape[1]
        return tf.pad(own, [[0, 0], [0, missing]], constant_values=NO_TOKEN)

    def _own(self, choices, numbers):
        """Returns the prompts of the choices alone."""
        if not choices.names:
            return np.tile(np.array(choices.prompt, np.int32), [len(numbers), 1])
        columns = {
            name: np.array([row[name] for row in numbers], np.int32) for name in choices.names
        }
        return choices.prompts(**columns).numpy()
