"""Multi-head attention as a value: what self-attention and cross-attention have in common."""

import dataclasses
from typing import Annotated, Any

from keras_transformer.arguments import option, options_of
from keras_transformer.checks import Count, OptionalCount, Rate
from keras_transformer.mixers.memory import MemoryReader
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.norms import Norm
from keras_transformer.scores import AttentionScore
from keras_transformer.variants import KIND, Variant, declared, kind_of

# The linear projections of attention, in the order of section 3.2.2.
PROJECTIONS = ("query", "key", "value", "output")


def check_projections(name: str, value: Any) -> None:
    """Requires a flag or names from `PROJECTIONS`."""
    if isinstance(value, bool):
        return
    if not isinstance(value, tuple | list) or any(item not in PROJECTIONS for item in value):
        raise TypeError(
            f"`{name}` must be True, False or a list of {', '.join(PROJECTIONS)}. "
            f"Received: {name}={value!r}."
        )


@declared
class AttentionHeads:
    """Options of multi-head attention, which `SelfAttention` and `CrossAttention` share.

    Reference: Vaswani et al. (2017), section 3.2.2.
    """

    num_heads: Count = option(8, "Number of attention heads.")
    num_key_value_heads: OptionalCount = option(
        None,
        """Number of key and value heads, each shared by `num_heads / num_key_value_heads`
        consecutive attention heads (Ainslie et al., 2023), as in Llama: the key/value cache is
        smaller by this factor. `None`: `num_heads`.""",
    )
    d_k: OptionalCount = option(
        None, "Width of a query or key head. `None`: `d_model / num_heads`."
    )
    d_v: OptionalCount = option(None, "Width of a value head. `None`: `d_model / num_heads`.")
    dropout: Rate = option(
        0.0,
        "Dropout rate on the attention weights. The paper does not mention it.",
        short="attention_dropout",
    )
    use_bias: Annotated[bool | list[str], check_projections] = option(
        False,
        """Adds a bias to the four projections of attention, or to those in a list of `"query"`,
        `"key"`, `"value"` and `"output"`: all but `"key"` in Whisper, all but `"output"` in Qwen2.
        In the paper they have none.""",
        short="attention_bias",
    )
    query_key_norm: Norm | None = option(
        None,
        """Normalises each query and key head before positions rotate it, with learned factors that
        all heads share: `"rms"`, as in Qwen3, `"layer"` (Henry et al., 2020), or a table, as for
        `normalization`. `None`: heads are not normalised.""",
        of=Norm,
    )
    score: AttentionScore = option(
        "scaled_dot_product",
        """Scoring function of attention: `"scaled_dot_product"` (Eq. 1), `"dot_product"`, which is
        not divided by `sqrt(d_k)`, `"general"`, with a matrix between query and key (Luong et al.,
        2015), or `"additive"`, a network with one hidden layer (Bahdanau et al., 2015), which is
        slower. In Python also an `AttentionScore`, which may be one of your own.""",
        of=AttentionScore,
    )

    def __post_init__(self) -> None:
        super().__post_init__()  # ty: ignore[missing-attribute]  (of a `Variant`)
        if not isinstance(self.use_bias, bool):
            biased = tuple(name for name in PROJECTIONS if name in self.use_bias)
            value = len(biased) == len(PROJECTIONS) if len(biased) in (0, 4) else biased
            object.__setattr__(self, "use_bias", value)
        self._check_groups()
        if self.query_key_norm is not None and self.query_key_norm.is_identity:
            raise ValueError(
                "`query_key_norm` must change the heads, or be None. "
                f"Received: query_key_norm={self.query_key_norm!r}."
            )

    def _check_groups(self):
        """Raises `ValueError` if groups of heads differ in size, or the score cannot share keys."""
        if self.num_key_value_heads in (None, self.num_heads):
            return
        if self.num_heads % self.num_key_value_heads:
            raise ValueError(
                "`num_heads` must be divisible by `num_key_value_heads`, so that each is shared by "
                f"the same number of heads. Received: num_heads={self.num_heads}, "
                f"num_key_value_heads={self.num_key_value_heads}."
            )
        if not self.score.is_product:
            raise ValueError(
                "`num_key_value_heads` must be None with an additive score, which has weights for "
                f"each key head. Received: num_key_value_heads={self.num_key_value_heads}."
            )

    @property
    def groups(self) -> int:
        """Number of key and value heads."""
        return self.num_key_value_heads or self.num_heads

    @property
    def biased_projections(self) -> tuple[str, ...]:
        """Names of the projections with a bias, from `PROJECTIONS`."""
        if isinstance(self.use_bias, bool):
            return PROJECTIONS if self.use_bias else ()
        return tuple(self.use_bias)

    def head_sizes(self, d_model: int) -> tuple[int, int]:
        """Returns d_k and d_v, which default to `d_model / num_heads`.

        Raises:
            ValueError: If a default is needed and `d_model` is not divisible by `num_heads`.
        """
        if d_model % self.num_heads and None in (self.d_k, self.d_v):
            raise ValueError(
                "`d_model` must be divisible by `num_heads`, so that every head has the same "
                "size, unless `d_k` and `d_v` are given. "
                f"Received: d_model={d_model}, num_heads={self.num_heads}."
            )
        size = d_model // self.num_heads
        return self.d_k or size, self.d_v or size


