"""`BlockConfig`, the configuration of a block."""

import dataclasses
from typing import Annotated, Any

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, OptionalNumber, Rate, check_activation
from keras_transformer.config.parts import PartConfig
from keras_transformer.feed_forwards import Network
from keras_transformer.mixers import (
    AttentionHeads,
    CrossAttention,
    MemoryReader,
    Mixer,
    SelfAttention,
    completed,
    has_option,
    shared_options,
    short_options,
)
from keras_transformer.norms import Norm, NormPlace
from keras_transformer.variants import kind_of


def _mixers():
    """Returns the kinds of mixers as text."""
    kinds = Mixer.described_kinds().items()
    return "; ".join(f'`"{name}"`, {about}' for name, about in kinds)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig(PartConfig):
    """Configuration of a block, except for its width and its positions.

    These belong to the whole stack; see `StackConfig`.

    Args:
        **options: See `help(BlockConfig)`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """

    mixer: Mixer = option(
        "self_attention",
        f"""Sublayer of a block that reads the other positions: {_mixers()}. Without
        self-attention, `position` must be one that is added to the embedding, or `"none"`. Or a
        table with such a `kind` and its options, such as
        `{{ num_heads = 8, window = 64 }}`. Options of self-attention may also be given without the
        table; in it, `attention_dropout` and `attention_bias` are `dropout` and `use_bias`. In
        Python also a `Mixer`, which may be one of your own.""",
        of=Mixer,
    )
    cross_attention: MemoryReader | None = option(
        None,
        """Attention to the output of the encoder: a table of options that differ from those of
        self-attention, such as `{ num_heads = 4 }`; or `"same_position"`, with which a position of
        the decoder reads only the same position of the encoder's output, as in ByteNet. `None`:
        attention with the options of self-attention.""",
        of=MemoryReader,
    )
    d_ff: Count = option(2048, "Width inside the feed-forward network, in features.")
    dropout: Rate = option(
        0.1,
        """Dropout rate on the output of each sublayer, and on the sum of embedding and position
        (section 5.4).""",
    )
    activation_dropout: Rate = option(
        0.0, "Dropout rate inside the feed-forward network. The paper does not mention it."
    )
    activation: Annotated[str, check_activation] = option(
        "relu",
        """Activation of the feed-forward network: the name of a Keras activation, such as `"relu"`
        or `"gelu"`; `"gelu_tanh"`, the approximation of GELU in GPT-2 and T5 1.1; or the name of a
        function registered with Keras, such as `"my_package>my_function"`.""",
    )
    feed_forward: Network = option(
        "plain",
        """Kind of feed-forward network: `"plain"` as in the paper, or `"gated"` as in Llama and T5
        1.1 (Shazeer, 2020): `(activation(x W_g) * (x W_1)) W_2`, with 50 % more parameters; or
        `"none"`, as in models before the Transformer, without `d_ff`, `activation` and
        `activation_dropout`; or a
        table with such a `kind` and its options, such as `{ kind = "gated", bias = false }`. In
        Python also a `Network`, which may be one of your own.""",
        of=Network,
    )
    norm: NormPlace = option(
        "post",
        """Place of the normalisations: `"post"` as in the paper, `LayerNorm(x + Sublayer(x))`; or
        `"pre"`, `x + Sublayer(LayerNorm(x))`, with one more normalisation after each stack; or a
        table with such a `kind` and its options, such as `{ kind = "pre", first = false }`.""",
        of=NormPlace,
    )
    normalization: Norm = option(
        "layer",
        """Kind of normalisation: `"layer"` as in the paper; `"rms"` as in Llama and T5, without
        mean and offset (Zhang and Sennrich, 2019); `"scale"`, a multiplication by `sqrt(0.5)` as in
        ConvS2S (Gehring et al., 2017); or `"none"`; or a table with such a `kind` and its options,
        such as `{ kind = "layer", epsilon = 1e-5 }`. In Python also a `Norm`, which may be one of
        your own.""",
        of=Norm,
    )

    layer_scale: OptionalNumber = option(
        None,
        """Initial value of learned factors on the features of each sublayer's output, before the
        residual connection (Touvron et al., 2021): 1e-4 in a deep stack, 1 in DINOv2. `None`: no
        factors, as in the paper.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.feed_forward.is_sublayer:
            for name, field in OF_FEED_FORWARD.items():
                if getattr(self, name) != field.default:
                    raise ValueError(
                        f"`{name}` has no effect with feed_forward={self.feed_forward!r}. "
                        f"Received: {name}={getattr(self, name)!r}."
                    )
        if self.normalization.is_identity and self.norm.is_before:
            raise ValueError(
                f"`norm` has no effect with normalization={self.normalization!r}. "
                f"Received: norm={self.norm!r}."
            )

    @property
    def without_effect(self) -> set[str]:
        """Names of the options without an effect: those of a feed-forward network without one."""
        return set() if self.feed_forward.is_sublayer else {*OF_FEED_FORWARD}

    @property
    def attention(self) -> Any:
        """Heads of self-attention or, with another mixer, of cross-attention."""
        if isinstance(self.mixer, AttentionHeads):
            return self.mixer
        return self.cross_attention or CrossAttention()

    @property
    def memory_attention(self) -> Any:
        """The cross-attention of a decoder, or the `MemoryReader` in its place."""
        return self.cross_attention or CrossAttention(**shared_options(self.attention))

    def with_options(self, **options: Any) -> "BlockConfig":
        """Returns the configuration with other options, also those of its attention.

        Options of attention are those of self-attention or, with another mixer, of the decoder's
        cross-attention. A mixer that is an object is not changed; a name or a table is completed,
        and options in a table have precedence.

        Args:
            **options: Options by name.

        Raises:
            ValueError: If no attention has one of the options.
        """
        names = {*short_options(SelfAttention)} & {*options}
        shorts = {name: options.pop(name) for name in names}
        raw = options.pop("mixer", None)
        mixer = completed(self.mixer, raw, shorts)
        own = self.cross_attention
        given = options.pop("cross_attention", own)
        attends = isinstance(mixer, AttentionHeads)
        # An object has precedence, as options in a table have.
        is_whole = given is not own and isinstance(given, MemoryReader) and not attends
        cross = given
        if isinstance(given, dict | str) or not (attends or is_whole):
            base = None if given is None else own
            base = base or CrossAttention(**shared_options(mixer if attends else self.mixer))
            table = given if isinstance(given, dict | str) else None
            cross = completed(base, table, {} if attends else shorts)
        if not is_whole:
            _check_found(shorts, (raw, given), (mixer, cross))
        if cross == CrossAttention(**shared_options(mixer)):
            cross = None
        network = Network.make(options.get("feed_forward", self.feed_forward))
        if not network.is_sublayer:
            options = {name: field.default for name, field in OF_FEED_FORWARD.items()} | options
        return dataclasses.replace(self, mixer=mixer, cross_attention=cross, **options)

    def to_flat(self) -> dict[str, Any]:
        """Returns the options by name, those of its attention among them.

        `mixer` is a name if its options are among them, otherwise the object.
        """
        flat, own = super().to_flat(), type(self.mixer) is SelfAttention
        attention = self.attention
        for name in self.without_effect:
            del flat[name]
        if own:
            flat["mixer"] = kind_of(self.mixer)
        elif isinstance(attention, CrossAttention):
            del flat["cross_attention"]
        known = short_options(SelfAttention)  # a mixer of your own may have more
        shorts = {name: f for name, f in short_options(type(attention)).items() if name in known}
        return {**flat, **{name: getattr(attention, f.name) for name, f in shorts.items()}}


# Options of the feed-forward network, without effect in a block that has none.
OF_FEED_FORWARD = {
    field.name: field
    for field in dataclasses.fields(BlockConfig)
    if field.name in ("d_ff", "activation", "activation_dropout")
}


def _check_found(shorts, given, attentions):
    """Raises a `ValueError` for an option that no attention has; those in tables have precedence.

    Args:
        shorts: Options of attention, by their names in a block.
        given: What is given for the attentions: tables among other things.
        attentions: The mixer and the cross-attention that were made from all this.
    """
    tables = [table for table in given if isinstance(table, dict)]
    for name, value in shorts.items():
        own = short_options(SelfAttention)[name].name
        is_set = any(own in table for table in tables)
        if not is_set and not any(has_option(one, name, value) for one in attentions):
            raise ValueError(
                f"`{name}` is no option of {attentions[0]!r}, or has another value there. "
                f"Received: {name}={value!r}."
            )
