"""`ModelConfig`, what the configurations of all models have in common."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from keras_transformer.checks import check_count
from keras_transformer.config.block import BlockConfig, Count, head_sizes
from keras_transformer.config.positions import check_digits
from keras_transformer.config.presets import PRESETS


def _check_offset(name, value):
    check_count(name, value, least=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig(BlockConfig):
    """Everything that decides a stack of blocks, whatever it is a stack over.

    The arguments of `BlockConfig`, which are those of every block, are arguments as well.

    Args:
        num_layers: Blocks of the stack; of an encoder-decoder, those of the encoder.
        d_model: Width of the model, in features.
        sinusoid_layout: `"interleaved"` as in the paper, sine and cosine by turns, or `"halves"`.
        sinusoid_endpoint: Whether the longest wave is exactly 10,000 times the shortest, as in
            tensor2tensor.
        position_offset: Position of the first token; the paper's is 0.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Attributes:
        has_vocabulary: Whether its model reads or writes tokens of a vocabulary.
    """

    has_vocabulary: ClassVar = False

    num_layers: Count = 6
    d_model: Count = 512
    sinusoid_layout: Literal["interleaved", "halves"] = "interleaved"
    sinusoid_endpoint: bool = False
    position_offset: Annotated[int, _check_offset] = 0

    def __post_init__(self):
        super().__post_init__()
        d_k, _ = head_sizes(self.d_model, self.num_heads, self.d_k, self.d_v)
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
                f"and cosine. Received: d_model={self.d_model}."
            )
        if self.position == "rotary" and d_k % 2:
            raise ValueError(
                "`d_k` must be even for rotary positions, which turn pairs of features. "
                f"Received: d_k={d_k}."
            )
        if self.position != "sinusoidal" and (
            self.sinusoid_layout != "interleaved" or self.sinusoid_endpoint or self.position_offset
        ):
            raise ValueError(
                "`sinusoid_layout`, `sinusoid_endpoint` and `position_offset` have no effect but "
                f"for sinusoidal positions. Received: position={self.position!r}."
            )
        if self.position == "binary":
            check_digits(self.max_length, self.d_model)

    @classmethod
    def without_effect(cls, fields):
        """Returns the names of fields that have no effect beside some others.

        Args:
            fields: Dictionary of the fields that a configuration changes.
        """
        return set()

    @classmethod
    def preset(cls, name, **changes):
        """Returns the named row of Table 3, or another preset, with some fields changed.

        Args:
            name: A key of `PRESETS`: a row of Table 3, `"tiny"`, `"small"`, or, of a `Transformer`,
                `"student_tiny"` or `"student_base_memory"`, of the size that browsers have.
            **changes: Fields to replace, for example `vocab_size`.

        Raises:
            ValueError: If there is no such preset or field.
        """
        own = {field.name for field in dataclasses.fields(cls)}
        known = [preset for preset, fields in PRESETS.items() if own.issuperset(fields)]
        if name not in known:
            raise ValueError(
                f"`name` must be one of {', '.join(known)} for a {cls.__name__}. "
                f"Received: name={name!r}."
            )
        return cls.from_dict({**PRESETS[name], **changes})

    @property
    def block(self):
        """The `BlockConfig` of every block."""
        names = [field.name for field in dataclasses.fields(BlockConfig)]
        return BlockConfig(**{name: getattr(self, name) for name in names})
