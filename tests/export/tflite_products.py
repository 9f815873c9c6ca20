"""The matrix products of a .tflite file."""

from tensorflow.lite.python import schema_py_generated as schema

TYPES = {number: name for name, number in vars(schema.TensorType).items()}


def products(content):
    """Returns for each FULLY_CONNECTED its operand types, and whether its matrix is stored."""
    model = schema.Model.GetRootAs(content, 0)
    kinds = []
    for graph in map(model.Subgraphs, range(model.SubgraphsLength())):
        for operator in map(graph.Operators, range(graph.OperatorsLength())):
            code = model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode()
            if code == schema.BuiltinOperator.FULLY_CONNECTED:
                left, right = (graph.Tensors(operator.Inputs(number)) for number in (0, 1))
                stored = model.Buffers(right.Buffer()).DataLength() > 0
                kinds.append((TYPES[left.Type()], TYPES[right.Type()], stored))
    return kinds
