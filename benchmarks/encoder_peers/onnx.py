"""keras_transformer: the file that `keras-transformer export onnx` writes, run by ONNX Runtime.

Its graph takes token ids, and ignores padding by itself.
"""

from encoder_files import path_of
from encoder_task import Encoder

from encoder_peers.batches import Batches
from encoder_peers.torch_onnx import open_session


def make(order):
    """Opens a session."""
    encoder = Encoder(**order["encoder"])
    session = open_session(path_of(order["folder"], "onnx", order["quantize"]), order["cores"])
    return Batches(lambda ids, mask: session.run([encoder.output], {"source": ids})[0], order)
