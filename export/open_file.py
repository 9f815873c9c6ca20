"""Loaded exports that are one file, as far as they do not depend on its format."""

from typing import Any

import numpy as np

from keras_transformer.tasks import TASKS
from keras_transformer.tasks.answering import TextAnswering


class OpenFile:
    """Base class of loaded exports that are one file.

    Attributes:
        path: The file.
        metadata: Its metadata, a dictionary.
        tokenizers: The `Tokenizers`; `None` if the model does not process text.
        answers: Base class of what answers like the exports that can be loaded.
    """

    answers: Any = TextAnswering
    path: Any
    metadata: dict[str, Any]
    tokenizers: Any

    @property
    def pipeline(self) -> Any:
        """Class of the exported pipeline."""
        return TASKS[self.metadata["task"]].pipeline_class()

    def take_task(self) -> None:
        """Sets the attributes of an `Answering` that the task determines.

        Raises:
            ValueError: If the file holds another kind of model.
        """
        self.max_length: Any = self.metadata.get("max_length")
        self.task = self.metadata["task"]
        described = TASKS[self.task].answering_class()
        if not issubclass(described, self.answers):
            raise ValueError(f"{self.path} holds a model for {self.task}.")
        self.codec_class: Any = getattr(described, "codec_class", None)
        self.result: Any = getattr(described, "result", None)
        self.blank = getattr(described, "blank", True)
        self.has_source, self.output = described.has_source, described.output


def beam_inputs(beam, sources, has_source, longest) -> dict[str, np.ndarray]:
    """Returns the inputs of a graph with a beam besides the token ids.

    Args:
        beam: The `Beam`.
        sources: List of B lists of token ids.
        has_source: Whether texts are generated for a source. A language model has none: only the
            end of a prompt counts.
        longest: Maximum number of tokens that the model allows.

    Returns:
        Dictionary of `max_length`, the maximum number of new tokens of each output, int32 `[B]`,
        and `length_penalty`, float32 `[1]`.
    """
    lengths = np.array([len(source) if has_source else 1 for source in sources], np.int32)
    return {
        "max_length": np.asarray(beam.limit(lengths, longest), np.int32),
        "length_penalty": np.array([beam.length_penalty], np.float32),
    }
