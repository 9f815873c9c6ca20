"""The package sentence-transformers with the checkpoint, from token ids."""

import pathlib

import sentence_transformers
import torch
from encoder_files import CHECKPOINT

from encoder_peers.batches import Batches


def make(order):
    """Loads the model."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(1)
    folder = pathlib.Path(order["folder"], CHECKPOINT)
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu").eval()

    @torch.inference_mode()
    def answer(ids, mask):
        features = {
            "input_ids": torch.from_numpy(ids).long(),
            "attention_mask": torch.from_numpy(mask).long(),
        }
        return model(features)["sentence_embedding"].numpy()

    return Batches(answer, order)
