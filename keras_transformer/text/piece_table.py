"""Table from the ids of a SentencePiece model to the ids of a Transformer."""

import collections
import collections.abc
import dataclasses
import functools
import json

from keras_transformer.checks import is_integer
from keras_transformer.text.languages import Languages
from keras_transformer.text.sentencepiece_model import pieces_of, with_unused_pieces
from keras_transformer.text.text_steps import TextSteps

SPECIAL = ("pad_id", "unk_id", "bos_id", "eos_id")
NO_TEXT = ("<unk>", "</s>", "<pad>", "<s>")


@dataclasses.dataclass(frozen=True)
class PieceTable:
    """A table from SentencePiece's ids to the ids of a model.

    Checkpoints of other projects number tokens in their own order. Their vocabularies may have
    tokens that the SentencePiece model does not have, such as padding or language codes, and may
    lack some of its pieces.

    Args:
        ids: The model's id of each SentencePiece id; -1 for a piece that the model does not have,
            which is encoded as unknown.
        size: Size of the model's vocabulary.
        pad_id, unk_id, bos_id, eos_id: The model's ids of padding, of an unknown token, and of the
            tokens that begin and end a text; `bos_id` may equal one of the others.
        names: Names of the model's tokens that SentencePiece does not have, by id. They are never
            written into a text. Names of the form `>>fra<<` are codes of target languages, with
            which a text may begin.
        starts_with_bos: Whether an encoded text begins with `bos_id`.
        languages: The `Languages` whose tokens are in front of every text, or their fields as a
            dictionary. `None`: a text has no tokens in front.
        mask_id: The model's id of the mask token. `None`: it has none.
        steps: Names of the `TextSteps` before the normalisation of the SentencePiece model.

    Raises:
        ValueError: If an id is out of range, two pieces have the same id, or there is no such step.
    """

    ids: collections.abc.Sequence[int]
    size: int
    pad_id: int
    unk_id: int
    bos_id: int
    eos_id: int
    names: dict = dataclasses.field(default_factory=dict)
    starts_with_bos: bool = False
    languages: Languages | None = None
    mask_id: int | None = None
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", TextSteps(self.steps).names)
        if isinstance(self.languages, dict):
            object.__setattr__(self, "languages", Languages(**self.languages))
        object.__setattr__(self, "ids", tuple(self.ids))
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
            raise ValueError(f"`ids` must not repeat an id. Received twice: {_short(twice)}.")
        for name in (*SPECIAL, *(["mask_id"] if self.mask_id is not None else [])):
            number = getattr(self, name)
            if not is_integer(number) or not 0 <= number < self.size:
                raise ValueError(
                    f"`{name}` must be from 0 to below {self.size}. Received: {name}={number!r}."
                )
        self._check_languages()

    def _check_languages(self):
        languages = self.languages
        if languages is None:
            return
        known, rule = self.names, "tokens that SentencePiece does not have"
        if languages.written is not None:
            known, rule = {*self.ids}, "pieces of SentencePiece, because they are written in texts"
        for code, number in languages.ids.items():
            if number not in known:
                raise ValueError(f"`languages` must be {rule}. Received: {code!r}: {number!r}.")

    def check(self, processor) -> None:
        """Raises a `ValueError` if the table does not fit the pieces of a SentencePiece model.

        Args:
            processor: Result of `processor_of`.
        """
        pieces, end = processor.vocab_size(), processor.eos_id()
        if len(self.ids) != pieces:
            raise ValueError(
                f"`table` must have an id for each of the {pieces} pieces. "
                f"Received: {len(self.ids)} ids."
            )
        if self.pad_id in self.ids and not processor.is_control(self.ids.index(self.pad_id)):
            piece = processor.id_to_piece(self.ids.index(self.pad_id))
            raise ValueError(
                "`table` must not give `pad_id` to a piece of text, which would be dropped as "
                f"padding. Received: pad_id={self.pad_id} for {piece!r}."
            )
        if end < 0 or self.ids[end] != self.eos_id:
            raise ValueError(
                "`table` must give `eos_id` to the piece that ends a text. "
                f"Received: eos_id={self.eos_id}."
            )

    @functools.cached_property
    def places(self) -> list[int]:
        """SentencePiece's id of each of the model's ids, or -1 if it has none."""
        places = [-1] * self.size
        for place, number in enumerate(self.ids):
            if number >= 0:
                places[number] = place
        return places

    @functools.cached_property
    def codes(self) -> dict[str, int]:
        """Ids of the codes of target languages, by code, such as `>>fra<<`."""
        return {name: number for number, name in self.names.items() if is_code(name)}

    def restricted(self, ids, places) -> "PieceTable":
        """Returns the table of a smaller vocabulary.

        Args:
            ids: The model's ids that remain, in ascending order; they are numbered anew.
            places: SentencePiece's ids that remain, in ascending order.
        """
        numbers = {number: new for new, number in enumerate(ids)}
        special = {name: numbers[getattr(self, name)] for name in SPECIAL}
        languages = self.languages
        if languages is not None:
            codes = {code: numbers[number] for code, number in languages.ids.items()}
            before = [numbers[number] for number in languages.before]
            languages = dataclasses.replace(languages, ids=codes, before=before)
        return dataclasses.replace(
            self,
            ids=[numbers.get(self.ids[place], -1) for place in places],
            size=len(ids),
            names={numbers[n]: name for n, name in self.names.items() if n in numbers},
            languages=languages,
            mask_id=None if self.mask_id is None else numbers[self.mask_id],
            **special,
        )

    def to_json(self) -> bytes:
        """Returns the table as bytes."""
        fields = dataclasses.asdict(self)
        for name in ("languages", "mask_id", "steps"):
            if fields[name] in (None, ()):
                del fields[name]
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, content) -> "PieceTable":
        """Returns the table from the result of `to_json`.

        Raises:
            ValueError: If the content is something else.
        """
        try:
            return cls(**json.loads(content))
        except (TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"the table of pieces is damaged ({error}).") from error


