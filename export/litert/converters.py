"""The programs that write the graphs of a .tflite file."""

import dataclasses
from collections.abc import Callable, Collection, Iterable

import tensorflow as tf

from keras_transformer.export.litert.format import CONVERTERS, LiteRTOptions
from keras_transformer.export.litert.merge import merge
from keras_transformer.export.litert.stablehlo.compiler import load_compiler
from keras_transformer.export.litert.stablehlo.convert import convert_function
from keras_transformer.export.litert.stand_ins import QUANTIZATIONS
from keras_transformer.export.litert.tensorflow_converter import convert_within_tensorflow


@dataclasses.dataclass(frozen=True)
class Converter:
    """A program that writes the graphs of a .tflite file.

    Args:
        name: One of `CONVERTERS`.
        convert: Function that returns the bytes of a model. See
            `convert_within_tensorflow` for its arguments.
        quantizations: Values of `quantize` that it supports. `None`: all.
        takes_strings: Whether it supports operators of TensorFlow Text.
        streams: Whether it supports the operators of files for streams of tokens, such as those of
            sampling and of repetition penalties.
        stand_ins: Quantisations for which `StandIns` may represent weights, a collection for each
            attempt.
    """

    name: str
    convert: Callable[..., bytes | bytearray]
    quantizations: Collection[str] | None = None
    takes_strings: bool = True
    streams: bool = True
    stand_ins: tuple[Collection[str], ...] = (QUANTIZATIONS, ())

    def check(self, options: LiteRTOptions) -> None:
        """Raises a `ValueError` if it does not support the options."""
        given = f"Received: converter={self.name!r}"
        if self.quantizations is not None and options.quantize not in self.quantizations:
            raise ValueError(
                f"The converter {self.name!r} does not quantise; only {CONVERTERS[0]!r} does. "
                f"{given}, quantize={options.quantize!r}."
            )
        if options.tokenizer and not self.takes_strings:
            raise ValueError(
                f"Signatures that take strings need the converter {CONVERTERS[0]!r}. {given}."
            )
        if options.streaming and not self.streams:
            raise ValueError(
                f"Files for streams of tokens need the converter {CONVERTERS[0]!r}. {given}."
            )


def _through_stablehlo(functions: Iterable, *options):
    return merge(convert_function(name, function) for name, function in functions)


_TENSORFLOW, _LITERT = CONVERTERS
TENSORFLOW = Converter(_TENSORFLOW, convert_within_tensorflow)
LITERT = Converter(
    _LITERT,
    _through_stablehlo,
    ("none",),
    takes_strings=False,
    streams=False,
    stand_ins=((),),
)


def converter_of(options: LiteRTOptions) -> Converter:
    """Returns the converter of an export.

    Args:
        options: The options. Without a `converter` it is TensorFlow's own, if this TensorFlow has
            it.

    Raises:
        ValueError: If it does not support the options, or a package is missing.
    """
    given = {converter.name: converter for converter in (TENSORFLOW, LITERT)}
    converter = default_converter() if options.converter is None else given[options.converter]
    converter.check(options)
    if converter is LITERT:
        load_compiler()
    return converter


def default_converter() -> Converter:
    """Returns the converter of exports without the option `converter`."""
    return TENSORFLOW if hasattr(getattr(tf, "lite", None), "TFLiteConverter") else LITERT
