"""RoBERTa in Hugging Face's format: BERT's encoder with byte-level BPE, and a head."""

from keras_transformer.pretrained.bert_encoder import RobertaEncoder
from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.listing import Listing
from keras_transformer.text.tokenizers.byte_bpe import SPECIAL, ByteBPETokenizer


class Roberta(RobertaEncoder):
    """A folder with `config.json` and the vocabulary.

    The vocabulary is `tokenizer.json`, or `vocab.json` and `merges.txt`.
    """

    name, model_type = "roberta", "roberta"
    listing = Listing(
        {"roberta": ("RoBERTa",)},
        "pretrained_encoders.md",
        "`vocab.json` and `merges.txt`, or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    classes = "Roberta"

    def read_tokenizer(self) -> ByteBPETokenizer:  # noqa: D102
        special = dict(SPECIAL)
        return self.checked(read_byte_bpe(self.folder, self.settings, special, True))
