"""Signatures: the functions of a pipeline that can be exported, as every format sees them."""

import dataclasses
from collections.abc import Callable

TEXT, IDS, ARRAYS = "text", "ids", "arrays"
DEFAULT = "serving_default"  # the one that a server calls where a request names none


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a pipeline: what goes in, what comes out.

    Args:
        name: Its name.
        form: What its inputs are: `"text"`, `"ids"` of tokens, or `"arrays"`.
        inputs: Dictionary of the `tf.TensorSpec`s of its inputs, by their names.
        function: Function in a graph, from tensors by these names to a dictionary of outputs.
        nothing: What each output is for an input that is invalid, by its name. Empty: such an input
            is an error.
        search: The search that generates the outputs. `None`: the model answers in one pass.
    """

    name: str
    form: str
    inputs: dict
    function: Callable
    nothing: dict = dataclasses.field(default_factory=dict)
    search: object = None
