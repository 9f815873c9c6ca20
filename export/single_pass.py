"""Loaded files of models that answer in one pass, whatever their format."""

from typing import Any, TypeVar

import numpy as np

from keras_transformer.export.metadata import METADATA, reading
from keras_transformer.export.runtime import changed, refusals
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tasks.answering import PassAnswering
from keras_transformer.tasks.single_pass.text import TextCodec
from keras_transformer.tasks.strings import map_sorted, traced_once

BATCH_SIZE = 64  # of a codec without a limit of its own
Kind = TypeVar("Kind", bound="OpenPass")


class OpenPass(PassAnswering):
    """Base class of loaded files of models that answer in one pass.

    A class of a format defines `run`.

    Attributes:
        path: The file.
    """

    path: Any = None

    def read_codec(self, codec_class, metadata) -> None:
        """Sets the codec from the metadata of the file.

        Raises:
            ValueError: If the metadata is damaged.
        """
        with reading(self.path, METADATA):
            self.codec = codec_class.from_metadata(metadata, self.tokenizers)
        self._encoder = traced_once(self._trace_encoder)

    @property
    def settings(self) -> tuple[str, ...]:  # noqa: D102
        return self.codec.export_settings

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return *self.codec.choices.command_options, *self.settings

    def with_settings(self: Kind, **settings: Any) -> Kind:
        """Returns a file that differs in settings of the codec, with the same engines.

        Raises:
            TypeError, ValueError: If the model does not have a setting or a value.
        """
        self.check_settings(settings)
        other = changed(self, codec=self.codec.changed_export(**settings))
        other._encoder = traced_once(other._trace_encoder)
        return other

    def answer_batch(self, examples, **how) -> list:
        """Returns a `Result` for each of a list of examples.

        Args:
            examples: List of inputs of the task, such as strings.
            **how: Further arguments of `run`.

        Raises:
            ValueError: If the model refuses an example, such as an image of the wrong size.
        """
        examples = self.codec.check(examples)
        if not examples:
            return []

        def encode(examples):
            plain = self.codec.plainly_encoded(examples)
            if plain is not None:
                return plain
            with refusals(self.path):
                return self._encode(self.codec.request(examples))

        def answer(inputs, rest):
            answers = self.codec.answers(self.run(**how, **inputs), rest)
            return self.codec.results({name: np.asarray(value) for name, value in answers.items()})

        return self.codec.answered(examples, encode, answer, self.run_further)

    def run_further(self, signature: str, /, **inputs: Any) -> dict[str, Any]:
        """Runs one of `Codec.further_signatures`; returns its outputs, arrays by name."""
        raise NotImplementedError

    def further_inputs(self, signature: str, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Returns all inputs of one of `Codec.further_signatures` as arrays.

        Raises:
            ValueError: If one is missing, or has another shape or dtype; the error is one line.
        """
        specs = self.codec.further_specs(signature)
        if inputs.keys() != specs.keys():
            raise ValueError(
                f"{self.path}: the inputs of {signature!r} are {', '.join(specs)}. "
                f"Received: {', '.join(inputs)}."
            )
        arrays = {name: np.asarray(inputs[name]) for name in specs}
        check_inputs(self.path, specs, arrays, count_rows(arrays[next(iter(specs))]))
        return arrays

    def answer_by(self, signature: str, examples: list) -> list:
        """Returns a `Result` for each example by a signature of `Codec.further_signatures`.

        Args:
            signature: Name of the signature.
            examples: List of inputs of the task, computed in batches of similar size.
        """

        def answer(batch):
            inputs, rest = self.codec.encoded(signature, batch)
            answers = self.codec.answers(self.run_further(signature, **inputs), rest)
            return self.codec.results({name: np.asarray(value) for name, value in answers.items()})

        return map_sorted(answer, examples, self.codec.most or BATCH_SIZE, self.codec.size)

    def answer_part(self, part, texts) -> dict[str, np.ndarray]:  # noqa: D102
        with refusals(self.path):
            return self.codec.answered_part(part, texts, self.run)

    def _encode(self, request):
        """Returns the result of `Codec.encode`; texts are read in a graph, as in the run.

        Eagerly, the operations of a tokenizer take several times as long as a small model. Other
        codecs read recordings and images eagerly, so that an error names one.
        """
        if isinstance(self.codec, TextCodec):
            return self._encoder()(**request)
        return self.codec.encode(**request)

    def _trace_encoder(self):
        function = tf.function(self.codec.encode, autograph=False)
        return function.get_concrete_function(**self.codec.request_specs)


def count_rows(array) -> int:
    """Returns the size of the first axis of an array; a number has one row."""
    return len(np.atleast_1d(array))


def check_inputs(path, specs, arrays, rows) -> None:
    """Raises a `ValueError` for an array with another shape or dtype than its `tf.TensorSpec`.

    Args:
        path: The file, for the error.
        specs: Dictionary from the names of arrays to their specs, of which only the batch is
            unknown.
        arrays: Arrays by name, perhaps not all of them.
        rows: Number of rows that they must have.
    """
    for name, spec in specs.items():
        shape, dtype = [rows, *spec.shape[1:]], spec.dtype.name
        array = arrays.get(name)
        if array is not None and (list(array.shape), array.dtype.name) != (shape, dtype):
            raise ValueError(
                f"{path}: `{name}` must be {dtype} of the shape {shape}. Received: "
                f"{array.dtype.name}, {list(array.shape)}."
            )
