"""`TransformerConfig`, the configuration of the model of the paper."""

from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import DECODER, ENCODER
from keras_transformer.config.tokens import GENERATED, TargetHead, TokenInput


class TransformerConfig(ModelConfig):
    """Configuration of a `Transformer`.

    The defaults are the base model of the paper with its English-German vocabulary. `decoder` may
    be `"self_attention"` as in the paper, or `"ssru"`, a recurrence (Kim et al., 2019).

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `TargetHead`. An option
            of a stack applies to encoder and decoder; `num_decoder_layers` is the number of blocks
            of the decoder. Other options for only one stack are given under its name:
            `encoder={"num_heads": 8}`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Example:
        >>> from keras_transformer import TransformerConfig
        >>> big = TransformerConfig.preset("big", vocab_size=37000)
        >>> big.d_model, big.encoder.block.attention.num_heads, big.encoder.dropout
        (1024, 16, 0.3)
        >>> config = TransformerConfig(position="rotary", decoder={"position": "alibi"})
        >>> config.encoder.position, config.decoder.position
        (Rotary(), Alibi())

    Reference: Vaswani et al. (2017), Table 3.
    """

    description = {
        "input": Part(TokenInput(), leave_out=GENERATED),
        "encoder": ENCODER,
        "decoder": DECODER,
        "head": Part(TargetHead()),
    }
    aliases = {"num_decoder_layers": ("decoder", "num_layers")}
