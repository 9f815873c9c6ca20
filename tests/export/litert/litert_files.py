"""The contents of a .tflite file, a program that runs one without us, and a model to export."""

import dataclasses
import zipfile

import keras
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.text.tokenizers import WordPieceTokenizer

# The program of a phone: the interpreter and token ids, without our package and TensorFlow.
PHONE = """
import json, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1])
name = sys.argv[2]
run = interpreter.get_signature_runner(name)
answers = []
for ids in json.loads(sys.argv[3]):
    source = np.zeros(run.get_input_details()["source"]["shape"], np.int32)
    source[:, : len(ids)] = ids
    answers.append(run(source=source)["tokens"][0].tolist())
imported = {name.partition(".")[0] for name in sys.modules}
assert not imported & {"tensorflow", "keras", "keras_transformer"}
print(json.dumps(answers))
"""


def model_of(path):
    """Returns the model in a file, without the archive after it."""
    with zipfile.ZipFile(path) as archive:
        return path.read_bytes()[: min(item.header_offset for item in archive.infolist())]


def operators(path):
    """Returns the builtin operators, and the operator that makes each output of a signature."""
    model = schema.Model.GetRootAs(path.read_bytes(), 0)
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    codes = [
        names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
        for code in map(model.OperatorCodes, range(model.OperatorCodesLength()))
    ]
    ends = {}
    for signature in map(model.SignatureDefs, range(model.SignatureDefsLength())):
        graph = model.Subgraphs(signature.SubgraphIndex())
        makers = {
            int(output): codes[operator.OpcodeIndex()]
            for operator in map(graph.Operators, range(graph.OperatorsLength()))
            for output in operator.OutputsAsNumpy()
        }
        for output in map(signature.Outputs, range(signature.OutputsLength())):
            ends[signature.SignatureKey(), output.Name()] = makers[output.TensorIndex()]
    return set(codes), ends


def tables(path, shape):
    """Returns the distinct contents of all tensors of a shape that the file stores."""
    model = schema.Model.GetRootAs(path.read_bytes(), 0)
    buffers = set()
    for graph in map(model.Subgraphs, range(model.SubgraphsLength())):
        for tensor in map(graph.Tensors, range(graph.TensorsLength())):
            buffer = model.Buffers(tensor.Buffer())
            rank = tensor.ShapeLength()
            if rank == 2 and tuple(tensor.ShapeAsNumpy()) == shape and buffer.DataLength():
                buffers.add((tensor.Buffer(), buffer.DataAsNumpy().tobytes()))
    return [content for _, content in buffers]


def stored_shapes(path):
    """Returns the shapes of all constants that the file stores, in a list."""
    model = schema.Model.GetRootAs(path.read_bytes(), 0)
    return [
        tuple(tensor.ShapeAsNumpy())
        for graph in map(model.Subgraphs, range(model.SubgraphsLength()))
        for tensor in map(graph.Tensors, range(graph.TensorsLength()))
        if tensor.ShapeLength() and model.Buffers(tensor.Buffer()).DataLength()
    ]


def codes_of(table):
    """Returns the table in int8 with one scale per row, computed by plain loops."""
    codes = np.zeros(table.shape, np.int8)
    for row, values in zip(codes, table.astype(np.float64), strict=True):
        scale = np.abs(values).max() / 127
        row[:] = [int(abs(v) / scale + 0.5) * (1 if v > 0 else -1) for v in values]
    return codes


def translator_of(model):
    """A translator with the given model and a vocabulary of the right size."""
    words = map(str, range(4, model.config.tokens.vocab_size))
    return Translator(model, WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]))


def untrained_translator(tokenizer):
    """An untrained translator, whose outputs are long and different for each sentence."""
    keras.utils.set_random_seed(0)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size,
        num_layers=1, d_model=8, d_ff=8, num_heads=2, max_length=12,
    )  # fmt: skip
    return Translator(Transformer(config), tokenizer)


@dataclasses.dataclass(frozen=True)
class Function:
    """A signature of a file: names of its operators, and its inputs and outputs by name.

    Attributes:
        inputs, outputs: Dictionaries from names to shapes and dtypes.
        is_fixed: Whether all shapes are known.
        is_computed: Whether operators make all outputs.
        has_twins: Whether one tensor is two outputs.
    """

    operators: set
    inputs: dict
    outputs: dict
    is_fixed: bool
    is_computed: bool
    has_twins: bool


def functions_of(path):
    """Returns the `Function`s of a file by name."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    codes = [names[max(c.builtinCode, c.deprecatedBuiltinCode)] for c in model.operatorCodes]
    types = {schema.TensorType.FLOAT32: "float32", schema.TensorType.INT32: "int32"}

    def named(graph, maps):
        tensors = {one.name.decode(): graph.tensors[one.tensorIndex] for one in maps}
        return {name: (tuple(t.shape), types[t.type]) for name, t in tensors.items()}

    functions = {}
    for signature in model.signatureDefs:
        graph = model.subgraphs[signature.subgraphIndex]
        ends = [one.tensorIndex for one in signature.outputs]
        functions[signature.signatureKey.decode()] = Function(
            {codes[operator.opcodeIndex] for operator in graph.operators},
            named(graph, signature.inputs),
            named(graph, signature.outputs),
            all(t.shapeSignature is None or min(t.shapeSignature, default=0) >= 0
                for t in graph.tensors),
            {*ends} <= {tensor for operator in graph.operators for tensor in operator.outputs},
            len({*ends}) < len(ends),
        )  # fmt: skip
    return functions
