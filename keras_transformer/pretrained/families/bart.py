"""BART in Hugging Face's format: summaries of texts, with byte-level BPE."""

import dataclasses
import functools

from keras_transformer.decoding.generation import Generation
from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.listing import Listing
from keras_transformer.text.tokenizers import Tokenizers

MASK = "<mask>"  # has an id beyond the vocabulary of models for summarisation
SPECIAL = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}


class Bart(EncoderDecoderFamily):
    """A folder with `config.json` and the vocabulary.

    The vocabulary is `tokenizer.json`, or `vocab.json` and `merges.txt`. A text is
    `<s> text </s>`.
    """

    name, model_type, task = "bart", "bart", "summarization"
    listing = Listing(
        {"bart-and-pegasus": ("BART",)},
        "pretrained_translation.md",
        "`vocab.json` and `merges.txt`, or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    reader = "BartForConditionalGeneration"
    norm, embedding_norm = "post", True
    ignored = (r"model\.(encoder|decoder)\.version",)

    def generation(self) -> Generation:  # noqa: D102
        start = self.special(self.settings.count("vocab_size"))["bos_id"]
        own = super().generation()
        rules = dataclasses.replace(own.rules, start_id=start)
        return dataclasses.replace(own, rules=rules)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        tokenizer = self._tokenizer
        for name in ("pad", "eos"):
            ours, theirs = getattr(tokenizer, f"{name}_id"), getattr(config.tokens, f"{name}_id")
            if ours != theirs:
                rule = f"{ours}, the id of {SPECIAL[name]} in the vocabulary"
                raise self.settings.wrong(f"{name}_token_id", rule)
        return Tokenizers.of(tokenizer)

    @functools.cached_property
    def _tokenizer(self):
        options = {"starts_with_bos": True, "beyond": (MASK,)}
        return read_byte_bpe(self.folder, self.settings, SPECIAL, **options)
