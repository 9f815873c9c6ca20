"""Metrics of a shortlist: agreement of a search with and without it."""

from typing import Any

import numpy as np

from keras_transformer.export.parity import compare


def shortlist_metadata(shortlist) -> dict[str, Any]:
    """Returns the metadata of a `Shortlist`, a dictionary; empty for `None`."""
    if shortlist is None:
        return {}
    return {"shortlist": {"first": shortlist.first, "best": shortlist.best}}


def shortlist_metrics(pipeline, sentences, search=None) -> dict[str, Any]:
    """Compares a search among the candidates of a shortlist with a search among all tokens.

    Both are searches of the model in memory.

    Args:
        pipeline: A `Generator`.
        sentences: List of strings.
        search: A `Greedy` or `Beam`. `None`: the greedy search of the pipeline.

    Returns:
        Dictionary of `shortlist`, a dictionary of the shortlist's `first` and `best`; `candidates`,
        the mean number of candidates for a sentence; and `agreement` and `token_agreement` as in
        `compare`. Empty if the pipeline has no shortlist.
    """
    shortlist = pipeline.shortlist
    if shortlist is None:
        return {}
    search = pipeline.greedy if search is None else search
    free = pipeline.with_shortlist(None)
    expected, found = (
        [best for best, *_ in side.n_best(sentences, 1, search)] for side in (free, pipeline)
    )
    parity = compare(sentences, expected, found, pipeline.target_tokenizer)
    config = pipeline.model.config
    always = (config.tokens.pad_id, config.tokens.bos_id, config.tokens.eos_id)
    sources = pipeline.source_tokenizer.encode(sentences).to_list()
    counts = [
        len(shortlist.candidates(source, always, config.head.shares_vocabulary))
        for source in sources
    ]
    return {
        "shortlist": {
            "first": shortlist.first,
            "best": shortlist.best,
            "candidates": float(np.mean(counts)),
            **{name: parity[name] for name in ("agreement", "token_agreement")},
        }
    }
