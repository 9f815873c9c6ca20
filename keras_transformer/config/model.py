"""`ModelConfig`, what the configurations of all models have in common."""

import dataclasses
from typing import ClassVar

from keras_transformer.config.block import BlockConfig, Count
from keras_transformer.config.block_stack import (
    OPTIONS_OF_BLOCK,
    OPTIONS_OF_STACK,
    StackConfig,
    StackOptions,
    check_stack,
)
from keras_transformer.config.presets import PRESETS


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig(StackOptions, BlockConfig):
    """Everything that decides a stack of blocks, whatever it is a stack over.

    The arguments of `StackOptions` and of `BlockConfig` are arguments as well.

    Args:
        num_layers: Blocks of the stack; of an encoder-decoder, those of the encoder.
        d_model: Width of the model, in features.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Attributes:
        has_vocabulary: Whether its model reads or writes tokens of a vocabulary.
    """

    has_vocabulary: ClassVar = False

    num_layers: Count = 6
    d_model: Count = 512

    def __post_init__(self):
        super().__post_init__()
        check_stack(self, self)

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

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration that `to_dict` described.

        Raises:
            ValueError: If there is no such field.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(known))
        if unknown:
            raise ValueError(
                f"`{cls.__name__}` has the fields {', '.join(known)}. "
                f"Received: {', '.join(unknown)}."
            )
        return cls(**fields)

    def to_dict(self):
        """Returns the fields as a dictionary of plain values."""
        return dataclasses.asdict(self)

    @property
    def stack(self):
        """The `StackConfig` of the stack; of an encoder-decoder, that of the encoder."""
        names = {*OPTIONS_OF_STACK, *OPTIONS_OF_BLOCK} - {"autoregression"}
        return StackConfig.from_flat(**{name: getattr(self, name) for name in names})

    @property
    def has_final_norm(self):
        """Whether a stack ends in a normalisation of its own."""
        return self.stack.has_final_norm

    @property
    def embedding_dropout(self):
        """Rate on the sum of embedding and position; 0 where the stack drops after its norm."""
        return self.stack.embedding_dropout
