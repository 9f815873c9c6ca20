"""CTranslate2's encoder, converted by its own converter from the checkpoint.

It has no heads: the two products after the encoder, or the mean of its states, are computed here.
"""

import pathlib

import ctranslate2
import numpy as np
from encoder_files import CHECKPOINT, path_of
from encoder_task import Encoder

from encoder_peers.batches import Batches


def make(order):
    """Loads the folder."""
    encoder = Encoder(**order["encoder"])
    model = ctranslate2.Encoder(
        str(path_of(order["folder"], "ctranslate2", order["quantize"])), inter_threads=1,
        intra_threads=order["cores"], compute_type=order["compute_type"],
    )  # fmt: skip
    head = {"labels": _labels, "vector": _vector}[encoder.head](order["folder"])

    def answer(ids, mask):
        rows = [row[:length].tolist() for row, length in zip(ids, mask.sum(1), strict=True)]
        return head(model.forward_batch(rows), mask)

    return Batches(answer, order)


def _labels(folder):
    from safetensors.numpy import load_file

    tensors = load_file(pathlib.Path(folder, CHECKPOINT, "model.safetensors"))
    kernel, bias = tensors["classifier.weight"].T, tensors["classifier.bias"]

    def head(output, mask):
        logits = np.array(output.pooler_output) @ kernel + bias  # [B, C]
        numerators = np.exp(logits - logits.max(1, keepdims=True))
        return numerators / numerators.sum(1, keepdims=True)

    return head


def _vector(folder):
    def head(output, mask):
        states = np.array(output.last_hidden_state)  # [B, S, D] without padding that all rows have
        real = mask[:, None, : states.shape[1]].astype(np.float32)  # [B, 1, S]
        vectors = (real @ states)[:, 0] / real.sum(-1)  # [B, D]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return head
