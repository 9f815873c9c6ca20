"""Word vectors as initial weights of the embedding."""

from typing import Any

import numpy as np

from keras_transformer.text.vectors import read_vectors, words_of


def give_vectors(learner, tokenizers, settings) -> dict[str, Any]:
    """Copies the vectors that `[model] vectors` names into the embedding of a model's sources.

    Args:
        learner: The `Learner`.
        tokenizers: The `Tokenizers` of the run.
        settings: The `[model]` section of the run.

    Returns:
        Dictionary of `file`; `found`, the number of tokens with a vector; `missing`, the number of
        tokens that keep their random vectors; and `frozen`.

    Raises:
        ValueError: If the file cannot be used. One line, which names the file and the line.
    """
    table, tokenizer = learner.model.input_embedding.table, tokenizers.source
    special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id}
    words = words_of(tokenizer.pieces(range(tokenizer.vocab_size)), special)
    vectors = read_vectors(settings.vectors, words, table.shape[1])
    rows = np.array(table.numpy())  # a copy
    for word, vector in vectors.items():
        rows[words[word]] = vector
    table.assign(rows)
    count = sum(len(words[word]) for word in vectors)
    return {
        "file": settings.vectors,
        "found": count,
        "missing": tokenizer.vocab_size - len(special) - count,
        "frozen": bool(settings.freeze_vectors),
    }


def freeze(model) -> None:
    """Excludes the embedding of a model's sources from training; call it before `compile`."""
    model.input_embedding.table.trainable = False


def described(metadata) -> str:
    """Returns a sentence that describes the result of `give_vectors`."""
    fixed = ", which are not trained" if metadata["frozen"] else ""
    return (
        f"{metadata['found']:,} tokens begin with their vectors in {metadata['file']}{fixed}; "
        f"{metadata['missing']:,} are not in it."
    )
