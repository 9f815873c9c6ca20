"""Llama in Hugging Face's format, and models of its type, such as SmolLM: language models."""

from typing import Any

from keras_transformer.pretrained.causal_decoder import CausalDecoder
from keras_transformer.pretrained.listing import Listing


class Llama(CausalDecoder):
    """Llama 3, SmolLM and other models of the type `llama` with byte-level BPE."""

    name, model_type, classes = "llama", "llama", "Llama"
    listing = Listing(
        {"llama-mistral-smollm-and-qwen": ("Llama", "TinyLlama", "SmolLM", "EuroLLM", "Tower")},
        "pretrained_language_models.md",
        "`tokenizer.json` or `tokenizer.model`",
        exports=("ctranslate2",),
        tried=("SmolLM2-135M-Instruct",),
    )

    defaults = {"max_position_embeddings": 2048, "bos_token_id": 1, "eos_token_id": 2}

    def attention(self) -> dict[str, Any]:  # noqa: D102
        return {"attention_bias": self.settings.flag("attention_bias", False)}
