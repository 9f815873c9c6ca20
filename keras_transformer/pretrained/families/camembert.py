"""CamemBERT in Hugging Face's format: RoBERTa's encoder with a SentencePiece vocabulary."""

from keras_transformer.pretrained.bert_encoder import RobertaEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.unigram import UnigramFormat, read_unigram
from keras_transformer.text.tokenizers import SentencePieceTokenizer


class Camembert(RobertaEncoder):
    """A folder with `config.json` and `tokenizer.json` or `sentencepiece.bpe.model`.

    The ids are SentencePiece's plus four. The vocabulary also has tokens of fairseq that no text
    contains.
    """

    name = model_type = "camembert"
    listing = Listing(
        {"xlm-roberta-and-camembert": ("CamemBERT",)},
        "pretrained_encoders.md",
        "`tokenizer.json` or `sentencepiece.bpe.model`",
        exports=("ctranslate2",),
    )
    classes = "Camembert"

    def read_tokenizer(self) -> SentencePieceTokenizer:  # noqa: D102
        first = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
        kind = UnigramFormat(first=first, skip=1)
        return self.checked(read_unigram(self.folder, self.settings, kind))
