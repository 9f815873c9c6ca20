"""GPT-2 in Hugging Face's format: a causal language model with byte-level BPE."""

import functools
from collections.abc import Iterator
from typing import Any

from keras_transformer.decoding.generation import Generation
from keras_transformer.norms import LayerNorm
from keras_transformer.pretrained.added_tokens import MAP, OPTIONS, token_name
from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.generation import ends_of, generation_of_texts
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import SAME, Layout, Weight, is_tied, layers, token_weights
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings
from keras_transformer.tasks.language_modelling.config import LanguageModelConfig
from keras_transformer.tasks.language_modelling.model import LanguageModel

CLASSES = ("GPT2LMHeadModel", "GPT2Model")
# Settings that change what a model computes, with the values that a `LanguageModel` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
}
TABLE, OUTPUT = "wte.weight", "lm_head.weight"
END, PADDING = "<|endoftext|>", "<|pad|>"
SPECIAL = {"pad": PADDING, "unk": END, "bos": END, "eos": END}
# The layers of a block, whose kernels are `[in, out]` like ours. The first one joins three layers
# of ours.
JOINED = "attn.c_attn"
PARTS = ("query", "key", "value")
BLOCK = {
    "attn.c_proj": "self_attention.output_projection",
    "mlp.c_fc": "feed_forward.inner",
    "mlp.c_proj": "feed_forward.outer",
}
NORMS = {"ln_1": "self_attention_norm", "ln_2": "feed_forward_norm"}


class GPT2(Family):
    """A folder with `config.json` and the vocabulary.

    The vocabulary is `tokenizer.json`, or `vocab.json` and `merges.txt`. A text is
    `<|endoftext|> text <|endoftext|>`. GPT-2 has no padding: unless a checkpoint has its own token
    for it, the vocabulary gets one more token. The model here gives padding no probability.
    """

    name, model_type, task = "gpt2", "gpt2", "language_modelling"
    listing = Listing(
        {"gpt-2": ("GPT-2",)},
        "pretrained_language_models.md",
        "`vocab.json` and `merges.txt`, or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    reader, model_class, base = "AutoModelForCausalLM", LanguageModel, "transformer."
    ignored = (r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias",)

    def generation(self) -> Generation | None:  # noqa: D102
        tokenizer = self.tokenizer
        # All texts end in `<|endoftext|>`, whatever ends the outputs of `generate`.
        own = CheckpointSettings({"eos_token_id": tokenizer.eos_id}, self.settings.path)
        first, further = ends_of(own, self.generation_settings, tokenizer.vocab_size)
        further = [end for end in (first, *further) if end != tokenizer.eos_id]
        return generation_of_texts(self.generation_settings, further)

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, ...]]:  # noqa: D102
        return {"GPT2LMHeadModel": (cls.task,)}

    def config(self) -> LanguageModelConfig:  # noqa: D102
        settings, tokenizer = self.settings, self.tokenizer
        settings.check(EXPRESSIBLE)
        settings.architecture(CLASSES)
        for name in ("bos_token_id", "eos_token_id"):
            if settings.get(name, tokenizer.eos_id) != tokenizer.eos_id:
                raise settings.wrong(name, f"{tokenizer.eos_id}, the id of {END}")
        width = settings.count("n_embd")
        inner = settings.get("n_inner")
        return LanguageModelConfig(
            **tokenizer.config_fields,
            embedding_scale=1.0,
            num_layers=settings.count("n_layer"),
            d_model=width,
            num_heads=settings.count("n_head"),
            d_ff=4 * width if inner is None else settings.count("n_inner"),
            max_length=settings.count("n_positions"),
            dropout=settings.number("resid_pdrop", 0.1),
            attention_dropout=settings.number("attn_pdrop", 0.1),
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu_new"),
            normalization=LayerNorm(settings.number("layer_norm_epsilon", 1e-5)),
            position="learned",
            norm="pre",
            attention_bias=True,
            tie="all" if is_tied(self, OUTPUT, [self.prefix + TABLE]) else "none",
            output_bias=True,
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width, inner = self.prefix, config.d_model, config.decoder.block.d_ff
        yield f"{prefix}h.{config.num_layers - 1}.mlp.c_fc.weight", (width, inner)
        yield f"{prefix}{TABLE}", (self.settings.count("vocab_size"), width)
        yield f"{prefix}wpe.weight", (config.max_length, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix, entries = self.prefix, self.settings.count("vocab_size")
        yield from token_weights(f"{prefix}{TABLE}", OUTPUT, config, entries)
        yield Weight(f"{prefix}wpe.weight", "embedding.positions")
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}h.{number}.", f"decoder.blocks.{number}."
            yield from layers(NORMS, theirs, ours)
            for place, name in enumerate(PARTS):
                layer = f"{ours}self_attention.{name}"
                yield from _linear(f"{theirs}{JOINED}", layer, Layout(share=(place, len(PARTS))))
            for name, layer in BLOCK.items():
                yield from _linear(f"{theirs}{name}", f"{ours}{layer}", SAME)
        yield from layers({"ln_f": "decoder.norm"}, prefix)

    @functools.cached_property
    def tokenizer(self) -> Any:  # noqa: D102
        self.tensors.check_rows(f"{self.prefix}{TABLE}", self.settings, "vocab_size")
        options = {"starts_with_bos": False, "padding": self._padding}
        return read_byte_bpe(self.folder, self.settings, SPECIAL, **options)

    def _padding(self, pieces):
        """The checkpoint's own token for padding, unless it is the end of a text; or `PADDING`."""
        number = self.settings.token("pad_token_id", len(pieces), optional=True)
        by_id = END if number is None else pieces[number]
        options = self.folder.json(OPTIONS) or self.folder.json(MAP) or {}
        by_name = token_name(options.get("pad_token")) or by_id
        if END not in (by_id, by_name) and by_id != by_name:
            raise self.settings.wrong("pad_token_id", f"the id of {by_name}, which pads texts")
        own = by_name if by_id == END else by_id
        return own if own in pieces and own != END else PADDING


def _linear(theirs, ours, layout):
    """The weights of a linear layer whose kernel is `[in, out]`."""
    yield Weight(f"{theirs}.weight", f"{ours}.kernel", layout)
    yield Weight(f"{theirs}.bias", f"{ours}.bias", layout)
