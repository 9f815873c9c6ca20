"""A process that runs the signatures of a .tflite file, for programs in other languages."""

import struct
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter


def serve(path):
    """Answers requests on the standard input: a name, and inputs by name, as Java writes them."""
    interpreter = Interpreter(path)

    def read(form):
        content = sys.stdin.buffer.read(struct.calcsize(form))
        return struct.unpack(form, content)[0] if content else None

    while (length := read(">H")) is not None:
        run = interpreter.get_signature_runner(sys.stdin.buffer.read(length).decode())
        details, inputs = run.get_input_details(), {}
        for _ in range(read(">i")):
            name = sys.stdin.buffer.read(read(">H")).decode()
            content = sys.stdin.buffer.read(read(">i"))
            dtype, shape = details[name]["dtype"], details[name]["shape"]
            inputs[name] = np.frombuffer(content, dtype).reshape(shape)
        outputs = run(**inputs)
        sys.stdout.buffer.write(struct.pack(">i", len(outputs)))
        for name, value in outputs.items():
            content = value.tobytes()
            sys.stdout.buffer.write(struct.pack(">H", len(name)) + name.encode())
            sys.stdout.buffer.write(struct.pack(">i", len(content)) + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
