"""A training that begins with word vectors."""

import numpy as np

from keras_transformer.text.vectors import read_vectors, words_of


def give_vectors(learner, tokenizers, settings):
    """Puts the vectors that `[model] vectors` names into the embedding of a model's sources.

    Args:
        learner: The `Learner`.
        tokenizers: The `Tokenizers` of the run.
        settings: Its `[model]` section.

    Returns:
        Dictionary of `file`; `found` and `missing`, how many pieces have a vector there and how
        many begin as they would without; and `frozen`.

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


def freeze(model):
    """Keeps the embedding of a model's sources from being trained; before it is compiled."""
    model.input_embedding.table.trainable = False


def described(facts):
    """Returns what `give_vectors` has returned as a sentence for people."""
    kept = ", which stay as they are" if facts["frozen"] else ""
    return (
        f"{facts['found']:,} pieces begin with their vectors of {facts['file']}{kept}; "
        f"{facts['missing']:,} are not in it."
    )
