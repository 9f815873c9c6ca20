"""Folders in the format of sentence-transformers: an encoder, pooling, and layers after it."""

import typing
from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.files.joined_tensors import JoinedTensors
from keras_transformer.pretrained.files.weights import open_tensors
from keras_transformer.pretrained.names import SAME, TRANSPOSED, Weight
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.tasks.embedding.config import AFTER_POOLING
from keras_transformer.tasks.embedding.modules.module import VectorModule
from keras_transformer.text.prompts import TextPrompts

MODULES = "modules.json"
# Files with settings of the first module and of all; either may be missing.
FIRST, ALL = "sentence_bert_config.json", "config_sentence_transformers.json"
OPTIONS = "tokenizer_config.json"
UNLIMITED = 1e20  # such as 1e30, that `transformers` writes for a tokenizer without a limit
POOLINGS = {"mean_tokens": "mean", "max_tokens": "max", "cls_token": "first", "lasttoken": "last"}
NAMES = {"mean": "mean", "max": "max", "cls": "first", "lasttoken": "last"}  # in newer files
KINDS = ("Transformer", "Pooling")
# Of sparse vectors: the first module in older and in newer files, and the settings of the second.
MASKED, SPLADE = ("MLMTransformer", "Transformer"), "SpladePooling"
SUMS = {"max": "max", "sum": "sum"}
SATURATIONS = {"relu": "log", "log1p_relu": "double_log"}
NORMALIZE = "Normalize"
CROSS_ENCODER = "CrossEncoder"  # kind of a folder whose head scores pairs of texts


class Module(typing.NamedTuple):
    """A module after pooling.

    Attributes:
        value: The `VectorModule`.
        place: Name of its folder.
        tensors: Its tensors, or `None` if it has none.
    """

    value: VectorModule
    place: str
    tensors: Any = None


class SentenceEncoder(typing.NamedTuple):
    """The modules around the encoder of a folder.

    Attributes:
        pooling: Pooling of the encoder's output: `"mean"`, `"max"`, `"first"` or `"last"`; of
            sparse vectors, `"max"` or `"sum"`.
        modules: The `Module`s after it, without the last one if that is `Normalize`.
        normalize: Whether vectors have unit length.
        max_length: Maximum length of a text in tokens; longer texts are truncated. `None`: that of
            the encoder.
        settings: The `CheckpointSettings` of the first module.
        prompts: The `TextPrompts`, or `None`: there are none.
        saturation: The `saturation` of sparse vectors; see `SparseVectorHead`. `None`: vectors are
            not sparse.
    """

    pooling: str
    modules: tuple
    normalize: bool
    max_length: int | None
    settings: CheckpointSettings
    prompts: TextPrompts | None = None
    saturation: str | None = None

    @property
    def is_sparse(self) -> bool:
        """`True` if vectors have a weight for each token of the vocabulary."""
        return self.saturation is not None

    @property
    def options(self) -> dict[str, Any]:
        """The options of the head of a `TextEmbedder` or of a `SparseTextEmbedder`."""
        if self.is_sparse:
            return {"pooling": self.pooling, "saturation": self.saturation}
        values = tuple(module.value for module in self.modules)
        return {"pooling": self.pooling, AFTER_POOLING: values, "normalize": self.normalize}

    def join(self, tensors) -> Any:
        """Returns the tensors of an encoder and, under the names of their folders, of modules."""
        others = {m.place: m.tensors for m in self.modules if m.tensors is not None}
        return JoinedTensors(tensors, others) if others else tensors

    def names(self) -> Iterator[Weight]:
        """Yields the `Weight`s of the layers after pooling."""
        for number, module in enumerate(self.modules):
            for name, (variable, is_transposed) in module.value.weights.items():
                layout = TRANSPOSED if is_transposed else SAME
                ours = f"{AFTER_POOLING}_{number}.{variable}"
                yield Weight(f"{module.place}/{name}", ours, layout)

    def check_tokenizer(self, tokenizer) -> None:
        """Refuses texts that are converted to lower case before a tokenizer that does not do so.

        Args:
            tokenizer: The `Tokenizer`.
        """
        normalizer = getattr(tokenizer, "normalizer", None)
        if self.settings.flag("do_lower_case") and not getattr(normalizer, "lowercase", False):
            raise self.settings.wrong("do_lower_case", "false, or the tokenizer must do the same")