def short_options(kind: type) -> dict[str, dataclasses.Field]:
    """Returns the options of a kind of attention by their names among the options of a block.

    They are empty for a mixer that is no attention.
    """
    if not issubclass(kind, AttentionHeads):
        return {}
    return {field.metadata["short"] or name: field for name, field in options_of(kind).items()}


def shared_options(value: Any) -> dict[str, Any]:
    """Returns the options that self-attention and cross-attention share; none of another mixer."""
    names = options_of(AttentionHeads) if isinstance(value, AttentionHeads) else ()
    return {name: getattr(value, name) for name in names}


def has_option(attention: Any, name: str, value: Any) -> bool:
    """Returns whether an attention has a value of an option, by its name in a block."""
    field = short_options(type(attention)).get(name)
    return field is not None and dataclasses.replace(attention, **{field.name: value}) == attention


def in_table(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options in the table of a `mixer`, by their names in a block; often none.

    Args:
        options: Options of a block by name, the `mixer` perhaps among them.
    """
    table: Any = options.get("mixer")
    return {name: table[field.name] for name, field in _fields_in_table(table).items()}


def overridden(options: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Returns options of a block with others instead, which are those of one stack.

    The others replace options in the table of a `mixer` as well. A `mixer` that is an object
    replaces all options of its attention.

    Args:
        options, others: Options by name.
    """
    mixer = others.get("mixer")
    if isinstance(mixer, Mixer):
        shorts = {*short_options(type(mixer))}
        return {**{key: options[key] for key in options if key not in shorts}, **others}
    result = {**options, **others}
    table: Any = options.get("mixer")
    replaced = {field.name for name, field in _fields_in_table(table).items() if name in others}
    if replaced and mixer is None:
        result["mixer"] = {key: value for key, value in table.items() if key not in replaced}
    return result


def _fields_in_table(table):
    """Returns the options of attention in a table of a `mixer`, by their names in a block."""
    if not isinstance(table, dict):
        return {}
    kind = Mixer.kinds().get(str(table.get(KIND, Mixer.default_kind)), Mixer)
    return {name: field for name, field in short_options(kind).items() if field.name in table}


def check_given_once(options: dict[str, Any]) -> None:
    """Checks that no option of a mixer stands in its table and, with another value, beside it.

    Args:
        options: Options of a block that are given together, by name.

    Raises:
        ValueError: If there is such an option.
    """
    for name, value in in_table(options).items():
        if name in options and options[name] != value:
            raise ValueError(
                f"`{name}` must be given once, in the table `mixer` or beside it. "
                f"Received: {name}={options[name]!r}, mixer={options['mixer']!r}."
            )


def completed(current: Variant, given: Any, options: dict[str, Any]) -> Any:
    """Returns a value with options of `short_options`.

    Args:
        current: The value so far, whose options are kept if the kind is the same.
        given: A name, a table with options that have precedence, or an object, which is returned;
            `None`: `current` changes.
        options: Options by their names in a block; others than those of the value are ignored.
    """
    if isinstance(given, Variant):
        return given
    table = dict(given) if isinstance(given, dict) else {} if given is None else {KIND: given}
    kind = type(current.make(table.get(KIND, kind_of(current)), current.option))
    known = short_options(kind).items()
    own = {field.name: options[name] for name, field in known if name in options}
    same = current.get_config() if kind is type(current) else {}
    table = {**same, **own, KIND: kind_of(current), **table}
    try:
        return current.make(table, current.option)
    except (TypeError, ValueError) as error:
        raise type(error)(_in_a_block(str(error), current.option, kind)) from error


def _in_a_block(text, option, kind):
    """Returns an error of `make` with the names that options have among those of a block."""
    text = text.removeprefix(f"`{option}`: ")
    for name, field in short_options(kind).items():
        text = text.replace(f"`{field.name}`", f"`{name}`").replace(f" {field.name}=", f" {name}=")
    return text


@declared
class CrossAttention(AttentionHeads, MemoryReader):
    """Attention from a decoder to the output of the encoder, a `MultiHeadCrossAttention`.

    Args:
        **options: See `help(CrossAttention)`.

    Reference: Vaswani et al. (2017), section 3.2.3, first item.
    """

    kind = "attention"
