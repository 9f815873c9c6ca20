"""The description of a task's models in the README beside a SavedModel."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Guide:
    """Information about a task for the README beside a SavedModel.

    Args:
        purpose: Beginning of a sentence about what the model does.
        request: Dictionary from the tensors of a request to an example in JSON, a batch of one.
        axes: Dictionary from outputs and inputs to the letters of their axes, such as `"B, C"`.
            Those that are missing have `"B"`.
        notes: List of Markdown sentences that explain the letters and the outputs.
        modules: Dictionary from modules that a Python program must import to the reason.
        arguments: Dictionary from the tensors of a request to the same example in Python, where it
            differs from the JSON.
        files: Dictionary from the names of files that these arguments read to their contents.
    """

    purpose: str
    request: dict
    axes: dict
    notes: list
    modules: dict = dataclasses.field(default_factory=dict)
    arguments: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)
