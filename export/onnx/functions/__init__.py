"""Functions of TensorFlow, with their loops and branches, as nodes of an ONNX graph."""
