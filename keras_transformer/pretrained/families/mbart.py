"""mBART-50 in Hugging Face's format: one model for many pairs of languages."""

import dataclasses
from typing import Any

from keras_transformer.decoding.generation import Generation
from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.multilingual import (
    default_languages,
    fairseq_ids,
    multilingual_tokenizers,
    options_of,
)
from keras_transformer.text.tokenizers import Tokenizers


class MBart(EncoderDecoderFamily):
    """A folder with `config.json` and `sentencepiece.bpe.model`.

    Also read: `tokenizer_config.json`, which names languages to use by default, and
    `tokenizer.json` or `special_tokens_map.json`, which list the languages.
    """

    name, model_type, task = "mbart", "mbart", "translation"
    reader = "MBartForConditionalGeneration"
    embedding_norm = True

    def special(self, size) -> dict[str, Any]:  # noqa: D102
        special = super().special(size)
        if special["bos_id"] != special["eos_id"]:
            settings = self.generation_settings
            if settings.get("decoder_start_token_id") is None:
                settings = self.settings
            raise settings.wrong(
                "decoder_start_token_id",
                f"{special['eos_id']}, the end token, as in mBART-50. The mBART of 25 languages, "
                "which starts outputs with a language, is not supported",
            )
        return special

    def generation(self) -> Generation:  # noqa: D102
        rules = super().generation()
        return dataclasses.replace(rules, forced_bos_id=None, language_codes="before")

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        ids, languages = fairseq_ids(self.folder, config.vocab_size)
        forced = super().generation().forced_bos_id
        languages = default_languages(languages, options_of(self.folder), forced, "en_XX")
        return multilingual_tokenizers(self.folder, ids, languages, config)
