"""Configurations of a `StoryReader`: its input, memory or encoder, head, and the whole model."""

import dataclasses
from typing import Any, Literal

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, is_integer
from keras_transformer.config.encoders import EncoderChoice
from keras_transformer.config.label_heads import LabelsHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.tokens import TokenInput
from keras_transformer.tasks.story_questions.memories import SentenceEncoding, TimeEncoding, Tying


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryConfig(PartConfig):
    """Configuration of a memory network.

    Args:
        **options: See `help(MemoryConfig)`.
    """

    reader: Literal["memory"] = option("memory", '`"memory"`: several hops over the sentences.')
    num_layers: Count = option(3, "Number of hops.")
    d_model: Count = option(20, "Width of the embeddings, in features.")
    max_length: Count = option(512, "Maximum length of a story and its question, in tokens.")
    memory_size: Count = option(
        50, "Number of sentences in the memory. It contains the most recent sentences."
    )
    sentence: SentenceEncoding = option(
        "position",
        """Sum of the words of a sentence: `"position"`, weighted by their positions, or
        `"bag_of_words"`.""",
        of=SentenceEncoding,
    )
    time: TimeEncoding = option(
        "temporal",
        """Order of the sentences: `"temporal"`, a learned vector for each place, or `"none"`.""",
        of=TimeEncoding,
    )
    tying: Tying = option(
        "adjacent",
        """Shared embeddings: `"adjacent"`, a hop reads from the table that the next hop compares
        with, or `"layer_wise"`, all hops share their tables.""",
        of=Tying,
    )
    linear_start: int = option(
        0,
        """Number of batches at the beginning of training for which the attention of all hops has no
        softmax (section 4.2). 0: always with the softmax.""",
    )

    has_blocks = False  # unlike `StackConfig`

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_integer(self.linear_start) or self.linear_start < 0:
            raise ValueError(
                "`linear_start` must be a whole number, at least 0. "
                f"Received: linear_start={self.linear_start!r}."
            )

    @property
    def tables(self) -> int:
        """Number of tables of embeddings."""
        return self.tying.tables(self.num_layers)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class StoryInput(TokenInput):
    """Configuration of the tokens of a question and its story.

    Args:
        **options: See `help(StoryInput)`.
    """

    def check_with(self, config: Any) -> None:  # noqa: D102
        if not config.encoder.has_blocks:
            _refuse(self, ("segments", "embedding_size", "embedding_scale"))
        super().check_with(config)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswersHead(LabelsHead):
    """Configuration of a head that predicts one of the answers of the training data.

    Args:
        **options: See `help(AnswersHead)`.
    """

    def check_with(self, config: Any) -> None:  # noqa: D102
        if not config.encoder.has_blocks:
            _refuse(self, ("pooling", "pooler", "transform"))
        super().check_with(config)


def _refuse(part, names):
    """Raises `ValueError` for options of a part that a memory network does not have."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name in names and value != field.default:
            raise ValueError(
                f"`{field.name}` has no effect on a memory network. "
                f"Received: {field.name}={value!r}."
            )


class StoryReaderConfig(ModelConfig):
    """Configuration of a `StoryReader`.

    Args:
        **options: Options of `StoryInput`, of the encoder, and of `AnswersHead`. `encoder` is
            `"memory"`, a memory network with the options of `MemoryConfig`; or `"transformer"`,
            blocks with the options of `StackConfig` and `BlockConfig`.

    Example:
        >>> from keras_transformer.models import StoryReaderConfig
        >>> config = StoryReaderConfig(encoder="memory", num_layers=3, d_model=20)
        >>> config.encoder.tables, config.encoder.sentence
        (4, PositionEncoding())
    """

    description = {
        "input": Part(StoryInput()),
        "encoder": EncoderChoice(kind="reader", other=MemoryConfig()),
        "head": Part(AnswersHead()),
    }
