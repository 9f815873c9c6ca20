"""ELECTRA in Hugging Face's format: BERT's encoder, with a narrower embedding if it is small."""

from typing import Any

from keras_transformer.pretrained.bert_encoder import BertEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.text_encoder import MaskHead


class Electra(BertEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    Texts and pairs of texts are those of BERT. A checkpoint of the discriminator becomes a
    classifier with an untrained head.
    """

    name, model_type, pooler = "electra", "electra", "gelu"
    listing = Listing(
        {"electra": ("ELECTRA",)},
        "pretrained_encoders.md",
        "`vocab.txt` or `tokenizer.json`",
    )
    classes, base, projection = "Electra", "electra.", "embeddings_project"
    others = ("Model", "ForPreTraining")
    mask_head = MaskHead(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
        ("generator_lm_head.bias",),
    )
    mask_activation = "gelu"

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of other heads, and buffers."""
        buffers = r"(electra\.)?embeddings\.(position_ids|token_type_ids)"
        return r"discriminator_.*", *self.unused_masks, buffers

    def own_options(self) -> dict[str, Any]:  # noqa: D102
        width = self.settings.count("embedding_size", 128)
        if width == self.settings.count("hidden_size"):
            return {}
        return {"embedding_size": width, "embedding_norm": False}
