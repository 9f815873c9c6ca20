"""DistilBERT in Hugging Face's format: BERT's encoder with half of its blocks, and a head."""

from collections.abc import Iterator
from typing import Any

from keras_transformer.norms import LayerNorm
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.pretrained.text_encoder import MaskHead, TextEncoder

EPSILON = 1e-12  # of every layer normalisation: no setting changes it
BLOCK = {
    "attention.q_lin": "self_attention.query",
    "attention.k_lin": "self_attention.key",
    "attention.v_lin": "self_attention.value",
    "attention.out_lin": "self_attention.output_projection",
    "sa_layer_norm": "self_attention_norm",
    "ffn.lin1": "feed_forward.inner",
    "ffn.lin2": "feed_forward.outer",
    "output_layer_norm": "feed_forward_norm",
}


class DistilBert(TextEncoder):
    """A folder with `config.json` and the vocabulary of BERT: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`; there are no segments.
    """

    name, model_type = "distilbert", "distilbert"
    listing = Listing(
        {"distilbert": ("DistilBERT",)},
        "pretrained_encoders.md",
        "`vocab.txt` or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    classes, base = "DistilBert", "distilbert."
    others = ("Model",)
    mask_head = MaskHead(
        "vocab_transform", "vocab_layer_norm", "vocab_projector", ("vocab_projector.bias",)
    )

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of another head, and a buffer."""
        return *self.unused_masks, r"(.*\.)?embeddings\.position_ids"

    def config(self) -> Any:  # noqa: D102
        settings = self.settings
        return self.make_config(
            pooler="relu",
            num_layers=settings.count("n_layers"),
            d_model=settings.count("dim"),
            num_heads=settings.count("n_heads"),
            d_ff=settings.count("hidden_dim"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("dropout", 0.1),
            attention_dropout=settings.number("attention_dropout", 0.1),
            activation=settings.choice("activation", ACTIVATIONS, "gelu"),
            normalization=LayerNorm(EPSILON),
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self.prefix, config.d_model
        last = f"{prefix}transformer.layer.{config.num_layers - 1}.ffn.lin1.weight"
        yield last, (config.encoder.block.d_ff, width)
        yield f"{prefix}embeddings.word_embeddings.weight", (config.tokens.vocab_size, width)
        rows = config.max_length + self.cut
        yield f"{prefix}embeddings.position_embeddings.weight", (rows, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        yield self.table()
        # With `sinusoidal_pos_embds` too the file has a table, that of the sinusoids.
        positions = f"{prefix}embeddings.position_embeddings.weight"
        yield Weight(positions, "embedding.positions", Layout(last=self.cut))
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}transformer.layer.{number}.", f"encoder.blocks.{number}."
            yield from layers(BLOCK, theirs, ours)
        if self.classifies_texts:
            yield from layers({"pre_classifier": "pooler"})
        yield from self.linear_head()
