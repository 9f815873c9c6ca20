"""ONNX Runtime with the graph that its own optimizer fuses, in float32 or in dynamic int8."""

import numpy as np
import onnxruntime
from encoder_files import path_of

from encoder_peers.batches import Batches


def make(order):
    """Opens a session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = order["cores"]
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(
        str(path_of(order["folder"], "onnx", order["quantize"])), options,
        providers=["CPUExecutionProvider"],
    )  # fmt: skip

    def answer(ids, mask):
        inputs = {"input_ids": ids.astype(np.int64), "attention_mask": mask.astype(np.int64)}
        return session.run(None, inputs)[0]

    return Batches(answer, order)
