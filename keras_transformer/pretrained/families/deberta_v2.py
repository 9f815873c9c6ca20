"""DeBERTa, versions 2 and 3, in Hugging Face's format: BERT's encoder, disentangled positions."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.norms import LayerNorm
from keras_transformer.positions import Disentangled
from keras_transformer.pretrained.bert_encoder import (
    AFTER_ATTENTION,
    MASK_HEAD,
    PREDICTIONS,
    BertEncoder,
)
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Weight
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings
from keras_transformer.pretrained.text_encoder import MaskHead
from keras_transformer.pretrained.unigram import UnigramFormat, read_unigram
from keras_transformer.text.tokenizers import SentencePieceTokenizer

OPTIONS = "tokenizer_config.json"
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]"}
BOTH = ("p2c", "c2p")  # comparisons of keys and of queries with distances
# Settings that change what a model computes, with the values that models here have. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "norm_rel_ebd": ("none", "layer_norm"),
    "position_biased_input": (True, False),
    "conv_kernel_size": (0,),
}
REQUIRED = ("relative_attention", "share_att_key")  # which would be false if they were missing
SCALE = 3**-0.5  # scores are divided by sqrt(3 d_k) there, which is a part of the queries here
TABLE = "encoder.rel_embeddings.weight"
# Heads for masked tokens, by the setting `legacy`.
LATER = "lm_predictions.lm_head"
MASK_HEADS = {
    True: MASK_HEAD,
    False: MaskHead(f"{LATER}.dense", f"{LATER}.LayerNorm", None, (f"{LATER}.bias",)),
}


class DebertaV2(BertEncoder):
    """A folder with `config.json` and `tokenizer.json` or `spm.model`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`, without token
    types.
    """

    name = model_type = "deberta-v2"
    listing = Listing(
        {"deberta": ("DeBERTa",)},
        "pretrained_encoders.md",
        "`tokenizer.json` or `spm.model`",
    )
    classes, base, types = "DebertaV2", "deberta.", 0
    pooler_layer = "pooler.dense"
    others = ("Model",)
    block = {
        "attention.self.query_proj": "self_attention.query",
        "attention.self.key_proj": "self_attention.key",
        "attention.self.value_proj": "self_attention.value",
        **AFTER_ATTENTION,
    }

    @property
    def mask_head(self) -> MaskHead:  # ty: ignore[incompatible-property-override]
        """The older head for masked tokens, or the one with `"legacy": false`."""
        return MASK_HEADS[self.settings.flag("legacy", True)]

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of other heads, and of positions that are not added to the embedding."""
        other = LATER if self.settings.flag("legacy", True) else PREDICTIONS
        return (
            rf"({re.escape(other)}|mask_predictions)\..*",
            *self.unused_masks,
            r"(deberta\.)?embeddings\.position_(ids|embeddings\.weight)",
            *self.unused_pooler,
        )

    def own_options(self) -> dict[str, Any]:  # noqa: D102
        settings = self.settings
        settings.check(EXPRESSIBLE)
        if self.predicts_masks:
            self._check_mask_head()
        width = settings.count("hidden_size")
        for name in ("embedding_size", "pooler_hidden_size"):
            if settings.get(name, width) != width:
                raise settings.wrong(name, f"{width}, `hidden_size`")
        for name in REQUIRED:
            if settings.get(name) is not True:
                raise settings.wrong(name, "true")
        kinds = settings.get("pos_att_type")
        kinds = [kind.strip() for kind in kinds.split("|")] if isinstance(kinds, str) else kinds
        if not isinstance(kinds, list) or sorted(map(str, kinds)) != sorted(BOTH):
            raise settings.wrong("pos_att_type", " and ".join(BOTH))
        distance = settings.get("max_relative_positions", -1)
        if is_integer(distance) and distance < 1:
            distance = settings.count("max_position_embeddings")
        else:
            distance = settings.count("max_relative_positions")
        buckets = 2 * settings.count("position_buckets", least=2)
        try:
            position = Disentangled(distance, buckets, shared=True)
        except ValueError as error:
            rule = f"an even number below {distance}, the largest distance"
            raise settings.wrong("position_buckets", rule) from error
        return {
            "pooler": settings.choice("pooler_hidden_act", ACTIVATIONS, "gelu"),
            "position": "learned" if self._has_positions else "none",
            "attention_position": position,
            "normalization": LayerNorm(settings.number("layer_norm_eps", 1e-7)),
        }

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        for name, shape in super().sizes(config):
            if self._has_positions or "position_embeddings" not in name:
                yield name, shape
        yield self.prefix + TABLE, (config.encoder.attention_position.buckets, config.d_model)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        for weight in super().names(config):
            is_query = ".self_attention.query." in weight.ours
            yield weight._replace(change=_scaled) if is_query else weight
        vectors = "encoder.blocks.0.self_attention.distance_vectors"
        yield Weight(self.prefix + TABLE, vectors, change=self._normalizer(config))

    def tables(self) -> Iterator[Weight]:  # noqa: D102
        for weight in super().tables():
            if self._has_positions or weight.ours != "embedding.positions":
                yield weight

    def read_tokenizer(self) -> SentencePieceTokenizer:  # noqa: D102
        options = CheckpointSettings(self.folder.json(OPTIONS) or {}, self.folder.path / OPTIONS)
        options.check({"split_by_punct": (False,)})
        steps = ("lowercase",) if options.flag("do_lower_case") else ()
        kind = UnigramFormat("spm.model", SPECIAL, "[MASK]", steps=steps)
        return self.checked(read_unigram(self.folder, self.settings, kind))

    def _check_mask_head(self):
        """Refuses a file that only has the head of the other value of `legacy`."""
        legacy = self.settings.flag("legacy", True)
        ours, other = (f"{MASK_HEADS[value].dense}.weight" for value in (legacy, not legacy))
        if ours not in self.tensors and other in self.tensors:
            value = "false" if legacy else "true"
            raise self.settings.wrong("legacy", f"{value}, as the file has the tensor {other}")

    @property
    def _has_positions(self):
        """True if positions are also added to the embedding."""
        return self.settings.get("position_biased_input", True)

    def _normalizer(self, config):
        """Returns the function that normalises the vectors of distances, or `None`."""
        if self.settings.get("norm_rel_ebd", "none") == "none":
            return None
        scale, shift = (
            self.tensors.read(f"{self.prefix}encoder.LayerNorm.{name}", (config.d_model,))
            for name in ("weight", "bias")
        )

        def normalize(vectors):
            vectors = vectors.astype("float64")
            centred = vectors - vectors.mean(axis=1, keepdims=True)
            variance = (centred**2).mean(axis=1, keepdims=True)
            return (
                centred / np.sqrt(variance + config.encoder.block.normalization.epsilon) * scale
                + shift
            )

        return normalize


def _scaled(values):
    return values * np.float32(SCALE)