def with_table(model, ids, size, languages=None, no_text=(), **special) -> tuple[bytes, PieceTable]:
    """Returns a SentencePiece model with all tokens of a vocabulary, and the table of their ids.

    Tokens that the SentencePiece model lacks, such as those of the other language, are added as
    unused pieces: they are decoded but never encoded. Language codes and special tokens are not
    added because they are not text.

    Args:
        model: The bytes of the SentencePiece model.
        ids: Ids of the vocabulary's tokens, by token.
        size: Size of the vocabulary.
        languages: The `Languages` in front of texts, whose ids are among `ids`. `None`: there are
            none.
        no_text: Further tokens that are not text.
        **special: `pad_id`, `unk_id`, `bos_id` and `eos_id`.

    Returns:
        The bytes of the SentencePiece model, and a `PieceTable`.

    Raises:
        ValueError: If `model` is not a SentencePiece model, or an id is out of range.
    """
    pieces = pieces_of(model)
    known, names = set(pieces), {number: piece for piece, number in ids.items()}
    of_languages = set() if languages is None else {*languages.ids.values()}
    no_text = {*NO_TEXT, *no_text}
    others = [
        piece
        for number, piece in sorted(names.items())
        if piece not in known and number != special["pad_id"]
        if piece not in no_text and number not in of_languages and not is_code(piece)
    ]
    known.update(others)
    unnamed = (number for number in range(size) if names.get(number) not in known)
    table = PieceTable(
        ids=[ids.get(piece, -1) for piece in pieces + others],
        size=size,
        names={number: names.get(number, f"<unused {number}>") for number in unnamed},
        languages=languages,
        **special,
    )
    return with_unused_pieces(model, others), table


def is_code(piece) -> bool:
    """Returns true if a piece is the code of a target language, such as `>>fra<<`."""
    return piece.startswith(">>") and piece.endswith("<<")


def _short(ids):
    return f"({', '.join(map(str, ids[:10]))}{', ...' if len(ids) > 10 else ''})"
