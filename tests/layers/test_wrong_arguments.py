"""Wrong values and types in Python: one clear line, before Keras can turn it into ten."""

import re

import keras
import numpy as np
import pytest
from support import KV, B, D, F, H, K, S, T, normal, small_config

from keras_transformer import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForward,
    MultiHeadSelfAttention,
    PositionalEmbedding,
    Transformer,
    TransformerConfig,
    Translator,
)
from keras_transformer.layers import MultiHeadCrossAttention
from keras_transformer.layers.dropout import Dropout

BLOCK = {"num_heads": H, "d_ff": F, "d_k": K, "d_v": KV}
X, IDS = normal(B, T, D), np.ones((B, T), "int32")
MAKERS = {
    "EncoderBlock": lambda **changes: EncoderBlock(**{**BLOCK, **changes}),
    "DecoderBlock": lambda **changes: DecoderBlock(**{**BLOCK, **changes}),
    "Encoder": lambda **changes: Encoder(1, **{**BLOCK, **changes}),
    "Decoder": lambda **changes: Decoder(1, **{**BLOCK, **changes}),
    "TransformerConfig": lambda **changes: small_config(**changes),
}
WRONG = [
    *({"dropout": value} for value in (2, 1, -0.1, float("nan"), "a", None, True)),
    *({"num_heads": value} for value in (0, -1, 2.0, "4", None, True)),
    *({"d_ff": value} for value in (0, 3.5, "a")),
    *({"d_k": value} for value in (0, 2.5)),
    {"d_v": 0},
    {"attention_dropout": 1.5},
    {"activation_dropout": "a"},
    {"norm": "sandwich"},
    {"norm": None},
    {"final_norm": "yes"},
    {"embedding_norm": None},
    {"activation": 3},
    {"attention_bias": "yes"},
    *({"normalization": value} for value in (0, "batch")),
]


def one_line(error):
    return "\n" not in str(error.value)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("changes", WRONG, ids=str)
def test_arguments_of_blocks_and_of_the_configuration(maker, changes):
    ((name, value),) = changes.items()
    message = rf"^`{name}` must be .*\. Received: {name}={re.escape(repr(value))}\.$"
    with pytest.raises((TypeError, ValueError), match=message) as error:
        MAKERS[maker](**changes)
    assert one_line(error)


@pytest.mark.parametrize("maker", ["EncoderBlock", "DecoderBlock"])
@pytest.mark.parametrize("norm", [{"final_norm": True}, {"embedding_norm": True}], ids=str)
def test_norms_of_a_stack_are_refused_by_a_block(maker, norm):
    message = "^`final_norm` and `embedding_norm` have no effect on a block"
    with pytest.raises(ValueError, match=message) as error:
        MAKERS[maker](**norm)
    assert one_line(error)
    stack = Encoder(1, **BLOCK, **norm)
    assert (stack.norm is None) != (stack.embedding_norm is None)
    assert type(stack).from_config(stack.get_config()).config == stack.config


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: EncoderBlock(**BLOCK, activation="nope"), "activation"),
        (lambda: FeedForward(F, activation="nope"), "activation"),
        (lambda: Transformer(small_config(activation="nope")), "activation"),
        (lambda: FeedForward(0), "d_ff"),
        (lambda: FeedForward(F, dropout="a"), "dropout"),
        (lambda: MultiHeadSelfAttention(2.5), "num_heads"),
        (lambda: MultiHeadSelfAttention(2, dropout=2), "dropout"),
        (lambda: MultiHeadSelfAttention(2, causal=1), "causal"),
        (lambda: MultiHeadCrossAttention(2, d_k=0), "d_k"),
        (lambda: MultiHeadCrossAttention(2, use_bias="no"), "use_bias"),
        (lambda: Encoder(0, **BLOCK), "num_layers"),
        (lambda: Decoder(2.5, **BLOCK), "num_layers"),
        (lambda: PositionalEmbedding("a", D), "vocab_size"),
        (lambda: PositionalEmbedding(0, D), "vocab_size"),
        (lambda: PositionalEmbedding(9, 16.0), "d_model"),
        (lambda: PositionalEmbedding(9, D, max_length=0), "max_length"),
        (lambda: PositionalEmbedding(9, D, dropout=1), "dropout"),
        (lambda: PositionalEmbedding(9, D, position=3), "position"),
        (lambda: Dropout("a"), "rate"),
        (lambda: Dropout(2), "rate"),
        (lambda: TransformerConfig(d_model="64"), "d_model"),
        (lambda: TransformerConfig(num_layers=None), "num_layers"),
        (lambda: Transformer(3), "config"),
        (lambda: Transformer({"d_model": 64}), "config"),
    ],
)
def test_arguments_of_single_layers(make, name):
    message = rf"^`{name}` must be .*\. Received: {name}="
    with pytest.raises((TypeError, ValueError), match=message) as error:
        make()
    assert one_line(error)


@pytest.mark.parametrize("wrong", ["a", 2.0, -1, True, None])
def test_ids_in_the_configuration(wrong):
    message = r"^`pad_id`, `bos_id` and `eos_id` must be in the vocabulary, .* Received: pad_id="
    with pytest.raises(ValueError, match=message):
        small_config(pad_id=wrong)


