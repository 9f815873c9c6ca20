"""Diagram of a model in the style of the paper's Fig. 1, with shapes and numbers of parameters."""

import math
from typing import TYPE_CHECKING

import keras

from keras_transformer.layers.inputs.embedding import OutputBias, PositionalEmbedding
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.normalization import LayerNormalization, RMSNormalization
from keras_transformer.plots.boxes import GAP, MARGIN, WIDTH, Tower
from keras_transformer.plots.figure import new_figure, styled

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

# The colours of Fig. 1, paler.
EMBEDDING, ATTENTION, FEED_FORWARD, NORM, LINEAR = (
    "#FBE3E4", "#FDE6C4", "#D3EBF7", "#F3F5C8", "#DFDCF0",
)  # fmt: skip
REMARKS = 1.35  # inches for remarks beside a column


@styled
def structure_figure(model: keras.Model) -> "Figure":
    """Draws the structure of a model with its shapes and numbers of parameters.

    In shapes, B is the batch, S the length of the source and T that of the target.

    Args:
        model: A model of this package. The values of its weights do not matter.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.

    Reference: Vaswani et al. (2017), Fig. 1.
    """
    figure = new_figure(1, 1, layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    towers, drawn = [], set()
    columns = model.columns
    for number, column in enumerate(columns):
        side = 1 if number == len(columns) - 1 else -1
        tower = Tower(axes, number * (WIDTH + 2 * MARGIN + 0.45), side)
        _draw_column(tower, column, towers[-1:], drawn)
        towers.append(tower)
    left, right = (tower.x for tower in (towers[0], towers[-1]))
    top = max(tower.y for tower in towers) + 0.35
    title = f"{type(model).__name__}: {model.count_params():,} parameters"
    axes.text((left + right) / 2, top - 0.1, title, ha="center", va="center", fontsize=10)
    half = WIDTH / 2 + MARGIN
    limits = left - half - (REMARKS if len(towers) > 1 else 0.1), right + half + REMARKS
    axes.set(xlim=limits, ylim=(-0.1, top + 0.05), aspect="equal")
    axes.set_axis_off()
    figure.set_size_inches(limits[1] - limits[0], top + 0.15)
    return figure


def _draw_column(tower, column, memories, drawn):
    """Draws a column from its tokens to its output.

    Args:
        tower: A `Tower`.
        column: A column of the model.
        memories: Towers whose output the blocks attend to.
        drawn: Ids of the layers that have already been drawn.
    """
    stack = column.stack
    tower.label(f"{column.name} tokens [B, {column.length}]")
    _draw_embedding(tower, column, drawn)
    if stack.embedding_norm is not None:
        tower.box("Norm", [_count(stack.embedding_norm)], NORM)
    begin = tower.y + GAP / 2
    center = _draw_block(tower, stack.blocks)
    size = f"{stack.blocks[0].count_params():,}\nparameters each"
    tower.frame(begin, [(f"× {stack.num_layers}", 12), (size, 6.5)])
    for memory in memories:
        tower.lead(memory, center)
    if stack.norm is not None:
        tower.box("Norm", [_count(stack.norm)], NORM)
    shape = ["B", column.length, str(column.embedding.d_model)]
    for layer in column.head:
        draw = HEADS.get(type(layer))
        shape = shape if draw is None else draw(tower, layer, shape, drawn)
    tower.label(f"{'logits' if column.head else 'memory'} {_shape(shape)}")


def _draw_embedding(tower, column, drawn):
    embedding = column.embedding
    shape = _shape(["B", column.length, str(embedding.d_model)])
    table = f"{embedding.vocab_size:,} × {embedding.d_model}"
    tower.box("Embedding", [f"{table} → {shape}", _count(embedding, drawn)], EMBEDDING)
    kind = _kind(embedding.position)
    if kind != "none":
        tower.plus(f"{kind}\npositions")
    if column.segments is not None:
        tower.box("Segments", [f"2 × {embedding.d_model}", _count(column.segments)], EMBEDDING)


def _draw_block(tower, blocks):
    """Draws a block of a stack.

    Returns:
        The height of its cross-attention; without, of its first sublayer.
    """
    block = blocks[0]
    if block.config.has_state:
        role, layer = block.history_role, block.history()
        lines = [_state([block.history() for block in blocks]), _count(layer)]
        center = _draw_sublayer(tower, block, role, type(layer.mixer).__name__, lines, ATTENTION)
    else:
        title = "Masked multi-head attention" if block.causal else "Multi-head attention"
        kind = _kind(block.self_attention.position)
        remarks = [] if kind == "none" else [f"{kind} positions"]
        center = _draw_attention(tower, block, "self_attention", title, remarks)
    if block.cross:
        center = _draw_cross(tower, block)
    if hasattr(block, "feed_forward"):
        _draw_feed_forward(tower, block)
    return center


def _draw_cross(tower, block):
    """Draws the sublayer that reads the memory; returns the height of its centre."""
    name, layer = "cross_attention", block.cross_attention
    if block.config.block.memory_attention.attends:
        return _draw_attention(tower, block, name, "Multi-head attention to memory", [])
    return _draw_sublayer(tower, block, name, "Memory, same position", [_count(layer)], ATTENTION)


def _draw_feed_forward(tower, block):
    widths = [block.widths["x"], block.config.block.d_ff]
    lines = [f"{widths[0]:,} → {widths[1]:,} → {widths[0]:,}, {block.config.block.activation}"]
    lines.append(_count(block.feed_forward))
    _draw_sublayer(tower, block, "feed_forward", "Feed forward", lines, FEED_FORWARD)


def _state(layers):
    """Returns a line about the states of the `Mixing` layers of a stack."""
    if not layers[0].causal:
        return "both directions"
    shapes = [layer.mixer.state_shapes(layer.widths["x"]) for layer in layers]
    sizes = sorted({sum(map(math.prod, of_layer)) for of_layer in shapes})
    return f"state of {' to '.join(f'{size:,}' for size in dict.fromkeys(sizes[:1] + sizes[-1:]))}"


def _draw_attention(tower, block, name, title, remarks):
    attention = getattr(block, name)
    d_k, d_v = attention.head_sizes
    sizes = f"d_k = {d_k}" if d_k == d_v else f"d_k = {d_k}, d_v = {d_v}"
    heads = "1 head" if attention.num_heads == 1 else f"{attention.num_heads} heads"
    lines = [", ".join([heads, sizes, *remarks]), _count(attention)]
    return _draw_sublayer(tower, block, name, title, lines, ATTENTION)


def _draw_sublayer(tower, block, name, title, lines, color):
    """Draws a sublayer with residual connection and norm; returns the height of its centre."""
    config, layer = block.config.block, getattr(block, f"{name}_norm")
    size = [_count(layer)] if layer.weights else []
    word = "scale" if isinstance(layer, keras.layers.Rescaling) else "norm"
    before = tower.fork()
    if config.norm.is_before:
        tower.box(word.capitalize(), size, NORM)
    center = tower.box(title, lines, color)
    if config.layer_scale is not None:
        tower.box("Scale", [_count(getattr(block, f"{name}_scale"))], NORM)
    if config.norm.is_before or config.normalization.is_identity:
        end = tower.box("Add")
    else:
        end = tower.box(f"Add & {word}", size, NORM)
    tower.around(before, end)
    return center


def _draw_tied(tower, layer, shape, drawn):
    tower.box("Linear", [f"{layer.d_model} × {layer.vocab_size:,}", _count(layer, drawn)], LINEAR)
    return [*shape[:-1], f"{layer.vocab_size:,}"]


def _draw_dense(tower, layer, shape, drawn):
    tower.box("Linear", [f"{shape[-1]} × {layer.units:,}", _count(layer, drawn)], LINEAR)
    return [*shape[:-1], f"{layer.units:,}"]


def _draw_bias(tower, layer, shape, drawn):
    tower.box("Bias", [_count(layer, drawn)], LINEAR)
    return shape


def _draw_norm(tower, layer, shape, drawn):
    tower.box("Norm", [_count(layer, drawn)], NORM)
    return shape


def _draw_pooling(tower, layer, shape, drawn):
    size = [_count(layer, drawn)] if layer.weights else []
    tower.box("Pooling", [f"{layer.kind} of the tokens", *size], NORM)
    return [shape[0], shape[-1]]


# Functions that draw the layers after a stack and return the shape of their output. Layers of other
# classes are not drawn.
HEADS = {
    PositionalEmbedding: _draw_tied,
    keras.layers.Dense: _draw_dense,
    LayerNormalization: _draw_norm,
    RMSNormalization: _draw_norm,
    OutputBias: _draw_bias,
    Pooling: _draw_pooling,
}


def _count(layer, drawn=None):
    """Returns the number of parameters of a layer, or "shared parameters" if it is in `drawn`."""
    if drawn is not None and id(layer) in drawn:
        return "shared parameters"
    if drawn is not None:
        drawn.add(id(layer))
    return f"{layer.count_params():,} parameters"


def _kind(position):
    """Returns the name of a position's kind; that of its class if it has none of its own."""
    return vars(type(position)).get("kind", type(position).__name__)


def _shape(sizes):
    return f"[{', '.join(sizes)}]"
