"""Metrics of scores: of the order of the passages of each query, and of pairs on their own."""

import math
from collections.abc import Sequence

from keras_transformer.ordering import descending
from keras_transformer.tasks.correlation import spearman

DEPTH = 10  # number of passages that the metrics of an order look at


def reciprocal_rank(labels: Sequence[float], scores: Sequence[float], depth: int = DEPTH) -> float:
    """Returns 1 divided by the rank of the first relevant passage, 0 if it is beyond `depth`.

    Args:
        labels: Relevance of each passage; it is relevant if this is positive.
        scores: Scores of the passages. Passages with equal scores keep their order.
        depth: Number of passages that count.
    """
    for rank, index in enumerate(descending(scores)[:depth], start=1):
        if labels[index] > 0:
            return 1 / rank
    return 0.0


def ndcg(labels: Sequence[float], scores: Sequence[float], depth: int = DEPTH) -> float:
    """Returns the discounted cumulative gain of an order, divided by that of the best order.

    `sum_r label_r / log2(1 + r)` over the ranks r up to `depth`.

    Args:
        labels: Relevance of each passage, at least 0, one of them positive.
        scores, depth: See `reciprocal_rank`.

    Reference: Järvelin and Kekäläinen (2002), section 2; the gains are the labels, as in
        scikit-learn's `ndcg_score`, which averages over the orders of equal scores.
    """
    ours = _gain([labels[index] for index in descending(scores)[:depth]])
    return ours / _gain(sorted(labels, reverse=True)[:depth])


def _gain(labels):
    return sum(label / math.log2(1 + rank) for rank, label in enumerate(labels, start=1))


def pair_metrics(
    queries: Sequence[str],
    scores: Sequence[float],
    probabilities: Sequence[float],
    labels: Sequence[float],
) -> dict[str, float]:
    """Returns the metrics that labels of pairs permit, from 0 to 100, `spearman` from -100.

    Args:
        queries: The query of each pair.
        scores: The score of each pair.
        probabilities: The sigmoid of the logit of each pair.
        labels: The correct score of each pair.

    Returns:
        A dictionary. If some query has several passages, some of them relevant and none with a
        negative label: `mrr_at_10` and `ndcg_at_10`, means over these queries, and their number
        `queries`. If all labels are 0 or 1: `accuracy`, with the threshold 0.5 of the probability.
        If labels differ: `spearman`, the rank correlation of scores and labels.
    """
    groups: dict[str, tuple[list, list]] = {}
    for query, score, label in zip(queries, scores, labels, strict=True):
        group = groups.setdefault(query, ([], []))
        group[0].append(label)
        group[1].append(score)
    ranked = [
        group
        for group in groups.values()
        if len(group[0]) > 1 and max(group[0]) > 0 and min(group[0]) >= 0
    ]
    metrics: dict[str, float] = {}
    if ranked:
        metrics["mrr_at_10"] = 100 * sum(reciprocal_rank(*group) for group in ranked) / len(ranked)
        metrics["ndcg_at_10"] = 100 * sum(ndcg(*group) for group in ranked) / len(ranked)
        metrics["queries"] = len(ranked)
    if set(labels) <= {0.0, 1.0}:
        right = [(p >= 0.5) == (y == 1) for p, y in zip(probabilities, labels, strict=True)]
        metrics["accuracy"] = 100 * sum(right) / len(right)
    if len(set(labels)) > 1:
        metrics["spearman"] = spearman(scores, labels)
    return metrics
