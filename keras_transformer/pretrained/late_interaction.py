"""Folders of ColBERT models: those of PyLate, sentence-transformers 6 and Stanford's ColBERT."""

import string
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.pretrained.files.joined_tensors import JoinedTensors
from keras_transformer.pretrained.files.safetensors_files import open_tensors
from keras_transformer.pretrained.names import TRANSPOSED, Weight
from keras_transformer.pretrained.sentence_encoder import (
    ALL,
    CONVERSION,
    FIRST,
    MODULES,
    NORMALIZE,
    kinds_of,
)
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import WordPieceTokenizer

STANFORD = "HF_ColBERT"  # class of the model in its `config.json`
METADATA = "artifact.metadata"  # the settings of Stanford's ColBERT
TYPES = ("MultiVectorEncoder", "ColBERT")  # `model_type` of sentence-transformers and PyLate
TRANSFORMER, DENSE, MASK = "Transformer", "Dense", "MultiVectorMask"
PROJECTION = "linear.weight", "linear.bias"
IDENTITY = ("torch.nn.modules.linear.Identity", "torch.nn.Identity", None)
# Keys of PyLate in the settings of all modules.
PYLATE = (
    *("query_prefix", "document_prefix", "query_length", "document_length"),
    *("do_query_expansion", "attend_to_expansion_tokens", "skiplist_words"),
)
PUNCTUATION = [*string.punctuation]  # what all three leave out by default
# Settings that change the scores, with the values that are possible here.
SIMILARITIES = (None, "maxsim", "MaxSim", "cosine")


class Projection(typing.NamedTuple):
    """A linear layer of the folder.

    Attributes:
        place: Beginning of the names of its tensors, such as `"1_Dense/"`.
        settings: The `CheckpointSettings` of the layer, or `None`: it is in the main file.
        tensors: Its tensors, or `None`.
    """

    place: str
    settings: Any = None
    tensors: Any = None


class LateInteraction(typing.NamedTuple):
    """The parts of a ColBERT model around its encoder.

    Attributes:
        projections: The `Projection`s, which become one linear map.
        options: Function from a `Tokenizer` and the maximum length of the encoder to the options of
            the head of a `MultiVectorEncoder`.
        settings: The `CheckpointSettings` of the first module.
    """

    projections: tuple
    options: Any
    settings: CheckpointSettings

    def join(self, tensors) -> Any:
        """Returns the tensors of an encoder and, under the names of their folders, of the map."""
        others = {p.place.rstrip("/"): p.tensors for p in self.projections if p.tensors is not None}
        return JoinedTensors(tensors, others) if others else tensors

    @property
    def markers(self) -> tuple[str, ...]:
        """The texts of the markers of queries and passages, a tuple without empty ones."""
        stated = self.options.stated
        return tuple(filter(None, (stated.query_prefix, stated.document_prefix)))

    def names(self, tensors) -> Iterator[Weight]:
        """Yields the `Weight`s of the linear map.

        Args:
            tensors: The `Reader` of the tensors, after `size`.
        """
        if not self.projections:
            return
        width = tensors.shapes[self.projections[0].place + PROJECTION[0]][1]
        kernel, bias = self._joined(tensors, width)
        yield Weight((), "token_projection.kernel", TRANSPOSED, default=kernel.astype("float32"))
        yield Weight((), "token_projection.bias", default=bias.astype("float32"))

    def size(self, tensors, width) -> tuple[int | None, bool]:
        """Returns the number of features of a vector, `None` for `width`, and if there is a bias.

        Raises:
            ValueError: If a tensor is missing, or a layer has another width than the one before.
        """
        if not self.projections:
            return None, False
        kernel, bias = self._joined(tensors, width)
        return len(kernel), bool(bias.any())

    def _joined(self, tensors, width):
        """Returns the product of all layers, `[N, D]`, and its bias, `[N]`, in float64."""
        kernel, bias = np.eye(width), np.zeros(width)
        for projection in self.projections:
            weight, offset = (projection.place + name for name in PROJECTION)
            rows = tensors.shapes.get(weight, (0,))[0]
            if projection.settings is not None:
                rows = projection.settings.count("out_features")
            layer = tensors.read(weight, (rows, len(kernel))).astype("float64")
            added = projection.place + "residual.weight"
            if projection.settings is not None and projection.settings.flag("use_residual"):
                same = rows == len(kernel)
                layer += np.eye(rows) if same else tensors.read(added, layer.shape)
            kernel, bias = layer @ kernel, layer @ bias
            if offset in tensors.shapes:
                bias = bias + tensors.read(offset, (rows,))
        return kernel, bias

    def check_tokenizer(self, tokenizer) -> None:
        """Refuses texts that are converted to lower case before a tokenizer that does not do so."""
        normalizer = getattr(tokenizer, "normalizer", None)
        if self.settings.flag("do_lower_case") and not getattr(normalizer, "lowercase", False):
            raise self.settings.wrong("do_lower_case", "false, or the tokenizer must do the same")


