"""mBART and mBART-50 in Hugging Face's format: one model for many pairs of languages."""

import dataclasses
import functools
from typing import Any

from keras_transformer.decoding.generation import Generation
from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.multilingual import (
    default_languages,
    fairseq_vocabulary,
    multilingual_tokenizers,
    options_of,
)
from keras_transformer.text.tokenizers import Tokenizers

# The languages of mBART, whose ids follow those of the vocabulary in this order. Newer files of a
# checkpoint name them.
LANGUAGES = (
    *("ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN"),
    *("it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO"),
    *("ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN"),
)
START = "decoder_start_token_id"


class MBart(EncoderDecoderFamily):
    """A folder with `config.json`, and `sentencepiece.bpe.model` or `tokenizer.json`.

    Also read: `tokenizer_config.json`, which names languages to use by default, and
    `special_tokens_map.json`; these files or `tokenizer.json` list the languages.
    Outputs start with the end token in mBART-50, and with the token of their language in the mBART
    of 25 languages.
    """

    name, model_type, task = "mbart", "mbart", "translation"
    listing = Listing(
        {"m2m100-nllb-and-mbart": ("mBART", "mBART-50")},
        "pretrained_translation.md",
        "`sentencepiece.bpe.model` or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    reader = "MBartForConditionalGeneration"
    embedding_norm = True

    def special(self, size) -> dict[str, Any]:  # noqa: D102
        special = super().special(size)
        # The language of an output takes the place of `bos_id`.
        return {**special, "bos_id": special["eos_id"]}

    @property
    def forces_language(self) -> bool:  # noqa: D102
        return not self._starts_with_language

    def generation(self) -> Generation:  # noqa: D102
        own = super().generation()
        place = "start" if self._starts_with_language else "before"
        rules = dataclasses.replace(own.rules, forced_bos_id=None, language_codes=place)
        return dataclasses.replace(own, rules=rules)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        starts = self._starts_with_language
        first = self._start if starts else super().generation().rules.forced_bos_id
        known, options = self._vocabulary.languages, options_of(self.folder)
        languages = default_languages(known, options, first, "en_XX")
        return multilingual_tokenizers(self._vocabulary, languages, config, not starts)

    @functools.cached_property
    def _vocabulary(self):
        """The `LanguageVocabulary`."""
        codes = () if self._start == self._end else LANGUAGES
        return fairseq_vocabulary(self.folder, self.settings.count("vocab_size"), codes)

    @functools.cached_property
    def _start(self):
        """Id of the token that starts outputs; `None` if no setting names one."""
        size = self.settings.count("vocab_size")
        start = self.settings.token(START, size, optional=True)
        return self.generation_settings.token(START, size, default=start, optional=True)

    @property
    def _end(self):
        return super().special(self.settings.count("vocab_size"))["eos_id"]

    @functools.cached_property
    def _starts_with_language(self):
        """True for the mBART of 25 languages."""
        if self._start == self._end:
            return False
        languages = self._vocabulary.languages
        if self._start is None:
            kind = self.settings.get("tokenizer_class", "MBartTokenizer")
            kind = options_of(self.folder).get("tokenizer_class", kind)
            if isinstance(kind, str) and kind.removesuffix("Fast") == "MBartTokenizer":
                return True
        elif self._start in languages.values():
            return True
        settings = self.generation_settings
        settings = self.settings if settings.get(START) is None else settings
        rule = "the end token, as in mBART-50, or the token of a language, as in mBART"
        raise settings.wrong(START, f"{self._end}, {rule}")
