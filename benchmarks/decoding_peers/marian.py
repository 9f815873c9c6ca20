"""Hugging Face's `MarianMTModel.generate` with our weights and positions.

The biases of its attention layers are zero here.
"""

import pathlib

import numpy as np
import torch
from decoding_task import BOS_ID, EOS_ID, PAD_ID, WEIGHTS, Case, Model, without_end
from torch import nn
from transformers import GenerationConfig, MarianConfig, MarianMTModel
from transformers.utils import logging

# Our names and the names in Hugging Face, for every block.
NAMES = {
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward/inner": "fc1",
    "feed_forward/outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}


def make(order):
    """Builds the model and fills in the weights."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    logging.set_verbosity_error()
    task, case = Model(**order["model"]), Case(**order["case"])
    model = _build(task)
    _fill(model, np.load(pathlib.Path(order["folder"], WEIGHTS)))
    model = model.to(getattr(torch, order["precision"])).eval()
    options = GenerationConfig(
        num_beams=case.beam_size,
        max_new_tokens=task.max_length,
        do_sample=False,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
    )
    return Generating(model, case.sources(task), options)


class Generating:
    """A model, one batch, and its generation settings."""

    def __init__(self, model, sources, options):
        self._model, self._options = model, options
        self._sources = torch.from_numpy(sources).long()
        self.metadata = {"tokens": without_end(self._tokens()[:, 1:].tolist())}  # without the start

    @torch.inference_mode()
    def _tokens(self):
        return self._model.generate(
            self._sources,
            attention_mask=torch.ones_like(self._sources),
            generation_config=self._options,
        )

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._tokens()
        return {}


def _build(task):
    config = MarianConfig(
        vocab_size=task.vocab_size, d_model=task.d_model, activation_function="relu",
        encoder_layers=task.num_layers, decoder_layers=task.num_layers,
        encoder_attention_heads=task.num_heads, decoder_attention_heads=task.num_heads,
        encoder_ffn_dim=task.d_ff, decoder_ffn_dim=task.d_ff, scale_embedding=True,
        max_position_embeddings=max(task.max_length + 1, 64), pad_token_id=PAD_ID,
        bos_token_id=BOS_ID, eos_token_id=EOS_ID, decoder_start_token_id=BOS_ID,
        forced_eos_token_id=None,
    )  # fmt: skip
    return MarianMTModel(config)


@torch.no_grad()
def _fill(model, weights):
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-6  # as in our layers
    model.model.shared.weight.copy_(torch.from_numpy(weights["embedding/table"]))
    for name, stack in (("encoder", model.model.encoder), ("decoder", model.model.decoder)):
        positions = torch.from_numpy(weights["embedding/positions"])
        stack.embed_positions.weight[: len(positions)].copy_(positions)
        for number, layer in enumerate(stack.layers):
            for ours, theirs in NAMES.items():
                _fill_module(layer, theirs, weights, f"{name}/block_{number}/{ours}")


def _fill_module(layer, name, weights, ours):
    if f"{ours}/gamma" in weights:
        values, bias = weights[f"{ours}/gamma"], weights[f"{ours}/beta"]
    elif f"{ours}/kernel" in weights:
        values = weights[f"{ours}/kernel"].T
        bias = weights[f"{ours}/bias"] if f"{ours}/bias" in weights else np.zeros(len(values))
    else:
        return  # an encoder has no cross-attention
    module = layer.get_submodule(name)
    module.weight.copy_(torch.from_numpy(values))
    module.bias.copy_(torch.from_numpy(bias))
