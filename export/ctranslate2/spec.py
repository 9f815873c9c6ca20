"""Weights of a model in CTranslate2's layout.

The kernel of a linear layer is stored as `[out, in]`. Self-attention stacks the projections of
queries, keys and values in one matrix; cross-attention stacks those of keys and values only.
"""

import collections
import math
from typing import Any

import keras
import numpy as np

from keras_transformer.export.ctranslate2.engine import load_ctranslate2
from keras_transformer.export.ctranslate2.expressible import check_expressible, options_of
from keras_transformer.export.ctranslate2.metadata import metadata_of
from keras_transformer.export.errors import ExportError
from keras_transformer.layers.positions import FixedPosition, Learned
from keras_transformer.layers.scores import DotProduct, General

# CTranslate2 truncates inputs at 1,024 and outputs at 256 tokens by default. With this number of
# positions, the defaults also work for a model that was trained on shorter sentences.
POSITIONS = 1024
BANNED = -1e4  # bias of banned tokens, within the range of float16


def make_spec(model, pieces, target_pieces, unk_id, max_length, greedy_length=None) -> Any:
    """Returns a validated specification of CTranslate2 with the weights of a model.

    Args:
        model: A `Transformer` or a `LanguageModel` that computes in float32.
        pieces: List of strings, the source vocabulary.
        target_pieces: List of strings, the target vocabulary.
        unk_id: Id of the unknown token.
        max_length: Maximum source and output length in tokens, only for the metadata.
        greedy_length: Maximum output length of greedy search, only for the metadata. `None`:
            `max_length`.

    Returns:
        A `TransformerSpec` of `ctranslate2.specs`, or a `TransformerDecoderModelSpec` for a model
        without an encoder.

    Raises:
        ExportError: If CTranslate2 cannot express the model.
    """
    config = model.config
    check_expressible(config)
    make = _language_model if config.encoder is None else _encoder_decoder
    spec = make(model, pieces, target_pieces)
    spec.config.eos_token = target_pieces[config.eos_id]
    spec.config.bos_token = target_pieces[config.bos_id]
    spec.config.unk_token = pieces[unk_id]
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    for name, value in metadata_of(config, max_length, greedy_length or max_length).items():
        spec.config.add_attribute(name, value)
    spec.validate()
    return spec


def _encoder_decoder(model, pieces, target_pieces):
    config, specs = model.config, load_ctranslate2().specs
    encoder = specs.TransformerEncoderSpec(**options_of(config.encoder, False))
    decoder = specs.TransformerDecoderSpec(**options_of(config.decoder, True))
    _fill_stack(encoder, encoder.embeddings[0], model.source_embedding, model.encoder, config)
    _fill_stack(decoder, decoder.embeddings, model.target_embedding, model.decoder, config)
    _fill_output(decoder.projection, model)
    for layer, block in zip(decoder.layer, model.decoder.blocks, strict=True):
        _fill_cross_attention(layer.attention, block)
    spec = specs.TransformerSpec(encoder, decoder)
    if pieces[config.eos_id] != target_pieces[config.eos_id]:
        raise ExportError(
            "CTranslate2 needs the same name for the end of sources and of targets. Those of this "
            f"model are {pieces[config.eos_id]} and {target_pieces[config.eos_id]}."
        )
    spec.register_source_vocabulary(_checked_names(pieces, config.vocab_size))
    spec.register_target_vocabulary(_checked_names(target_pieces, config.output_size))
    start = None if config.head.starts_with_language else target_pieces[config.bos_id]
    spec.config.decoder_start_token = start  # `None`: the caller gives it
    # Where the token of the source's language comes after the end, the caller adds both.
    spec.config.add_source_eos = config.head.language_codes in ("none", "before")
    return spec


def _language_model(model, pieces, target_pieces):
    config, specs = model.config, load_ctranslate2().specs
    options = {**options_of(config.decoder, True), "with_encoder_attention": False}
    decoder = specs.TransformerDecoderSpec(**options)
    _fill_stack(decoder, decoder.embeddings, model.embedding, model.decoder, config)
    _fill_output(decoder.projection, model)
    spec = specs.TransformerDecoderModelSpec(decoder)
    spec.register_vocabulary(_checked_names(target_pieces, config.output_size))
    return spec


def _checked_names(pieces, size):
    """Returns the names of all tokens of a vocabulary, a list of different strings."""
    if size > len(pieces):
        raise ExportError(
            f"CTranslate2 needs a name for every token. This model has {size} target tokens, but "
            f"its vocabulary names only {len(pieces)}."
        )
    pieces = pieces[:size]
    twice = [name for name, count in collections.Counter(pieces).items() if count > 1]
    if twice:
        raise ExportError(
            "CTranslate2 needs different names for all tokens. Names of several tokens of this "
            f"model: {', '.join(map(repr, twice[:5]))}."
        )
    return pieces


def _fill_stack(spec, table, embedding, stack, config):
    """Fills in what encoder and decoder have in common."""
    spec.scale_embeddings = _embedding_scale(config)
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


def _fill_output(spec, model):
    spec.weight = keras.ops.convert_to_numpy(model.output_matrix)  # [V, D]
    bias = _output_bias(model)
    if bias is not None:
        spec.bias = bias


def _output_bias(model):
    """Returns the bias of the logits, `BANNED` for banned tokens; `None` if there is no bias."""
    banned = list(getattr(model.config.head, "banned_ids", ()))
    if model.output_bias is not None:
        bias = model.output_bias.numpy().copy()
    elif banned:
        bias = np.zeros(model.config.output_size, np.float32)
    else:
        return None
    bias[banned] = BANNED
    return bias


def _embedding_scale(config):
    """Returns true for the paper's scale, false for none, or the scale as a number."""
    if config.embedding_scale in (None, 1):
        return config.embedding_scale is None
    return np.float32(config.embedding_scale)


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
    if hasattr(spec, "relative_attention_bias"):
        owner = getattr(attention.position, "block", block).self_attention
        spec.relative_attention_bias = owner.distance_bias.numpy()  # [buckets, H]
        spec.relative_attention_max_distance = np.int32(owner.position.distance)
    if hasattr(spec, "relative_position_keys"):
        spec.relative_position_keys = _distances(attention, attention.relative_keys)
        spec.relative_position_values = _distances(attention, attention.relative_values)


def _distances(attention, vectors):
    """Returns the vectors of the distances from key to query, `[2 * distance + 1, size]`.

    Ours are those from query to key. Causal self-attention has none for keys after the query.
    """
    vectors = _padded(vectors.numpy(), _head_size(attention))[::-1]
    missing = 2 * attention.position.distance + 1 - len(vectors)
    return np.ascontiguousarray(np.pad(vectors, [(0, missing), (0, 0)]))


def _fill_cross_attention(spec, block):
    query, key, value, output = _projections(spec, block.cross_attention)
    _fill_linear(spec.linear[0], query)
    _fill_linear(spec.linear[1], key, value)
    _fill_linear(spec.linear[2], output)
    _fill_norm(spec.layer_norm, block.cross_attention_norm)


def _fill_feed_forward(spec, block):
    layer = block.feed_forward
    if layer.gated:
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
