"""Signatures: the functions of a pipeline that every export format uses."""

import dataclasses
from collections.abc import Callable

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

TEXT, IDS, ARRAYS = "text", "ids", "arrays"
DEFAULT = "serving_default"  # called for requests that name no signature
OPTIONS = "options"  # takes the same requests with further settings
FRAMES = "frames"  # takes frames of sound and the beginnings of the outputs


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a pipeline with its inputs and outputs.

    Args:
        name: Name of the signature. `None`: a server does not offer it.
        form: Kind of the inputs: `"text"`, `"ids"` of tokens, or `"arrays"`.
        inputs: Dictionary from the names of the inputs to their `tf.TensorSpec`s.
        function: Function in a graph from valid inputs, and inputs that a format adds, to a
            dictionary of outputs `[R, ...]`.
        check: Function that returns the inputs after an assertion for each rule. `None`: all inputs
            are valid.
        screen: Function of the inputs that returns which rows are valid, boolean `[R]`, and a
            dictionary of inputs in which harmless rows replace the invalid ones.
        nothing: Dictionary from the names of the outputs to their values for an invalid input.
        named: Function of the outputs that adds strings for numbers, such as the names of labels,
            for runtimes that support strings.
        search: The search that generates the outputs. `None`: the model answers in one pass.
        defaults: Dictionary from the names of inputs that a call may leave out to their values,
            arrays, for formats that have such inputs.
    """

    name: str | None
    form: str
    inputs: dict
    function: Callable
    check: Callable | None = None
    screen: Callable | None = None
    nothing: dict = dataclasses.field(default_factory=dict)
    named: Callable | None = None
    search: object = None
    defaults: dict = dataclasses.field(default_factory=dict)

    def strict(self, **inputs) -> dict[str, Tensor]:
        """Returns the outputs of `function` and `named`; an invalid input is an error."""
        outputs = self.function(**(inputs if self.check is None else self.check(**inputs)))
        return outputs if self.named is None else self.named(outputs)

    def lenient(self, **inputs) -> dict[str, Tensor]:
        """Returns the outputs; an invalid row gets `nothing` and does not affect other rows."""
        if self.screen is None:
            raise ValueError(f"the signature {self.name!r} cannot screen its inputs.")
        valid, inputs = self.screen(**inputs)

        def or_nothing(name, output):
            rows = tf.reshape(valid, [-1] + [1] * (output.shape.rank - 1))
            return tf.where(rows, output, self.nothing[name])

        return {name: or_nothing(name, out) for name, out in self.function(**inputs).items()}
