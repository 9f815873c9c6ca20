"""`StackConfig`, the configuration of a stack of blocks over embedded tokens."""

import dataclasses
import functools
from typing import Annotated, ClassVar

from keras_transformer.checks import check_positive, is_integer
from keras_transformer.config.block import Count
from keras_transformer.config.model import ModelConfig

OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig(ModelConfig):
    """Everything that decides a stack of blocks over embedded tokens.

    The arguments of `ModelConfig` and of `BlockConfig` are arguments as well.

    Args:
        dropout: Rate on the output of each sublayer and on the sum of embedding and position
            (section 5.4).
        vocab_size: Entries of the vocabulary.
        embedding_scale: What embeddings are multiplied with. `None`: `sqrt(d_model)` (section 3.4).
        pad_id: Token id that pads short texts and is never attended to.
        bos_id: Token id that starts an output.
        eos_id: Token id that ends a text.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.
    """

    has_vocabulary: ClassVar = True

    vocab_size: Count = 37_000
    embedding_scale: OptionalNumber = None
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3

    def __post_init__(self):
        super().__post_init__()
        self._check_tokens()

    def _check_tokens(self):
        ids = (self.pad_id, self.bos_id, self.eos_id)
        exist = all(is_integer(token) and 0 <= token < self.smallest for token in ids)
        if not exist or self.pad_id == self.eos_id:
            raise ValueError(
                "`pad_id`, `bos_id` and `eos_id` must lie in the vocabulary, and padding must "
                f"differ from the end of a sentence. Received: pad_id={self.pad_id}, "
                f"bos_id={self.bos_id}, eos_id={self.eos_id}, vocabulary of {self.smallest}."
            )

    @property
    def smallest(self):
        """Entries of the smallest vocabulary."""
        return self.vocab_size

    @property
    def output_size(self):
        """Entries of the vocabulary of the outputs."""
        return self.vocab_size

    @property
    def decoder_layers(self):
        """Blocks that generate, with a cache each."""
        return self.num_layers
