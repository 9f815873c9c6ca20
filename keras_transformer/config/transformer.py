"""`TransformerConfig`, the configuration of an encoder-decoder."""

import dataclasses
from typing import Literal

from keras_transformer.checks import is_integer
from keras_transformer.config.block import Autoregression, OptionalCount
from keras_transformer.config.positions import check_recurrent
from keras_transformer.config.stack import StackConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `Transformer`.

    The defaults are the base model of the paper with its English-German vocabulary. The arguments
    of `StackConfig` and of `BlockConfig` are arguments as well.

    Args:
        vocab_size: Entries of the source vocabulary, and of the target's unless that is given.
        target_vocab_size: Entries of the target vocabulary. `None`: source and target share one.
        num_decoder_layers: Blocks in the decoder. `None`: as many as in the encoder.
        decoder: What of the decoder reads the output so far: `"self_attention"` as in the paper, or
            `"ssru"`, a recurrence (Kim et al., 2019): a step of a search costs the same however
            long the output is. Positions must be those of the embedding then, or none.
        decoder_start: What stands before an output: `"token"`, the embedding of `bos_id`, or
            `"zeros"`, zeros in its place, as in Marian's models. A position is added to both.
        tie: Which of source embedding, target embedding and output weights are one matrix:
            `"all"` (section 3.4), `"target"` (target embedding and output) or `"none"`.
        output_bias: Whether a bias is added to the logits. The paper's output weights have none.
        banned_ids: Token ids that no search emits, whose probability goes to the others.
        silent_ids: Token ids that no search emits, and which keep their probability.
        forced_eos_id: Token id, usually `eos_id`, that a search puts at the last position where an
            output reaches its longest length. `None`: such an output has no end.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Example:
        >>> from keras_transformer import TransformerConfig
        >>> big = TransformerConfig.preset("big", vocab_size=37000)
        >>> big.d_model, big.num_heads, big.dropout
        (1024, 16, 0.3)

    Reference: Vaswani et al. (2017), Table 3.
    """

    target_vocab_size: OptionalCount = None
    num_decoder_layers: OptionalCount = None
    decoder: Autoregression = "self_attention"
    decoder_start: Literal["token", "zeros"] = "token"
    tie: Literal["all", "target", "none"] = "all"
    output_bias: bool = False
    banned_ids: tuple = ()
    silent_ids: tuple = ()
    forced_eos_id: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.decoder == "ssru":
            check_recurrent(self)
        for name in ("banned_ids", "silent_ids"):  # JSON knows lists only
            ids = getattr(self, name)
            if not isinstance(ids, tuple | list):
                raise TypeError(f"`{name}` must be a list of ids. Received: {name}={ids!r}.")
            object.__setattr__(self, name, tuple(ids))
        self._check_outputs()
        if self.tie == "all" and self.target_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                "`tie='all'` needs one vocabulary for source and target. "
                f"Received: vocab_size={self.vocab_size}, "
                f"target_vocab_size={self.target_vocab_size}."
            )

    def _check_outputs(self):
        for name in ("banned_ids", "silent_ids"):
            ids = getattr(self, name)
            if not all(is_integer(token) and 0 <= token < self.output_size for token in ids):
                raise ValueError(
                    f"`{name}` must be ids of the {self.output_size} target tokens. "
                    f"Received: {name}={ids}."
                )
            if self.eos_id in ids:
                raise ValueError(
                    f"`{name}` must not hold `eos_id`, or no output would end. "
                    f"Received: eos_id={self.eos_id}."
                )
        forced = self.forced_eos_id
        if forced is None:
            return
        if not is_integer(forced) or not 0 <= forced < self.output_size or forced == self.pad_id:
            raise ValueError(
                f"`forced_eos_id` must be one of the {self.output_size} target tokens and not "
                f"padding, or None. Received: forced_eos_id={forced!r}."
            )
        if forced in self.silent_ids or forced == self.bos_id != self.eos_id:
            raise ValueError(
                "`forced_eos_id` must be a token that a search may emit: neither `bos_id` nor one "
                f"of `silent_ids`. Received: forced_eos_id={forced}."
            )

    @property
    def smallest(self):
        """Entries of the smaller of both vocabularies."""
        return min(self.vocab_size, self.output_size)

    @property
    def output_size(self):
        """Entries of the target vocabulary."""
        return self.target_vocab_size or self.vocab_size

    @property
    def starts_with_zeros(self):
        """Whether zeros stand for the embedding of the start of an output."""
        return self.decoder_start == "zeros"

    @property
    def decoder_stack(self):
        """The `StackConfig` of the decoder."""
        return dataclasses.replace(
            self.stack, num_layers=self.decoder_layers, autoregression=self.decoder
        )

    @property
    def decoder_layers(self):
        """Blocks in the decoder."""
        return self.num_decoder_layers or self.num_layers
