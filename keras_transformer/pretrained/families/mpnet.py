"""MPNet in Hugging Face's format: BERT's encoder with T5's biases as well as learned positions."""

from collections.abc import Iterator
from typing import Any

from keras_transformer.pretrained.bert_encoder import FIRST, RobertaEncoder
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.wordpiece import read_wordpiece
from keras_transformer.text.tokenizers import WordPieceTokenizer

SPECIAL = {"pad": "<pad>", "unk": "[UNK]", "bos": "<s>", "eos": "</s>"}
MASK = "<mask>"
BUCKETS, DISTANCE = 32, 128  # no setting changes them
TABLES = {  # with the number of rows before that of the first position
    "embeddings.word_embeddings": ("embedding.table", 0),
    "embeddings.position_embeddings": ("embedding.positions", FIRST),
}


class MPNet(RobertaEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `<s> text </s>`, and a pair of texts `<s> one </s></s> other </s>`.
    """

    name = model_type = "mpnet"
    classes, base, mask_head = "MPNet", "mpnet.", None
    others = ("Model", "ForMaskedLM")
    ignored = (r"lm_head\..*", r"(mpnet\.)?pooler\..*", r"(mpnet\.)?embeddings\.position_ids")
    block = {
        "attention.attn.q": "self_attention.query",
        "attention.attn.k": "self_attention.key",
        "attention.attn.v": "self_attention.value",
        "attention.attn.o": "self_attention.output_projection",
        "attention.LayerNorm": "self_attention_norm",
        "intermediate.dense": "feed_forward.inner",
        "output.dense": "feed_forward.outer",
        "output.LayerNorm": "feed_forward_norm",
    }

    def own_options(self) -> dict[str, Any]:  # noqa: D102
        self.settings.check({"relative_attention_num_buckets": (BUCKETS,)})
        return {
            "attention_position": "t5",
            "share_positions": True,
            "relative_buckets": BUCKETS,
            "relative_distance": DISTANCE,
        }

    def embeddings(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        for name, (ours, first) in TABLES.items():
            layout = Layout(first=first, last=self.cut if first else 0)
            yield Weight(f"{prefix}{name}.weight", ours, layout)
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
        biases = f"{prefix}encoder.relative_attention_bias.weight"
        yield Weight(biases, "encoder.blocks.0.self_attention.distance_bias")

    def read_tokenizer(self) -> WordPieceTokenizer:  # noqa: D102
        return read_wordpiece(self.folder, self.settings, SPECIAL, self.pad, MASK)
