"""ModernBERT in Hugging Face's format: rotary positions, local attention, gated networks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.feed_forwards import Gated
from keras_transformer.mixers import AlternatingWindow
from keras_transformer.norms import LayerNorm, PreNorm
from keras_transformer.positions import Rotary
from keras_transformer.pretrained.byte_bpe import VOCABULARY, read_byte_bpe
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import TRANSPOSED, Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings
from keras_transformer.pretrained.text_encoder import MaskHead, TextEncoder
from keras_transformer.text.tokenizers import ByteBPETokenizer

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]", "mask": "[MASK]"}
POOLINGS = {"cls": "first", "mean": "mean"}
LOCAL, GLOBAL = "sliding_attention", "full_attention"
BASES = {GLOBAL: ("global_rope_theta", 160_000.0), LOCAL: ("local_rope_theta", 10_000.0)}
JOINED = {  # several weights of ours in one of theirs, in order
    "attn.Wqkv": ("self_attention.query", "self_attention.key", "self_attention.value"),
    "mlp.Wi": ("feed_forward.gate", "feed_forward.inner"),
}
BLOCK = {
    "attn_norm": "self_attention_norm",
    "attn.Wo": "self_attention.output_projection",
    "mlp_norm": "feed_forward_norm",
    "mlp.Wo": "feed_forward.outer",
}


class ModernBert(TextEncoder):
    """A folder with `config.json` and `tokenizer.json`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`, without token
    types.
    """

    name = model_type = "modernbert"
    listing = Listing(
        {"modernbert": ("ModernBERT",)},
        "pretrained_encoders.md",
        "`tokenizer.json`",
    )
    classes, base = "ModernBert", "model."
    others = ("Model",)
    words = "embeddings.tok_embeddings.weight"
    mask_head = MaskHead("head.dense", "head.norm", "decoder", ("decoder.bias",))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Tensors of another head."""
        return self.unused_masks

    def config(self) -> Any:  # noqa: D102
        settings, options = self.settings, {}
        if not self.represents:
            options["transform"] = True
            options["transform_activation"] = settings.choice(
                "classifier_activation", ACTIVATIONS, "gelu"
            )
        if self.predicts_masks:
            options["output_bias"] = settings.flag("decoder_bias", True)
        if self.pools_texts:
            options["pooling"] = settings.choice("classifier_pooling", POOLINGS, "cls")
        return self.make_config(
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("embedding_dropout", 0.0),
            attention_dropout=settings.number("attention_dropout", 0.0),
            activation_dropout=settings.number("mlp_dropout", 0.0),
            activation=settings.choice("hidden_activation", ACTIVATIONS, "gelu"),
            feed_forward=Gated(bias=settings.flag("mlp_bias")),
            attention_bias=settings.flag("attention_bias"),
            norm=PreNorm(first=False),
            normalization=LayerNorm(
                settings.number("norm_eps", 1e-5), offset=settings.flag("norm_bias")
            ),
            **self._windows(),
            **options,
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self.prefix, config.d_model
        yield (
            f"{prefix}layers.{config.num_layers - 1}.mlp.Wo.weight",
            (width, config.encoder.block.d_ff),
        )
        yield f"{prefix}{self.words}", (config.tokens.vocab_size, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        yield self.table()
        norms = {"embeddings.norm": "encoder.embedding_norm", "final_norm": "encoder.norm"}
        yield from layers(norms, prefix)
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}layers.{number}.", f"encoder.blocks.{number}."
            for name, parts in JOINED.items():
                for part, layer in enumerate(parts):
                    share = Layout(transposed=True, share=(part, len(parts)))
                    yield Weight(f"{theirs}{name}.weight", f"{ours}{layer}.kernel", share)
                    bias = Layout(share=share.share)
                    yield Weight(f"{theirs}{name}.bias", f"{ours}{layer}.bias", bias)
            table = BLOCK if number else {k: v for k, v in BLOCK.items() if k != "attn_norm"}
            yield from layers(table, theirs, ours)
        if self.has_head:
            yield from self._head_weights(config)

    def _head_weights(self, config):
        """Yields the `Weight`s of a trained head, which all kinds of heads begin with."""
        yield Weight("head.dense.weight", "transform.kernel", TRANSPOSED)
        none = np.zeros(config.d_model, "float32")
        bias = ("head.dense.bias",) if self.settings.flag("classifier_bias") else ()
        yield Weight(bias, "transform.bias", default=None if bias else none)
        yield from layers({"head.norm": "transform_norm"})
        if self.predicts_masks:
            yield from self.output_weights()
        else:
            yield from layers({"classifier": "output_layer"})

    def read_tokenizer(self) -> ByteBPETokenizer:  # noqa: D102
        self.folder.require(VOCABULARY)
        return self.checked(read_byte_bpe(self.folder, self.settings, SPECIAL, True))

    def _windows(self):
        """Returns the options of local self-attention, and the rotary positions."""
        every = self._global_every()
        position = Rotary(self._base(LOCAL if every is None else GLOBAL))
        if every == 1:
            return {"position": position}
        window: Any = self.settings.count("local_attention", 128, least=2) // 2
        if every is not None:
            window = AlternatingWindow(window, every, Rotary(self._base(LOCAL)))
        return {"window": window, "position": position}

    def _global_every(self):
        """Returns the interval of the blocks with global attention; `None` if there are none."""
        settings = self.settings
        kinds = settings.get("layer_types")
        if kinds is None:
            return settings.count("global_attn_every_n_layers", 3)
        count = settings.count("num_hidden_layers")
        # The list is compared first, because `count` may be wrong: the tensors are read later.
        if isinstance(kinds, list) and len(kinds) == count:
            if kinds == [LOCAL] * count:
                return None
            later = (number for number in range(1, count) if kinds[number] == GLOBAL)
            every = next(later, count)
            if kinds == [LOCAL if number % every else GLOBAL for number in range(count)]:
                return every
        rule = f"{LOCAL} but for every n-th block, counted from the first, {GLOBAL}"
        raise settings.wrong("layer_types", rule)

    def _base(self, kind):
        """Returns the base of rotary positions in blocks of one kind."""
        name, default = BASES[kind]
        table = self.settings.get("rope_parameters")
        if table is None:
            self.settings.check({"rope_scaling": (None,)})
            return self.settings.number(name, default)
        rules = table.get(kind) if isinstance(table, dict) else None
        if not isinstance(rules, dict):
            raise self.settings.wrong("rope_parameters", f"a table with {GLOBAL} and {LOCAL}")
        rules = CheckpointSettings(rules, self.settings.path)
        rules.check({"rope_type": ("default",)})
        return rules.number("rope_theta", self.settings.number(name, default))
