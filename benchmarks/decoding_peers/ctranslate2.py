"""CTranslate2 with the folder that `keras-transformer export ctranslate2` writes.

In the vocabulary of the task, the text of each token is its id.
"""

import ctranslate2
from decoding_files import path_of
from decoding_task import EOS_ID, Case, Model

from decoding_peers.parallel import Parts, fastest, ways

SPACE = "\u2581"


def make(order):
    """Loads the folder, with the use of threads that is fastest for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    folder = path_of(order["folder"], "ctranslate2", order["quantize"])
    return fastest(
        [_candidate(folder, model, case, *way) for way in ways(order["cores"], case.batch_size)]
    )


def _candidate(folder, model, case, parts, threads):
    """Returns a candidate in which CTranslate2's own threads decode the parts of a batch."""
    translator = ctranslate2.Translator(str(folder), inter_threads=parts, intra_threads=threads)
    # CTranslate2 adds the end itself.
    batch = [[f"{SPACE}{token}" for token in row if token != EOS_ID] for row in case.sources(model)]
    options = {
        "beam_size": case.beam_size,
        "max_decoding_length": model.max_length,
        "min_decoding_length": 0,
        "max_batch_size": -(-case.batch_size // parts),
    }

    def decode():
        return translator.translate_batch(batch, **options)

    def rows(results):
        return [
            [int(piece.removeprefix(SPACE)) for piece in result.hypotheses[0]] for result in results
        ]

    return Parts([decode], rows, parts, threads)
