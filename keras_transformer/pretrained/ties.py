"""Output weights that are those of the embedding: the rule for all families."""

import numpy as np

TIE = "tie_word_embeddings"


def is_tied(family, output, tables, default=True) -> bool:
    """Returns whether output weights are those of the embedding; the weights in the file decide.

    They are tied if the settings say so, unless the file contains both and they differ; and if the
    file does not contain output weights. A note of the family names the contradiction.

    Args:
        family: The `Family`.
        output: Name of the tensor of the output weights.
        tables: Names of the tensor of the embedding.
        default: Value of a missing setting.

    Raises:
        ValueError: If there are neither output weights nor ties, because the checkpoint is a base
            model without a head.
    """
    settings, tensors = family.settings, family.tensors
    stated, table = settings.flag(TIE, default), tensors.first_of(tables)
    if output not in tensors:
        if not stated:
            named = settings.get("architectures")
            names = [str(name) for name in named] if isinstance(named, list) else []
            if any(name.endswith("Model") and not name.endswith("HeadModel") for name in names):
                raise ValueError(
                    f"{tensors.path}: the tensor {output} is missing, and {settings.path.name} "
                    f"does not tie it: {names[0]} is a base model without output weights."
                )
            family.notes.append(
                f"`{TIE}` is false, but the file has no {output}: the output weights are those of "
                f"the embedding, {table}"
            )
        return True
    if not stated or table not in tensors or np.array_equal(*map(tensors.read, (output, table))):
        return stated
    family.notes.append(
        f"`{TIE}` is true, but {output} differs from {table}: the output weights are those of the "
        "file, as in transformers 5"
    )
    return False
