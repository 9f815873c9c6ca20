"""`ModelConfig`, the configuration of a model, composed of input, encoder, decoder and head."""

import dataclasses
import inspect
from typing import Any, ClassVar, TypeVar

from keras_transformer.checks import check_count
from keras_transformer.config.parts import (
    PARTS,
    STACKS,
    OldConfigurationError,
    check_description,
    distribute,
    effective_options,
    known_options,
    parameters,
)
from keras_transformer.config.presets import PRESETS
from keras_transformer.config.tokens import VocabularyOptions
from keras_transformer.mixers import SelfAttention, in_table, short_options
from keras_transformer.variants import Variant, kind_of

Config = TypeVar("Config", bound="ModelConfig")

EARLIER = (
    "has a configuration from an earlier version, without {}: train the model again, or convert "
    "its checkpoint again."
)


@dataclasses.dataclass(init=False, unsafe_hash=True)  # frozen by `__setattr__`
class ModelConfig:
    """Configuration of a model, composed of the configurations of its parts.

    A subclass describes a kind of model. It takes the options of all parts as arguments; each
    option belongs to one part, or to both stacks of an encoder-decoder. Options for only one of the
    stacks are given under its name: `encoder={"num_heads": 8}`.

    Args:
        **options: Options of the parts, by name.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range, two values contradict each other, or an option is
            unknown.

    Attributes:
        input: `TokenInput`, `PatchInput` or `SeriesInput`.
        encoder: A `StackConfig`; `None` for a model without an encoder.
        decoder: A `StackConfig`; `None` for a model without a decoder.
        head: The configuration of the prediction head.
        description: The `Part`s of this kind of model, by name.
        aliases: Additional names of options of one stack, each with the stack and its option.
        follow: Options that follow from the data or other options, so that they are not settings
            in a TOML file.
    """

    description: ClassVar = {}
    aliases: ClassVar = {}
    follow: ClassVar = frozenset()

    input: Any
    encoder: Any
    decoder: Any
    head: Any

    def __init__(self, **options: Any):
        self._check_counts(options)
        parts = distribute(self.description, self.aliases, options, type(self).__name__)
        for name in PARTS:
            object.__setattr__(self, name, parts.get(name))
        self.complete()
        self.check()

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        check_description(cls.description, cls.__name__)
        cls.__signature__ = inspect.Signature(parameters(cls.description, cls.aliases))

    def __setattr__(self, name, value) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def complete(self) -> None:
        """Sets options that follow from other options."""

    def check(self) -> None:
        """Checks that the parts fit together.

        Raises:
            ValueError: If they do not fit together.
        """
        if len({stack.d_model for stack in self.stacks}) > 1:
            raise ValueError(
                "`d_model` must be the same in encoder and decoder. Received: "
                f"{self.encoder.d_model} and {self.decoder.d_model}."
            )
        encoder = self.encoder
        is_one_way = encoder is not None and encoder.has_blocks and encoder.mixer.is_causal
        if is_one_way and not self.description["encoder"].causal:
            raise ValueError(
                "`mixer` of the encoder must read both directions. "
                f"Received: mixer={encoder.mixer!r}."
            )
        for part in (self.input, self.head):
            part.check_with(self)

    def _check_counts(self, options):
        for name in self.aliases:
            check_count(name, options.get(name), optional=True)
        if "d_model" in options:  # only a single stack may have `None`
            check_count("d_model", options["d_model"])

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field]:
        """Returns the fields of all options, by name; their metadata contain `"help"`."""
        return known_options(cls.description)

    @classmethod
    def without_effect(cls, options: dict[str, Any]) -> set[str]:
        """Returns the names of options that have no effect given others, or are not settings.

        Args:
            options: The given options, by name.
        """
        return {*cls.options()} - effective_options(cls.description, options) | cls.follow

    @classmethod
    def preset(cls: type[Config], name: str, **changes: Any) -> Config:
        """Returns a preset, such as a row of Table 3, with some options changed.

        Args:
            name: A key of `PRESETS`: a row of Table 3, `"tiny"`, `"small"`, or, for a
                `Transformer`, `"student_tiny"` or `"student_base_memory"`, the sizes of the
                translation models in browsers.
            **changes: Options to replace, for example `vocab_size`.

        Raises:
            ValueError: If the preset or an option is unknown.
        """
        own = {*cls.options(), *cls.aliases, *cls.description}
        known = [preset for preset, fields in PRESETS.items() if own.issuperset(fields)]
        if name not in known:
            raise ValueError(
                f"`name` must be one of {', '.join(known)} for a {cls.__name__}. "
                f"Received: name={name!r}."
            )
        fields = {**PRESETS[name], **changes}
        for alias, (stack, key) in cls.aliases.items():
            if alias not in changes and key in cls.description[stack].begin(changes.get(stack))[1]:
                fields.pop(alias, None)
        for stack in {*STACKS} & PRESETS[name].keys() & changes.keys():
            part = cls.description[stack]
            fields[stack] = part.begin(PRESETS[name][stack])[1] | part.begin(changes[stack])[1]
        unused = cls.without_effect(fields) - changes.keys()
        unused |= {*in_table(changes)} - changes.keys()
        if isinstance(changes.get("mixer"), Variant):  # an object has its own options
            unused |= {*short_options(type(changes["mixer"]))} - changes.keys()
        return cls(**{key: value for key, value in fields.items() if key not in unused})

    def with_data(self: Config, **data: Any) -> Config:
        """Returns the configuration with the options that tokenizers and data determine.

        It equals the configuration that is built from these and all other options together.

        Args:
            **data: Options by name, such as `vocab_size` or `labels`.

        Raises:
            ValueError: If an option is unknown, or a value does not fit the other options.
        """
        return dataclasses.replace(self, **data)

    @classmethod
    def from_dict(cls: type[Config], fields: dict[str, Any]) -> Config:
        """Returns the configuration from a result of `to_dict`.

        Raises:
            ValueError: If `fields` is not a result of `to_dict`.
        """
        if {*fields} != {*PARTS}:
            raise OldConfigurationError(EARLIER.format("the parts of a model"))
        if "rules" in cls.description["head"].default.to_dict() and "rules" not in fields["head"]:
            raise OldConfigurationError(EARLIER.format("rules for outputs"))
        parts = {
            name: part.from_dict(fields[name])
            for name, part in cls.description.items()
            if fields[name] is not None
        }
        return cls(**parts)

    def to_dict(self) -> dict[str, Any]:
        """Returns the configurations of all parts as a dictionary of plain values."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part and part.to_dict() for name, part in parts.items()}

    def to_flat(self) -> dict[str, Any]:
        """Returns the options by name, with options of only one stack under the stack's name."""
        flats = {name: getattr(self, name).to_flat() for name in self.description}
        flat, seen = {}, {}
        for name, part in self.description.items():
            for key in (*part.options(getattr(self, name)), *filter(None, [part.kind])):
                if key not in flats[name]:
                    continue
                value = flats[name][key]
                if key in ("mixer", "cross_attention", part.kind):
                    if value not in (None, kind_of(SelfAttention())):  # the default
                        flat.setdefault(name, {})[key] = value
                elif seen.setdefault(key, value) == value:
                    flat[key] = value
                else:
                    flat.setdefault(name, {})[key] = value
        return flat

    @property
    def stacks(self) -> list[Any]:
        """Configurations of the encoder and the decoder that the model has."""
        return [stack for stack in (self.encoder, self.decoder) if stack is not None]

    @property
    def has_vocabulary(self) -> bool:
        """`True` if the model has a vocabulary, of its input or of its output."""
        return self.tokens is not None

    @property
    def tokens(self) -> Any:
        """The part with the `VocabularyOptions`, input or head; `None` without a vocabulary."""
        parts = (self.input, self.head)
        return next((part for part in parts if isinstance(part, VocabularyOptions)), None)

    @property
    def output_size(self) -> int:
        """Size of the output vocabulary."""
        return getattr(self.head, "target_vocab_size", None) or self.tokens.vocab_size

    @property
    def d_model(self) -> int:
        """Width of the model, in features."""
        return self.stacks[0].d_model

    @property
    def num_layers(self) -> int:
        """Number of blocks of the encoder, or of the decoder if there is no encoder."""
        return self.stacks[0].num_layers

    @property
    def decoder_layers(self) -> int:
        """Number of blocks of the decoder, or of the encoder if there is no decoder."""
        return self.stacks[-1].num_layers

    @property
    def max_length(self) -> int:
        """Maximum length of inputs and outputs, in positions."""
        return min(stack.max_length for stack in self.stacks)