def read_late_interaction(folder, settings) -> LateInteraction | None:
    """Returns the `LateInteraction` in a folder; `None` if the folder does not describe one.

    Args:
        folder: A `CheckpointFolder`.
        settings: The `CheckpointSettings` of its encoder.

    Raises:
        ValueError: If a file is missing or damaged, or a module or a setting has no place here; the
            error names it.
    """
    of_all = CheckpointSettings(folder.json(ALL) or {}, folder.path / ALL)
    first = CheckpointSettings(folder.json(FIRST) or {}, folder.path / FIRST)
    modules = folder.json(MODULES, list)
    has_pylate = any(key in of_all.content for key in PYLATE)
    if settings.get("architectures") == [STANFORD]:
        stated = of_all if has_pylate else _metadata(folder)
        options = _Options(_pylate(of_all) if has_pylate else _stanford(stated), stated)
        return LateInteraction((Projection(""),), options, first)
    if modules is None:
        return None
    path = folder.path / MODULES
    kinds, places = kinds_of(modules, path)
    is_plain = kinds[1:2] == [DENSE] and not any(kind.endswith("Pooling") for kind in kinds)
    if of_all.get("model_type") not in TYPES and not is_plain and MASK not in kinds:
        return None
    known = (DENSE, MASK, NORMALIZE)
    if kinds[:1] != [TRANSFORMER] or not {*kinds[1:]} <= {*known}:
        raise ValueError(
            f"{path}: the modules of a model with vectors of tokens must be {TRANSFORMER} and "
            f"{', '.join(known)}. Received: {', '.join(kinds)}."
        )
    if places[0] not in ("", "."):
        raise ValueError(
            f"{path}: the {TRANSFORMER} must be in the folder itself. Received: path={places[0]!r}."
        )
    projections = tuple(
        _projection(folder, place)
        for kind, place in zip(kinds, places, strict=True)
        if kind == DENSE
    )
    if MASK not in kinds:  # PyLate, whose files do not list what comes after the layers
        return LateInteraction(projections, _Options(_pylate(of_all), of_all), first)
    if NORMALIZE not in kinds:
        raise ValueError(f"{path}: the modules must end in {NORMALIZE}. Received: none.")
    mask = f"{places[kinds.index(MASK)]}/config.json"
    mask_settings = CheckpointSettings(folder.require_json(mask), folder.path / mask)
    stated = _sentence_transformers(of_all, first, mask_settings)
    return LateInteraction(projections, _Options(stated, of_all), first)


def _projection(folder, place):
    files = folder.subfolder(place)
    settings = CheckpointSettings(files.require_json("config.json"), files.path / "config.json")
    settings.check(
        {
            "activation_function": IDENTITY,
            "module_input_name": ("token_embeddings", "sentence_embedding", None),
            "module_output_name": ("token_embeddings", "sentence_embedding", None),
        }
    )
    tensors = open_tensors(files, DENSE, CONVERSION.format(path=folder.path))
    return Projection(f"{place}/", settings, tensors)


def _metadata(folder):
    return CheckpointSettings(folder.json(METADATA) or {}, folder.path / METADATA)


class Stated(typing.NamedTuple):
    """What the files of a ColBERT model state, in the words of PyLate.

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


def _pylate(settings):
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


def _stanford(settings):
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


def _sentence_transformers(of_all, first, mask):
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


class _Options:
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
                f"{self.settings.path}: queries are filled up with the token "
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
