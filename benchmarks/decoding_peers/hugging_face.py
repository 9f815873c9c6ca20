"""Hugging Face's `MarianMTModel.generate` with the checkpoint that it reads itself."""

import copy
import pathlib

import torch
from decoding_task import Case, Model
from transformers import MarianMTModel
from transformers.utils import logging

from decoding_peers.marian import Marian


def make(order):
    """Loads the folder, with its own settings of a generation but for the beams and the limit."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    logging.set_verbosity_error()
    task, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"], "checkpoint")
    precision = getattr(torch, order["precision"])
    model = MarianMTModel.from_pretrained(folder, dtype=precision, local_files_only=True).eval()
    options = copy.deepcopy(model.generation_config)
    options.update(num_beams=case.beam_size, max_length=task.max_length + 1)  # with the start
    return Marian(model, case.sources(task), options)
