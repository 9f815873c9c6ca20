"""`CausalDecoder`, the base of families of language models whose tensors have Llama's names."""

import functools
import re
from collections.abc import Iterator
from typing import Any

from keras_transformer.decoding.generation import Generation
from keras_transformer.feed_forwards import Gated
from keras_transformer.norms import RMSNorm
from keras_transformer.pretrained.added_tokens import (
    OPTIONS,
    begins_with_token,
    end_token,
    token_name,
)
from keras_transformer.pretrained.byte_bpe import VOCABULARY, read_byte_bpe
from keras_transformer.pretrained.chat import read_chat_template
from keras_transformer.pretrained.generation import ends_of, generation_of_texts
from keras_transformer.pretrained.names import (
    Layout,
    Weight,
    is_tied,
    layers,
    token_weights,
)
from keras_transformer.pretrained.rotations import LONGEST, positive, rotations
from keras_transformer.pretrained.sentence_family import SentenceFamily
from keras_transformer.pretrained.sentencepiece_bpe import (
    has_sentencepiece_bpe,
    read_sentencepiece_bpe,
)
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings
from keras_transformer.tasks.embedding.config import EmbedderConfig
from keras_transformer.tasks.embedding.model import TextEmbedder
from keras_transformer.tasks.language_modelling.config import LanguageModelConfig
from keras_transformer.tasks.language_modelling.model import LanguageModel

# Settings that change what a model computes, with the values that a `LanguageModel` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "partial_rotary_factor": (None, 1.0),
    "quantization_config": (None,),
}
FULL, LOCAL = "full_attention", "sliding_attention"  # values of `layer_types`
PADDING = "<|pad|>"
TABLE, OUTPUT = "embed_tokens.weight", "lm_head.weight"
BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.o_proj": "self_attention.output_projection",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.inner",
    "mlp.down_proj": "feed_forward.outer",
}
NORMS = {
    "input_layernorm": "self_attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
}
HEAD_NORMS = {
    "self_attn.q_norm": "self_attention.query_norm",
    "self_attn.k_norm": "self_attention.key_norm",
}


