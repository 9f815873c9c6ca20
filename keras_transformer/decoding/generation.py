"""`Generation`, what a checkpoint says about its outputs: its search and its `OutputRules`."""

import dataclasses
from typing import Any

from keras_transformer.config import OldConfigurationError
from keras_transformer.config.rules import OutputRules
from keras_transformer.config.tokens import GeneratingHead
from keras_transformer.decoding.beam import Beam
from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.stored import as_dict, from_dict


@dataclasses.dataclass(frozen=True)
class Generation:
    """Default search of a checkpoint, and its rules for outputs.

    A run stores it in `generation.json`. For the model of the run, these rules replace those in
    `model.keras`, which are used only if the model is loaded without its run.

    Args:
        search: The default search. `None`: greedy search.
        rules: The `OutputRules`.
        notes: Strings that describe settings of the checkpoint that no search supports.
    """

    search: Greedy | Beam | Sample | None = None
    rules: OutputRules = OutputRules()
    notes: tuple = ()

    def of_vocabulary(self) -> "Generation":
        """Returns only the rules, which are valid for every model with the same vocabulary."""
        return Generation(rules=self.rules)

    def configure(self, config: Any) -> Any:
        """Returns a model configuration with the rules that its head accepts.

        Raises:
            ValueError: If an id is not in the vocabulary of the model.
        """
        accepted = config.head.accepted if isinstance(config.head, GeneratingHead) else ()
        changes = {name: getattr(self.rules, name) for name in accepted}
        if self.rules.start_id is not None:
            changes["bos_id"] = self.rules.start_id
        return dataclasses.replace(config, **changes) if changes else config

    def to_dict(self) -> dict[str, Any]:
        """Returns a dictionary of plain values."""
        search = None if self.search is None else as_dict(self.search)
        return {"search": search, "rules": self.rules.to_dict(), "notes": self.notes}

    @classmethod
    def from_dict(cls, fields: Any) -> "Generation":
        """Returns the `Generation` from a result of `to_dict`.

        Raises:
            TypeError, ValueError: If `fields` is not a result of `to_dict`.
        """
        fields = dict(fields)
        if not {*fields} <= {"search", "rules", "notes"}:
            raise OldConfigurationError(
                "is from an earlier version, without `rules`: train the model again, or convert "
                "its checkpoint again."
            )
        search = fields.get("search")
        return cls(
            None if search is None else from_dict(search),
            OutputRules.from_dict(fields.get("rules", {})),
            tuple(fields.get("notes", ())),
        )
