"""The signatures of a SavedModel that generates text, in a table."""

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.decoding.search import check_search
from keras_transformer.export.saved_model.endpoints import (
    Alignments,
    Ids,
    Sentences,
    SentencesAndSettings,
)
from keras_transformer.export.searches import ModelSearch, RequestedSearch, traced
from keras_transformer.tasks.signatures import DEFAULT


def make_endpoints(pipeline, search=Greedy(), n_best=None, graph_of=traced, alignment=None):
    """Returns the signatures of an export, in order; the table to add another one to.

    Args:
        pipeline: A `Generator`.
        search: The search of the default signature. A `Beam` is that of all others with a beam,
            which otherwise use one of 4, or of `n_best` if that is more.
        n_best: Translations M that the signatures with several give. `None`: 4, or the beam's size
            if that is less.
        graph_of: Makes of each search the function that the endpoints call.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: with it there is a signature that also gives what each token attended to.

    Returns:
        List of `Endpoint`s.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If `n_best` is not between 1 and the size of the beam, or there is no such layer
            or head.
    """
    check_search(search, Greedy, Beam)
    config = pipeline.model.config
    beam = search if isinstance(search, Beam) else Beam(max(4, n_best or 4))
    n_best = min(4, beam.size) if n_best is None else n_best
    pipeline.check(beam, n_best)
    check_alignment(alignment, config)
    greedy = search if isinstance(search, Greedy) else pipeline.greedy
    best = ModelSearch(pipeline, search)
    several = ModelSearch(pipeline, beam, n_best)
    table = [
        (Sentences, DEFAULT, best, False),
        (Sentences, "n_best", several, True),
        (Ids, "tokens", ModelSearch(pipeline, greedy), False),
        (Ids, "beam_tokens", several, True),
        (SentencesAndSettings, "search", RequestedSearch(pipeline, beam, n_best), True),
    ]
    if alignment is not None:
        aligned = ModelSearch(pipeline, search, alignment=tuple(alignment))
        table.append((Alignments, "alignment", aligned, False))
    graphs = {search: graph_of(search) for search in dict.fromkeys(row[2] for row in table)}
    return [kind(name, search, graphs[search], beam, many) for kind, name, search, many in table]
