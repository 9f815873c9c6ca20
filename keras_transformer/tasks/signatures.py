"""Signatures: the functions of a pipeline that can be exported, as every format sees them."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

TEXT, IDS, ARRAYS = "text", "ids", "arrays"
DEFAULT = "serving_default"  # the one that a server calls where a request names none


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a pipeline: what goes in, what comes out.

    Args:
        name: Its name. `None`: a server does not offer it.
        form: What its inputs are: `"text"`, `"ids"` of tokens, or `"arrays"`.
        inputs: Dictionary of the `tf.TensorSpec`s of its inputs, by their names.
        function: Function in a graph, from valid tensors by these names, and others that a format
            adds, to a dictionary of outputs `[R, ...]`.
        check: Function from the inputs to the same after an assertion for each rule. `None`: there
            are no invalid inputs.
        screen: Function from the inputs to which rows are valid, boolean `[R]`, and to a dictionary
            of inputs with harmless rows in place of the others.
        nothing: What each output is for an invalid input, by its name.
        named: Function of the outputs that adds the names of numbers, for runtimes with strings.
        search: The search that generates the outputs. `None`: the model answers in one pass.
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

    def strict(self, **inputs):
        """Returns the outputs, with the names of numbers; an invalid input is an error."""
        outputs = self.function(**(inputs if self.check is None else self.check(**inputs)))
        return outputs if self.named is None else self.named(outputs)

    def lenient(self, **inputs):
        """Returns the outputs; an invalid row gives `nothing` and does not touch the others."""
        valid, inputs = self.screen(**inputs)

        def or_nothing(name, output):
            rows = tf.reshape(valid, [-1] + [1] * (output.shape.rank - 1))
            return tf.where(rows, output, self.nothing[name])

        return {name: or_nothing(name, out) for name, out in self.function(**inputs).items()}
