"""ONNX graphs: values, nodes, and the removal of nodes that nothing reads."""
