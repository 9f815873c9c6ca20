"""ONNX Runtime with the file of `optimum-cli export onnx`, or its int8 form."""

import numpy as np
from encoder_files import OPTIMUM, path_of
from encoder_task import Encoder

from encoder_peers.batches import Batches
from encoder_peers.torch_onnx import open_session


def make(order):
    """Opens a session."""
    session = open_session(path_of(order["folder"], OPTIMUM, order["quantize"]), order["cores"])
    with_types = len(session.get_inputs()) == 3  # of a classifier, which also takes segments

    def run(output, ids, mask):
        inputs = {"input_ids": ids.astype(np.int64), "attention_mask": mask.astype(np.int64)}
        if with_types:
            inputs["token_type_ids"] = np.zeros(ids.shape, np.int64)
        return session.run([output], inputs)[0]

    def labels(ids, mask):
        logits = run("logits", ids, mask)  # [B, C]
        numerators = np.exp(logits - logits.max(1, keepdims=True))
        return numerators / numerators.sum(1, keepdims=True)

    def vectors(ids, mask):
        return run("sentence_embedding", ids, mask)

    head = Encoder(**order["encoder"]).head
    return Batches({"labels": labels, "vector": vectors}[head], order)
