"""Configurations of a `TextEmbedder`: its head and the whole model."""

import dataclasses

from keras_transformer.arguments import documented, option
from keras_transformer.config.label_heads import POOLING, Pooling
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput
from keras_transformer.config.vectors import TextPairsOptions, VectorOptions
from keras_transformer.tasks.embedding.modules.module import VectorModule

AFTER_POOLING = "after_pooling"


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorHead(TextPairsOptions, VectorOptions):
    """Configuration of a head that represents a whole text by one vector.

    Args:
        **options: See `help(VectorHead)`.
    """

    pooling: Pooling = option(*POOLING)
    causal: bool = option(
        False,
        """Lets each token attend only to itself and to earlier tokens, as in embedding models that
        are language models, such as Qwen3-Embedding. Then `pooling` should be `"last"`.""",
    )
    after_pooling: tuple = option(
        (),
        """Layers after pooling, in order: `"dense"`, `"layer_norm"`, `"unit_length"`, or tables
        with such a `kind` and its options, such as `{ kind = "dense", units = 256, activation =
        "tanh", bias = true }`. In Python also `VectorModule`s.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.after_pooling, tuple | list):
            raise TypeError(
                "`after_pooling` must be a list of layers. "
                f"Received: after_pooling={self.after_pooling!r}."
            )
        made = tuple(VectorModule.make(module) for module in self.after_pooling)
        object.__setattr__(self, AFTER_POOLING, made)

    @property
    def before_dimensions(self) -> str:  # noqa: D102
        return (
            f"the output of `{AFTER_POOLING}`" if self.after_pooling else super().before_dimensions
        )

    def width_after_pooling(self, d_model: int) -> int:
        """Returns the number of features after the layers of `after_pooling`."""
        for module in self.after_pooling:
            d_model = module.width(d_model)
        return d_model


class EmbedderConfig(ModelConfig):
    """Configuration of a `TextEmbedder`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `VectorHead`.

    Example:
        >>> from keras_transformer.models import EmbedderConfig
        >>> EmbedderConfig.preset("tiny", vocab_size=4000, dimensions=64).head.pooling
        'mean'
    """

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(VectorHead()),
    }
