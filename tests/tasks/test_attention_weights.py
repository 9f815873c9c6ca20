"""Attention weights of a pipeline belong to the tokens next to them."""

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from marks import slow_except
from pipelines import (
    classifier,
    generator,
    recurrent_translator,
    token_classifier,
    tokenizer,
    translator,
)
from support import randomise

from keras_transformer.models import SeriesConfig, SeriesRegressor
from keras_transformer.pipelines import Attention, SeriesSimulator

SENTENCE = "the big dog"
READ = "▁the▁big▁dog"
KINDS = {
    translator: ["cross", "encoder", "decoder"],
    recurrent_translator: ["cross", "encoder"],
    classifier: ["encoder"],
    token_classifier: ["encoder"],
    generator: ["decoder"],
}
LONG = "the big dog and the cat and a dog and the big cat runs"


@pytest.mark.parametrize("pipeline", slow_except(KINDS, *[*KINDS][:2]))
def test_kinds_layers_and_heads_are_those_of_the_model(pipeline):
    config = pipeline().model.config
    attentions = pipeline().attention(SENTENCE)
    assert list(attentions) == KINDS[pipeline]
    for kind, attention in attentions.items():
        assert isinstance(attention, Attention) and attention.kind == kind
        layers = config.num_layers if kind == "encoder" else config.decoder_layers
        size = len(attention.queries), len(attention.keys)
        assert attention.weights.shape == (
            layers,
            config.stacks[-1].block.attention.num_heads,
            *size,
        )
        assert attention.weights.dtype == np.float32
        np.testing.assert_allclose(attention.weights.sum(axis=-1), 1, atol=1e-5)
        assert (attention.complete, attention.truncated) == (True, False)
        expected = np.zeros(size)  # layer by layer, head by head
        for layer, head in np.ndindex(layers, config.stacks[-1].block.attention.num_heads):
            expected += attention.weights[layer, head] / (
                layers * config.stacks[-1].block.attention.num_heads
            )
        np.testing.assert_allclose(attention.mean(), expected, atol=1e-6)


def test_a_translators_rows_belong_to_the_chosen_tokens():
    model, attentions = translator().model, translator().attention(SENTENCE)
    cross, encoder, decoder = attentions.values()
    assert "".join(cross.keys) == "".join(encoder.keys) == f"{READ}</s>" == "".join(encoder.queries)
    # Each token is the best continuation of those before it, which are all that its row sees.
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer().model)
    chosen = [processor.piece_to_id(piece) for piece in cross.queries]
    assert decoder.queries == decoder.keys == ["<s>", *cross.queries[:-1]]
    source = translator().encode(tf.constant([SENTENCE]))[0]
    logits = model({"source": source, "target": tf.constant([[2, *chosen[:-1]]])})
    assert np.argmax(logits[0], axis=-1).tolist() == chosen
    first = model.attention_weights({"source": source, "target": tf.constant([[2]])})
    expected = first["decoder/block_0/cross_attention"][0, :, 0]
    np.testing.assert_allclose(cross.weights[0, :, 0], expected, atol=1e-5)
    for layer in (0, 1):
        expected = first[f"encoder/block_{layer}/self_attention"][0]
        np.testing.assert_allclose(encoder.weights[layer], expected, atol=1e-5)
    for queries, keys in [(1, 2), (0, 3)]:
        assert not decoder.weights[..., queries, keys].any(), "the future"


@pytest.mark.parametrize("pipeline", [classifier, token_classifier])
def test_an_encoder_attends_to_its_text_and_its_end(pipeline):
    attention = pipeline().attention(SENTENCE)["encoder"]
    assert "".join(attention.keys) == f"{READ}</s>" and attention.keys == attention.queries
    ids = np.array(tokenizer().encode([SENTENCE]).to_list())
    expected = pipeline().model.attention_weights(ids)["encoder/block_1/self_attention"][0]
    np.testing.assert_allclose(attention.weights[1], expected, atol=1e-6)


def test_a_language_model_reads_the_start_token_and_the_text():
    attention = generator().attention(SENTENCE)["decoder"]
    assert "".join(attention.keys) == f"<s>{READ}" and attention.keys == attention.queries
    ids = np.array([[2, *tokenizer().encode([SENTENCE]).to_list()[0][:-1]]])
    expected = generator().model.attention_weights(ids)["decoder/block_1/self_attention"][0]
    np.testing.assert_allclose(attention.weights[1], expected, atol=1e-6)
    np.testing.assert_array_equal(attention.weights, np.tril(attention.weights))


@pytest.mark.parametrize(
    "pipeline", [pytest.param(classifier, id="classifier"), pytest.param(generator, id="generator")]
)
def test_a_long_text_is_truncated_and_marked(pipeline):
    for attention in pipeline().attention(LONG).values():
        assert attention.truncated
        assert max(len(attention.queries), len(attention.keys)) <= 11


@pytest.mark.parametrize("sentence", ["", " ", "\t\n"])
def test_an_empty_sentence_is_refused(sentence):
    with pytest.raises(ValueError, match="`sentence` must not be empty. Received: "):
        translator().attention(sentence)


@pytest.mark.parametrize("sentence", [["a cat"], b"a cat", None])
def test_inputs_that_are_not_text_are_refused(sentence):
    with pytest.raises(TypeError, match="`sentence` must be a string. Received: "):
        classifier().attention(sentence)


def test_a_model_that_reads_no_text_is_reported():
    config = SeriesConfig(num_layers=1, d_model=4, d_ff=5, num_heads=2)
    simulator = SeriesSimulator(randomise(SeriesRegressor(config)))
    with pytest.raises(ValueError, match="A model for time_series has no attention weights"):
        simulator.attention(SENTENCE)
