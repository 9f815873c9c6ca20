"""Hugging Face's `MarianMTModel.generate` with the original checkpoint."""

import copy
import pathlib

import torch
from decoding_task import Case, Model
from transformers import MarianMTModel
from transformers.utils import logging

from decoding_peers.marian import Marian


def make(order):
    """Loads the folder with its generation settings, except for beam size and maximum length."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    logging.set_verbosity_error()
    task, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"], "checkpoint")
    precision = getattr(torch, order["precision"])
    model = MarianMTModel.from_pretrained(folder, dtype=precision, local_files_only=True).eval()
    options = copy.deepcopy(model.generation_config)
    # The maximum length includes the start.
    options.update(num_beams=case.beam_size, max_length=task.max_length + 1)
    return Marian(model, case.sources(task), options)