def read_sentence_encoder(folder) -> SentenceEncoder | None:
    """Returns the `SentenceEncoder` in a folder; `None` if the folder does not describe one.

    Args:
        folder: A `CheckpointFolder`.

    Raises:
        ValueError: If a file is missing or damaged, or a module or a setting has no place here; the
            error names it.
    """
    modules = folder.json(MODULES, list)
    of_all = CheckpointSettings(folder.json(ALL) or {}, folder.path / ALL)
    if modules is None or of_all.get("model_type") == CROSS_ENCODER:
        return None
    path = folder.path / MODULES
    kinds, places = kinds_of(modules, path)
    known = {kind.published: kind for kind in VectorModule.kinds().values()}
    is_sparse = len(kinds) == 2 and kinds[0] in MASKED and kinds[1] == SPLADE
    if not is_sparse and (kinds[:2] != list(KINDS) or not {*kinds[2:]} <= {*known}):
        raise ValueError(
            f"{path}: the modules must be Transformer, Pooling and, optionally, "
            f"{', '.join(known)} in any order; or {' or '.join(MASKED)}, and {SPLADE}. "
            f"Received: {', '.join(kinds)}."
        )
    if places[0] not in ("", "."):
        raise ValueError(
            f"{path}: the {kinds[0]} must be in the folder itself. Received: path={places[0]!r}."
        )
    first = CheckpointSettings(folder.json(FIRST) or {}, folder.path / FIRST)
    name = f"{places[1]}/config.json"
    pooling = CheckpointSettings(folder.require_json(name), folder.path / name)
    if is_sparse:
        return SentenceEncoder(
            pooling.choice("pooling_strategy", SUMS, "max"),
            (),
            False,
            max_length_of(folder),
            first,
            _prompts(of_all),
            pooling.choice("activation_function", SATURATIONS, "relu"),
        )
    normalize = kinds[-1] == NORMALIZE
    last = len(kinds) - normalize
    read = [
        _module(folder, known[kind], place)
        for kind, place in zip(kinds[2:last], places[2:last], strict=True)
    ]
    return SentenceEncoder(
        _pooling(pooling), tuple(read), normalize, max_length_of(folder), first, _prompts(of_all)
    )


def _module(folder, kind, place):
    """Returns the `Module` of a class in a folder."""
    if not kind.weights:
        return Module(kind(), place)
    files = folder.subfolder(place)
    settings = CheckpointSettings(files.require_json("config.json"), files.path / "config.json")
    tensors = open_tensors(files)
    return Module(kind.read(settings, tensors.shapes), place, tensors)


def _prompts(settings):
    """Returns the `TextPrompts` in the settings of all modules; empty ones stand for nothing."""
    texts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(texts, dict) or not all(isinstance(x, str) for x in texts.values()):
        raise settings.wrong("prompts", "texts by name")
    if default is not None and default not in texts:
        rule = f"one of {', '.join(texts)}, or null" if texts else "null, without `prompts`"
        raise settings.wrong("default_prompt_name", rule)
    if default is None and not any(texts.values()):
        return None
    try:
        return TextPrompts(texts, default)
    except ValueError as error:
        raise settings.wrong("prompts", "texts by name") from error


def max_length_of(folder) -> int | None:
    """Returns the maximum length that the files state, or `None`.

    As in sentence-transformers, the setting of the first module takes precedence. Version 6 only
    writes that of the tokenizer, which is an astronomical number if there is no limit.
    """
    first = CheckpointSettings(folder.json(FIRST) or {}, folder.path / FIRST)
    options = CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)
    for settings, name in ((first, "max_seq_length"), (options, "model_max_length")):
        value = settings.get(name)
        if value is not None and not (isinstance(value, float) and value >= UNLIMITED):
            return settings.count(name, least=2)
    return None


def kinds_of(modules, path) -> tuple[list[str], list[str]]:
    """Returns the kinds of modules, such as `"Pooling"`, and the folders of their files."""
    kinds, places = [], []
    for number, module in enumerate(modules):
        module = module if isinstance(module, dict) else {}
        kind, place = module.get("type"), module.get("path")
        if not (isinstance(kind, str) and isinstance(place, str)):
            raise ValueError(f"{path}: module {number} must have a `type` and a `path`, strings.")
        kinds.append(kind.rpartition(".")[2])
        places.append(place)
    return kinds, places


def _pooling(settings):
    """Returns our name for the pooling; several kinds at once have no place here."""
    settings.check({"include_prompt": (True, None)})
    named = settings.get("pooling_mode")
    if named is not None:
        return settings.choice("pooling_mode", NAMES)
    begin = "pooling_mode_"
    flags = [key for key in settings.content if key.startswith(begin) and settings.flag(key)]
    kinds = [POOLINGS.get(key.removeprefix(begin)) for key in flags]
    if len(kinds) != 1 or kinds[0] is None:
        rule = " or ".join(f"`{begin}{name}`" for name in POOLINGS)
        received = ", ".join(flags) or "none"
        raise ValueError(
            f"{settings.path}: exactly one of {rule} must be true. Received: {received}."
        )
    return kinds[0]
