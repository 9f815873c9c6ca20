"""Pipelines of models that answer in one pass."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.tasks.answering import PassAnswering
from keras_transformer.tasks.ensemble import check_together, metadata_difference
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.tasks.signatures import ARRAYS, DEFAULT, IDS, OPTIONS, TEXT, Signature
from keras_transformer.tasks.strings import traced_once
from keras_transformer.tensors import Tensor


class SinglePass(PassAnswering, Pipeline):
    """A trained model that answers in one pass, in use.

    Attributes:
        codec_class: Class of the codec.
        codec: The `Codec`.
    """

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._responder = traced_once(self._trace)

    @classmethod
    def parse(cls, line: str) -> Any:  # noqa: D102
        return cls.codec_class.parse(line)

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return ("max_length", *self.codec.choices.command_options, *self.settings)

    def check_samples(self, samples: Sequence[Any]) -> list:
        """Returns the examples to check an export with as a list; see `Codec.check_samples`."""
        return self.codec.check_samples(samples)

    def signatures(self) -> list[Signature]:
        """Returns `Signature`s: requests to answers, and inputs to outputs of the model.

        If requests may have options, a third one has them, see `Codec.option_specs`.
        """
        codec, request, inputs = self.codec, self.codec.request_specs, self.codec.input_specs()
        rules = codec.checked, codec.screen, codec.nothing, codec.named
        signatures = [
            Signature(DEFAULT, _form(request), request, self.respond),
            Signature(codec.signature, _form(inputs), inputs, self.predict, *rules),
        ]
        if codec.option_specs:
            request = {**request, **codec.option_specs}
            signatures.append(Signature(OPTIONS, _form(request), request, self.respond))
        return signatures

    def predict(self, **inputs: Tensor) -> dict[str, Tensor]:
        """Returns the dictionary of the model's outputs, in a graph."""
        return self._outputs(self.model, inputs)

    def respond(self, **request: Tensor) -> dict[str, Tensor]:
        """Returns the dictionary of answers to a request, in a graph."""
        inputs, rest = self.codec.encode(**request)
        outputs = [self._outputs(model, inputs) for model in self.models]
        outputs = outputs[0] if len(outputs) == 1 else self.codec.mean(outputs, rest)
        return self.codec.answers(outputs, rest)

    def _outputs(self, model, inputs):
        tensors = next(iter(inputs.values())) if len(inputs) == 1 else inputs
        return self.codec.outputs(model(tensors, training=False))

    def log_probabilities(self, example: Any, results: list) -> Any | None:
        """Returns the log-probability of given answers to an example, in the codec's `score_unit`.

        Args:
            example: The example.
            results: List of B `Result`s of any model.

        Returns:
            Array `[B]`; or `None`, by default: results have scores of each other's answers.
        """
        return None

    def difference(self, other: Any) -> str | None:  # noqa: D102
        return super().difference(other) or metadata_difference(self.codec, other.codec)

    def check_models(self) -> None:
        """Raises a `ValueError` if there are several models that cannot form an ensemble."""
        if len(self.models) > 1:
            names = [f"model {number}" for number in range(1, len(self.models) + 1)]
            check_together([self.with_model(model) for model in self.models], names)

    def _trace(self):
        function = tf.function(self.respond, autograph=False)
        return function.get_concrete_function(**self.codec.request_specs)

    def answer_batch(self, examples: Sequence[Any], /) -> list:
        """Returns a `Result` for each example of a list, computed as one batch."""
        if not len(examples):  # the graph of some codecs needs a row
            return []
        answers = self._responder()(**self.codec.request(examples))
        return self.codec.results({name: value.numpy() for name, value in answers.items()})


def _form(specs):
    """Returns the `form` of a signature by the dtype of its first input."""
    (first, *_) = specs.values()
    return {tf.string: TEXT, tf.int32: IDS}.get(first.dtype, ARRAYS)
