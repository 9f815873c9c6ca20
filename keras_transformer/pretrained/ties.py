"""Output weights that are those of the embedding: the rule for all families."""

from collections.abc import Iterator

import numpy as np

from keras_transformer.pretrained.names import Layout, Weight

TIE = "tie_word_embeddings"
SILENT = -1000.0  # bias of padding, which gets no probability


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


def token_weights(table, output, config, entries) -> Iterator[Weight]:
    """Yields embedding and output weights of a language model that never emits padding.

    Args:
        table: Name of the tensor of the embedding.
        output: Name of the tensor of the output weights.
        config: The `LanguageModelConfig`, whose `tie` is `"none"` or `"all"`.
        entries: Number of tokens in the file.
    """
    layout = Layout(entries=entries)
    if config.head.tie == "none":
        yield Weight(table, "embedding.table", layout)
        yield Weight(output, "output_layer.kernel", layout._replace(transposed=True))
    else:
        yield Weight((table, output), "embedding.table", layout)
    bias = np.zeros(config.tokens.vocab_size, "float32")
    bias[config.tokens.pad_id] = SILENT
    yield Weight((), "logits.bias", default=bias)
