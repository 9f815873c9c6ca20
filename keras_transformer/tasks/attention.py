"""Attention weights of a model for one text, with the tokens that they belong to."""

import dataclasses
import re

import numpy as np

# Names of the layers' weights by kind of attention; the most informative kind comes first.
KINDS = {
    "cross": "decoder/block_{}/cross_attention",
    "encoder": "encoder/block_{}/self_attention",
    "decoder": "decoder/block_{}/self_attention",
}
CLASS = "class"  # attention of the class token of an image; see `ImageAttention`
BEGIN = "\u2581"  # SentencePiece's mark at the beginning of a word
# Tokens that are no text; not those of single bytes and of unknown characters, which are in words.
SPECIAL = re.compile("<(?!0x[0-9A-F]{2}>|unk>).+>")
HOPS = "hops"  # attention of a memory network to sentences; see `StoryAnswerer.attention`
SOUND = "sound"  # attention of the decoder to a recording; see `SpeechAttention`


@dataclasses.dataclass(frozen=True)
class Attention:
    """Attention weights of one kind, for one text.

    Args:
        kind: `"cross"`: attention of the decoder to the source. `"encoder"`, `"decoder"`:
            self-attention of the encoder or the decoder. `"hops"`: attention of a memory network
            to sentences.
        queries: Tokens that attend, T strings.
        keys: Tokens that are attended to, S strings.
        weights: Array `[layers, H, T, S]`, float32, whose rows sum to 1.
        complete: Whether `weights` contains all layers and heads of the model. Otherwise it is one
            matrix, `[1, 1, T, S]`, which an export has selected or averaged.
        truncated: Whether the text was longer than the model's limit and was truncated.
    """

    kind: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray
    complete: bool = True
    truncated: bool = False

    def mean(self) -> np.ndarray:
        """Returns the mean over all layers and heads, `[T, S]`."""
        return self.weights.mean(axis=(0, 1))

    def by_words(self) -> "Attention":
        """Returns the attention between words, whose rows sum to 1 as well.

        Weights are added up over the tokens of a word that is attended to, and averaged over those
        of a word that attends. A token in angle brackets, such as the end of a text, is a word,
        but `<unk>`, an unknown character, is a part of one.

        Raises:
            ValueError: If the tokens do not mark where words begin.
        """
        queries, of_queries = _words(self.queries)
        keys, of_keys = _words(self.keys)
        weights = self.weights @ of_keys.T  # [layers, H, T, words]
        means = of_queries / of_queries.sum(axis=1, keepdims=True)  # [words, T]
        return dataclasses.replace(self, queries=queries, keys=keys, weights=means @ weights)


def _words(tokens):
    """Returns the words of tokens, and which tokens they consist of, `[words, T]` of 0 and 1."""
    marked = [token.startswith(BEGIN) for token in tokens]
    if not any(marked):
        raise ValueError(
            f"tokens must mark the beginning of a word by {BEGIN!r}, as those of SentencePiece do. "
            f"Received: {', '.join(tokens)}."
        )
    special = [bool(SPECIAL.fullmatch(token)) for token in tokens]
    after_special = [False, *special[:-1]]
    begins = [any(three) for three in zip(marked, special, after_special, strict=True)]
    begins[0] = True
    places = np.cumsum(begins) - 1  # [T]
    members = (places == np.arange(places[-1] + 1)[:, None]).astype("float32")
    parts = [[token for token, has in zip(tokens, row, strict=True) if has] for row in members]
    return ["".join(part).removeprefix(BEGIN) for part in parts], members


def attentions(weights, pieces, truncated) -> dict[str, Attention]:
    """Returns a dictionary from each kind of attention that a model has to its `Attention`.

    A decoder with another mixer has no self-attention.

    Args:
        weights: Result of the model's `attention_weights` for one text.
        pieces: Dictionary from kinds to the tokens that attend and those that are attended to.
        truncated: Whether the text was truncated.
    """
    return {
        kind: Attention(kind, *pieces[kind], _stack(weights, name), truncated=truncated)
        for kind, name in KINDS.items()
        if kind in pieces and name.format(0) in weights
    }


def _stack(weights, name):
    """Returns the weights of all layers, `[layers, H, T, S]`."""
    layers = []
    while name.format(len(layers)) in weights:
        layers.append(weights[name.format(len(layers))][0].numpy().astype("float32"))
    return np.stack(layers)
