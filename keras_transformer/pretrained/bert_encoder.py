"""`BertEncoder` and `RobertaEncoder`, the bases of the families whose tensors are named alike."""

import re
from collections.abc import Iterator
from typing import Any

from keras_transformer.norms import LayerNorm
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.pretrained.text_encoder import MaskHead, TextEncoder

# Layers of a block, and ours: the feed-forward network, everything after attention, and all.
NETWORK = {
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
    "output.LayerNorm": "feed_forward_norm",
}
AFTER_ATTENTION = {
    "attention.output.dense": "self_attention.output_projection",
    "attention.output.LayerNorm": "self_attention_norm",
    **NETWORK,
}
BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    **AFTER_ATTENTION,
}
PREDICTIONS = "cls.predictions"
MASK_HEAD = MaskHead(
    f"{PREDICTIONS}.transform.dense",
    f"{PREDICTIONS}.transform.LayerNorm",
    f"{PREDICTIONS}.decoder",
    (f"{PREDICTIONS}.decoder.bias", f"{PREDICTIONS}.bias"),
)
# Settings that change what a model computes, with the values that models here have. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
}
FIRST = 2  # RoBERTa's row of the first position: that after the row of padding, 1
# RoBERTa's head for labels of texts, which has a layer of its own, as ELECTRA's has.
HEAD = {"classifier.dense": "pooler", "classifier.out_proj": "output_layer"}


class BertEncoder(TextEncoder):
    """A folder with an encoder whose tensors have BERT's names, with token types.

    Attributes:
        pooler: Activation of the layer before the labels of texts.
        pooler_layer: Name of that layer, if a file without a head may also have it.
        first: Row of the table of positions of the first position.
        types: Number of token types.
        block: Dictionary from the layers of a block to ours.
        projection: Name of the map from narrower embeddings to the width of the model.
    """

    pooler, first, types = "tanh", 0, 2
    block = BLOCK
    projection = pooler_layer = ""

    def config(self) -> Any:  # noqa: D102
        settings = self.settings
        settings.check(EXPRESSIBLE | {"type_vocab_size": (self.types,)})
        length = settings.count("max_position_embeddings", least=self.first + 1) - self.first
        options = {
            "pooler": self.pooler,
            "segments": "after_eos" if self.types == 2 else "none",
            "num_layers": settings.count("num_hidden_layers"),
            "d_model": settings.count("hidden_size"),
            "num_heads": settings.count("num_attention_heads"),
            "d_ff": settings.count("intermediate_size"),
            "max_length": length,
            "dropout": settings.number("hidden_dropout_prob", 0.1),
            "attention_dropout": settings.number("attention_probs_dropout_prob", 0.1),
            "activation": settings.choice("hidden_act", ACTIVATIONS, "gelu"),
            "normalization": LayerNorm(settings.number("layer_norm_eps", 1e-12)),
        }
        return self.make_config(**{**options, **self.own_options()})

    def own_options(self) -> dict[str, Any]:
        """Returns options that differ from BERT's, a dictionary."""
        return {}

    def layer(self, config, number) -> str:
        """Returns how the names of the tensors of block `number`, counted from 0, begin."""
        return f"{self.prefix}encoder.layer.{number}."

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self.prefix, config.d_model
        inner = {ours: theirs for theirs, ours in self.block.items()}["feed_forward.inner"]
        yield (
            f"{self.layer(config, config.num_layers - 1)}{inner}.weight",
            (config.encoder.block.d_ff, width),
        )
        embedding = config.input.embedding_size or width
        yield f"{prefix}{self.words}", (config.tokens.vocab_size, embedding)
        rows = config.max_length + self.first + self.cut
        yield f"{prefix}embeddings.position_embeddings.weight", (rows, embedding)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        yield from self.embeddings(config)
        for number in range(config.num_layers):
            theirs, ours = self.layer(config, number), f"encoder.blocks.{number}."
            yield from layers(self.block, theirs, ours)
        yield from self.head(config)

    def tables(self) -> Iterator[Weight]:
        """Yields the `Weight`s of the embeddings of tokens, positions and segments."""
        prefix = f"{self.prefix}embeddings."
        yield self.table()
        rows = Layout(first=self.first, last=self.cut)
        yield Weight(f"{prefix}position_embeddings.weight", "embedding.positions", rows)
        if self.types == 2:
            yield Weight(f"{prefix}token_type_embeddings.weight", "segments.table")

    def embeddings(self, config) -> Iterator[Weight]:
        """Yields the `Weight`s of the embeddings and of the layers after them."""
        yield from self.tables()
        if config.input.embedding_size is None:
            yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, self.prefix)
        else:
            table = {"embeddings.LayerNorm": "input.norm", self.projection: "input.projection"}
            yield from layers(table, self.prefix, "parts.")

    def head(self, config) -> Iterator[Weight]:
        """Yields the `Weight`s of the head; see `HEAD`."""
        if self.classifies_texts and not self.pooler_layer:
            yield from layers(HEAD)
            return
        # Without a trained head, the pooler may be missing: it is trained with a new head.
        required = self.classifies_texts or f"{self.pooler_layer}.weight" in self.tensors
        if self.pools_texts and required:
            yield from layers({self.pooler_layer: "pooler"})
        yield from self.linear_head()

    @property
    def unused_pooler(self) -> tuple[str, ...]:
        """Patterns of the tensors of a pooler that no logit depends on."""
        if self.pools_texts:
            return ()
        return (rf"({re.escape(self.base)})?pooler\..*",)


class RobertaEncoder(BertEncoder):
    """A folder with RoBERTa's encoder: its positions begin at the third row, without token types.

    A text is `<s> text </s>`, and a pair of texts `<s> one </s></s> other </s>`.
    """

    base, pair_layout = "roberta.", "roberta"
    others = ("Model",)
    first, types, pad = FIRST, 1, 1
    mask_head = MaskHead(
        "lm_head.dense",
        "lm_head.layer_norm",
        "lm_head.decoder",
        ("lm_head.decoder.bias", "lm_head.bias"),
    )
    mask_activation = "gelu"

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of another head, buffers, and a pooler that no logit depends on."""
        base = rf"({re.escape(self.base)})?"
        buffers = rf"{base}embeddings\.(position_ids|token_type_ids)"
        return rf"{base}pooler\..*", buffers, *self.unused_masks

    def config(self) -> Any:  # noqa: D102
        self.settings.check({"pad_token_id": (1,)})  # positions begin after it
        return super().config()

    def embeddings(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        yield self.table()
        # The one token type is a part of every position.
        types = f"{prefix}embeddings.token_type_embeddings.weight"
        row = self.tensors.read(types, (1, config.d_model))
        yield Weight(
            f"{prefix}embeddings.position_embeddings.weight",
            "embedding.positions",
            Layout(first=FIRST, last=self.cut),
            change=lambda values: values + row,
        )
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
