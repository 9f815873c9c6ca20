"""Folders in the format of sentence-transformers: an encoder, pooling, and unit length."""

import typing

from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.prompts import TextPrompts

MODULES = "modules.json"
# Files with settings of the first module and of all; either may be missing.
FIRST, ALL = "sentence_bert_config.json", "config_sentence_transformers.json"
OPTIONS = "tokenizer_config.json"
UNLIMITED = 1e20  # such as 1e30, that `transformers` writes for a tokenizer without a limit
POOLINGS = {"mean_tokens": "mean", "max_tokens": "max", "cls_token": "first"}
NAMES = {"mean": "mean", "max": "max", "cls": "first"}  # in newer files
KINDS = ("Transformer", "Pooling", "Normalize")
CROSS_ENCODER = "CrossEncoder"  # kind of a folder whose head scores pairs of texts


class SentenceEncoder(typing.NamedTuple):
    """The modules around the encoder of a folder.

    Attributes:
        pooling: Pooling of the encoder's output: `"mean"`, `"max"` or `"first"`.
        normalize: Whether vectors have unit length.
        max_length: Maximum length of a text in tokens; longer texts are truncated. `None`: that of
            the encoder.
        settings: The `CheckpointSettings` of the first module.
        prompts: The `TextPrompts`, or `None`: there are none.
    """

    pooling: str
    normalize: bool
    max_length: int | None
    settings: CheckpointSettings
    prompts: TextPrompts | None = None

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
    kinds, places = _kinds(modules, path)
    if kinds[:2] != list(KINDS[:2]) or kinds[2:] not in ([], list(KINDS[2:])):
        raise ValueError(
            f"{path}: the modules must be Transformer, Pooling and, optionally, Normalize. "
            f"Received: {', '.join(kinds)}."
        )
    if places[0] not in ("", "."):
        raise ValueError(
            f"{path}: the Transformer must be in the folder itself. Received: path={places[0]!r}."
        )
    first = CheckpointSettings(folder.json(FIRST) or {}, folder.path / FIRST)
    name = f"{places[1]}/config.json"
    pooling = CheckpointSettings(folder.require_json(name), folder.path / name)
    return SentenceEncoder(
        _pooling(pooling), len(kinds) == 3, max_length_of(folder), first, _prompts(of_all)
    )


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


def _kinds(modules, path):
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
