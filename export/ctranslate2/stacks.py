"""Weights of a stack of blocks and its embedding in CTranslate2's layout.

The kernel of a linear layer is stored as `[out, in]`. Self-attention stacks the projections of
queries, keys and values in one matrix; cross-attention stacks those of keys and values only.
"""

import math

import numpy as np

from keras_transformer.feed_forwards import Gated
from keras_transformer.positions import FixedPosition, Learned
from keras_transformer.scores import DotProduct, General

# CTranslate2 truncates inputs at 1,024 and outputs at 256 tokens by default. With this number of
# positions, the defaults also work for a model that was trained on shorter sentences.
POSITIONS = 1024


def fill_stack(spec, table, embedding, stack, config) -> None:
    """Fills in a stack and the embedding before it, without cross-attention.

    Args:
        spec: CTranslate2's specification of the encoder or the decoder.
        table: Its specification of the embedding.
        embedding: The `PositionalEmbedding`.
        stack: The stack of blocks.
        config: The configuration of the model.
    """
    spec.scale_embeddings = embedding_scale(config)
    table.weight = embedding.table.numpy()
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = _positions(embedding)
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        _fill_self_attention(layer.self_attention, block)
        _fill_feed_forward(layer.ffn, block)
    if stack.norm is not None:
        _fill_norm(spec.layer_norm, stack.norm)
    if stack.embedding_norm is not None:
        _fill_norm(spec.layernorm_embedding, stack.embedding_norm)


def embedding_scale(config) -> bool | np.float32:
    """Returns true for the paper's scale, false for none, or the scale as a number."""
    if config.tokens.embedding_scale in (None, 1):
        return config.tokens.embedding_scale is None
    return np.float32(config.tokens.embedding_scale)


def _positions(embedding):
    """Returns the table of position encodings, `[positions, D]`.

    CTranslate2's own sinusoids have another layout.
    """
    position, length = embedding.position, max(POSITIONS, embedding.max_length)
    if isinstance(position, Learned):
        return embedding.positions.numpy()
    if isinstance(position, FixedPosition):
        return position.table(length, embedding.d_model)
    return np.zeros((length, embedding.d_model), np.float32)


def _fill_self_attention(spec, block):
    attention = block.self_attention
    query, key, value, output = _projections(spec, attention)
    _fill_linear(spec.linear[0], query, key, value)
    _fill_linear(spec.linear[1], output)
    _fill_norm(spec.layer_norm, block.self_attention_norm)
    if hasattr(spec, "q_norm"):
        _fill_norm(spec.q_norm, attention.query_norm)
        _fill_norm(spec.k_norm, attention.key_norm)
    if hasattr(spec, "rotary_low_freq_factor"):
        _fill_waves(spec, attention.position)
    if hasattr(spec, "relative_attention_bias"):
        owner = getattr(attention.position, "block", block).self_attention
        spec.relative_attention_bias = owner.distance_bias.numpy()  # [buckets, H]
        spec.relative_attention_max_distance = np.int32(owner.position.distance)
    if hasattr(spec, "relative_position_keys"):
        spec.relative_position_keys = _distances(attention, attention.relative_keys)
        spec.relative_position_values = _distances(attention, attention.relative_values)


def _fill_waves(spec, position):
    """Fills in the wavelengths of Llama 3.1's rotary positions.

    CTranslate2 has them as parts of a length, which may be any. Its specification in Python does
    not declare this length and the factor, without which it divides no position.
    """
    scaling = position.scaling
    length = math.ceil(scaling.long_wave)
    spec.rotary_low_freq_factor = np.float32(length / scaling.long_wave)
    spec.rotary_high_freq_factor = np.float32(length / scaling.short_wave)
    vars(spec).update(
        original_max_position_embeddings=np.int32(length),
        rotary_scaling_factor=np.float32(scaling.factor),
    )


def _distances(attention, vectors):
    """Returns the vectors of the distances from key to query, `[2 * distance + 1, size]`.

    Ours are those from query to key. Causal self-attention has none for keys after the query.
    """
    vectors = _padded(vectors.numpy(), _head_size(attention))[::-1]
    missing = 2 * attention.position.distance + 1 - len(vectors)
    return np.ascontiguousarray(np.pad(vectors, [(0, missing), (0, 0)]))


