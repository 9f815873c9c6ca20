"""Attention weights of a model for one text, with the pieces that they belong to."""

import dataclasses

import numpy as np

# How a model names the weights of its layers, by kind; the kind that shows most comes first.
KINDS = {
    "cross": "decoder/block_{}/cross_attention",
    "encoder": "encoder/block_{}/self_attention",
    "decoder": "decoder/block_{}/self_attention",
}
CLASS = "class"  # of a class token, in an image: see `ImageAttention`


@dataclasses.dataclass(frozen=True)
class Attention:
    """Attention weights of one kind, for one text.

    Args:
        kind: `"cross"`, of the decoder to the source; `"encoder"` or `"decoder"`, of the one or the
            other to itself.
        queries: The pieces that attend, T strings.
        keys: The pieces that are attended to, S strings.
        weights: Array `[layers, H, T, S]`, float32, whose rows sum to 1.
        complete: Whether these are all layers and heads of the model. Otherwise there is one
            matrix, `[1, 1, T, S]`, which an export has chosen or averaged.
        truncated: Whether the text was longer than the model's limit and was cut.
    """

    kind: str
    queries: list
    keys: list
    weights: np.ndarray
    complete: bool = True
    truncated: bool = False

    def mean(self):
        """Returns the mean of all layers and heads, `[T, S]`."""
        return self.weights.mean(axis=(0, 1))


def attentions(weights, pieces, truncated):
    """Returns the `Attention` of each kind that a model has, a decoder of SSRUs none to itself.

    Args:
        weights: What the model's `attention_weights` returned for one text.
        pieces: Dictionary from kind to the pieces that attend and those that are attended to.
        truncated: Whether the text was cut.
    """
    return {
        kind: Attention(kind, *pieces[kind], _stack(weights, name), truncated=truncated)
        for kind, name in KINDS.items()
        if kind in pieces and name.format(0) in weights
    }


def _stack(weights, name):
    """The weights of all layers, `[layers, H, T, S]`."""
    layers = []
    while name.format(len(layers)) in weights:
        layers.append(weights[name.format(len(layers))][0].numpy().astype("float32"))
    return np.stack(layers)
