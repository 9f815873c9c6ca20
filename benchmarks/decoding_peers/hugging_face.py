"""Hugging Face's `generate` with the original checkpoint."""

import copy
import pathlib

import numpy as np
import torch
import transformers
from decoding_task import EOS_ID, Case, Model
from transformers.utils import logging

from decoding_peers.marian import Generating


def make(order):
    """Loads the folder with its generation settings, except for beam size and maximum length."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    logging.set_verbosity_error()
    task, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"], "checkpoint")
    precision = getattr(torch, order["precision"])
    prompted = order["format"] == "gpt2"
    kind = transformers.AutoModelForCausalLM if prompted else transformers.AutoModelForSeq2SeqLM
    model = kind.from_pretrained(folder, dtype=precision, local_files_only=True).eval()
    options = copy.deepcopy(model.generation_config)
    # The maximum length includes the start.
    options.update(num_beams=case.beam_size, max_length=task.max_length + 1)
    sources = case.sources(task)
    if prompted:  # a prompt has the start in front of it, and no end
        start = np.full((len(sources), 1), EOS_ID, sources.dtype)
        sources = np.concatenate([start, sources[:, :-1]], axis=1)
    return Generating(model, sources, options)
