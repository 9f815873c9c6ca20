"""Weights of a `Transformer` in CTranslate2's layout.

The kernel of a linear layer is stored as `[out, in]`. Self-attention stacks the projections of
queries, keys and values in one matrix; cross-attention stacks those of keys and values only.
"""

import math
from typing import Any

import keras
import numpy as np

from keras_transformer import activations
from keras_transformer.export.ctranslate2.runtime import FORCED, GREEDY, load_ctranslate2
from keras_transformer.export.errors import ExportError
from keras_transformer.layers.positions import FixedPosition, Learned
from keras_transformer.layers.scores import DotProduct, General

# CTranslate2 truncates inputs at 1,024 and outputs at 256 tokens by default. With this number of
# positions, the defaults also work for a model that was trained on shorter sentences.
POSITIONS = 1024
BANNED = -1e4  # bias of banned tokens, within the range of float16
# Position encodings that are a table of rows, and attention scores that are a product of queries
# and keys. CTranslate2 supports no others.
POSITIONS_OF_EMBEDDINGS = ("sinusoidal", "learned", "binary", "none")
PRODUCTS = ("scaled_dot_product", "dot_product", "general")


def make_spec(model, pieces, target_pieces, unk_id, max_length, greedy_length=None) -> Any:
    """Returns a validated `ctranslate2.specs.TransformerSpec` with the weights of a model.

    Args:
        model: A `Transformer` that computes in float32.
        pieces: List of strings, the source vocabulary.
        target_pieces: List of strings, the target vocabulary.
        unk_id: Id of the unknown token.
        max_length: Maximum source and output length in tokens, only for the metadata.
        greedy_length: Maximum output length of greedy search, only for the metadata. `None`:
            `max_length`.

    Raises:
        ExportError: If CTranslate2 cannot express the model.
    """
    config = model.config
    check_expressible(config)
    spec = load_ctranslate2().specs.TransformerSpec.from_config(
        (config.num_layers, config.decoder_layers),
        config.num_heads,
        pre_norm=config.is_pre_norm,
        no_final_norm=not config.has_final_norm,
        layernorm_embedding=config.embedding_norm,
        activation=_activation(config.activation),
    )
    encoder = spec.encoder
    _fill_stack(encoder, encoder.embeddings[0], config, model.source_embedding, model.encoder)
    _fill_decoder(spec.decoder, model)
    _set_vocabulary(spec, config, pieces, target_pieces, unk_id)
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.config.add_attribute("max_length", max_length)
    spec.config.add_attribute(GREEDY, greedy_length or max_length)
    spec.config.add_attribute(FORCED, config.forced_eos_id)
    spec.validate()
    return spec


def check_run(config, tokenizers, quantize="none", origin=None) -> None:
    """Raises an `ExportError` unless CTranslate2 can express a model: see `check_expressible`."""
    check_expressible(config, origin)


def check_expressible(config, origin=None) -> None:
    """Raises an `ExportError` unless CTranslate2's layout can express a model.

    Args:
        config: A `TransformerConfig`.
        origin: Provenance of the original checkpoint, a dictionary, or `None`. The error names the
            setting of that checkpoint.
    """
    _activation(config.activation)
    acting = config.position_in_attention
    for what, is_there in (
        (f"{acting} positions", acting not in POSITIONS_OF_EMBEDDINGS),
        (f"{config.score} scores", config.score not in PRODUCTS),
        ("a decoder of SSRUs", config.decoder.is_recurrent),
        (_name_of_silent_ids(origin), bool(config.silent_ids)),
        ("an output that starts with zeros", config.starts_with_zeros),
        ("tokens of languages in front of sources", config.head.has_languages),
        ("`no_repeat_ngram` as a rule of the model", config.no_repeat_ngram > 0),
        ("a forced first token (`forced_bos_token_id`)", config.forced_bos_id is not None),
        ("a feed-forward network without biases", not config.feed_forward_bias),
        ("a gated feed-forward network", config.is_gated),
        ("key heads that heads share", config.num_key_value_heads not in (None, config.num_heads)),
        ("biases of some projections only", 0 < len(config.biased_projections) < 4),
        ("RMS normalisations", config.norm_type == "rms"),
        ("normalisations without biases", not config.norm_bias),
        ("local attention", config.window is not None),
        ("a first block without its first norm", config.first_norm is False),
        ("a final norm after post-norm blocks", config.has_final_norm and not config.is_pre_norm),
    ):
        if is_there:
            raise ExportError(f"The layout for CTranslate2 cannot express {what}.")


def _name_of_silent_ids(origin):
    """Returns the name of the user's setting that became `silent_ids`."""
    form = (origin or {}).get("format")
    if form == "opus-mt":
        return (
            "`bad_words_ids` without `renormalize_logits`: tokens that are never emitted but keep "
            'their probability. Set "renormalize_logits": true in the generation_config.json or '
            "config.json of the checkpoint and convert it again; this changes the scores"
        )
    if form == "marian":
        return "an unknown token that is never emitted but keeps its probability, as in Marian"
    return "`silent_ids`"


