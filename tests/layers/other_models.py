"""Stacks of other models in `transformers`, run by a Python that has it and torch, not by ours.

`python other_models.py FOLDER` writes `FOLDER/NAME.npz` for each of `MODELS`: its weights by name,
the hidden states before the first block, `x`, for a decoder also `memory`, and the hidden states
after the last block, `out`.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers as hf

B, T, S, D = 2, 11, 13, 24
SIZES = {"hidden_size": D, "num_attention_heads": 4, "vocab_size": 5}
LLAMA = {
    **SIZES,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 17,
    "rms_norm_eps": 1e-3,
    "pad_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
}
LLAMA3 = {
    **{"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0},
    **{"high_freq_factor": 4.0, "original_max_position_embeddings": 40},
}
T5 = {
    **{"d_model": D, "d_kv": 7, "d_ff": 17, "num_layers": 2, "num_heads": 3, "vocab_size": 5},
    **{"relative_attention_num_buckets": 8, "relative_attention_max_distance": 9},
    **{"feed_forward_proj": "gated-gelu", "dropout_rate": 0.0, "pad_token_id": 0},
}
WHISPER = {
    **{"d_model": D, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 17},
    **{"decoder_layers": 1, "vocab_size": 5, "pad_token_id": 0, "bos_token_id": 1},
    **{"eos_token_id": 2, "decoder_start_token_id": 1},
}
MODERN_BERT = {
    **SIZES,
    **{"num_hidden_layers": 4, "intermediate_size": 17, "local_attention": 6, "norm_eps": 1e-3},
    **{"global_attn_every_n_layers": 3, "pad_token_id": 0, "attn_implementation": "eager"},
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 500.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
    },
}


def embedded(model, x, memory):
    return model(inputs_embeds=x).last_hidden_state


def without_positions(model, x, memory):
    model.wpe.weight.zero_()
    return embedded(model, x, memory)


def with_memory(model, x, memory):
    """Runs the decoder on the memory of the encoder."""
    return model(inputs_embeds=memory, decoder_inputs_embeds=x).last_hidden_state


def layer_by_layer(model, x, memory):
    for layer in model.encoder.layers:
        out = layer(x, None)
        x = out[0] if isinstance(out, tuple) else out
    return model.encoder.layer_norm(x)


MODELS = {
    "llama": (lambda: hf.LlamaModel(hf.LlamaConfig(**LLAMA)), embedded),
    "qwen2": (lambda: hf.Qwen2Model(hf.Qwen2Config(**LLAMA)), embedded),
    "llama3": (
        lambda: hf.LlamaModel(hf.LlamaConfig(**{**LLAMA, "rope_parameters": LLAMA3})),
        embedded,
    ),
    "qwen3": (lambda: hf.Qwen3Model(hf.Qwen3Config(**LLAMA, head_dim=10)), embedded),
    "gpt2": (
        lambda: hf.GPT2Model(
            hf.GPT2Config(n_embd=D, n_layer=2, n_head=4, n_inner=17, vocab_size=5)
        ),
        without_positions,
    ),
    "t5": (lambda: hf.T5Model(hf.T5Config(**T5)), with_memory),
    "whisper": (lambda: hf.WhisperModel(hf.WhisperConfig(**WHISPER)), layer_by_layer),
    "modernbert": (lambda: hf.ModernBertModel(hf.ModernBertConfig(**MODERN_BERT)), embedded),
}


def main(folder):
    for seed, (name, (make, run)) in enumerate(MODELS.items()):
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape, generator=generator):
            return torch.randn(*shape, generator=generator)

        model = make().eval()
        with torch.no_grad():
            for key, values in model.named_parameters():
                scale = values.shape[-1] ** -0.5 if values.ndim > 1 else 0.3
                is_gain = values.ndim == 1 and not key.endswith("bias")
                values.copy_(scale * normal(*values.shape) + is_gain)
            x, memory = normal(B, T, D), normal(B, S, D)
            out = run(model, x, memory)
        weights = {key: values.detach().numpy() for key, values in model.named_parameters()}
        np.savez(folder / f"{name}.npz", x=x, memory=memory, out=out, **weights)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
