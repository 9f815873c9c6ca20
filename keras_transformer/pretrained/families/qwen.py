"""Qwen2 and Qwen3 in Hugging Face's format: language models with byte-level BPE."""

from typing import Any

from keras_transformer.pretrained.causal_decoder import LOCAL, CausalDecoder
from keras_transformer.pretrained.listing import Listing

WORDS = {"pattern": "qwen2", "normalization": "nfc"}
DEFAULTS = {
    "max_position_embeddings": 32_768,
    "num_key_value_heads": 32,
    "sliding_window": 4096,
    "max_window_layers": 28,
}


class Qwen2(CausalDecoder):
    """Qwen2 and Qwen2.5: queries, keys and values have biases.

    Layers from `max_window_layers` on, or those in `layer_types`, may have a sliding window.
    """

    name, model_type, classes, words = "qwen2", "qwen2", "Qwen2", WORDS
    listing = Listing(
        {"llama-mistral-smollm-and-qwen": ("Qwen2", "Qwen2.5")},
        "pretrained_language_models.md",
        "`tokenizer.json`, or `vocab.json` and `merges.txt`",
        exports=("ctranslate2",),
    )
    defaults = DEFAULTS

    def attention(self) -> dict[str, Any]:  # noqa: D102
        return {"attention_bias": ("query", "key", "value")}

    def local_layers(self, count: int) -> set[bool]:  # noqa: D102
        settings = self.settings
        if not settings.flag("use_sliding_window", False) or settings.get("sliding_window") is None:
            return {False}
        first = settings.count("max_window_layers", least=0)
        if kinds := self.layer_types():
            return {kind == LOCAL for kind in kinds}
        return {number >= first for number in (0, count - 1)}


class Qwen3(Qwen2):
    """Qwen3, which normalises query and key heads."""

    name, model_type, classes = "qwen3", "qwen3", "Qwen3"
    listing = Listing(
        {"llama-mistral-smollm-and-qwen": ("Qwen3",)},
        "pretrained_language_models.md",
        "`tokenizer.json`, or `vocab.json` and `merges.txt`",
        exports=("ctranslate2",),
    )
    defaults = {**DEFAULTS, "head_dim": 128}

    def attention(self) -> dict[str, Any]:  # noqa: D102
        bias = self.settings.flag("attention_bias", False)
        return {"attention_bias": bias, "query_key_norm": self.norm()}
