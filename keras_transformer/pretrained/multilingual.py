"""Vocabularies with tokens of languages: M2M100, NLLB, mBART and MADLAD-400."""

import re
import typing

from keras_transformer.pretrained.added_tokens import (
    DECODER,
    LISTS,
    token_name,
    with_added_tokens,
)
from keras_transformer.pretrained.piece_vocabulary import (
    PieceVocabulary,
    check_ids_agree,
    read_pieces,
)
from keras_transformer.pretrained.pieces import check_ids, sentencepiece_tokenizer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.languages import Languages
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


class LanguageVocabulary(typing.NamedTuple):
    """A vocabulary with tokens of languages.

    Attributes:
        pieces: The `PieceVocabulary`.
        ids: Dictionary from tokens, languages included, to ids.
        languages: Dictionary from codes of languages to ids.
    """

    pieces: PieceVocabulary
    ids: dict[str, int]
    languages: dict[str, int]


def fairseq_vocabulary(folder, size, codes=()) -> LanguageVocabulary:
    """Returns a vocabulary in fairseq's order with its languages.

    Args:
        folder: The `CheckpointFolder`.
        size: Size of the model's vocabulary.
        codes: Languages after the pieces, in order, if no file names them.

    Raises:
        ValueError: If a file is missing or damaged, two files disagree, or no file names languages.
    """
    vocabulary = read_pieces(folder, SPM)
    pieces, ids = vocabulary.pieces, vocabulary.ids
    if ids is None:
        # SentencePiece has the unknown token, the beginning and the end in front.
        text = enumerate(pieces[len(FAIRSEQ) - OFFSET :], len(FAIRSEQ))
        ids = {**FAIRSEQ, **{piece: number for number, piece in text}}
        check_ids_agree(vocabulary, ids)
    ids = with_added_languages(ids, folder, vocabulary)
    languages = {code: number for code, number in ids.items() if CODE.fullmatch(code)}
    listed, place = _listed_languages(folder)
    unknown = [code for code in listed if code not in languages]
    if languages and unknown:
        raise ValueError(
            f"{folder.path / place} lists the language {unknown[0]!r}, but neither {VOCABULARY} "
            f"nor `{DECODER}` in {OPTIONS} gives its id. Copy the files of the original checkpoint."
        )
    if not languages and vocabulary.ids is None:
        first = len(pieces) + OFFSET
        languages = {code: first + number for number, code in enumerate(listed or codes)}
    if not languages:
        raise ValueError(
            f"{folder.path}: {VOCABULARY} or {SPECIAL_TOKENS} must have tokens of languages, such "
            "as deu_Latn or de_DE: copy the files of the original checkpoint."
        )
    ids |= languages
    check_ids(ids, size, vocabulary.path)
    return LanguageVocabulary(vocabulary, ids, languages)


def with_added_languages(ids, folder, vocabulary, code=CODE) -> dict[str, int]:
    """Returns the ids of a vocabulary with those of tokens that files add to it.

    Args:
        ids: Dictionary from tokens to ids.
        folder: The `CheckpointFolder`.
        vocabulary: The `PieceVocabulary`.
        code: Regular expression of tokens of languages, which need not be special.

    Raises:
        ValueError: If two files give a token different ids, or a token that is neither special nor
            a language is added.
    """
    found: list[str] = []
    ids = with_added_tokens(ids, folder, vocabulary.content, vocabulary.path, found)
    others = [name for name in found if not code.fullmatch(name)]
    if others:
        raise ValueError(
            f"{folder.path}: added tokens must be languages or special tokens. "
            f"Received: {others[0]!r}, which is found in texts."
        )
    return ids


def written_languages(tokenizer, vocabulary, written, code) -> Languages | None:
    """Returns the `Languages` of texts that begin with the code of the target language.

    Args:
        tokenizer: The `Tokenizer` without languages.
        vocabulary: The `PieceVocabulary`.
        written: How a code is written in a text, with `{}` in its place.
        code: Regular expression of a written code, with a group of the code.

    Returns:
        The languages without a default; `None` if the vocabulary has none.

    Raises:
        ValueError: If a code in a text does not become its own token and the tokens before it.
    """
    codes = [match[1] for match in map(code.fullmatch, vocabulary.pieces) if match]
    if not codes:
        return None
    rows = tokenizer.tokenize([written.format(one) for one in codes]).to_list()
    names = [tokenizer.pieces(row) for row in rows]
    for one, row in zip(codes, names, strict=True):
        if row != [*names[0][:-1], written.format(one)]:
            raise ValueError(
                f"{vocabulary.path}: codes of languages must be tokens of texts. Received: "
                f"{written.format(one)!r}, whose tokens in a text are {row}."
            )
    ids = {one: row[-1] for one, row in zip(codes, rows, strict=True)}
    return Languages(ids, of_source=False, written=written, before=tuple(rows[0][:-1]))


def _listed_languages(folder):
    """Returns the codes in the first list of special tokens that has some, and its file."""
    for name in (SPECIAL_TOKENS, OPTIONS):
        content = folder.json(name) or {}
        for key in LISTS:
            tokens = content.get(key)
            texts = map(token_name, tokens if isinstance(tokens, list) else [])
            codes = [text for text in texts if text is not None and CODE.fullmatch(text)]
            if codes:
                return codes, name
    return [], SPECIAL_TOKENS


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


def multilingual_tokenizers(vocabulary, languages, config, in_targets=True) -> Tokenizers:
    """Returns the `Tokenizers` of a model with languages.

    Args:
        vocabulary: The `LanguageVocabulary`.
        languages: The `Languages` of sources.
        config: The configuration of the model.
        in_targets: Whether targets also begin with the token of their language.
    """
    pieces, ids, _ = vocabulary
    added = {*()} if pieces.ids is None else {*ids} - {*pieces.pieces}

    def tokenizer(of_side):
        more = {"languages": of_side, "no_text": {MASK, *languages.ids, *added}}
        return sentencepiece_tokenizer(pieces, ids, config, config.tokens.vocab_size, **more)

    if not in_targets:
        return Tokenizers.of([tokenizer(languages), tokenizer(None)])
    of_target = Languages(languages.ids, languages.source, languages.target, of_source=False)
    return Tokenizers.of([tokenizer(languages), tokenizer(of_target)])
