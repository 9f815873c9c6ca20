"""CTranslate2 with the folder that `keras-transformer export ctranslate2` writes."""

import json

import ctranslate2
from decoding_files import path_of
from decoding_task import EOS_ID, Case, Model

from decoding_peers.parallel import Parts, fastest, ways

# Names of the vocabulary's file: of a language model, of both sides, of the target.
ALONE, *OTHERS = "vocabulary.json", "shared_vocabulary.json", "target_vocabulary.json"


def make(order):
    """Loads the folder, with the use of threads that is fastest for this case."""
    model, case = Model(**order["model"]), Case(**order["case"])
    folder = path_of(order["folder"], "ctranslate2", order["quantize"])
    return fastest(
        [
            _candidate(folder, model, case, *way, scores=order.get("scores", False))
            for way in ways(order["cores"], case.batch_size)
        ]
    )


def _candidate(folder, model, case, parts, threads, *, scores):
    """Returns a candidate in which CTranslate2's own threads decode the parts of a batch."""
    prompted = (folder / ALONE).is_file()
    path = next(folder / name for name in (ALONE, *OTHERS) if (folder / name).is_file())
    pieces = json.loads(path.read_text("utf-8"))
    ids = {piece: number for number, piece in enumerate(pieces)}
    engine = ctranslate2.Generator if prompted else ctranslate2.Translator
    loaded = engine(str(folder), inter_threads=parts, intra_threads=threads)
    # CTranslate2 adds the end of a source itself. The start of a prompt is the same token.
    start = [EOS_ID] if prompted else []
    batch = [
        [pieces[token] for token in (*start, *row[row != EOS_ID])] for row in case.sources(model)
    ]
    options = {
        "beam_size": case.beam_size,
        "max_batch_size": -(-case.batch_size // parts),
        "return_scores": scores,
    }

    def decode():
        if prompted:  # prompts are read in one pass only if the results do not contain them
            limit = model.max_length - case.source_length + 1
            results = loaded.generate_batch(
                batch, max_length=limit, include_prompt_in_result=False, **options
            )
            pairs = zip(batch, results, strict=True)
            return [prompt[1:] + result.sequences[0] for prompt, result in pairs]
        limits = {"max_decoding_length": model.max_length, "min_decoding_length": 0}
        results = loaded.translate_batch(batch, **limits, **options)
        return [result.hypotheses[0] for result in results]

    def rows(outputs):
        return [[ids[piece] for piece in output] for output in outputs]

    return Parts([decode], rows, parts, threads)
