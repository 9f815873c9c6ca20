"""Qwen2 and Qwen3 in Hugging Face's format: language models with byte-level BPE."""

from typing import Any

from keras_transformer.pretrained.causal_decoder import CausalDecoder

WORDS = {"pattern": "qwen2", "normalization": "nfc"}
DEFAULTS = {"max_position_embeddings": 32_768, "num_key_value_heads": 32}


class Qwen2(CausalDecoder):
    """Qwen2 and Qwen2.5: queries, keys and values have biases."""

    name, model_type, classes, words = "qwen2", "qwen2", "Qwen2", WORDS
    defaults = DEFAULTS

    def attention(self) -> dict[str, Any]:  # noqa: D102
        return {"attention_bias": True, "attention_output_bias": False}


class Qwen3(CausalDecoder):
    """Qwen3, which normalises query and key heads."""

    name, model_type, classes, words = "qwen3", "qwen3", "Qwen3", WORDS
    defaults = {**DEFAULTS, "head_dim": 128}

    def attention(self) -> dict[str, Any]:  # noqa: D102
        bias = self.settings.flag("attention_bias", False)
        return {"attention_bias": bias, "query_key_norm": "rms"}
