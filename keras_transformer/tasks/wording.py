"""`Wording`, words that outputs must or must not contain, and its tokens as `Constraints`."""

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from keras_transformer.decoding import Constraints
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.options import OptionError
from keras_transformer.tensors import Tensor
from keras_transformer.text.segmentations import Segmentations
from keras_transformer.text.terms import UNSPACED, Finder, contains, spellings, words_of

SETTINGS = ("glossary", "banned", "prefix")
MAX_SPLITS = 16  # ways to write a banned phrase in tokens, those of the fewest tokens first
# Of a banned phrase. The time to find its ways grows faster than its length: 32 phrases take 0.07
# seconds with 100 characters and 17 with 1,000.
MAX_CHARACTERS = 100
TOO_LONG = (
    f"has a phrase of more than {MAX_CHARACTERS} characters. Ban a shorter part of it, which also "
    "bans the phrase."
)
INSIDE = re.compile(rf"[^\W{UNSPACED}]")  # a character that continues a word


@dataclasses.dataclass(frozen=True)
class Wording:
    """Words that outputs must or must not contain.

    Args:
        glossary: Dictionary from source terms to target terms, each a string or several, of which
            one is enough: if a source contains a source term, its output contains a target term.
            Terms are found as whole words, as they are written or with a capital first letter. A
            search with a glossary needs a beam.
        banned: Phrases that no output contains. The sequence of their tokens is banned, so that
            longer words that begin with it are also banned.
        prefix: Beginning of the outputs: a string for all, or one string for each input.

    Raises:
        TypeError: If a value has the wrong type.
        ValueError: If a term is empty or contains a banned phrase, or a banned phrase has more than
            `MAX_CHARACTERS`.
    """

    glossary: Mapping[str, str | Sequence[str]] = dataclasses.field(default_factory=dict)
    banned: Sequence[str] = ()
    prefix: str | Sequence[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.glossary, Mapping):
            raise TypeError(
                "`glossary` must be a dictionary from source terms to target terms. "
                f"Received: {self.glossary!r}."
            )
        for source, targets in self.glossary.items():
            _check_strings("glossary", [source])
            _check_strings("glossary", [targets] if isinstance(targets, str) else targets)
        if isinstance(self.banned, str):
            raise TypeError(f"`banned` must be a list of strings. Received: {self.banned!r}.")
        _check_strings("banned", self.banned)
        for phrase in self.banned:
            if len(phrase) > MAX_CHARACTERS:
                raise ValueError(
                    f"`banned` {TOO_LONG} Received: {len(phrase)} characters, "
                    f"{phrase[:20]!r} and so on."
                )
        if not isinstance(self.prefix, str):
            _check_strings("prefix", self.prefix, may_be_empty=True)
        for source in self.glossary:
            self._check_allowed(source)

    def targets(self, source: str) -> tuple[str, ...]:
        """Returns the target terms of a source term."""
        targets = self.glossary[source]
        return (targets,) if isinstance(targets, str) else tuple(targets)

    def _check_allowed(self, source):
        targets = self.targets(source)
        for phrase in self.banned:
            if all(contains(target, phrase) for target in targets):
                raise ValueError(
                    f"`glossary` demands what `banned` forbids: {targets[0]!r} contains {phrase!r}."
                )

    @functools.cached_property
    def _find(self):
        return Finder(tuple(self.glossary))

    def terms_of(self, source: str) -> list[tuple[str, ...]]:
        """Returns the target terms, in their spellings, that the output of a source must have."""
        return [*dict.fromkeys(self.targets(term) for term in self._find(source))]

    def missing(self, source: str, output: str) -> list[str]:
        """Returns the target terms that an output lacks, the first spelling of each."""
        return [
            targets[0]
            for targets in self.terms_of(source)
            if not any(contains(output, target) for target in targets)
        ]

    def unwanted(self, output: str) -> list[str]:
        """Returns the banned phrases that an output contains as whole words."""
        return [phrase for phrase in self.banned if contains(output, phrase)]

    def complaint(self, source: str, output: str) -> str | None:
        """Returns a line about words that an output lacks, or should not have; `None`: neither."""
        missing, unwanted = self.missing(source, output), self.unwanted(output)
        lines = [f"the output lacks {', '.join(missing)}"] if missing else []
        lines += [f"the output contains {', '.join(unwanted)}"] if unwanted else []
        return "; ".join(lines) or None

    def prefixes(self, numbers: Sequence[int]) -> list[str]:
        """Returns the prefix of each input.

        Args:
            numbers: Indices of the inputs, which select the prefixes if there are several.

        Raises:
            ValueError: If there are fewer.
        """
        if isinstance(self.prefix, str):
            return [self.prefix] * len(numbers)
        if numbers and max(numbers) >= len(self.prefix):
            raise OptionError(
                "prefix",
                "must have one string for each input. "
                f"Received: {len(self.prefix)} for input number {max(numbers) + 1}.",
            )
        return [self.prefix[number] for number in numbers]


