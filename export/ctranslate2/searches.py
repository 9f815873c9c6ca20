"""Searches as options of CTranslate2."""

from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.search import check_search
from keras_transformer.export.ctranslate2.metadata import NGRAM, is_renormalized
from keras_transformer.export.formats import FORMATS

BY_SUM = 1e-9  # length penalty for ranking by the sum; 0 would also stop the search at another step


def options_of_search(search) -> dict[str, Any]:
    """Returns the options for a search of `translate_batch` and `generate_batch`.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If CTranslate2 does not support the beam.
    """
    check_search(search, Greedy, Beam)
    if isinstance(search, Greedy):
        return {"beam_size": 1, "length_penalty": 0}
    by_sum = search.penalty(2) == 1
    FORMATS["ctranslate2"].beams.check(search, any_normalization=by_sum)
    penalty = search.length_penalty if search.normalization == "power" else 1
    return {"beam_size": search.size, "length_penalty": BY_SUM if by_sum else penalty}


def check_beam(path, search, metadata) -> None:
    """Refuses a beam for a model whose rules change the probabilities in CTranslate2.

    Raises:
        ValueError: If `search` is a `Beam`, and the model of the folder `path` has such a rule.
    """
    if isinstance(search, Beam) and is_renormalized(metadata):
        raise ValueError(
            f"`search` must be greedy for {path}: its model has `{NGRAM}`, with which CTranslate2 "
            f"ranks a beam by other probabilities than the model's. Received: search={search!r}."
        )
