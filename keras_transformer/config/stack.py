"""`StackConfig`, the configuration of a stack of blocks over embedded tokens."""

import dataclasses
import functools
from typing import Annotated, Literal

from keras_transformer.checks import check_count, check_positive, is_integer
from keras_transformer.config.block import BlockConfig, Count, head_sizes
from keras_transformer.config.positions import check_digits
from keras_transformer.config.presets import PRESETS

OptionalNumber = Annotated[float | None, functools.partial(check_positive, optional=True)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig(BlockConfig):
    """Everything that decides a stack of blocks over embedded tokens.

    The arguments of `BlockConfig`, which are those of every block, are arguments as well.

    Args:
        dropout: Rate on the output of each sublayer and on the sum of embedding and position
            (section 5.4).
        vocab_size: Entries of the vocabulary.
        num_layers: Blocks of the stack; of an encoder-decoder, those of the encoder.
        d_model: Width of the model, in features.
        embedding_scale: What embeddings are multiplied with. `None`: `sqrt(d_model)` (section 3.4).
        sinusoid_layout: `"interleaved"` as in the paper, sine and cosine by turns, or `"halves"`.
        sinusoid_endpoint: Whether the longest wave is exactly 10,000 times the shortest, as in
            tensor2tensor.
        position_offset: Position of the first token; the paper's is 0.
        pad_id: Token id that pads short texts and is never attended to.
        bos_id: Token id that starts an output.
        eos_id: Token id that ends a text.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.
    """

    vocab_size: Count = 37_000
    num_layers: Count = 6
    d_model: Count = 512
    embedding_scale: OptionalNumber = None
    sinusoid_layout: Literal["interleaved", "halves"] = "interleaved"
    sinusoid_endpoint: bool = False
    position_offset: Annotated[int, functools.partial(check_count, least=0)] = 0
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3

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

    @classmethod
    def preset(cls, name, **changes):
        """Returns the named row of Table 3 (or `"tiny"` or `"small"`), with some fields changed.

        Args:
            name: A key of `PRESETS`.
            **changes: Fields to replace, for example `vocab_size`.

        Raises:
            ValueError: If there is no such preset or field.
        """
        if name not in PRESETS:
            raise ValueError(
                f"`name` must be one of {', '.join(PRESETS)}. Received: name={name!r}."
            )
        return cls.from_dict({**PRESETS[name], **changes})

    @property
    def block(self):
        """The `BlockConfig` of every block."""
        names = [field.name for field in dataclasses.fields(BlockConfig)]
        return BlockConfig(**{name: getattr(self, name) for name in names})
