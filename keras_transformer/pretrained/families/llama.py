"""Llama in Hugging Face's format, and models of its type, such as SmolLM: language models."""

from typing import Any

from keras_transformer.pretrained.causal_decoder import CausalDecoder


class Llama(CausalDecoder):
    """Llama 3, SmolLM and other models of the type `llama` with byte-level BPE."""

    name, model_type, classes = "llama", "llama", "Llama"

    defaults = {"max_position_embeddings": 2048, "bos_token_id": 1, "eos_token_id": 2}

    def attention(self) -> dict[str, Any]:  # noqa: D102
        return {"attention_bias": self.settings.flag("attention_bias", False)}
