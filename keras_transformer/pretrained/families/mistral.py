"""Mistral in Hugging Face's format: language models with Llama's layers and sliding windows."""

from typing import Any

from keras_transformer.pretrained.causal_decoder import CausalDecoder
from keras_transformer.pretrained.listing import Listing


class Mistral(CausalDecoder):
    """Mistral 7B and other models of the type `mistral`."""

    name, model_type, classes = "mistral", "mistral", "Mistral"
    listing = Listing(
        {"llama-mistral-smollm-and-qwen": ("Mistral",)},
        "pretrained_language_models.md",
        "`tokenizer.json` or `tokenizer.model`",
        exports=("ctranslate2",),
    )

    defaults = {
        "max_position_embeddings": 131_072,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }

    def attention(self) -> dict[str, Any]:  # noqa: D102
        return {"attention_bias": False}

    def local_layers(self, count: int) -> set[bool]:  # noqa: D102
        return {self.settings.get("sliding_window") is not None}
