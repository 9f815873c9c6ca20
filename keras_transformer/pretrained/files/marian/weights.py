"""Marian model files of both formats, and the names of their weights in our model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.pretrained.files.marian.binary import read_bin
from keras_transformer.pretrained.files.marian.npz import read_npz
from keras_transformer.pretrained.names import ROW, SAME, Layout, Weight

READERS = {".npz": read_npz, ".bin": read_bin}


class Arrays:
    """Arrays in memory with the interface of a `SafetensorsFile`.

    Args:
        path: The file, for messages.
        arrays: Dictionary from names to float32 arrays.
    """

    def __init__(self, path, arrays):
        self.path, self._arrays = path, arrays
        self.shapes = {name: array.shape for name, array in arrays.items()}

    def read(self, name) -> np.ndarray:
        """Returns an array."""
        return self._arrays[name]


def read(path) -> dict[str, Any]:
    """Returns a dictionary from names to the arrays of a `.npz` or `.bin` file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or of another format.
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise ValueError(f"`path` must end in {' or '.join(READERS)}. Received: path={path}.")
    return READERS[path.suffix](path)


OUTPUT, OLD_OUTPUT = "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"
LOGITS = "decoder_ff_logit_out_b"
# Logit of an entry that no search emits. Its probability is 0 in float32, and its log-probability
# is still a reasonable number for label smoothing.
SILENT = -1000.0


def _norm(marian, ours):
    return {f"{marian}_ln_scale": f"{ours}.gamma", f"{marian}_ln_bias": f"{ours}.beta"}


def _attention(marian, ours):
    names = {"q": "query", "k": "key", "v": "value", "o": "output_projection"}
    return {
        f"{marian}_{kind}{letter}": f"{ours}.{name}.{weight}"
        for letter, name in names.items()
        for kind, weight in (("W", "kernel"), ("b", "bias"))
    } | _norm(f"{marian}_Wo", f"{ours}_norm")


# The weights of a block, from suffixes of its name in Marian to paths in our block.
SELF_ATTENTION = _attention("_self", "self_attention")
CROSS_ATTENTION = _attention("_context", "cross_attention")
RECURRENCE = {
    "_rnn_W": "ssru.candidate.kernel",
    "_rnn_Wf": "ssru.forget.kernel",
    "_rnn_bf": "ssru.forget.bias",
    **_norm("_rnn_ffn", "ssru_norm"),
}
FEED_FORWARD = {
    "_ffn_W1": "feed_forward.inner.kernel",
    "_ffn_b1": "feed_forward.inner.bias",
    "_ffn_W2": "feed_forward.outer.kernel",
    "_ffn_b2": "feed_forward.outer.bias",
    **_norm("_ffn_ffn", "feed_forward_norm"),
}


def weights_of(config, sizes, names=()) -> Iterator[Weight]:
    """Yields the `Weight`s of a Marian model; the first name in `theirs` is that of Marian.

    Marian counts layers from 1 and stores vectors as `[1, n]`; its matrices are `[in, out]`, as
    Keras's kernels are.

    Args:
        config: The `TransformerConfig`.
        sizes: Sizes of the vocabularies of source and target in Marian. Ours may have more entries
            at the end.
        names: Names of the tensors in a file, in which the output weights may have an old name.
    """
    source, target = sizes
    if config.head.tie == "all":
        yield Weight("Wemb", "source_embedding.table", Layout(entries=source))
    else:
        for side, ours, size in (("encoder", "source", source), ("decoder", "target", target)):
            tied = (f"{side}_Wemb", "Wemb")
            yield Weight(tied, f"{ours}_embedding.table", Layout(entries=size))
    if config.head.tie == "none":
        old = OLD_OUTPUT in names
        layout = Layout(transposed=not old, entries=target, axis=int(old))
        yield Weight(OLD_OUTPUT if old else OUTPUT, "output_layer.kernel", layout)
    if config.head.output_bias:
        layout = Layout(ones=1, entries=target, axis=1, filling=SILENT)
        yield Weight(LOGITS, "logits.bias", layout)
    recurrent = config.decoder.has_state
    decoder = (RECURRENCE if recurrent else SELF_ATTENTION) | CROSS_ATTENTION | FEED_FORWARD
    for side, depth, block in (
        ("encoder", config.num_layers, SELF_ATTENTION | FEED_FORWARD),
        ("decoder", config.decoder_layers, decoder),
    ):
        for number in range(depth):
            for marian, ours in block.items():
                layout = SAME if ours.endswith("kernel") else ROW
                marian, ours = f"{side}_l{number + 1}{marian}", f"{side}.blocks.{number}.{ours}"
                yield Weight(marian, ours, layout)
