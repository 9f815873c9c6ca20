"""CTranslate2's encoder, in a folder that `keras-transformer export ctranslate2` wrote.

It has no heads: the two products after the encoder, or the mean of its states, are computed here.
"""

import ctranslate2
import numpy as np
from encoder_files import path_of
from encoder_task import Encoder

from encoder_peers.batches import Batches


def make(order):
    """Loads the folder."""
    encoder = Encoder(**order["encoder"])
    folder = path_of(order["folder"], "ctranslate2", order["quantize"])
    model = ctranslate2.Encoder(
        str(folder), inter_threads=1, intra_threads=order["cores"],
        compute_type=order["compute_type"],
    )  # fmt: skip
    head = {"labels": _labels, "vector": _vector}[encoder.head](folder)

    def answer(ids, mask):
        rows = [row[:length].tolist() for row, length in zip(ids, mask.sum(1), strict=True)]
        return head(model.forward_batch(rows), mask)

    return Batches(answer, order)


def _labels(folder):
    weights = dict(np.load(folder / "head.npz", allow_pickle=False))

    def head(output, mask):
        first = np.array(output.last_hidden_state)[:, 0]  # [B, D]
        pooled = np.tanh(first @ weights["pooler/kernel"] + weights["pooler/bias"])
        logits = pooled @ weights["output_layer/kernel"] + weights["output_layer/bias"]  # [B, C]
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
