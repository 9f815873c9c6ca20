"""Metrics of texts that belong together: ranks of their partners, and recall."""

import numpy as np

AT_ONCE = 512  # texts that are compared with all candidates at a time


def ranks_of_partners(similarity, texts, names) -> np.ndarray:
    """Returns the rank of each text's partner among all different partners, counted from 1.

    Candidates are the partners, each text once, without the text itself unless it is its own
    partner. A candidate that is as similar as the partner is ranked before it, so that a model with
    the same vector for all texts ranks every partner last.

    Args:
        similarity: Function that returns the similarities `[t, C]` of some texts and partners; its
            arguments are a slice of the T texts and the numbers `[C]` of the partners.
        texts: The T texts, strings.
        names: The texts of the partners, T strings.
    """
    different, first, place = np.unique(
        np.array(names, object), return_index=True, return_inverse=True
    )
    number = {name: column for column, name in enumerate(different)}
    itself = np.array([number.get(text, -1) for text in texts])
    itself = np.where(itself == place, -1, itself)
    ranks = []
    for begin in range(0, len(texts), AT_ONCE):
        chunk = slice(begin, begin + AT_ONCE)
        rows, own = np.arange(len(place[chunk])), place[chunk]
        scores = similarity(chunk, first)  # [t, C]
        before = scores >= scores[rows, own][:, None]  # the partner counts itself
        among = itself[chunk] >= 0
        before[rows[among], itself[chunk][among]] = False
        ranks.append(before.sum(axis=1))
    return np.concatenate(ranks)


def recall_at(ranks, count) -> float:
    """Returns the share of partners among the first `count` candidates, from 0 to 100."""
    return 100 * float(np.mean(ranks <= count))