ATTENDING = {
    "self": lambda: MultiHeadSelfAttention(H, d_k=K, d_v=KV),
    "encoder_block": lambda: EncoderBlock(**BLOCK),
    "encoder": lambda: Encoder(1, **BLOCK),
}
TO_MEMORY = {
    "cross": lambda: MultiHeadCrossAttention(H, d_k=K, d_v=KV),
    "decoder_block": lambda: DecoderBlock(**BLOCK),
    "decoder": lambda: Decoder(1, **BLOCK),
}
NOT_POSITIONS = {
    "ids": (
        IDS,
        "must be embedded, floating .*pass token ids through a `PositionalEmbedding` first",
    ),
    "integers": (IDS[:, :, None], "must be embedded, floating"),
    "two axes": (X[0], r"must be \[batch, positions, features\]"),
    "four axes": (X[None], r"must be \[batch, positions, features\]"),
    "no width": (keras.KerasTensor((B, T, None)), r"must be .* with a known number of features"),
}


@pytest.mark.parametrize("kind", NOT_POSITIONS)
@pytest.mark.parametrize("layer", [*ATTENDING, *TO_MEMORY])
def test_inputs_that_cannot_be_embedded(layer, kind):
    value, message = NOT_POSITIONS[kind]
    made = {**ATTENDING, **TO_MEMORY}[layer]()
    received = rf".* Received by '{made.name}': dtype=\w+, shape={re.escape(str(value.shape))}\.$"
    calls = [("x", (value, *[X] * (layer in TO_MEMORY)))]
    calls += [("memory", (X, value))] * (layer in TO_MEMORY)
    for name, arguments in calls:
        with pytest.raises((TypeError, ValueError), match=f"^`{name}` {message}{received}"):
            made(*arguments)


def test_shapes_to_build_from():
    for layer in (EncoderBlock(**BLOCK), Encoder(1, **BLOCK), MultiHeadSelfAttention(2)):
        with pytest.raises(ValueError, match=r"^`x` must be \[batch, .* shape=\(2, 22\)\.$"):
            layer.build((B, D))
    with pytest.raises(ValueError, match=r"^`memory` must be .* shape=\(2, 13, None\)\.$"):
        DecoderBlock(**BLOCK).build((B, T, D), (B, S, None))


def test_another_width_than_the_layer_was_built_for():
    message = (
        r"^`{}` must have the 22 features that the layer was built for\. Received by '.*16\)\.$"
    )
    for make in ATTENDING.values():
        layer = make()
        layer.build((B, T, D))
        with pytest.raises(ValueError, match=message.format("x")):
            layer(X[:, :, :16])
    block = DecoderBlock(**BLOCK)
    block.build((B, T, D), (B, S, D))
    with pytest.raises(ValueError, match=message.format("memory")):
        block(X, normal(B, S, 16))
    network = FeedForward(F)
    network(X)
    with pytest.raises(ValueError, match=message.format("x")):
        network(X[:, :, :16])


def test_sentences_with_a_memory_of_another_batch_size():
    rule = r"^`x` and `memory` must have the same batch size\."
    message = rule + r" Received by '.*': batch sizes 2 and 3\.$"
    for make in TO_MEMORY.values():
        with pytest.raises(ValueError, match=message):
            make()(X, normal(3, S, D))


@pytest.mark.parametrize(
    "ids, message",
    [
        (IDS[0], r"must be token ids \[batch, positions\]\..* shape=\(11,\)"),
        (X, r"must be token ids \[batch, positions\]\..* shape=\(2, 11, 22\)"),
        (IDS.astype("float16"), r"must be integer token ids: .*dtype=\"int32\".* dtype=float16"),
        (IDS.astype(bool), "must be integer token ids: .* dtype=bool"),
        (IDS.astype(str), "must be integer token ids: "),
    ],
)
def test_inputs_that_are_not_token_ids(ids, message):
    for layer, name in (
        (PositionalEmbedding(19, D), "inputs"),
        (Transformer(small_config()), "source"),
    ):
        value = ids if name == "inputs" else {"source": ids, "target": IDS}
        with pytest.raises((TypeError, ValueError), match=f"^`{name}` {message}") as error:
            layer(value)
        assert one_line(error)


@pytest.mark.parametrize("policy_name", ["float32", "mixed_bfloat16"])
def test_ids_given_as_floats_are_not_rounded(policy_name):
    """`keras.Input((None,))` is float32 by default; bfloat16 cannot represent 257."""
    layer = PositionalEmbedding(300, D, dtype=policy_name)
    ids = np.array([[257, 299, 1]])
    expected = layer(ids)
    np.testing.assert_array_equal(layer(ids.astype("float32")), expected)


def test_targets_with_a_different_number_of_sources():
    message = r"^`source` and `target` must have the same batch size\. .* batch sizes 2 and 1\.$"
    with pytest.raises(ValueError, match=message):
        Transformer(small_config())({"source": IDS, "target": IDS[:1]})


@pytest.mark.parametrize(
    "model, tokenizer, name", [([1], 3, "model"), (None, 3, "model"), ("runs/demo", 3, "model")]
)
def test_a_translator_built_from_wrong_objects(model, tokenizer, name):
    message = rf"^`{name}` must be a \w+; `Translator.from_run\(FOLDER\)` opens .* of type \w+\.$"
    with pytest.raises(TypeError, match=message):
        Translator(model, tokenizer)
    with pytest.raises(
        TypeError, match="^`tokenizer` must be a Tokenizer, or a pair .* of type int"
    ):
        Translator(Transformer(small_config()), 3)
