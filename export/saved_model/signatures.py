"""Table of the signatures of a SavedModel that generates text."""

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.decoding.search import check_search
from keras_transformer.export.saved_model import endpoints
from keras_transformer.export.saved_model.words import (
    SentencesAndTerms,
    SentencesAndWords,
    WordedSearch,
)
from keras_transformer.export.searches import ModelSearch, RequestedSearch, traced
from keras_transformer.export.worded import WORDS
from keras_transformer.tasks.results import TOKEN_SCORES
from keras_transformer.tasks.signatures import DEFAULT


def make_endpoints(
    pipeline,
    search=Greedy(),
    n_best=None,
    graph_of=traced,
    alignment=None,
    takes_words=False,
    token_scores=False,
) -> list[endpoints.Endpoint]:
    """Returns the signatures of an export, in order. A new signature is a new row of the table.

    Args:
        pipeline: A `Generator`.
        search: The search of the default signature. A `Beam` is also used by all signatures with a
            beam; with a `Greedy` these use `Beam(4)`, or a beam of `n_best` if that is more.
        n_best: Number M of outputs of the signatures that return several. `None`: 4, or the beam's
            size if that is less.
        graph_of: Function from a search to the graph that the endpoints call.
        alignment: Layer and head of the decoder, a pair of integers; a head of `None` is the mean
            of the layer's heads. Adds a signature that also returns this attention. `None`: there
            is no such signature.
        token_scores: Whether there is a signature that also returns the scores of tokens.
        takes_words: Whether there is a signature with words in the request.

    Returns:
        List of `Endpoint`s.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If `n_best` is not between 1 and the size of the beam, or the layer or head does
            not exist.
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
        (endpoints.Sentences, DEFAULT, best, False),
        (endpoints.Sentences, "n_best", several, True),
        (endpoints.Ids, "tokens", ModelSearch(pipeline, greedy), False),
        (endpoints.Ids, "beam_tokens", several, True),
        (endpoints.SentencesAndSettings, "search", RequestedSearch(pipeline, beam, n_best), True),
    ]
    languages = pipeline.source_tokenizer.languages
    if languages is not None:
        both = languages.of_source
        kind = endpoints.SentencesAndLanguages if both else endpoints.SentencesAndTargets
        table.append((kind, "languages", best, False))
    if alignment is not None:
        aligned = ModelSearch(pipeline, search, alignment=tuple(alignment))
        table.append((endpoints.Alignments, "alignment", aligned, False))
    if token_scores:
        scored = ModelSearch(pipeline, search, token_scores=True)
        table.append((endpoints.TokenScores, TOKEN_SCORES, scored, False))
    if takes_words:
        worded = WordedSearch(pipeline, search)
        kind = SentencesAndTerms if search.takes_terms else SentencesAndWords
        table.append((kind, WORDS, worded, False))
    # XLA would compile a search with words again for every number of them.
    graphs = {
        search: traced(search) if isinstance(search, WordedSearch) else graph_of(search)
        for search in dict.fromkeys(row[2] for row in table)
    }
    return [kind(name, search, graphs[search], beam, many) for kind, name, search, many in table]
