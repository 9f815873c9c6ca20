"""M2M100 and NLLB in Hugging Face's format: one model for many pairs of languages."""

import dataclasses
import functools
import re

from keras_transformer.decoding.generation import Generation
from keras_transformer.positions import Position, Sinusoidal
from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.multilingual import (
    SPM,
    LanguageVocabulary,
    default_languages,
    fairseq_vocabulary,
    multilingual_tokenizers,
    options_of,
    with_added_languages,
)
from keras_transformer.pretrained.piece_vocabulary import read_model
from keras_transformer.pretrained.pieces import check_ids, read_ids
from keras_transformer.text.tokenizers import Tokenizers

IDS = "vocab.json"  # only M2M100 has this file
CODE = re.compile("__[a-z]{2,3}__")
# The languages of M2M100 and of its models for WMT 2021. No file of a checkpoint names them: their
# ids follow those of the vocabulary, in this order.
LANGUAGES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga "
    "gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml "
    "mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn "
    "tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}


class M2M100(EncoderDecoderFamily):
    """A folder with `config.json` and the vocabulary.

    The vocabulary is `sentencepiece.bpe.model`, for M2M100 with `vocab.json`; for NLLB it may also
    be `tokenizer.json`. Also read: `tokenizer_config.json`, which names languages to use by
    default; for NLLB, this file, `tokenizer.json` or `special_tokens_map.json` list the languages.
    """

    name, model_type, task = "m2m-100", "m2m_100", "translation"
    listing = Listing(
        {"m2m100-nllb-and-mbart": ("M2M100", "NLLB")},
        "pretrained_translation.md",
        "`sentencepiece.bpe.model`, or NLLB's `tokenizer.json`; M2M100: also `vocab.json`",
        exports=("ctranslate2",),
    )
    reader = "M2M100ForConditionalGeneration"
    learned = False
    # Sinusoids, which are computed.
    ignored = (r"model\.(encoder|decoder)\.embed_positions\.weights",)

    def position(self) -> Position:  # noqa: D102
        first = self.settings.count("pad_token_id", 1, least=0) + 1
        return Sinusoidal("halves", endpoint=True, offset=first)

    @property
    def forces_language(self) -> bool:  # noqa: D102
        return True

    def generation(self) -> Generation:  # noqa: D102
        place = "after" if self._options.flag("legacy_behaviour", False) else "before"
        own = super().generation()
        rules = dataclasses.replace(own.rules, forced_bos_id=None, language_codes=place)
        return dataclasses.replace(own, rules=rules)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        vocabulary = self._vocabulary(config.tokens.vocab_size)
        forced = super().generation().rules.forced_bos_id
        source = "eng_Latn" if self._is_nllb else "en"
        languages = default_languages(vocabulary.languages, self._options, forced, source)
        return multilingual_tokenizers(vocabulary, languages, config)

    @functools.cached_property
    def _options(self):
        return options_of(self.folder)

    @property
    def _is_nllb(self):
        return self.folder.file(IDS) is None

    def _vocabulary(self, size):
        """Returns the `LanguageVocabulary`."""
        if self._is_nllb:
            return fairseq_vocabulary(self.folder, size)
        ids, path = read_ids(self.folder, IDS, size), self.folder.path / IDS
        codes = self._options.choice("language_codes", LANGUAGES, "m2m100").split()
        counted = {f"__{code}__": len(ids) + number for number, code in enumerate(codes)}
        if max(counted.values()) >= size or max(ids.values()) >= len(ids):
            raise ValueError(
                f"{path}: ids must be numbered without a gap, and followed by "
                f"{len(codes)} languages within the {size} tokens of config.json. "
                f"Received: {len(ids)} tokens."
            )
        pieces = read_model(self.folder, SPM)
        at = pieces._replace(path=path)
        ids = with_added_languages(ids | counted, self.folder, at, CODE)
        check_ids(ids, size, path)
        languages = {name[2:-2]: n for name, n in ids.items() if CODE.fullmatch(name)}
        return LanguageVocabulary(pieces, ids, languages)
