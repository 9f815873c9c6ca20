"""Vocabularies with tokens of languages: M2M100, NLLB and mBART."""

import re

from keras_transformer.pretrained.added_tokens import with_added_tokens
from keras_transformer.pretrained.pieces import check_ids, sentencepiece_tokenizer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.languages import Languages
from keras_transformer.text.sentencepiece_model import pieces_of
from keras_transformer.text.tokenizers import Tokenizers

SPM, VOCABULARY = "sentencepiece.bpe.model", "tokenizer.json"
OPTIONS, SPECIAL_TOKENS = "tokenizer_config.json", "special_tokens_map.json"
# Tokens of fairseq in front of the pieces of SentencePiece, with their ids.
FAIRSEQ = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
OFFSET = 1  # difference of the ids of fairseq and of SentencePiece
CODE = re.compile("[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # such as de_DE and deu_Latn
MASK = "<mask>"


def options_of(folder) -> CheckpointSettings:
    """Returns the `CheckpointSettings` of a tokenizer; they are empty without a file."""
    return CheckpointSettings(folder.json(OPTIONS) or {}, folder.path / OPTIONS)


def fairseq_ids(folder, size, codes=()) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the ids of a vocabulary in fairseq's order, and those of its languages.

    Args:
        folder: The `CheckpointFolder`.
        size: Size of the model's vocabulary.
        codes: Languages after the pieces, in order, if no file names them.

    Returns:
        Dictionary from tokens, languages included, to ids; and from languages to ids.

    Raises:
        ValueError: If a file is missing or damaged, or names no languages.
    """
    path = folder.require(SPM)
    try:
        pieces = pieces_of(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from error
    # SentencePiece has the unknown token, the beginning and the end in front.
    ids = {**FAIRSEQ, **{p: n + OFFSET for n, p in enumerate(pieces) if n >= len(FAIRSEQ) - OFFSET}}
    first = len(pieces) + OFFSET
    in_order = {code: first + number for number, code in enumerate(codes)}
    languages: dict[str, int] = _named_languages(folder, first) or in_order
    if not languages:
        raise ValueError(
            f"{folder.path}: {VOCABULARY} or {SPECIAL_TOKENS} must have tokens of languages, such "
            "as deu_Latn or de_DE: copy the files of the original checkpoint."
        )
    ids |= languages
    check_ids(ids, size, path)
    return ids, languages


def _named_languages(folder, first):
    """Returns the ids of the languages that files name, by code.

    Args:
        folder: The `CheckpointFolder`.
        first: Id of the first language, for files that only have their order.
    """
    content = folder.json(VOCABULARY)
    if content is not None:
        added = with_added_tokens({}, folder, content, folder.path / VOCABULARY)
        languages = {code: number for code, number in added.items() if CODE.fullmatch(code)}
        if languages:
            return languages
    for name in (SPECIAL_TOKENS, OPTIONS):
        content = folder.json(name) or {}
        for key in ("additional_special_tokens", "extra_special_tokens"):
            tokens = content.get(key)
            tokens = tokens if isinstance(tokens, list) else []
            texts = [token.get("content") if isinstance(token, dict) else token for token in tokens]
            codes = [text for text in texts if isinstance(text, str) and CODE.fullmatch(text)]
            if codes:
                return {code: first + number for number, code in enumerate(codes)}
    return {}


def default_languages(ids, options, forced, source) -> Languages:
    """Returns the `Languages` of sources with the defaults of a checkpoint.

    Args:
        ids: Ids of the languages, by code.
        options: Result of `options_of`.
        forced: Id of the first token of outputs in the settings of generation, or `None`.
        source: Default source language of the family.

    Raises:
        ValueError: If a default is not one of the languages.
    """
    codes = {number: code for code, number in ids.items()}
    defaults = {"source": options.get("src_lang"), "target": options.get("tgt_lang")}
    for side, code in defaults.items():
        if code is not None and code not in ids:
            name = {"source": "src_lang", "target": "tgt_lang"}[side]
            raise options.wrong(name, "one of the languages of the vocabulary")
    defaults["source"] = defaults["source"] or (source if source in ids else None)
    defaults["target"] = codes.get(forced, defaults["target"])
    return Languages(ids, **defaults)


def multilingual_tokenizers(folder, ids, languages, config, in_targets=True) -> Tokenizers:
    """Returns the `Tokenizers` of a model with languages.

    Args:
        folder: The `CheckpointFolder`.
        ids: Ids of all tokens, languages included.
        languages: The `Languages` of sources.
        config: The configuration of the model.
        in_targets: Whether targets also begin with the token of their language.
    """

    def tokenizer(of_side):
        more = {"languages": of_side, "no_text": [MASK, *languages.ids]}
        return sentencepiece_tokenizer(folder, SPM, ids, config, config.vocab_size, **more)

    if not in_targets:
        return Tokenizers.of([tokenizer(languages), tokenizer(None)])
    of_target = Languages(languages.ids, languages.source, languages.target, of_source=False)
    return Tokenizers.of([tokenizer(languages), tokenizer(of_target)])
