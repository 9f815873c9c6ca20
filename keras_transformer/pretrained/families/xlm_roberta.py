"""XLM-RoBERTa in Hugging Face's format: RoBERTa's encoder with a SentencePiece vocabulary."""

from keras_transformer.pretrained.bert_encoder import RobertaEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.unigram import UnigramFormat, read_unigram
from keras_transformer.text.tokenizers import SentencePieceTokenizer


class XlmRoberta(RobertaEncoder):
    """A folder with `config.json` and `tokenizer.json` or `sentencepiece.bpe.model`.

    The ids are SentencePiece's, moved by one: `<s>`, `<pad>`, `</s>` and `<unk>` come first, and
    `<mask>` last.
    """

    name = model_type = "xlm-roberta"
    listing = Listing(
        {"xlm-roberta-and-camembert": ("XLM-RoBERTa",)},
        "pretrained_encoders.md",
        "`tokenizer.json` or `sentencepiece.bpe.model`",
        exports=("ctranslate2",),
    )
    classes = "XLMRoberta"

    def read_tokenizer(self) -> SentencePieceTokenizer:  # noqa: D102
        first = ("<s>", "<pad>", "</s>", "<unk>")
        kind = UnigramFormat(first=first, skip=3)
        return self.checked(read_unigram(self.folder, self.settings, kind))
