"""TensorFlow's graphs as ONNX graphs, with the operators that this package uses."""
