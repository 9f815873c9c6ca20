"""Settings of ColBERT models, as three projects write them, and the options that they become."""

import string
import typing
from typing import Any

from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import WordPieceTokenizer

# Keys of PyLate in the settings of all modules.
PYLATE = (
    *("query_prefix", "document_prefix", "query_length", "document_length"),
    *("do_query_expansion", "attend_to_expansion_tokens", "skiplist_words"),
)
PUNCTUATION = [*string.punctuation]  # what PyLate and Stanford's ColBERT leave out by default
# Settings that change the scores, with the values that are possible here.
SIMILARITIES = (None, "maxsim", "MaxSim", "cosine")


class Stated(typing.NamedTuple):
    """Settings in the files of a ColBERT model, in the words of PyLate.

    Attributes:
        names: Keys of the four values that can be wrong, for messages: both prefixes and lengths.
        query_prefix, document_prefix: Tokens in front of a text; empty: none.
        query_length, document_length: Lengths in tokens. `None`: those of the encoder.
        expansion: A value of `expansion`.
        expansion_length: Length of expanded queries. `None`: `query_length`.
        expansion_token: The token, or `None`: the mask token.
        skipped: Words that are left out of passages.
    """

    names: tuple
    query_prefix: str
    document_prefix: str
    query_length: int | None
    document_length: int | None
    expansion: str
    expansion_length: int | None
    expansion_token: str | None
    skipped: list


def of_pylate(settings) -> Stated:
    """Returns the `Stated` in the settings of all modules, with PyLate's defaults."""
    attends = settings.flag("attend_to_expansion_tokens")
    expands = settings.flag("do_query_expansion", True)
    settings.check({"similarity_fn_name": SIMILARITIES})
    return Stated(
        names=("query_prefix", "document_prefix", "query_length", "document_length"),
        query_prefix=_text(settings, "query_prefix", "[Q] "),
        document_prefix=_text(settings, "document_prefix", "[D] "),
        query_length=settings.count("query_length", 32),
        document_length=settings.count("document_length", 180),
        expansion=_expansion(expands, attends),
        expansion_length=None,
        expansion_token=None,
        skipped=_words(settings, "skiplist_words", PUNCTUATION),
    )


def of_stanford(settings) -> Stated:
    """Returns the `Stated` in the metadata of Stanford's ColBERT, with its defaults."""
    settings.check({"similarity": ("cosine", None), "interaction": ("colbert", None)})
    return Stated(
        names=("query_token_id", "doc_token_id", "query_maxlen", "doc_maxlen"),
        query_prefix=_text(settings, "query_token_id", "[unused0]"),
        document_prefix=_text(settings, "doc_token_id", "[unused1]"),
        query_length=settings.count("query_maxlen", 32),
        document_length=settings.count("doc_maxlen", 220),
        expansion=_expansion(True, settings.flag("attend_to_mask_tokens")),
        expansion_length=None,
        expansion_token=None,
        skipped=PUNCTUATION if settings.flag("mask_punctuation", True) else [],
    )


def of_sentence_transformers(of_all, first, mask) -> Stated:
    """Returns the `Stated` in the settings of all modules, the first, and `MultiVectorMask`."""
    of_all.check({"similarity_fn_name": SIMILARITIES})
    mask.check({"skiplist_tasks": (["document"], None), "keep_only_token_ids": (None,)})
    prompts = of_all.get("prompts") or {}
    if not isinstance(prompts, dict):
        raise of_all.wrong("prompts", "texts by name")
    prompts = CheckpointSettings(prompts, of_all.path)
    document = next((n for n in ("document", "passage", "corpus") if prompts.get(n)), "document")
    length, least = first.get("query_length"), None
    expansion = first.get("query_expansion")
    if expansion is not None:
        if not isinstance(expansion, dict):
            raise first.wrong("query_expansion", "a table, or null")
        expansion = CheckpointSettings(expansion, first.path)
        kind = expansion.choice("strategy", {"fixed": "fixed", "min": "min"})
        least = expansion.count("length")
        length = least if kind == "fixed" else length
    documents = first.get("document_length")
    return Stated(
        names=("query", document, "query_length", "document_length"),
        query_prefix=_text(prompts, "query", ""),
        document_prefix=_text(prompts, document, ""),
        query_length=length,
        document_length=documents,
        expansion=_expansion(expansion is not None, expansion and expansion.flag("attend")),
        expansion_length=least,
        expansion_token=expansion and expansion.get("token"),
        skipped=_words(mask, "skiplist_words", []),
    )


def _expansion(expands, attends):
    return ("attended" if attends else "unattended") if expands else "none"


def _text(settings, name, default):
    value = settings.get(name)
    value = default if value is None else value
    if not isinstance(value, str):
        raise settings.wrong(name, "a text")
    return value


def _words(settings, name, default):
    value = settings.get(name)
    value = default if value is None else value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise settings.wrong(name, "a list of words")
    return value


class HeadOptions:
    """Function that returns the options of a head; see `LateInteraction`.

    Args:
        stated: A `Stated`.
        settings: The `CheckpointSettings` that it is from, for messages.
    """

    def __init__(self, stated, settings):
        self.stated, self.settings = stated, settings

    def __call__(self, tokenizer, most) -> dict[str, Any]:
        stated, names = self.stated, self.stated.names
        ids = {piece: n for n, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
        options = {
            "query_marker_id": self._marker(tokenizer, ids, names[0], stated.query_prefix),
            "passage_marker_id": self._marker(tokenizer, ids, names[1], stated.document_prefix),
            "query_length": self._length(names[2], stated.query_length, most),
            "passage_length": self._length(names[3], stated.document_length, most),
            "skipped_ids": self._skipped(tokenizer, ids),
            "expansion": stated.expansion,
        }
        if stated.expansion == "none":
            return options
        token = stated.expansion_token
        number = tokenizer.mask_id if token is None else ids.get(token)
        if number is None:
            raise ValueError(
                f"{self.settings.path}: queries are extended with the token "
                f"{token or 'of masks'!r}, which the vocabulary must have."
            )
        longest = self._length("length", stated.expansion_length, most)
        return {**options, "expansion_id": number, "expansion_length": longest}

    def _marker(self, tokenizer, ids, name, prefix):
        """Returns the id of a prefix; one token stands for the whole prefix."""
        if not prefix:
            return None
        # Words of WordPiece have no spaces around them.
        stripped = prefix.strip() if isinstance(tokenizer, WordPieceTokenizer) else prefix
        number = ids.get(prefix, ids.get(stripped))
        if number is None:
            raise ValueError(
                f"{self.settings.path}: `{name}` must be one token of the vocabulary. "
                f"Received: {prefix!r}."
            )
        return number

    def _length(self, name, value, most):
        if value is None or (isinstance(value, int) and 4 <= value <= most):
            return value
        rule = f"from 4 to {most}, the number of positions"
        raise ValueError(f"{self.settings.path}: `{name}` must be {rule}. Received: {value!r}.")

    def _skipped(self, tokenizer, ids):
        """Returns the ids of the words that are tokens, as sentence-transformers 6 does."""
        numbers = {ids[word] for word in self.stated.skipped if word in ids}
        return tuple(sorted(numbers - {tokenizer.pad_id, tokenizer.eos_id}))
