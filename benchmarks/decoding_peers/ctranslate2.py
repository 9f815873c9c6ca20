"""CTranslate2, from the export of this package. Tokens are called by their ids."""

import pathlib

import ctranslate2
from decoding_task import Case, Model

from decoding_peers.parallel import Parts, fastest, ways


def make(order):
    """Loads the folder, with the threads that are the best for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    folder = pathlib.Path(order["folder"], f"ctranslate2_{order['quantize']}")
    return fastest(
        [_candidate(folder, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(folder, model, case, parts, threads):
    """CTranslate2 has threads of its own for parts of a batch."""
    translator = ctranslate2.Translator(str(folder), inter_threads=parts, intra_threads=threads)
    batch = [[str(token) for token in row[:-1]] for row in case.sources(model)]  # it adds the end
    options = {
        "beam_size": case.beam_size,
        "max_decoding_length": case.length,
        "min_decoding_length": 0,
        "max_batch_size": -(-case.batch_size // parts),
    }

    def decode():
        return translator.translate_batch(batch, **options)

    def rows(results):
        return [[int(token) for token in result.hypotheses[0]] for result in results]

    return Parts([decode], rows, parts, threads)
