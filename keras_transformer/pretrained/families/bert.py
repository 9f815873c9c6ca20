"""BERT in Hugging Face's format: an encoder, with a head if it has one."""

from keras_transformer.pretrained.bert_encoder import MASK_HEAD, BertEncoder
from keras_transformer.pretrained.listing import Listing


class Bert(BertEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`.
    """

    name, model_type = "bert", "bert"
    listing = Listing(
        {"bert": ("BERT",)},
        "pretrained_encoders.md",
        "`vocab.txt` or `tokenizer.json`",
        exports=("ctranslate2",),
        tried=("all-MiniLM-L6-v2", "Rampart", "a SPLADE of 4.4 M parameters"),
    )
    classes, base = "Bert", "bert."
    others = ("Model", "ForPreTraining", "ForNextSentencePrediction")
    mask_head = MASK_HEAD

    @property
    def pooler_layer(self) -> str:
        """Name of the layer before the labels of texts."""
        return f"{self.prefix}pooler.dense"

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of other heads, buffers, and a pooler that no logit depends on."""
        buffers = r"(bert\.)?embeddings\.(position_ids|token_type_ids)"
        return r"cls\.seq_relationship\..*", *self.unused_masks, buffers, *self.unused_pooler
