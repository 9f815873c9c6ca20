"""ONNX Runtime with a graph of torch's exporter that its own optimizer fuses, or its int8 form."""

import numpy as np
import onnxruntime
from encoder_files import TORCH_ONNX, path_of

from encoder_peers.batches import Batches


def make(order):
    """Opens a session."""
    path = path_of(order["folder"], TORCH_ONNX, order["quantize"])
    session = open_session(path, order["cores"])

    def answer(ids, mask):
        inputs = {"input_ids": ids.astype(np.int64), "attention_mask": mask.astype(np.int64)}
        return session.run(None, inputs)[0]

    return Batches(answer, order)


def open_session(path, cores):
    """Opens a file with all optimizations, for a number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(str(path), options, providers=providers)
