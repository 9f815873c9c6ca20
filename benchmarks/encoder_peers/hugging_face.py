"""Hugging Face's `transformers` with the checkpoint, compiled by torch for the shapes of the case.

The compiler takes the weights as constants, so that it can store them in the layout of its
products.
"""

import pathlib

import torch
from encoder_files import CHECKPOINT, model_with_head
from encoder_task import Encoder
from transformers.utils import logging

from encoder_peers.batches import Batches


def make(order):
    """Loads and compiles the model."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(1)
    logging.set_verbosity_error()
    torch._inductor.config.freezing = True
    torch._dynamo.config.recompile_limit = 64
    encoder = Encoder(**order["encoder"])
    model = model_with_head(encoder, pathlib.Path(order["folder"], CHECKPOINT), "sdpa")
    compiled = torch.compile(model, dynamic=False) if order["compile"] else model

    @torch.inference_mode()
    def answer(ids, mask):
        with torch.no_grad():
            return compiled(torch.from_numpy(ids).long(), torch.from_numpy(mask).long()).numpy()

    return Batches(answer, order)
