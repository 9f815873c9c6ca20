"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) as Keras layers.

One key for shapes, in comments, docstrings and einsum strings throughout:

    B  batch                          D  d_model, the width of the model
    T  target or query length         F  d_ff, the width inside the feed-forward network
    S  source or key length           H  attention heads
    V  vocabulary                     K  size of a head (d_k; d_v where values differ)
    L  length of a key/value cache    N  beam or n-best

Masks are boolean tensors and `True` means "may attend".
"""

import importlib
import pathlib
import sys

__version__ = "0.1.0"

# Where each public name is defined, in the order of the paper.
_MODULES = {
    "config": ("PRESETS", "TransformerConfig"),
    "masks": ("PaddingMask", "causal_mask", "padding_mask"),
    "dot_product": ("dot_product_attention",),
    "attention": ("MultiHeadCrossAttention", "MultiHeadSelfAttention"),
    "feed_forward": ("FeedForward",),
    "embedding": ("PositionalEmbedding", "sinusoids"),
    "encoder": ("Encoder", "EncoderBlock"),
    "decoder": ("Decoder", "DecoderBlock"),
    "model": ("Transformer",),
    "decoding": ("Constraints", "beam_decode", "greedy_decode", "sample_decode", "score"),
    "tokenizer": ("Tokenizer",),
    "translation": ("Alignment", "Score", "Translation"),
    "translator": ("Translator",),
    "beam_translator": ("BeamTranslator",),
    "run": ("Run",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


# Importing the package registers the layers with Keras, so that `keras.saving.load_model` knows
# them. Only the command (`keras-transformer`, or `python -m`) waits until it needs TensorFlow:
# `--help` would take seconds otherwise.
if sys.argv[:1] != ["-m"] and pathlib.Path(*sys.argv[:1]).stem != "keras-transformer":
    importlib.import_module(f"{__name__}.model")
