"""A table with one row for each public layer: its constructor and the inputs of its call.

A layer with other settings has a row of its own, named `LAYER_SETTING`. The tests read this table,
and so does the fresh process that loads what they saved.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
import numpy as np
from mixer_rows import MIXERS, directions, mixer_of, model_options
from support import (
    KV,
    D,
    F,
    H,
    K,
    S,
    T,
    normal,
    randomise,
    sentences,
    small_config,
    small_fields,
    with_effect,
)

import keras_transformer as kt

BATCH = 4
BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV, "dropout": 0.0}


@dataclasses.dataclass(frozen=True)
class Row:
    """A layer or a whole model, and the names of its call arguments; the main input is first.

    `values` are arguments other than those of the same name in `VALUES`.
    """

    make: Callable[[], keras.Layer]
    arguments: tuple[str, ...]
    values: dict = dataclasses.field(default_factory=dict)


def x():
    return normal(BATCH, T, D)


def memory():
    return normal(BATCH, S, D, seed=1)


def allowed(length, seed):
    """Returns a mask [B, 1, length] that hides a different tail of each sentence."""
    shown = np.random.default_rng(seed).integers(2, length, BATCH)
    return np.array([[np.arange(length) < count] for count in shown])


VALUES = {
    "x": x(),
    "memory": memory(),
    "attention_mask": allowed(T, seed=2),
    "memory_attention_mask": allowed(S, seed=3),
    "padding_mask": allowed(T, seed=2),
    "inputs": np.random.default_rng(4).integers(0, 19, (BATCH, T)).astype("int32"),
    "source": sentences([13, 6, 9, 2]),
    "target": sentences([11, 5, 8, 3], first=2),
    "tokens": sentences([11, 5, 8, 3], first=2, seed=5),
    "images": normal(BATCH, 6, 10, 3, seed=8),
    "pixels": np.random.default_rng(6).uniform(0, 255, (BATCH, 6, 10, 3)).astype("float32"),
    "series": normal(BATCH, T, 3, seed=7),
    "frames": normal(BATCH, T, 5, seed=9),
}
STACK = small_fields(kt.models.TokenClassifierConfig, num_layers=2, attention_bias=True)
PLAIN = small_fields(kt.models.ImageClassifierConfig, num_layers=2, attention_bias=True)
SPEECH = small_fields(kt.models.SpeechTransformerConfig, num_layers=2, attention_bias=True)
RECURRENT = with_effect(kt.models.SeriesConfig, **PLAIN, encoder="gru_attention")
SHAPE = {"image_height": 6, "image_width": 10, "patch_size": 2}
IMAGE = {**SHAPE, "labels": ("a", "b", "c")}
SERIES = {
    "inputs": ("a", "b", "c"),
    "input_mean": (0.5, -1.0, 0.1),
    "input_scale": (1.0, 2.0, 0.5),
    "target_mean": 0.3,
    "target_scale": 1.5,
}
MENTAL = normal(BATCH, T, 3, 5) * VALUES["padding_mask"][:, 0, :, None, None]  # an image
SYMBOLS = {"tokens": np.minimum(VALUES["tokens"], 4)}
# A question, the sentences of a story, each after the id 1, the id 2 and padding.
STORIES = {
    "tokens": np.array(
        [
            [4, 5, 1, 6, 7, 1, 8, 9, 7, 1, 5, 2],
            [5, 7, 6, 1, 9, 2, 0, 0, 0, 0, 0, 0],
            [8, 1, 4, 1, 7, 9, 2, 0, 0, 0, 0, 0],
            [6, 1, 7, 1, 8, 1, 9, 1, 5, 4, 2, 0],
        ],
        "int32",
    )[:, :T]
}
WITH_MIXER = {f"Transformer_{kind}": kind for kind in MIXERS}


def model_with(kind):
    """Returns an encoder-decoder with a mixer in place of self-attention."""
    options = {"num_decoder_layers": 2, "norm": "pre", **model_options(kind)}
    return kt.Transformer(small_config(**options))


ROWS = {
    "MultiHeadSelfAttention": Row(
        lambda: kt.MultiHeadSelfAttention(H, d_k=K, d_v=KV, use_bias=True, causal=True),
        ("x", "attention_mask"),
    ),
    "MultiHeadCrossAttention": Row(
        lambda: kt.layers.MultiHeadCrossAttention(H, d_k=K, d_v=KV),
        ("x", "memory", "memory_attention_mask"),
    ),
    "MultiHeadSelfAttention_additive": Row(
        lambda: kt.MultiHeadSelfAttention(H, d_k=K, d_v=KV, score="additive", position="alibi"),
        ("x", "attention_mask"),
    ),
    "MultiHeadSelfAttention_relative": Row(
        lambda: kt.MultiHeadSelfAttention(
            H, d_k=K, d_v=KV, causal=True, score="general", position=kt.layers.Relative(4)
        ),
        ("x", "attention_mask"),
    ),
    "MultiHeadSelfAttention_disentangled": Row(
        lambda: kt.MultiHeadSelfAttention(
            H, d_k=K, d_v=KV, use_bias=True, position=kt.layers.Disentangled(7, 12)
        ),
        ("x", "attention_mask"),
    ),
    "Mixing": Row(lambda: kt.layers.Mixing("ssru"), ("x", "attention_mask")),
    **{
        f"Mixing_{kind}{'_causal' * causal}": Row(
            functools.partial(kt.layers.Mixing, mixer_of(kind), causal), ("x", "attention_mask")
        )
        for kind in MIXERS
        for causal in directions(kind)
    },
    "PositionReader": Row(
        lambda: kt.layers.PositionReader(),
        ("x", "memory", "attention_mask"),
        {"attention_mask": allowed(S, seed=3)},
    ),
    "FeedForward": Row(lambda: kt.FeedForward(F, activation="gelu"), ("x",)),
    "PositionalEmbedding": Row(
        lambda: kt.PositionalEmbedding(19, D, position="learned", max_length=T), ("inputs",)
    ),
    "EncoderBlock": Row(
        lambda: kt.EncoderBlock(**BLOCK, activation="silu", attention_bias=True),
        ("x", "attention_mask"),
    ),
    "DecoderBlock": Row(
        lambda: kt.DecoderBlock(**BLOCK, norm="pre", normalization=kt.layers.LayerNorm(1e-3)),
        ("x", "memory", "memory_attention_mask"),
    ),
    "EncoderBlock_alibi": Row(
        lambda: kt.EncoderBlock(**BLOCK, position="alibi", score="dot_product"),
        ("x", "attention_mask"),
    ),
    "EncoderBlock_relative": Row(
        lambda: kt.EncoderBlock(**BLOCK, position=kt.layers.Relative(3)),
        ("x", "attention_mask"),
    ),
    "EncoderBlock_t5": Row(
        lambda: kt.EncoderBlock(**BLOCK, position=kt.layers.T5Bias(9, 8), score="dot_product"),
        ("x", "attention_mask"),
    ),
    "DecoderBlock_t5": Row(
        lambda: kt.DecoderBlock(**BLOCK, position="t5", score="general"),
        ("x", "memory", "memory_attention_mask"),
    ),
    "PositionalEmbedding_binary": Row(
        lambda: kt.PositionalEmbedding(19, D, position="binary"), ("inputs",)
    ),
    "DecoderBlock_additive": Row(
        lambda: kt.DecoderBlock(**BLOCK, position="alibi", score="additive"),
        ("x", "memory", "memory_attention_mask"),
    ),
    "DecoderBlock_ssru": Row(
        lambda: kt.DecoderBlock(**BLOCK, mixer="ssru", attention_bias=True),
        ("x", "memory", "memory_attention_mask"),
    ),
    "EncoderBlock_llama": Row(
        lambda: kt.EncoderBlock(
            **{**BLOCK, "num_heads": 4, "d_k": 6},
            **{"norm": "pre", "normalization": "rms", "feed_forward": kt.layers.Gated(bias=False)},
            **{"num_key_value_heads": 2, "position": {"kind": "rotary", "base": 500.0}},
            **{"causal": True, "activation": "silu"},
        ),
        ("x", "attention_mask"),
    ),
    "DecoderBlock_bahdanau": Row(
        lambda: kt.DecoderBlock(
            **{**BLOCK, "d_ff": None, "mixer": "gru", "score": "additive"},
            **{"feed_forward": "none", "normalization": "scale"},
        ),
        ("x", "memory", "memory_attention_mask"),
    ),
    "Encoder_deberta": Row(
        lambda: kt.Encoder(
            **{
                "num_layers": 2,
                **BLOCK,
                "position": {"kind": "disentangled", "distance": 7, "buckets": 12, "shared": True},
            },
            **{"attention_bias": True},
        ),
        ("x", "attention_mask"),
    ),
    "Decoder_t5": Row(
        lambda: kt.Decoder(
            **{"num_layers": 2, **BLOCK, "position": {"kind": "t5", "shared": True}},
            **{"feed_forward": "gated", "activation": "gelu_tanh"},
        ),
        ("x", "memory", "memory_attention_mask"),
    ),
    "Encoder": Row(lambda: kt.Encoder(2, **BLOCK, norm="pre"), ("x", "attention_mask")),
    "Decoder": Row(
        lambda: kt.Decoder(2, **BLOCK), ("x", "memory", "attention_mask", "memory_attention_mask")
    ),
    "Transformer": Row(
        lambda: kt.Transformer(
            small_config(num_layers=1, num_decoder_layers=2, attention_bias=True)
        ),
        ("source", "target"),
    ),
    "Transformer_output_bias": Row(
        lambda: kt.Transformer(small_config(output_bias=True, tie="none")),
        ("source", "target"),
    ),
    **{
        name: Row(functools.partial(model_with, kind), ("source", "target"))
        for name, kind in WITH_MIXER.items()
    },
    "LanguageModel": Row(
        lambda: kt.LanguageModel(kt.models.LanguageModelConfig(**STACK, tie="none")), ("tokens",)
    ),
    "TextClassifier": Row(
        lambda: kt.models.TextClassifier(
            kt.models.ClassifierConfig(**STACK, labels=("a", "b", "c"), pooling="attention")
        ),
        ("tokens",),
    ),
    # Not of unit length: the mean square, the loss of these tests, would not depend on any weight.
    "TextEmbedder": Row(
        lambda: kt.models.TextEmbedder(
            kt.models.EmbedderConfig(**STACK, dimensions=5, normalize=False)
        ),
        ("tokens",),
    ),
    "TokenClassifier": Row(
        lambda: kt.models.TokenClassifier(
            kt.models.TokenClassifierConfig(**STACK, labels=("O", "B-X", "I-X"))
        ),
        ("tokens",),
    ),
    "MaskedLanguageModel": Row(
        lambda: kt.models.MaskedLanguageModel(
            kt.models.MaskedLanguageModelConfig(**STACK, embedding_size=8)
        ),
        ("tokens",),
    ),
    "SparseTextEmbedder": Row(
        lambda: kt.models.SparseTextEmbedder(kt.models.SparseEmbedderConfig(**STACK)), ("tokens",)
    ),
    "MultiLabelClassifier": Row(
        lambda: kt.models.MultiLabelClassifier(kt.models.MultiLabelClassifierConfig(**STACK)),
        ("tokens",),
    ),
    "PairScorer": Row(
        lambda: kt.models.PairScorer(kt.models.PairScorerConfig(**STACK)), ("tokens",)
    ),
    "MultiVectorEncoder": Row(
        lambda: kt.models.MultiVectorEncoder(
            kt.models.MultiVectorEncoderConfig(
                **STACK, dimensions=5, expansion="unattended", expansion_id=5
            )
        ),
        ("tokens",),
    ),
    "SpanPredictor": Row(
        lambda: kt.models.SpanPredictor(kt.models.SpanPredictorConfig(**STACK)), ("tokens",)
    ),
    "TokenClassifier_transform": Row(
        lambda: kt.models.TokenClassifier(
            kt.models.TokenClassifierConfig(
                **{
                    **{
                        **STACK,
                        "position": "learned",
                        "attention_position": kt.layers.T5Bias(shared=True),
                    },
                    **{"transform": True, "labels": ("O", "B-X", "I-X")},
                },
            )
        ),
        ("tokens",),
    ),
    "PatchEmbedding": Row(lambda: kt.layers.PatchEmbedding(2, D, position="learned"), ("images",)),
    "PatchEmbedding_grid": Row(
        lambda: kt.layers.PatchEmbedding(2, 12, class_tokens=0), ("images",)
    ),
    "ImageClassifier": Row(
        lambda: kt.models.ImageClassifier(
            kt.models.ImageClassifierConfig(**{**PLAIN, "position": "learned"}, **IMAGE)
        ),
        ("pixels",),
    ),
    "ImageEmbedder": Row(
        lambda: kt.models.ImageEmbedder(
            kt.models.ImageEmbedderConfig(
                **{**PLAIN, "position": "learned", "layer_scale": 0.3}, **SHAPE, normalize=False
            )
        ),
        ("pixels",),
    ),
    "FrameEmbedding": Row(
        lambda: kt.layers.FrameEmbedding(D, position="learned", max_length=T),
        ("frames", "padding_mask"),
    ),
    "SpeechTransformer": Row(
        lambda: kt.models.SpeechTransformer(
            kt.models.SpeechTransformerConfig(**SPEECH, num_mel_filters=5, max_seconds=0.29)
        ),
        ("source", "target"),
        {"source": normal(BATCH, S, 5, seed=9)},
    ),
    "ConvolutionalGRU": Row(
        lambda: kt.layers.ConvolutionalGRU(gate_cutoff=1.1),
        ("x", "padding_mask"),
        {"x": MENTAL},
    ),
    "NeuralGPU": Row(
        lambda: kt.layers.NeuralGPU(2, image_width=3, gate_cutoff=1.1), ("x", "padding_mask")
    ),
    "TapeGRU": Row(
        lambda: kt.layers.TapeGRU(gate_cutoff=1.1),
        ("x", "tape", "padding_mask"),
        {"x": MENTAL, "tape": normal(BATCH, T, 5, seed=1) * MENTAL[:, :, 1]},
    ),
    "TapeDecoder": Row(
        lambda: kt.layers.TapeDecoder(3, 1),
        ("x", "known", "padding_mask"),
        {"x": MENTAL, "known": np.random.default_rng(7).integers(-1, 3, (BATCH, T), "int32")},
    ),
    "Calculator": Row(lambda: kt.models.Calculator(**PLAIN), ("tokens",), SYMBOLS),
    **{
        f"Calculator_{kind}": Row(
            functools.partial(
                kt.models.Calculator, encoder=kind, num_layers=2, d_model=6, dropout=0.0
            ),
            ("tokens",),
            SYMBOLS,
        )
        for kind in ("neural_gpu", "extended_neural_gpu")
    },
    "StoryReader": Row(
        lambda: kt.models.StoryReader(**STACK, labels=("a", "b", "c")), ("tokens",), STORIES
    ),
    "StoryReader_memory": Row(
        lambda: kt.models.StoryReader(
            encoder="memory",
            num_layers=2,
            d_model=6,
            vocab_size=19,
            labels=("a", "b", "c"),
            time={"kind": "temporal", "noise": 0.0},
        ),
        ("tokens",),
        STORIES,
    ),
    "SeriesEmbedding": Row(lambda: kt.layers.SeriesEmbedding(D, max_length=29), ("series",)),
    "SnowAccount": Row(lambda: kt.models.SnowAccount(0, 2, max_length=29), ("series",)),
    "SeriesRegressor": Row(
        lambda: kt.models.SeriesRegressor(kt.models.SeriesConfig(**PLAIN, **SERIES)), ("series",)
    ),
    "SeriesRegressor_gru_attention": Row(
        lambda: kt.models.SeriesRegressor(kt.models.SeriesConfig(**RECURRENT, **SERIES)),
        ("series",),
    ),
}
# They return booleans, which have no rounding, gradient or loss: only Keras's harness tests them.
MASKS = {
    "PaddingMask": Row(lambda: kt.layers.PaddingMask(pad_id=3), ("inputs",)),
    "FrameMask": Row(lambda: kt.layers.FrameMask(2), ("frames",)),
}
HARNESS_ROWS = {**ROWS, **MASKS}
# Encoder-decoders, whose only argument is a dictionary.
WITH_TARGET = ("Transformer", "SpeechTransformer")


# Layers whose logits are float32.
def is_layer(value):
    return isinstance(value, type) and issubclass(value, keras.Layer)


MODELS = {
    "Transformer",
    "Transformer_output_bias",
    *WITH_MIXER,
    "SpeechTransformer",
    "LanguageModel",
    "TextClassifier",
    "TextEmbedder",
    "TokenClassifier",
    "MaskedLanguageModel",
    "SparseTextEmbedder",
    "TokenClassifier_transform",
    "SpanPredictor",
    "MultiLabelClassifier",
    "PairScorer",
    "MultiVectorEncoder",
    "ImageClassifier",
    "ImageEmbedder",
    "Calculator",
    "Calculator_neural_gpu",
    "Calculator_extended_neural_gpu",
    "StoryReader",
    "StoryReader_memory",
    "SeriesRegressor",
    "SeriesRegressor_gru_attention",
}
# Layers whose last axis is the steps of the input.
PER_STEP = {"SeriesRegressor", "SeriesRegressor_gru_attention"}
# Layers of models that compute in float32 under every policy.
ENDS = {
    "logits",
    "vector",
    "vectors",
    "token_projection",
    "passage",
    "scaling",
    "squeeze",
    "unscaling",
}

# Arguments with another name in the call than in the table: an attention takes the mask of the
# memory as `attention_mask`.
RENAMED = {("MultiHeadCrossAttention", "memory_attention_mask"): "attention_mask"}


def inputs_of(name):
    """Returns the row's arguments as arrays by name, as its functional model takes them."""
    row = HARNESS_ROWS[name]
    return {argument: {**VALUES, **row.values}[argument] for argument in row.arguments}


def call(name, layer, tensors):
    """Calls the layer as a user would: the first argument by position, the others by name."""
    if name.startswith(WITH_TARGET):
        return layer(tensors)
    first, *others = HARNESS_ROWS[name].arguments
    named = {RENAMED.get((name, other), other): tensors[other] for other in others}
    return layer(tensors[first], **named)


def functional_model(name, layer=None):
    """Builds a functional model of one of our layers, with all lengths free."""
    layer = layer or ROWS[name].make()
    if name.startswith(WITH_TARGET):
        return layer
    inputs = {
        argument: keras.Input(free(value.shape), dtype=value.dtype.name, name=argument)
        for argument, value in inputs_of(name).items()
    }
    return keras.Model(inputs, call(name, layer, inputs))


def free(shape):
    """Returns a shape with free batch and length axes; the width and the 1 of a mask stay fixed."""
    return tuple(None if size in (T, S) else size for size in shape[1:])


def random_model(name):
    return randomise(functional_model(name))
