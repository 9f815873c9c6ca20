"""BERT in Hugging Face's format: an encoder, with a head if it has one."""

from collections.abc import Iterator

from keras_transformer.pretrained.bert_encoder import BertEncoder
from keras_transformer.pretrained.names import Weight, layers
from keras_transformer.pretrained.text_encoder import MaskHead
from keras_transformer.pretrained.wordpiece import read_wordpiece
from keras_transformer.text.tokenizers.wordpiece import WordPieceTokenizer

PREDICTIONS = "cls.predictions"


class Bert(BertEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`.
    """

    name, model_type = "bert", "bert"
    classes, base = "Bert", "bert."
    others = ("Model", "ForPreTraining", "ForNextSentencePrediction")
    mask_head = MaskHead(
        f"{PREDICTIONS}.transform.dense",
        f"{PREDICTIONS}.transform.LayerNorm",
        f"{PREDICTIONS}.decoder",
        (f"{PREDICTIONS}.decoder.bias", f"{PREDICTIONS}.bias"),
    )

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of other heads, buffers, and a pooler that no logit depends on."""
        buffers = r"(bert\.)?embeddings\.(position_ids|token_type_ids)"
        fixed = (r"cls\.seq_relationship\..*", *self.unused_masks, buffers)
        return fixed if self.task == "classification" else (*fixed, r"(bert\.)?pooler\..*")

    def head(self, config) -> Iterator[Weight]:  # noqa: D102
        # Without a trained head, the pooler may be missing: it is trained with a new head.
        required = self.classifies_texts or f"{self.prefix}pooler.dense.weight" in self.tensors
        if self.task == "classification" and required:
            yield from layers({"pooler.dense": "pooler"}, self.prefix)
        yield from self.linear_head()

    def read_tokenizer(self) -> WordPieceTokenizer:  # noqa: D102
        return read_wordpiece(self.folder, self.settings)
