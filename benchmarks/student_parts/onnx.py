"""keras_transformer as a native program: the one in docs/onnx.md, which only needs ONNX Runtime."""

import base64
import json

import numpy as np
import onnxruntime
import sentencepiece

from student_parts.task import Student, sentences, tokens_of


def make(order):
    """Loads the file."""
    (path,) = order["files"]
    return Onnx(path, sentences(Student(**order["student"]), order["batch"]), order["cores"])


class Onnx:
    """An .onnx file and one batch."""

    def __init__(self, path, texts, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        contents = self._session.get_modelmeta().custom_metadata_map
        ids = json.loads(contents["metadata.json"])["tokens"]
        self._end, self._pad = ids["eos"], ids["pad"]
        vocabulary = base64.b64decode(contents["tokenizer.model"])
        self._vocabulary = sentencepiece.SentencePieceProcessor(model_proto=vocabulary)
        self._texts = texts
        self.metadata = {"tokens": [tokens_of(text) for text in self._translate()]}

    def _translate(self):
        rows = [ids + [self._end] for ids in self._vocabulary.encode(self._texts)]
        source = np.full((len(rows), max(map(len, rows))), self._pad, np.int32)
        for row, ids in zip(source, rows, strict=True):
            row[: len(ids)] = ids
        tokens, lengths = self._session.run(["tokens", "length"], {"source": source})
        both = zip(tokens, lengths, strict=True)
        return self._vocabulary.decode([row[:length].tolist() for row, length in both])

    def run(self, steps):
        """Translates the batch `steps` times."""
        for _ in range(steps):
            self._translate()
        return {}
