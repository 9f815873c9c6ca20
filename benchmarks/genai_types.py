"""Types of translators that onnxruntime-genai refuses, each with its error.

python benchmarks/genai_types.py   # with onnxruntime-genai
"""

import json
import pathlib
import tempfile

import onnxruntime_genai

if __name__ == "__main__":
    for kind in ("marian", "t5"):
        with tempfile.TemporaryDirectory() as folder:
            model = {"type": kind, "context_length": 64, "vocab_size": 100}
            config = {"model": {**model, "decoder": {"filename": "decoder.onnx"}}, "search": {}}
            pathlib.Path(folder, "genai_config.json").write_text(json.dumps(config), "utf-8")
            try:
                onnxruntime_genai.Model(folder)
            except RuntimeError as error:
                print(error)
