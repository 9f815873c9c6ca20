"""keras_transformer as a native program: that of docs/litert_files.md, which only needs LiteRT."""

import json
import zipfile

import numpy as np
import sentencepiece
from ai_edge_litert.interpreter import Interpreter

from student_parts.task import Student, sentences, tokens_of


def make(order):
    """Loads the file."""
    (path,) = order["files"]
    return LiteRT(path, sentences(Student(**order["student"]), order["batch"]), order["cores"])


class LiteRT:
    """A .tflite file and one batch."""

    def __init__(self, path, texts, threads):
        with zipfile.ZipFile(path) as archive:
            metadata = json.loads(archive.read("metadata.json"))
            vocabulary = archive.read("tokenizer.model")
        self._vocabulary = sentencepiece.SentencePieceProcessor(model_proto=vocabulary)
        self._end, self._pad = (metadata["tokens"][name] for name in ("eos", "pad"))
        self._interpreter = Interpreter(str(path), num_threads=threads)
        self._texts = texts
        rows = self._encode()
        fitting = [
            signature
            for signature in metadata["signatures"]
            if signature["batch_size"] == len(texts)
            and signature["source_length"] >= max(map(len, rows))
        ]
        best = min(fitting, key=lambda signature: signature["source_length"])
        self._shape = len(texts), best["source_length"]
        self._search = self._interpreter.get_signature_runner(best["name"])
        self.metadata = {"tokens": [tokens_of(text) for text in self._translate()]}

    def _encode(self):
        return [ids + [self._end] for ids in self._vocabulary.encode(self._texts)]

    def _translate(self):
        source = np.full(self._shape, self._pad, np.int32)
        for row, ids in zip(source, self._encode(), strict=True):
            row[: len(ids)] = ids
        answer = self._search(source=source)
        both = zip(answer["tokens"], answer["length"], strict=True)
        return self._vocabulary.decode([row[:length].tolist() for row, length in both])

    def run(self, steps):
        """Translates the batch `steps` times."""
        for _ in range(steps):
            self._translate()
        return {}
