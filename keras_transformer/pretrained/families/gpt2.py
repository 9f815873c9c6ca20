"""GPT-2 in Hugging Face's format: a causal language model with byte-level BPE."""

import functools
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import LanguageModelConfig
from keras_transformer.models.language_model import LanguageModel
from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.names import SAME, Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.text.tokenizers import Tokenizers

CLASSES = ("GPT2LMHeadModel", "GPT2Model")
# Settings that change what a model computes, with the values that a `LanguageModel` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}
END, PADDING = "<|endoftext|>", "<|pad|>"
SILENT = -1000.0  # bias of the token that only our vocabulary has, which gets no probability
SPECIAL = {"pad": PADDING, "unk": END, "bos": END, "eos": END}
# The layers of a block, whose kernels are `[in, out]` as ours are. The first holds three of ours.
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
    `<|endoftext|> text <|endoftext|>`. GPT-2 has no padding: one more entry of the vocabulary here
    pads, and the model gives it no probability.
    """

    name, model_type, task = "gpt2", "gpt2", "language_modelling"
    reader, model_class = "AutoModelForCausalLM", LanguageModel
    ignored = (r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias",)

    def config(self) -> LanguageModelConfig:  # noqa: D102
        settings, tokenizer = self.settings, self._tokenizer
        settings.check(EXPRESSIBLE)
        named = settings.get("architectures") or [CLASSES[0]]
        if not isinstance(named, list) or len(named) != 1 or named[0] not in CLASSES:
            raise settings.wrong("architectures", f"one of {', '.join(CLASSES)}")
        for name in ("bos_token_id", "eos_token_id"):
            if settings.get(name, tokenizer.eos_id) != tokenizer.eos_id:
                raise settings.wrong(name, f"{tokenizer.eos_id}, the id of {END}")
        width = settings.count("n_embd")
        inner = settings.get("n_inner")
        return LanguageModelConfig(
            vocab_size=tokenizer.vocab_size,
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            embedding_scale=1.0,
            num_layers=settings.count("n_layer"),
            d_model=width,
            num_heads=settings.count("n_head"),
            d_ff=4 * width if inner is None else settings.count("n_inner"),
            max_length=settings.count("n_positions"),
            dropout=settings.number("resid_pdrop", 0.1),
            attention_dropout=settings.number("attn_pdrop", 0.1),
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu_new"),
            layer_norm_epsilon=settings.number("layer_norm_epsilon", 1e-5),
            position="learned",
            norm="pre",
            attention_bias=True,
            tie="all",
            output_bias=True,
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self._prefix, config.d_model
        yield f"{prefix}h.{config.num_layers - 1}.mlp.c_fc.weight", (width, config.d_ff)
        yield f"{prefix}wte.weight", (config.vocab_size - 1, width)
        yield f"{prefix}wpe.weight", (config.max_length, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix, entries = self._prefix, config.vocab_size - 1
        layout = Layout(entries=entries)
        yield Weight((f"{prefix}wte.weight", "lm_head.weight"), "embedding.table", layout)
        yield Weight(f"{prefix}wpe.weight", "embedding.positions")
        silent = Layout(entries=entries, filling=SILENT)
        yield Weight((), "logits.bias", silent, default=np.zeros(entries, "float32"))
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}h.{number}.", f"decoder.blocks.{number}."
            yield from layers(NORMS, theirs, ours)
            for place, name in enumerate(PARTS):
                layer = f"{ours}self_attention.{name}"
                yield from _linear(f"{theirs}{JOINED}", layer, Layout(share=(place, len(PARTS))))
            for name, layer in BLOCK.items():
                yield from _linear(f"{theirs}{name}", f"{ours}{layer}", SAME)
        yield from layers({"ln_f": "decoder.norm"}, prefix)

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        return Tokenizers.of(self._tokenizer)

    @functools.cached_property
    def _tokenizer(self):
        options = {"starts_with_bos": False, "more": (PADDING,)}
        return read_byte_bpe(self.folder, self.settings, SPECIAL, **options)

    @functools.cached_property
    def _prefix(self):
        """Begins the names of the tensors; in files of the first release it is empty."""
        based = any(name.startswith("transformer.") for name in self.tensors.shapes)
        return "transformer." if based else ""


def _linear(theirs, ours, layout):
    """The weights of a linear layer whose kernel is `[in, out]`."""
    yield Weight(f"{theirs}.weight", f"{ours}.kernel", layout)
    yield Weight(f"{theirs}.bias", f"{ours}.bias", layout)
