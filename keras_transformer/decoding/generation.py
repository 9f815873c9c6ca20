"""The rules of a checkpoint for its outputs, as one value."""

import dataclasses

from keras_transformer.decoding.predictor import OF_OUTPUTS
from keras_transformer.decoding.search import Beam, Greedy, as_dict, from_dict


@dataclasses.dataclass(frozen=True)
class Generation:
    """A search, and the tokens that no search emits or that end an output.

    `generation.json` of a run holds one. It decides for the run's model, whatever ids the
    configuration in `model.keras` has: that copy is for models that are loaded without their run.

    Args:
        search: The search where none is named. `None`: greedy search.
        banned_ids, silent_ids, forced_eos_id: See `TransformerConfig`.
        notes: Settings of the checkpoint that no search here has: strings.
    """

    search: Greedy | Beam | None = None
    banned_ids: tuple = ()
    silent_ids: tuple = ()
    forced_eos_id: int | None = None
    notes: tuple = ()

    def of_vocabulary(self):
        """Returns the ids alone, which hold for every model with the same vocabulary."""
        return dataclasses.replace(self, search=None, notes=())

    def configure(self, config):
        """Returns the configuration of a model with these ids; of one without outputs, its own.

        Raises:
            ValueError: If they are no ids of its vocabulary.
        """
        ids = {name: getattr(self, name) for name in OF_OUTPUTS if hasattr(config, name)}
        return dataclasses.replace(config, **ids) if ids else config

    def to_dict(self):
        """Returns a dictionary of plain values."""
        search = None if self.search is None else as_dict(self.search)
        return {**dataclasses.asdict(self), "search": search}

    @classmethod
    def from_dict(cls, fields):
        """Returns the `Generation` that `to_dict` made a dictionary of.

        Raises:
            TypeError, ValueError: If it is no such dictionary.
        """
        fields = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in dict(fields).items()
        }
        search = fields.pop("search", None)
        return cls(None if search is None else from_dict(search), **fields)
