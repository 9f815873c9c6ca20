"""ALBERT in Hugging Face's format: BERT's encoder, whose blocks share their weights."""

from typing import Any

from keras_transformer.pretrained.bert_encoder import BertEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings
from keras_transformer.pretrained.text_encoder import MaskHead
from keras_transformer.pretrained.unigram import UnigramFormat, read_unigram
from keras_transformer.text.tokenizers import SentencePieceTokenizer

OPTIONS, MODEL = "tokenizer_config.json", "spiece.model"
SPECIAL = {"pad": "<pad>", "unk": "<unk>", "bos": "[CLS]", "eos": "[SEP]"}
LOWER = 100  # by which the score of a number with a comma is lower, so that they are two pieces


class Albert(BertEncoder):
    """A folder with `config.json` and `tokenizer.json` or `spiece.model`.

    Texts and pairs of texts are those of BERT. Blocks that share their weights in ALBERT are
    copies here, which fine-tuning changes separately.
    """

    name = model_type = "albert"
    listing = Listing(
        {"albert": ("ALBERT",)},
        "pretrained_encoders.md",
        "`tokenizer.json` or `spiece.model`",
    )
    classes, base, projection = "Albert", "albert.", "encoder.embedding_hidden_mapping_in"
    others = ("Model", "ForPreTraining")
    mask_head = MaskHead(
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.decoder",
        ("predictions.decoder.bias", "predictions.bias"),
    )
    block = {
        "attention.query": "self_attention.query",
        "attention.key": "self_attention.key",
        "attention.value": "self_attention.value",
        "attention.dense": "self_attention.output_projection",
        "attention.LayerNorm": "self_attention_norm",
        "ffn": "feed_forward.inner",
        "ffn_output": "feed_forward.outer",
        "full_layer_layer_norm": "feed_forward_norm",
    }

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of other heads, buffers, and a pooler that no logit depends on."""
        buffer = r"(albert\.)?embeddings\.position_ids"
        return r"sop_classifier\..*", *self.unused_masks, buffer, *self.unused_pooler

    @property
    def pooler_layer(self) -> str:
        """Name of the layer before the labels of texts."""
        return f"{self.prefix}pooler"

    def own_options(self) -> dict[str, Any]:  # noqa: D102
        settings = self.settings
        return {
            "num_layers": settings.count("num_hidden_layers") * self._inner,
            "activation": settings.choice("hidden_act", ACTIVATIONS, "gelu_new"),
            "dropout": settings.number("hidden_dropout_prob", 0.0),
            "attention_dropout": settings.number("attention_probs_dropout_prob", 0.0),
            "embedding_size": settings.count("embedding_size", 128),
            "embedding_norm": False,
        }

    def layer(self, config, number) -> str:  # noqa: D102
        layer, inner = divmod(number, self._inner)
        groups = self.settings.count("num_hidden_groups", 1)
        group = int(layer / (config.num_layers // self._inner / groups))
        return f"{self.prefix}encoder.albert_layer_groups.{group}.albert_layers.{inner}."

    def read_tokenizer(self) -> SentencePieceTokenizer:  # noqa: D102
        options = CheckpointSettings(self.folder.json(OPTIONS) or {}, self.folder.path / OPTIONS)
        steps = ["backquotes", "apostrophes"]
        if not options.flag("keep_accents"):
            steps += ["decompose", "strip_accents"]
        if options.flag("do_lower_case", True):
            steps.append("lowercase")
        kind = UnigramFormat(MODEL, SPECIAL, "[MASK]", steps=tuple(steps), score=_score)
        return self.checked(read_unigram(self.folder, self.settings, kind))

    @property
    def _inner(self):
        """Number of blocks of a group."""
        return self.settings.count("inner_group_num", 1)


def _score(piece, score):
    is_number = len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
    return score - LOWER if is_number else score
