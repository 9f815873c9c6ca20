"""Session of an .onnx file with strings, in a process without TensorFlow.

A process that has loaded TensorFlow Text, which contains SentencePiece like onnxruntime-extensions,
crashed when it opened such a file. Therefore this module imports neither, and runs as a program.
"""

import importlib
import sys

import numpy as np

from keras_transformer.export.apart import serve
from keras_transformer.export.onnx.packages import EXTENSIONS, load_runtime, open_session

CONTENTS, ANSWER = "contents", "answer"  # signatures of a `StringSession`
INPUTS, OUTPUTS, NAMES, PROPERTIES = "inputs", "outputs", "names", "properties"
UNKNOWN = "\ue000"  # a private-use character, which no vocabulary has


class StringSession:
    """An engine, as `serve` runs it, with an .onnx file that takes strings.

    Its signature `contents` returns names of the inputs and outputs, and the `metadata_props` as
    their names and values; `answer` runs the graph.

    Args:
        path: The file.
        num_threads: Number of threads for an operator.

    Raises:
        ValueError: If ONNX Runtime cannot read the file, or a package is missing.
    """

    signatures = (CONTENTS, ANSWER)

    def __init__(self, path: str, num_threads: int):
        load_runtime()
        library = importlib.import_module(EXTENSIONS).get_library_path()
        try:
            self._session = open_session(path, num_threads, (library,))
        except Exception as error:  # its classes of errors have no common base
            reason = next(iter(str(error).splitlines()), "")
            raise ValueError(f"{path} cannot be read by ONNX Runtime: {reason}") from error

    def run(self, name: str, /, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Runs a signature and returns its outputs by name."""
        session = self._session
        outputs = [tensor.name for tensor in session.get_outputs()]
        if name == ANSWER:
            inputs = {name: _decoded(array) for name, array in inputs.items()}
            return dict(zip(outputs, session.run(None, inputs), strict=True))
        properties = session.get_modelmeta().custom_metadata_map
        tensors = [*session.get_inputs(), *session.get_overridable_initializers()]
        lists = {
            INPUTS: [tensor.name for tensor in tensors],
            OUTPUTS: outputs,
            NAMES: [*properties],
            PROPERTIES: [*properties.values()],
        }
        return {name: np.array(values, object) for name, values in lists.items()}


def _decoded(array):
    """Returns an array in which bytes, as `serve` receives strings, are strings.

    The operators of onnxruntime-extensions 0.15 read a string up to its first U+0000, which no
    vocabulary of SentencePiece has. Another unknown character takes its place.
    """
    if array.dtype.kind != "O":
        return array
    flat = [text.decode().replace("\0", UNKNOWN) for text in array.ravel().tolist()]
    return np.array(flat, object).reshape(array.shape)


def main(path: str, num_threads: str) -> None:
    """Runs a `StringSession` for a `StringModel`."""
    # Any thread may open a file that others use.
    serve(lambda: StringSession(path, int(num_threads)), with_thread=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
