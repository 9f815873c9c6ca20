"""The ids that a model has for the pieces of its vocabulary, where they are not SentencePiece's."""

import collections
import dataclasses
import functools
import json

from keras_transformer.checks import is_integer

SPECIAL = ("pad_id", "unk_id", "bos_id", "eos_id")


@dataclasses.dataclass(frozen=True)
class PieceTable:
    """A table from SentencePiece's ids to those of a model.

    Checkpoints of other projects number pieces in an order of their own, have pieces that the
    SentencePiece model does not have, such as padding or codes of languages, and lack some that it
    has.

    Args:
        ids: For each of SentencePiece's ids the model's id; -1 for a piece that the model does not
            have, which is then unknown.
        size: Entries of the model's vocabulary.
        pad_id, unk_id, bos_id, eos_id: The model's ids of padding, of the unknown piece, and of
            the pieces that begin and end a text; `bos_id` may be another one of them.
        names: Names of the model's pieces that SentencePiece does not have, a dictionary from
            their ids. They are never written into a text. Those of the form `>>fra<<` are codes of
            target languages: a text may begin with one.
        banned_ids, silent_ids, forced_eos_id: See `TransformerConfig`.

    Raises:
        ValueError: If an id is out of range or two pieces have the same.
    """

    ids: tuple
    size: int
    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int
    names: dict = dataclasses.field(default_factory=dict)
    banned_ids: tuple = ()
    silent_ids: tuple = ()
    forced_eos_id: int | None = None

    def __post_init__(self):
        object.__setattr__(self, "ids", tuple(self.ids))
        for name in ("banned_ids", "silent_ids"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        names = {int(number): name for number, name in dict(self.names).items()}
        object.__setattr__(self, "names", names)
        if not all(is_integer(number) and -1 <= number < self.size for number in self.ids):
            raise ValueError(
                f"`ids` must be integers from -1 to below {self.size}. "
                f"Received: ids={_short(self.ids)}."
            )
        counts = collections.Counter(number for number in self.ids if number >= 0)
        twice = sorted(number for number, count in counts.items() if count > 1)
        if twice:
            raise ValueError(f"`ids` must each be there once. Received twice: {_short(twice)}.")
        for name in SPECIAL:
            number = getattr(self, name)
            if not is_integer(number) or not 0 <= number < self.size:
                raise ValueError(
                    f"`{name}` must be from 0 to below {self.size}. Received: {name}={number!r}."
                )

    @functools.cached_property
    def places(self):
        """For each id of the model SentencePiece's id, -1 where it does not have the piece."""
        places = [-1] * self.size
        for place, number in enumerate(self.ids):
            if number >= 0:
                places[number] = place
        return places

    @functools.cached_property
    def codes(self):
        """The codes of target languages, such as `>>fra<<`, a dictionary to their ids."""
        return {
            name: number
            for number, name in self.names.items()
            if name.startswith(">>") and name.endswith("<<")
        }

    def to_json(self):
        """Returns the table as bytes."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def from_json(cls, content):
        """Returns the table that `to_json` wrote.

        Raises:
            ValueError: If it is something else.
        """
        try:
            return cls(**json.loads(content))
        except (TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"the table of pieces is damaged ({error}).") from error


def _short(ids):
    return f"({', '.join(map(str, ids[:10]))}{', ...' if len(ids) > 10 else ''})"