class WordingTokens:
    """The tokens of a `Wording`.

    Args:
        wording: The `Wording`.
        tokenizer: The `Tokenizer` of outputs.
        begin: Number of tokens that an output begins with before a prefix, such as its language.

    Raises:
        ValueError: If the vocabulary cannot write a term of the glossary.
    """

    def __init__(self, wording, tokenizer, begin=0):
        self.wording, self._tokenizer, self._begin = wording, tokenizer, begin
        self._ids: dict[str, tuple[int, ...]] = {}
        targets = [target for source in wording.glossary for target in wording.targets(source)]
        written = [spelling for term in (*targets, *wording.banned) for spelling in spellings(term)]
        self._ids.update(zip(written, self._tokens(written), strict=True))
        for term in targets:
            if tokenizer.unk_id in self._ids[term]:
                raise ValueError(
                    f"`glossary` has a term with characters that the vocabulary lacks: {term!r}."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields of `Constraints` that are not empty."""
        wording = self.wording
        values = {
            "prefix": bool(wording.prefix),
            "banned_phrases": bool(wording.banned),
            "terms": bool(wording.glossary),
        }
        return tuple(name for name, given in values.items() if given)

    def values(self, texts: Sequence[str], numbers: Sequence[int]) -> list[Tensor]:
        """Returns the values of the fields in `names` for a batch; see `Constraints`.

        Args:
            texts: The sources, a list.
            numbers: Their indices, see `Wording.prefixes`.
        """
        values = {"banned_phrases": lambda: self.phrases}
        values["prefix"] = lambda: self._prefix(self.wording.prefixes(numbers))
        values["terms"] = lambda: self._terms([self.wording.terms_of(text) for text in texts])
        return [tf.constant(values[name](), tf.int32) for name in self.names]

    @property
    def built_in(self) -> Constraints | None:
        """The `Constraints` that are the same for all inputs: `banned`, and one `prefix`."""
        wording = self.wording
        given = {}
        if wording.banned:
            given["banned_phrases"] = self.phrases
        if wording.prefix and isinstance(wording.prefix, str):
            given["prefix"] = self._prefix([wording.prefix])
        return Constraints(**given) if given else None

    @functools.cached_property
    def phrases(self) -> np.ndarray:
        """Token ids of the banned phrases in all spellings, `[P, Q]`."""
        written = [spelling for phrase in self.wording.banned for spelling in spellings(phrase)]
        rows = [self._ids[spelling] for spelling in written]
        rows = [row for row in rows if self._tokenizer.unk_id not in row]  # no output contains it
        texts = ["".join(self.pieces[number] for number in row) for row in rows]
        with tf.init_scope():
            ways = self.segmentations(tf.constant(texts, tf.string, [len(texts)])).numpy()
        for row in ways.reshape(-1, ways.shape[2]).tolist():
            rows.append(tuple(number for number in row if number != self._tokenizer.pad_id))
        return self._padded(dict.fromkeys(row for row in rows if row))

    @functools.cached_property
    def word_starts(self) -> np.ndarray | None:
        """Tokens that begin a word or are part of none, boolean `[V]`; `None`: unknown."""
        begins = self._tokenizer.begins_words()
        if begins is None:
            return None
        inside = [bool(INSIDE.match(piece)) for piece in self.pieces]
        return np.array(begins) | ~np.array(inside)

    @functools.cached_property
    def pieces(self) -> list[str]:
        """Name of each token."""
        return self._tokenizer.pieces(range(self._tokenizer.vocab_size))

    def _terms(self, rows):
        """Returns the terms of each source, `[B, C, A, Q]`."""
        ids = [
            [[self._ids[one] for target in targets for one in spellings(target)] for targets in row]
            for row in rows
        ]
        most = max(map(len, ids)), max([len(term) for row in ids for term in row], default=1)
        length = max([len(one) for row in ids for term in row for one in term], default=1)
        result = np.full((len(ids), *most, length), self._tokenizer.pad_id, np.int32)
        for b, row in enumerate(ids):
            for c, term in enumerate(row):
                for a, tokens in enumerate(term):
                    result[b, c, a, : len(tokens)] = tokens
        return result

    def _prefix(self, texts):
        rows = self._tokens(texts)
        pad_id = self._tokenizer.pad_id
        return self._padded([(pad_id,) * self._begin + row if row else row for row in rows])

    def _padded(self, rows):
        result = np.full(
            (len(rows), max(map(len, rows), default=0) or 1), self._tokenizer.pad_id, np.int32
        )
        for row, tokens in zip(result, rows, strict=True):
            row[: len(tokens)] = tokens
        return result

    def _tokens(self, texts):
        """Returns the tokens of texts, without those that begin and end a text."""
        if not texts:
            return []
        with tf.init_scope():  # also while the graph of an export is traced
            return [tuple(row) for row in self._tokenizer.tokenize(tf.constant(texts)).to_list()]

    @functools.cached_property
    def segmentations(self) -> Segmentations:
        """The ways to write a phrase in tokens."""
        return Segmentations(self.pieces, self._tokenizer.pad_id, MAX_SPLITS)


def _check_strings(name, strings, may_be_empty=False):
    """Raises an error unless all values are strings with a word."""
    for text in strings:
        if not isinstance(text, str):
            raise TypeError(f"`{name}` must consist of strings. Received: {text!r}.")
        if not may_be_empty and not words_of(text):
            raise ValueError(f"`{name}` has a term without words. Received: {text!r}.")