class CausalDecoder(SentenceFamily):
    """A folder with `config.json` and a tokenizer: byte-level BPE, or SentencePiece's BPE.

    A text is `bos text eos`; a model without `bos_token_id` begins it with the end token. If the
    tokenizer of `transformers` puts no token there, the text does not attend to it. Unless a
    checkpoint has its own token for padding, the vocabulary gets one more token. The model here
    gives padding no probability. A folder of a sentence encoder becomes a model for vectors, whose
    texts end in the token that `tokenizer.json` puts there.

    Attributes:
        classes: Beginning of the names of its classes, such as `"Llama"`.
        defaults: Values of settings that are missing, a dictionary.
        words: Options of `read_byte_bpe` for a checkpoint without `tokenizer.json`, a dictionary.
            `None`: it must have that file.
    """

    classes, base = "", "model."
    defaults: dict[str, Any] = {}
    words: dict[str, str] | None = None

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, ...]]:  # noqa: D102
        return {
            f"{cls.classes}ForCausalLM": ("language_modelling",),
            f"{cls.classes}Model": ("embedding",),
        }

    @property
    def task(self) -> str:
        """Name of the task."""
        return "embedding" if self.sentences else "language_modelling"

    @property
    def reader(self) -> str:
        """Class of `transformers` that reads the folder, for messages."""
        return "AutoModel" if self.sentences else "AutoModelForCausalLM"

    @property
    def model_class(self) -> type[Any]:  # ty: ignore[incompatible-property-override]
        """Class of the model."""
        return TextEmbedder if self.sentences else LanguageModel

    @property
    def ignored(self) -> tuple[str, ...]:
        """Buffers, and output weights that no vector depends on."""
        buffers = r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq"
        return (buffers, *([re.escape(OUTPUT)] if self.sentences else []))

    def attention(self) -> dict[str, Any]:
        """Returns the options of biases and normalisations in attention."""
        raise NotImplementedError

    def local_layers(self, count: int) -> set[bool]:
        """Returns whether some of `count` layers have a sliding window and whether some have none.

        The window is `sliding_window` wide. The set contains `True` if a layer has it and `False`
        if a layer does not. It is not a list, because `count` may be wrong.
        """
        self.settings.check({"use_sliding_window": (False, None)})
        if {*self.layer_types()} - {FULL}:
            raise self.settings.wrong("layer_types", f"{FULL} for every layer")
        return {False}

    def layer_types(self) -> list[str]:
        """Returns the setting `layer_types`, empty if it is missing."""
        kinds = self.settings.get("layer_types") or []
        if not isinstance(kinds, list) or not {*map(str, kinds)} <= {FULL, LOCAL}:
            raise self.settings.wrong("layer_types", f"a list of {FULL} and {LOCAL}")
        if kinds and len(kinds) != self.settings.count("num_hidden_layers"):
            raise self.settings.wrong("layer_types", "a list with one entry for each layer")
        return kinds

    def read_settings(self) -> CheckpointSettings:  # noqa: D102
        settings = super().read_settings()
        return CheckpointSettings({**self.defaults, **settings.content}, settings.path)

    def config(self) -> LanguageModelConfig | EmbedderConfig:  # noqa: D102
        settings, tokenizer = self.settings, self.tokenizer
        settings.check(EXPRESSIBLE)
        settings.architecture([f"{self.classes}ForCausalLM", f"{self.classes}Model"])
        heads, groups, size = self._heads()
        shared = dict(
            **tokenizer.config_fields,
            embedding_scale=1.0,
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=heads,
            num_key_value_heads=groups,
            d_k=size,
            d_v=size,
            d_ff=settings.count("intermediate_size"),
            dropout=0.0,
            attention_dropout=settings.number("attention_dropout", 0.0),
            activation=settings.choice("hidden_act", ACTIVATIONS, "silu"),
            feed_forward=Gated(bias=settings.flag("mlp_bias", False)),
            normalization=self.norm(),
            norm="pre",
            position=rotations(settings, size),
            **self.attention(),
            **self._window(),
        )
        longest = self._longest()
        if self.sentences:
            self.sentences.check_tokenizer(tokenizer)
            longest = min(longest, self.sentences.max_length or longest)
            return EmbedderConfig(
                **shared, **self.sentences.options, max_length=longest, causal=True
            )
        return LanguageModelConfig(
            **shared,
            max_length=longest,
            tie="all" if is_tied(self, OUTPUT, [self.prefix + TABLE], False) else "none",
            output_bias=True,
            attends_to_start=None if self._starts_with_token else False,
        )

    def norm(self) -> RMSNorm:
        """Returns the normalisation, also of queries and keys if they have one."""
        return RMSNorm(positive(self.settings, "rms_norm_eps", 1e-6))

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self.prefix, config.d_model
        last = f"{prefix}layers.{config.num_layers - 1}."
        yield f"{prefix}{TABLE}", (self.settings.count("vocab_size"), width)
        (stack,) = config.stacks
        block, heads = stack.block, stack.block.mixer
        yield f"{last}self_attn.q_proj.weight", (heads.num_heads * heads.d_k, width)
        yield f"{last}self_attn.k_proj.weight", (heads.groups * heads.d_k, width)
        yield f"{last}mlp.down_proj.weight", (width, block.d_ff)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix, entries = self.prefix, self.settings.count("vocab_size")
        if self.sentences:
            yield Weight(f"{prefix}{TABLE}", "embedding.table", Layout(entries=entries))
        else:
            yield from token_weights(f"{prefix}{TABLE}", OUTPUT, config, entries)
        (stack,), place = config.stacks, "encoder" if self.sentences else "decoder"
        normed = stack.block.mixer.query_key_norm is not None
        norms = {**NORMS, **HEAD_NORMS} if normed else NORMS
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}layers.{number}.", f"{place}.blocks.{number}."
            yield from layers(BLOCK, theirs, ours)
            for name, norm in norms.items():
                yield Weight(f"{theirs}{name}.weight", f"{ours}{norm}.scale")
        yield Weight(f"{prefix}norm.weight", f"{place}.norm.scale")

    def chat(self) -> Any:  # noqa: D102
        if self.sentences:
            return None
        return read_chat_template(self.folder, self.tokenizer, self.notes)

    def generation(self) -> Generation | None:  # noqa: D102
        if self.sentences:
            return None
        settings, size = self.generation_settings, self.tokenizer.vocab_size
        return generation_of_texts(settings, ends_of(self.settings, settings, size)[1])

    def _heads(self):
        """Returns the number of heads, the number of key and value heads, and the size of each."""
        settings = self.settings
        width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
        groups = settings.get("num_key_value_heads")
        groups = heads if groups is None else settings.count("num_key_value_heads")
        if heads % groups:
            raise settings.wrong("num_key_value_heads", f"a divisor of {heads}, the heads")
        size = settings.get("head_dim")
        if size is None and width % heads:
            raise settings.wrong("hidden_size", f"a multiple of {heads}, the heads")
        size = width // heads if size is None else settings.count("head_dim")
        if size % 2:
            raise settings.wrong("head_dim", f"even, as positions rotate pairs. It is {size}")
        return heads, groups, size

    def _window(self):
        """Returns the options of local self-attention."""
        settings, count = self.settings, self.settings.count("num_hidden_layers")
        local = self.local_layers(count)
        if not any(local):
            return {}
        width = settings.count("sliding_window", least=2)  # the query itself included
        if width >= self._longest():
            return {}
        if not all(local):
            name = "layer_types" if settings.get("layer_types") else "max_window_layers"
            raise settings.wrong(name, f"one kind of attention for all of the {count} layers")
        return {"window": width - 1}

    def _longest(self):
        longest = self.settings.count("max_position_embeddings")
        if longest > LONGEST:
            raise self.settings.wrong("max_position_embeddings", f"at most {LONGEST}")
        return longest

    @functools.cached_property
    def _starts_with_token(self):
        """True if the tokenizer of `transformers` puts a token in front of a text."""
        options = CheckpointSettings(self.folder.json(OPTIONS) or {}, self.folder.path / OPTIONS)
        content, chosen = self.folder.json(VOCABULARY), options.flag("add_bos_token", None)
        if chosen is not None:
            return chosen and options.get("bos_token", "") is not None
        if content is None:  # `transformers` 4 puts it there, version 5 needs the option
            return has_sentencepiece_bpe(self.folder)
        return begins_with_token(content)

    @functools.cached_property
    def tokenizer(self) -> Any:  # noqa: D102
        self.tensors.check_rows(f"{self.prefix}{TABLE}", self.settings, "vocab_size")
        files = self.folder, self.settings, self._special
        options: dict[str, Any] = {
            "padding": self._padding,
            "marks": lambda special: [(None, None), (special["bos"], None)],
        }
        if self.sentences:
            self.folder.require(VOCABULARY)
            options["marks"] = lambda special: [(None, special["eos"])]
        if has_sentencepiece_bpe(self.folder):
            tokenizer = read_sentencepiece_bpe(*files, **options)
        else:
            if self.words is None:
                self.folder.require(VOCABULARY)
            tokenizer = read_byte_bpe(
                *files, starts_with_bos=False, **options, **(self.words or {})
            )
        is_lost = not self.sentences and (self.folder.json(OPTIONS) or {}).get("add_eos_token")
        if is_lost:
            self.notes.append("`add_eos_token` is not carried over: no prompt ends in that token")
        return tokenizer

    def _special(self, pieces):
        """Returns the tokens that begin and end a text."""
        eos, _ = ends_of(self.settings, self.generation_settings, len(pieces))
        if self.sentences:
            content = self.folder.json(VOCABULARY) or {}
            eos = end_token(content, pieces, self.folder.path / VOCABULARY)
            return {role: pieces[eos] for role in ("bos", "eos", "unk")}
        bos = self.settings.token("bos_token_id", len(pieces), default=eos)
        return {"bos": pieces[bos], "eos": pieces[eos], "unk": pieces[eos]}

    def _padding(self, pieces, unknown=None):
        """The checkpoint's own token for padding, if it has no other purpose; or `PADDING`."""
        number = self.settings.token("pad_token_id", len(pieces), optional=True)
        options = self.folder.json(OPTIONS) or {}
        named = token_name(options.get("pad_token"))
        own = pieces[number] if number is not None else named
        _, further = ends_of(self.settings, self.generation_settings, len(pieces))
        others = {*self._special(pieces).values(), *(pieces[end] for end in further), unknown}
        return own if own in pieces and own not in others else PADDING
