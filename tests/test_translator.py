import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from support import randomise

from keras_transformer import Tokenizer, Transformer, TransformerConfig, Translator, greedy_decode
from keras_transformer.translator import translate_sorted

SENTENCES = ["a cat", "the big dog runs", "", "dog", "a big cat and a dog", "   ", "the the the"]


@pytest.fixture(scope="module")
def translator():
    """A model with random weights: what it says is nonsense, but it says it reliably."""
    words = ["a cat runs", "the big dog", "a dog and a cat", "the cat and the big dog runs"] * 20
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words),
        model_writer=model,
        vocab_size=30,
        model_type="bpe",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    config = TransformerConfig(
        vocab_size=30, num_layers=2, d_model=16, d_ff=24, num_heads=2, max_length=11, dropout=0.3
    )
    return Translator(randomise(Transformer(config)), Tokenizer(model.getvalue()))


def test_a_translation_is_the_decoded_output_of_greedy_decoding(translator):
    tokenizer, model = translator.tokenizer, translator.model
    for sentence, ours in zip(SENTENCES, translator(SENTENCES), strict=True):
        if sentence.strip():
            source = tokenizer.encode([sentence]).to_tensor()[:, :11]
            tokens, _ = greedy_decode(model, source)
            assert ours == tokenizer.decode(tokens)[0].numpy().decode()


def test_the_outputs_differ_so_that_the_tests_here_can_fail(translator):
    assert len(set(translator(SENTENCES))) >= 4


def test_empty_sentences_stay_empty_and_score_zero(translator):
    result = translator.translate(tf.constant(["", "dog", " \t ", "\u3000", "\ufeff"]))
    assert result["translation"].numpy()[[0, 2, 3, 4]].tolist() == [b""] * 4
    assert result["score"].numpy()[[0, 2, 3, 4]].tolist() == [0] * 4
    assert result["score"].numpy()[1] < 0


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_the_order_is_kept_whatever_the_batches(translator, batch_size):
    alone = [translator([sentence])[0] for sentence in SENTENCES]
    assert translator(SENTENCES, batch_size=batch_size) == alone


def test_batches_go_by_length(translator):
    class Recorder:
        batches = []

        def translate_batch(self, sentences):
            self.batches.append(sentences)
            return sentences

    assert translate_sorted(Recorder(), ["ccc", "a", "dddd", "bb"], 2) == ["ccc", "a", "dddd", "bb"]
    assert Recorder.batches == [["a", "bb"], ["ccc", "dddd"]]


def test_a_long_source_is_cut_at_the_limit_and_ends_in_eos(translator):
    long = "the big dog and a cat runs and the big cat runs"
    ids, truncated, _ = translator.encode(tf.constant(["dog", long]))
    whole = translator.tokenizer.encode([long]).to_tensor().numpy()[0]
    assert truncated.numpy().tolist() == [False, True]
    assert ids.shape == (2, 11)
    np.testing.assert_array_equal(ids[1], [*whole[:10], 3])
    assert [result.truncated for result in translator.translate_batch(["dog", long])] == [
        False,
        True,
    ]


def test_a_source_of_exactly_the_limit_is_whole(translator):
    sentence = "dog"
    while len(translator.tokenizer.encode([sentence])[0]) < 11:
        sentence += "s"
    ids, truncated, _ = translator.encode(tf.constant([sentence]))
    assert ids.shape[1] == 11 and not truncated.numpy()[0]


def test_no_sentences_at_all(translator):
    assert translator([]) == []
    assert translator.translate(tf.constant([], tf.string))["translation"].shape == (0,)


def test_a_lower_limit_shortens_the_output(translator):
    short = Translator(translator.model, translator.tokenizer, max_length=3)
    for sentence in short(SENTENCES):
        assert len(translator.tokenizer.encode([sentence])[0]) <= 4


def test_limits_and_vocabularies_are_checked(translator):
    model, tokenizer = translator.model, translator.tokenizer
    for wrong in (0, 12):
        with pytest.raises(ValueError, match=f"between 1 and the model's 11. Received: .*={wrong}"):
            Translator(model, tokenizer, max_length=wrong)
    other = Transformer(TransformerConfig.preset("tiny", vocab_size=31, num_layers=1))
    with pytest.raises(ValueError, match="30 entries, vocab_size=31"):
        Translator(other, tokenizer)
    with pytest.raises(TypeError, match="must be a list of strings. Received: 'dog'"):
        translator("dog")


def test_one_graph_serves_every_batch(translator):
    for count in (1, 4, 7):
        translator.translate(tf.constant(SENTENCES[:count]))
    assert translator.translate.experimental_get_tracing_count() == 1