def _activation(name):
    known = load_ctranslate2().specs.Activation
    equals = {"relu": known.RELU, "gelu": known.GELU, "silu": known.SWISH}
    # Keras has several names for some activations.
    name = activations.name_of(activations.get(name))
    if name not in equals:
        raise ExportError(
            f"CTranslate2 can express the activations {', '.join(equals)}. This model has {name}."
        )
    return equals[name]


def _set_vocabulary(spec, config, pieces, target_pieces, unk_id):
    if config.output_size > len(target_pieces):
        raise ExportError(
            f"CTranslate2 needs a name for every token. This model has {config.output_size} target "
            f"tokens, but its vocabulary names only {len(target_pieces)}."
        )
    spec.register_source_vocabulary(pieces)
    if pieces[config.eos_id] != target_pieces[config.eos_id]:
        raise ExportError(
            "CTranslate2 needs the same name for the end of sources and of targets. Those of this "
            f"model are {pieces[config.eos_id]} and {target_pieces[config.eos_id]}."
        )
    spec.register_target_vocabulary(target_pieces[: config.output_size])
    spec.config.bos_token = spec.config.decoder_start_token = target_pieces[config.bos_id]
    spec.config.eos_token = pieces[config.eos_id]
    spec.config.unk_token = pieces[unk_id]
    spec.config.add_source_eos = True


def _fill_decoder(spec, model):
    _fill_stack(spec, spec.embeddings, model.config, model.target_embedding, model.decoder)
    spec.projection.weight = keras.ops.convert_to_numpy(model.output_matrix)  # [V, D]
    bias = _output_bias(model)
    if bias is not None:
        spec.projection.bias = bias
    for layer, block in zip(spec.layer, model.decoder.blocks, strict=True):
        _fill_cross_attention(layer.attention, block)


def _fill_stack(spec, table, config, embedding, stack):
    """Fills in what encoder and decoder have in common."""
    spec.scale_embeddings = _embedding_scale(config)
    table.weight = embedding.table.numpy()
    spec.position_encodings.encodings = _positions(embedding)
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        _fill_self_attention(layer.self_attention, block)
        _fill_feed_forward(layer.ffn, block)
    if stack.norm is not None:
        _fill_norm(spec.layer_norm, stack.norm)
    if stack.embedding_norm is not None:
        _fill_norm(spec.layernorm_embedding, stack.embedding_norm)


def _output_bias(model):
    """Returns the bias of the logits, `BANNED` for banned tokens; `None` if there is no bias."""
    banned = list(model.config.banned_ids)
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
    query, key, value, output = _projections(spec, block.self_attention)
    _fill_linear(spec.linear[0], query, key, value)
    _fill_linear(spec.linear[1], output)
    _fill_norm(spec.layer_norm, block.self_attention_norm)


def _fill_cross_attention(spec, block):
    query, key, value, output = _projections(spec, block.cross_attention)
    _fill_linear(spec.linear[0], query)
    _fill_linear(spec.linear[1], key, value)
    _fill_linear(spec.linear[2], output)
    _fill_norm(spec.layer_norm, block.cross_attention_norm)


def _fill_feed_forward(spec, block):
    _fill_linear(spec.linear_0, _dense(block.feed_forward.inner))
    _fill_linear(spec.linear_1, _dense(block.feed_forward.outer))
    _fill_norm(spec.layer_norm, block.feed_forward_norm)


def _fill_linear(spec, *maps):
    """Concatenates the outputs of pairs of a kernel `[in, out]` and a bias `[out]` or `None`."""
    kernels, biases = zip(*maps, strict=True)
    spec.weight = np.ascontiguousarray(np.concatenate(kernels, axis=1).T)  # [out, in]
    if biases[0] is not None:
        spec.bias = np.concatenate(biases)


def _fill_norm(spec, norm):
    spec.gamma = norm.gamma.numpy()
    spec.beta = norm.beta.numpy()


def _dense(layer):
    return layer.kernel.numpy(), None if layer.bias is None else layer.bias.numpy()


def _projections(spec, attention):
    """Returns the four projections of an attention, with heads of equal size; sets its scale.

    CTranslate2 has a single head size for queries, keys and values. Smaller heads are padded with
    zeros, which change no result.
    """
    heads = attention.num_heads
    size = max(attention.query.units, attention.value.units) // heads
    plain = isinstance(attention.score, DotProduct)
    scale = math.sqrt(heads / attention.query.units)  # 1 / sqrt(d_k)
    spec.queries_scale = 1.0 if plain else scale
    inputs = [
        tuple(None if array is None else _pad_heads(array, heads, size) for array in projection)
        for projection in (_query(attention), _dense(attention.key), _dense(attention.value))
    ]
    kernel, bias = _dense(attention.output_projection)
    return *inputs, (_pad_heads(kernel.T, heads, size).T, bias)


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
    missing = size - split.shape[-1]
    padded = np.pad(split, [(0, 0)] * (split.ndim - 1) + [(0, missing)])  # [..., H, size]
    return padded.reshape(*weights.shape[:-1], heads * size)
