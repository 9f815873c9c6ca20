"""Bergamot, the engine of Firefox, as a native library.

Runs in a Python of its own, so it imports nothing but the standard library and Bergamot's extension
module. It does not import the package around the extension, which would download a registry of
models.
"""

import importlib.machinery
import importlib.util
import json
import pathlib

NAME = "_bergamot"


def load(folder):
    """Returns the extension module in the folder of the package."""
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    path = next(pathlib.Path(folder, NAME + end) for end in suffixes if
                pathlib.Path(folder, NAME + end).exists())  # fmt: skip
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(NAME, loader))
    loader.exec_module(module)
    return module


def make(order):
    """Loads the model."""
    specification = importlib.util.find_spec("bergamot")
    (folder,) = specification.submodule_search_locations
    return Bergamot(load(folder), order)


class Bergamot:
    """A model in Bergamot, and one batch."""

    def __init__(self, library, order):
        self._library, self._texts = library, order["texts"]
        service = library.ServiceConfig(numWorkers=order["cores"], cacheSize=0, logLevel="off")
        self._service = library.Service(service)
        self._model = self._service.modelFromConfig(configuration(order))
        self._options = library.ResponseOptions(
            qualityScores=False, alignment=False, HTML=False, sentenceMappings=False
        )
        self.metadata = {
            "tokens": [[int(word) for word in text.split()] for text in self._answer()]
        }

    def _answer(self):
        texts = self._library.VectorString(self._texts)
        responses = self._service.translate(self._model, texts, self._options)
        return [response.target.text for response in responses]

    def run(self, steps):
        """Translates the batch `steps` times."""
        for _ in range(steps):
            self._answer()
        return {}


def configuration(order):
    """Returns the engine's settings as YAML: those of Firefox, with space for the batch."""
    model, vocabulary, *lists = order["files"]
    settings = {
        "models": [model], "vocabs": [vocabulary, vocabulary], "beam-size": 1, "normalize": 1.0,
        "word-penalty": 0, "max-length-break": 128, "mini-batch-words": 4096, "workspace": 128,
        "max-length-factor": order["length_factor"], "skip-cost": True, "cpu-threads": 1,
        "quiet": True, "quiet-translation": True, "gemm-precision": "int8shiftAlphaAll",
    }  # fmt: skip
    if lists:
        settings["shortlist"] = [lists[0], False]
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
