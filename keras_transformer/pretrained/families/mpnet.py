"""MPNet in Hugging Face's format: BERT's encoder with T5's biases as well as learned positions."""

from collections.abc import Iterator
from typing import Any

from keras_transformer.positions import T5Bias
from keras_transformer.pretrained.bert_encoder import NETWORK, RobertaEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Weight, layers
from keras_transformer.pretrained.wordpiece import read_wordpiece
from keras_transformer.text.tokenizers import WordPieceTokenizer

SPECIAL = {"pad": "<pad>", "unk": "[UNK]", "bos": "<s>", "eos": "</s>"}
MASK = "<mask>"
BUCKETS, DISTANCE = 32, 128  # no setting changes them


class MPNet(RobertaEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `<s> text </s>`, and a pair of texts `<s> one </s></s> other </s>`.
    """

    name = model_type = "mpnet"
    listing = Listing(
        {"mpnet": ("MPNet",)},
        "pretrained_encoders.md",
        "`vocab.txt` or `tokenizer.json`",
        tried=("all-mpnet-base-v2",),
    )
    classes, base = "MPNet", "mpnet."
    block = {
        "attention.attn.q": "self_attention.query",
        "attention.attn.k": "self_attention.key",
        "attention.attn.v": "self_attention.value",
        "attention.attn.o": "self_attention.output_projection",
        "attention.LayerNorm": "self_attention_norm",
        **NETWORK,
    }

    def own_options(self) -> dict[str, Any]:  # noqa: D102
        self.settings.check({"relative_attention_num_buckets": (BUCKETS,)})
        return {
            "attention_position": T5Bias(DISTANCE, BUCKETS, shared=True),
        }

    def embeddings(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        yield from self.tables()
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
        biases = f"{prefix}encoder.relative_attention_bias.weight"
        yield Weight(biases, "encoder.blocks.0.self_attention.distance_bias")

    def read_tokenizer(self) -> WordPieceTokenizer:  # noqa: D102
        return read_wordpiece(self.folder, self.settings, SPECIAL, self.pad, MASK)