def fill_cross_attention(spec, block) -> None:
    """Fills in the cross-attention of a block."""
    query, key, value, output = _projections(spec, block.cross_attention)
    _fill_linear(spec.linear[0], query)
    _fill_linear(spec.linear[1], key, value)
    _fill_linear(spec.linear[2], output)
    _fill_norm(spec.layer_norm, block.cross_attention_norm)


def _fill_feed_forward(spec, block):
    layer = block.feed_forward
    if isinstance(layer.kind, Gated):
        _fill_linear(spec.linear_0, _dense(layer.gate))
        _fill_linear(spec.linear_0_noact, _dense(layer.inner))
    else:
        _fill_linear(spec.linear_0, _dense(layer.inner))
    _fill_linear(spec.linear_1, _dense(layer.outer))
    _fill_norm(spec.layer_norm, block.feed_forward_norm)


def _fill_linear(spec, *maps):
    """Concatenates the outputs of pairs of a kernel `[in, out]` and a bias `[out]` or `None`.

    If only some of them have a bias, the missing biases become zeros.
    """
    kernels, biases = zip(*maps, strict=True)
    spec.weight = np.ascontiguousarray(np.concatenate(kernels, axis=1).T)  # [out, in]
    if any(bias is not None for bias in biases):
        none = (np.zeros(kernel.shape[1], np.float32) for kernel in kernels)
        pairs = zip(biases, none, strict=True)
        spec.bias = np.concatenate([zeros if bias is None else bias for bias, zeros in pairs])


def _fill_norm(spec, norm):
    """Fills in a normalisation; a missing offset of layer normalisation becomes zeros."""
    if not hasattr(spec, "beta"):  # RMS normalisation
        spec.gamma = norm.scale.numpy()
        return
    spec.gamma = norm.gamma.numpy()
    spec.beta = np.zeros_like(spec.gamma) if norm.beta is None else norm.beta.numpy()


def _dense(layer):
    return layer.kernel.numpy(), None if layer.bias is None else layer.bias.numpy()


def _projections(spec, attention):
    """Returns the four projections of an attention, with heads of equal size; sets its scale.

    CTranslate2 has a single head size for queries, keys and values. Smaller heads are padded with
    zeros, which change no result.
    """
    size = _head_size(attention)
    groups = attention.num_key_value_heads
    plain = isinstance(attention.score, DotProduct)
    spec.queries_scale = 1.0 if plain else 1 / math.sqrt(attention.head_sizes[0])
    inputs = [
        tuple(None if array is None else _pad_heads(array, heads, size) for array in projection)
        for heads, projection in (
            (attention.num_heads, _query(attention)),
            (groups, _dense(attention.key)),
            (groups, _dense(attention.value)),
        )
    ]
    kernel, bias = _dense(attention.output_projection)
    return *inputs, (_pad_heads(kernel.T, attention.num_heads, size).T, bias)


def _head_size(attention):
    return max(attention.head_sizes)


def _query(attention):
    """Returns the projection of queries, multiplied by the matrix of the score if it has one."""
    query = _dense(attention.query)
    if not isinstance(attention.score, General):
        return query
    matrix = attention.score_matrix.numpy()  # [H, K, K]

    def joined(array):
        heads = array.reshape(*array.shape[:-1], *matrix.shape[:2])  # [..., H, K]
        return np.einsum("...hk,hkj->...hj", heads, matrix).reshape(array.shape)

    return tuple(None if array is None else joined(array) for array in query)


def _pad_heads(weights, heads, size):
    """Pads heads with zeros, from `[..., H * K]` to `[..., H * size]`."""
    split = weights.reshape(*weights.shape[:-1], heads, -1)  # [..., H, K]
    return _padded(split, size).reshape(*weights.shape[:-1], heads * size)


def _padded(vectors, size):
    """Pads vectors with zeros, from `[..., K]` to `[..., size]`."""
    missing = size - vectors.shape[-1]
    return np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, missing)])
