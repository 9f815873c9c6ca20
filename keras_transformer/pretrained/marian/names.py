"""The names that Marian and a `Transformer` have for the same weights: one table, used both ways.

Marian counts layers from 1 and stores vectors as `[1, n]`; its matrices are `[in, out]`, as Keras's
kernels are. Entries at the end of our vocabulary that Marian's does not have are filled when a file
is read and left out when it is written.
"""

import operator
import typing

import numpy as np

# The logit of an entry that no search emits: no probability is left for it in float32, and the
# logarithm of that is still a sensible number for label smoothing.
SILENT = -1000.0


class Form(typing.NamedTuple):
    """How an array of Marian lies in ours.

    Attributes:
        rows, columns: Whether Marian's has an entry of the vocabulary in each.
        is_vector: Whether ours has one dimension.
        transposed: Whether ours is the other way round.
        filling: What the entries have that only our vocabulary has.
    """

    rows: bool = False
    columns: bool = False
    is_vector: bool = False
    transposed: bool = False
    filling: float = 0.0

    def ours(self, array, size):
        """Returns Marian's array as ours, with an entry for each of `size` tokens."""
        over = zip(array.shape, (self.rows, self.columns), strict=True)
        missing = [(0, max(0, size - count) if is_over else 0) for count, is_over in over]
        array = np.pad(array, missing, constant_values=self.filling)
        if self.is_vector:
            return array[0]
        return array.T if self.transposed else array

    def marians(self, array, size):
        """Returns our array as Marian's, with the first `size` entries of the vocabulary."""
        array = array[None] if self.is_vector else array.T if self.transposed else array
        rows, columns = (slice(size if over else None) for over in (self.rows, self.columns))
        return np.ascontiguousarray(array[rows, columns], np.float32)


MATRIX, VECTOR = Form(), Form(is_vector=True)
TABLE, OUTPUT = Form(rows=True), Form(rows=True, transposed=True)
OLD_OUTPUT = Form(columns=True)
LOGITS = Form(columns=True, is_vector=True, filling=SILENT)


class Weight(typing.NamedTuple):
    """A weight under both names.

    Attributes:
        marian: Marian's name.
        ours: Path of attributes from the `Transformer`.
        form: The `Form`.
    """

    marian: str
    ours: str
    form: Form = MATRIX

    def variable(self, model):
        """Returns our variable, or the tensor that it is a view of."""
        value = model
        for name in self.ours.split("."):
            value = value[int(name)] if name.isdecimal() else operator.attrgetter(name)(value)
        return value


def weights_of(config):
    """Yields the `Weight`s of a `TransformerConfig`, the tables and the output among them."""
    yield from _vocabulary(config)
    for number in range(config.num_layers):
        marian, ours = f"encoder_l{number + 1}", f"encoder.blocks.{number}"
        yield from _attention(f"{marian}_self", f"{ours}.self_attention", config)
        yield from _feed_forward(marian, ours)
    for number in range(config.decoder_layers):
        marian, ours = f"decoder_l{number + 1}", f"decoder.blocks.{number}"
        if config.decoder == "ssru":
            yield from _recurrence(f"{marian}_rnn", ours)
        else:
            yield from _attention(f"{marian}_self", f"{ours}.self_attention", config)
        yield from _attention(f"{marian}_context", f"{ours}.cross_attention", config)
        yield from _feed_forward(marian, ours)


def _vocabulary(config):
    if config.tie == "all":
        yield Weight("Wemb", "source_embedding.table", TABLE)
    else:
        yield Weight("encoder_Wemb", "source_embedding.table", TABLE)
        yield Weight("decoder_Wemb", "target_embedding.table", TABLE)
    if config.tie == "none":
        yield Weight("decoder_ff_logit_out_Wt", "output_layer.kernel", OUTPUT)
    if config.output_bias:
        yield Weight("decoder_ff_logit_out_b", "logits.bias", LOGITS)


def _attention(marian, ours, config):
    projections = ("query", "key", "value", "output_projection")
    for letter, name in zip("qkvo", projections, strict=True):
        yield Weight(f"{marian}_W{letter}", f"{ours}.{name}.kernel")
        if config.attention_bias:
            yield Weight(f"{marian}_b{letter}", f"{ours}.{name}.bias", VECTOR)
    yield from _norm(f"{marian}_Wo", f"{ours}_norm")


def _recurrence(marian, ours):
    yield Weight(f"{marian}_W", f"{ours}.ssru.candidate.kernel")
    yield Weight(f"{marian}_Wf", f"{ours}.ssru.forget.kernel")
    yield Weight(f"{marian}_bf", f"{ours}.ssru.forget.bias", VECTOR)
    yield from _norm(f"{marian}_ffn", f"{ours}.ssru_norm")


def _feed_forward(marian, ours):
    for number, name in (("1", "inner"), ("2", "outer")):
        yield Weight(f"{marian}_ffn_W{number}", f"{ours}.feed_forward.{name}.kernel")
        yield Weight(f"{marian}_ffn_b{number}", f"{ours}.feed_forward.{name}.bias", VECTOR)
    yield from _norm(f"{marian}_ffn_ffn", f"{ours}.feed_forward_norm")


def _norm(marian, ours):
    yield Weight(f"{marian}_ln_scale", f"{ours}.gamma", VECTOR)
    yield Weight(f"{marian}_ln_bias", f"{ours}.beta", VECTOR)
