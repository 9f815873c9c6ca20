"""The kinds of indexes, by name; the task of a model determines its kind."""

from typing import Any

from keras_transformer.retrieval.dense import DenseIndex
from keras_transformer.retrieval.kind import IndexKind
from keras_transformer.retrieval.sparse import SparseIndex
from keras_transformer.retrieval.tokens import TokenIndex

KINDS: dict[str, IndexKind] = {
    kind.name: kind for kind in (DenseIndex(), SparseIndex(), TokenIndex())
}


def kind_of(answering: Any) -> IndexKind:
    """Returns the kind of index for a model.

    Raises:
        ValueError: If there is none.
    """
    for kind in KINDS.values():
        if kind.task == answering.task:
            return kind
    *tasks, last = (kind.task for kind in KINDS.values())
    tasks = f"{', '.join(tasks)} or {last}"
    advice = ""
    if getattr(getattr(answering, "codec", None), "sorts", False):
        advice = " Search with such a model, and sort what it finds with predict --sort."
    raise ValueError(
        f"An index needs a model for {tasks}, which answers with vectors. "
        f"Received: a model for {answering.task}.{advice}"
    )
