"""CTranslate2, from the export of this package. Tokens are called by their ids."""

import pathlib

import ctranslate2
from decoding_task import Case, Model


def make(order):
    """Loads the folder."""
    model, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"], f"ctranslate2_{order['quantize']}")
    translator = ctranslate2.Translator(str(folder), intra_threads=order["cores"])
    return CTranslate2(translator, case, case.sources(model))


class CTranslate2:
    """A translator and one batch."""

    def __init__(self, translator, case, sources):
        self._translator = translator
        self._batch = [[str(token) for token in row[:-1]] for row in sources]  # it adds the end
        self._options = {
            "beam_size": case.beam_size,
            "max_decoding_length": case.length,
            "min_decoding_length": 0,
        }
        self.facts = {"tokens": [[int(token) for token in row] for row in self._tokens()]}

    def _tokens(self):
        results = self._translator.translate_batch(self._batch, **self._options)
        return [result.hypotheses[0] for result in results]

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._tokens()
        return {}
