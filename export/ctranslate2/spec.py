"""Specifications of CTranslate2 for each kind of model, with weights and vocabulary."""

import collections
from typing import Any

import keras
import numpy as np

from keras_transformer.export.ctranslate2.engine import load_ctranslate2
from keras_transformer.export.ctranslate2.expressible import check_expressible, options_of
from keras_transformer.export.ctranslate2.metadata import metadata_of, metadata_of_encoder
from keras_transformer.export.ctranslate2.stacks import fill_cross_attention, fill_stack
from keras_transformer.export.errors import ExportError

BANNED = -1e4  # bias of banned tokens, within the range of float16
ADD = 1  # CTranslate2's `EmbeddingsMerge.ADD`


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
    metadata = metadata_of(config, max_length, greedy_length or max_length)
    return _described(spec, config, target_pieces, pieces[unk_id], metadata)


def make_encoder_spec(pipeline) -> Any:
    """Returns a validated specification of CTranslate2 with the weights of an encoder.

    It has no head. Segment embeddings are those of CTranslate2's `token_type_ids`.

    Args:
        pipeline: A `TextPass` whose model computes in float32.

    Returns:
        A `TransformerEncoderModelSpec` of `ctranslate2.specs`.

    Raises:
        ExportError: If CTranslate2 cannot express the model.
    """
    model, tokenizer = pipeline.model, pipeline.source_tokenizer
    config, specs = model.config, load_ctranslate2().specs
    check_expressible(config)
    tokens, options = model.parts.input, options_of(config.encoder, False)
    if tokens.segments is not None:
        options |= {"num_source_embeddings": 2, "embeddings_merge": ADD}
    encoder = specs.TransformerEncoderSpec(**options)
    fill_stack(encoder, encoder.embeddings[0], tokens.embedding, model.encoder, config)
    if tokens.segments is not None:
        # CTranslate2 scales the sum of both embeddings.
        encoder.embeddings[1].weight = tokens.segments.table.numpy() / tokens.embedding.scale
    spec = specs.TransformerEncoderModelSpec(encoder)
    pieces = _checked_names(tokenizer.pieces(range(tokenizer.vocab_size)), config.tokens.vocab_size)
    spec.register_vocabulary(pieces)
    unknown = pieces[tokenizer.unk_id]
    return _described(spec, config, pieces, unknown, metadata_of_encoder(pipeline))


def _described(spec, config, pieces, unknown, metadata):
    """Returns a validated specification with its configuration.

    Args:
        spec: The specification.
        config: The configuration of the model.
        pieces: List of strings, the vocabulary of the outputs.
        unknown: The unknown token.
        metadata: Dictionary of further values.
    """
    spec.config.eos_token = pieces[config.tokens.eos_id]
    spec.config.bos_token = pieces[config.tokens.bos_id]
    spec.config.unk_token = unknown
    spec.config.layer_norm_epsilon = config.stacks[0].block.normalization.epsilon
    for name, value in metadata.items():
        spec.config.add_attribute(name, value)
    spec.validate()
    return spec


def _encoder_decoder(model, pieces, target_pieces):
    config, specs = model.config, load_ctranslate2().specs
    encoder = specs.TransformerEncoderSpec(**options_of(config.encoder, False))
    decoder = specs.TransformerDecoderSpec(**options_of(config.decoder, True))
    fill_stack(encoder, encoder.embeddings[0], model.source_embedding, model.encoder, config)
    fill_stack(decoder, decoder.embeddings, model.target_embedding, model.decoder, config)
    decoder.start_from_zero_embedding = config.head.starts_with_zeros
    _fill_output(decoder.projection, model)
    for layer, block in zip(decoder.layer, model.decoder.blocks, strict=True):
        fill_cross_attention(layer.attention, block)
    spec = specs.TransformerSpec(encoder, decoder)
    if pieces[config.tokens.eos_id] != target_pieces[config.tokens.eos_id]:
        raise ExportError(
            "CTranslate2 needs the same name for the end of sources and of targets. Those of this "
            f"model are {pieces[config.tokens.eos_id]} and {target_pieces[config.tokens.eos_id]}."
        )
    spec.register_source_vocabulary(_checked_names(pieces, config.tokens.vocab_size))
    spec.register_target_vocabulary(_checked_names(target_pieces, config.output_size))
    start = None if config.head.rules.starts_with_language else target_pieces[config.tokens.bos_id]
    spec.config.decoder_start_token = start  # `None`: the caller gives it
    # Where the token of the source's language comes after the end, the caller adds both.
    spec.config.add_source_eos = config.head.rules.language_codes in ("none", "before")
    return spec


def _language_model(model, pieces, target_pieces):
    config, specs = model.config, load_ctranslate2().specs
    options = {**options_of(config.decoder, True), "with_encoder_attention": False}
    decoder = specs.TransformerDecoderSpec(**options)
    fill_stack(decoder, decoder.embeddings, model.embedding, model.decoder, config)
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


def _fill_output(spec, model):
    spec.weight = keras.ops.convert_to_tensor(model.output_matrix).numpy()  # [V, D]
    bias = _output_bias(model)
    if bias is not None:
        spec.bias = bias


def _output_bias(model):
    """Returns the bias of the logits, `BANNED` for banned tokens; `None` if there is no bias."""
    banned = list(model.config.head.rules.banned_ids)
    if model.output_bias is not None:
        bias = model.output_bias.numpy().copy()
    elif banned:
        bias = np.zeros(model.config.output_size, np.float32)
    else:
        return None
    bias[banned] = BANNED
    return bias
