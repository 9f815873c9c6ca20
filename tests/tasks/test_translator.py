import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from marks import slow
from searching import by_beam, by_greedy, by_sample
from support import randomise

from keras_transformer import Beam, Greedy, Transformer, TransformerConfig, Translator
from keras_transformer.decoding import Sample, score
from keras_transformer.pipelines import Score
from keras_transformer.tasks.results import to_n_best
from keras_transformer.tasks.strings import map_sorted
from keras_transformer.tokenizers import SentencePieceTokenizer

SENTENCES = ["a cat", "the big dog runs", "", "dog", "a big cat and a dog", "   ", "the the the"]


@pytest.fixture(scope="module")
def translator():
    """A model with random weights: its outputs are meaningless but reproducible."""
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
    return Translator(randomise(Transformer(config)), SentencePieceTokenizer(model.getvalue()))


def test_a_translation_is_the_decoded_output_of_greedy_decoding(translator):
    tokenizer, model = translator.target_tokenizer, translator.model
    for sentence, ours in zip(SENTENCES, translator(SENTENCES), strict=True):
        if sentence.strip():
            source = tokenizer.encode([sentence]).to_tensor()[:, :11]
            tokens, _ = by_greedy(model, source)
            assert ours == tokenizer.decode(tokens)[0].numpy().decode()


def test_the_outputs_of_the_test_model_differ(translator):
    assert len(set(translator(SENTENCES))) >= 4


def test_empty_sentences_stay_empty_and_score_zero(translator):
    result = translator.graph()(tf.constant(["", "dog", " \t ", "\u3000", "\ufeff"]))
    assert result["text"].shape == result["score"].shape == (5, 1)
    assert result["text"].numpy()[[0, 2, 3, 4], 0].tolist() == [b""] * 4
    assert result["score"].numpy()[[0, 2, 3, 4], 0].tolist() == [0] * 4
    assert result["score"].numpy()[1, 0] < 0


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_the_order_is_kept_for_any_batch_size(translator, batch_size):
    alone = [translator([sentence])[0] for sentence in SENTENCES]
    assert translator(SENTENCES, batch_size=batch_size) == alone


def test_sentences_of_similar_length_share_a_batch(translator):
    class Recorder:
        batches = []

        def answer_batch(self, sentences):
            self.batches.append(sentences)
            return sentences

    assert map_sorted(Recorder().answer_batch, ["ccc", "a", "dddd", "bb"], 2) == [
        "ccc",
        "a",
        "dddd",
        "bb",
    ]
    assert Recorder.batches == [["a", "bb"], ["ccc", "dddd"]]


def test_a_long_source_is_truncated_at_the_limit_and_ends_in_eos(translator):
    long = "the big dog and a cat runs and the big cat runs"
    ids, truncated, _ = translator.encode(tf.constant(["dog", long]))
    whole = translator.source_tokenizer.encode([long]).to_tensor().numpy()[0]
    assert truncated.numpy().tolist() == [False, True]
    assert ids.shape == (2, 11)
    np.testing.assert_array_equal(ids[1], [*whole[:10], 3])
    assert [result.truncated for result in translator.answer_batch(["dog", long])] == [
        False,
        True,
    ]


def test_a_source_of_exactly_the_limit_is_not_truncated(translator):
    sentence = "dog"
    while len(translator.source_tokenizer.encode([sentence])[0]) < 11:
        sentence += "s"
    ids, truncated, _ = translator.encode(tf.constant([sentence]))
    assert ids.shape[1] == 11 and not truncated.numpy()[0]


def test_there_is_a_translation_even_without_a_valid_score():
    """For a model whose weights are NaN; hypotheses that do not exist are left out."""
    outputs = {
        "text": tf.constant([["a", ""], ["b", "c"]]),
        "score": tf.constant([[np.nan, -1e9], [-1.0, -2.0]]),
        "truncated": tf.constant([False, True]),
    }
    translations = to_n_best(outputs, 2)
    assert [[translation.text for translation in row] for row in translations] == [
        ["a"],
        ["b", "c"],
    ]
    assert np.isnan(translations[0][0].score) and translations[1][0].truncated


def test_an_empty_list_of_sentences(translator):
    assert translator([]) == []
    assert translator.graph()(tf.constant([], tf.string))["text"].shape == (0, 1)


def test_a_lower_limit_shortens_the_output(translator):
    short = Translator(translator.model, translator.tokenizers, max_length=3)
    for sentence in short(SENTENCES):
        assert len(translator.source_tokenizer.encode([sentence])[0]) <= 4


def test_limits_and_vocabularies_are_checked(translator):
    model, tokenizer = translator.model, translator.source_tokenizer
    for wrong in (0, 12):
        with pytest.raises(ValueError, match=f"between 1 and the model's 11. Received: .*={wrong}"):
            Translator(model, tokenizer, max_length=wrong)
    other = Transformer(TransformerConfig.preset("tiny", vocab_size=31, num_layers=1))
    with pytest.raises(ValueError, match="30 entries, vocab_size=31"):
        Translator(other, tokenizer)
    with pytest.raises(TypeError, match=r"`max_length` must be an integer, .*=2\.5\.$"):
        Translator(model, tokenizer, max_length=2.5)


@pytest.mark.parametrize(
    "wrong, received",
    [
        (3, r"3\.$"),
        (None, r"None\.$"),
        ([1], r"1 at index 0\.$"),
        (["dog", None], r"None at index 1\.$"),
        ([["dog"]], r"\['dog'\] at index 0\.$"),
    ],
)
def test_inputs_that_are_not_lists_of_strings(translator, wrong, received):
    message = rf"^`{{}}` must be a list of strings\. Received: {received}"
    for call in (
        translator,
        lambda x: translator(x, Sample()),
        translator.align,
        lambda x: translator.n_best(x, 2),
    ):
        with pytest.raises(TypeError, match=message.format("sentences")):
            call(wrong)
    with pytest.raises(TypeError, match=message.format("sources")):
        translator.score(wrong, ["dog"])
    with pytest.raises(TypeError, match=message.format("targets")):
        translator.score(["dog"], wrong)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, "a"])
def test_a_batch_needs_at_least_one_sentence(translator, batch_size):
    with pytest.raises((TypeError, ValueError), match="^`batch_size` must be .* Received: batch_"):
        translator(["dog"], batch_size=batch_size)


def test_one_graph_serves_every_batch(translator):
    for count in (1, 4, 7):
        translator(SENTENCES[:count])
    assert translator.graph().experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_a_beam_translates_as_beam_decoding(translator, extra_length=None):
    """Limited relative to the source; the end counts on both sides."""
    tokenizer, model = translator.target_tokenizer, translator.model
    ours = translator(SENTENCES, Beam(3, length_penalty=1.0, extra_length=extra_length))
    for sentence, translation in zip(SENTENCES, ours, strict=True):
        if not sentence.strip():
            assert translation == ""
            continue
        source = tokenizer.encode([sentence]).to_tensor()[:, :11]
        limit = 11 if extra_length is None else min(source.shape[1] + extra_length, 11)
        tokens, _ = by_beam(model, source, 3, length_penalty=1.0, max_length=limit)
        assert translation == tokenizer.decode(tokens[:, 0])[0].numpy().decode()


@pytest.mark.slow
def test_a_beam_has_the_papers_settings_by_default(translator):
    paper = Beam()
    assert (paper.size, paper.length_penalty, paper.extra_length) == (4, 0.6, 50)
    assert paper.normalization == "gnmt"
    expected = [best.text for best, *_ in translator.n_best(SENTENCES, 1)]
    assert translator(SENTENCES, search=Beam(4, length_penalty=0.6)) == expected
    assert expected != translator(SENTENCES), "the beam must find something else"


@pytest.mark.parametrize("batch_size", [slow(1), 3])
def test_a_beam_keeps_the_order_for_any_batch_size(translator, batch_size):
    expected = translator(SENTENCES, search=Beam(4))
    assert translator(SENTENCES, batch_size=batch_size, search=Beam(4)) == expected
    assert translator([], search=Beam(4)) == []


@pytest.mark.long
@pytest.mark.slow
def test_n_best_are_the_distinct_texts_of_beam_decoding(translator):
    best = translator.n_best(SENTENCES, 3, Beam(min_length=2))
    assert [row[0].text for row in best] == translator(SENTENCES, Beam(4, min_length=2))
    for sentence, outputs in zip(SENTENCES, best, strict=True):
        if not sentence.strip():
            assert [(result.text, result.score) for result in outputs] == [("", 0.0)]
            continue
        source = translator.source_tokenizer.encode([sentence]).to_tensor()[:, :11]
        tokens, scores = by_beam(translator.model, source, 4, 3, min_length=2)
        texts = [text.decode() for text in translator.target_tokenizer.decode(tokens[0]).numpy()]
        first = [texts.index(text) for text in dict.fromkeys(texts)]
        assert [result.text for result in outputs] == [texts[number] for number in first]
        np.testing.assert_allclose([r.score for r in outputs], scores.numpy()[0, first], atol=1e-4)
    assert len(translator.n_best(["dog"], 6)[0]) > 4, "the beam is as wide as n at least"


@pytest.mark.slow
def test_one_graph_serves_every_length_and_penalty(translator):
    for count, length_penalty, min_length, extra_length in [(1, 0.6, 1, 5), (4, 2, 3, None)]:
        options = {"length_penalty": length_penalty, "min_length": min_length}
        translator(SENTENCES[:count], search=Beam(2, **options, extra_length=extra_length))
    assert translator.graph(Beam(2)).experimental_get_tracing_count() == 1
    assert translator.graph(Beam(2)) is not translator.graph(Beam(2, normalization="none"))


@pytest.mark.slow
def test_one_graph_serves_every_limit_of_greedy_search(translator):
    """A service may ask for another maximum length each time; a graph was never freed."""
    graphs = {id(translator.graph(Greedy(limit))) for limit in range(1, 101)}
    assert len(graphs) == 1 and translator.graph() is not translator.graph(Greedy(1))
    source = translator.encode(tf.constant(SENTENCES))[0]
    for limit in (1, 3, 5, 2**40):
        outputs = translator(SENTENCES, search=Greedy(limit))
        longest = translator.max_length
        tokens, _ = by_greedy(translator.model, source, min(limit, longest), longest)
        texts = [text.decode() for text in translator.target_tokenizer.decode(tokens).numpy()]
        assert outputs == [text if words.strip() else "" for text, words in zip(texts, SENTENCES)]  # noqa: B905
    assert translator.graph(Greedy(7)).experimental_get_tracing_count() == 1


@pytest.mark.slow
def test_a_beam_adds_nothing_to_an_export(translator, tmp_path):
    translator(["dog"], search=Beam(2))
    tf.saved_model.save(translator, tmp_path, {"serving_default": translator.graph()})
    loaded = tf.saved_model.load(tmp_path)
    assert list(loaded.signatures) == ["serving_default"]
    assert not hasattr(loaded, "_searcher")
    answer = loaded.signatures["serving_default"](sentences=tf.constant(["dog"]))
    assert answer["text"].numpy()[0, 0].decode() == translator(["dog"])[0]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"size": 0}, r"`size` must be at least 1\. Received: size=0\."),
        ({"length_penalty": -1}, r"`length_penalty` must be at least 0 and finite\."),
        ({"normalization": "x"}, r"`normalization` must be one of .*'x'\."),
        (
            {"min_length": 12},
            r"`min_length` must be between 1 and 11\. Received: min_length=12\.",
        ),
        (
            {"extra_length": -1},
            r"`extra_length` must be an integer of at least 0, or None\. .* extra_length=-1\.",
        ),
    ],
)
def test_the_arguments_of_a_beam_are_checked(translator, options, message):
    with pytest.raises(ValueError, match=message):
        translator(["dog"], search=Beam(**{"size": 2, **options}))


def test_the_requirements_of_a_beam_are_reported(translator):
    with pytest.raises(TypeError, match="must be a list of strings. Received: 7"):
        translator.n_best(7, 2)
    with pytest.raises(ValueError, match=r"Received: n_best=3, size=2\.$"):
        translator.n_best(["dog"], 3, Beam(2))
    with pytest.raises(
        ValueError, match=r"`n_best` must be 1 .*n_best=3, search=Greedy\(max_length=None, .*\)\.$"
    ):
        translator.n_best(["dog"], 3, Greedy())
    message = r"`search` must be a `Greedy` or a `Beam` or a `Sample`\. Received: search=64\."
    with pytest.raises(TypeError, match=message):
        translator(["dog"], 64)


@pytest.mark.long
@pytest.mark.slow
def test_samples_equal_those_of_sample_decoding_for_any_batch_size(translator):
    """Each has the seed of its place in the list; one graph serves all controls."""
    options = {"temperature": 1.5, "top_k": 9, "top_p": 0.9}

    def sample(sentences, batch_size=64, **options):
        lists = translator.n_best(sentences, 1, Sample(**options), batch_size)
        return [best for (best,) in lists]

    samples = sample(SENTENCES, **options, seed=5, batch_size=3)
    for number, (sentence, ours) in enumerate(zip(SENTENCES, samples, strict=True)):
        if not sentence.strip():
            assert (ours.text, ours.score) == ("", 0.0)
            continue
        source = translator.source_tokenizer.encode([sentence]).to_tensor()[:, :11]
        tokens, scores = by_sample(translator.model, source, **options, seed=(5, number))
        assert ours.text == translator.target_tokenizer.decode(tokens)[0].numpy().decode()
        np.testing.assert_allclose(ours.score, scores[0], atol=1e-4)
    again = sample(SENTENCES, **options, seed=5, batch_size=100)
    assert [output.text for output in again] == [output.text for output in samples]
    np.testing.assert_allclose([e.score for e in again], [e.score for e in samples], atol=1e-4)
    other = sample(SENTENCES, **options, seed=6)
    assert [output.text for output in other] != [output.text for output in samples]
    assert len({output.text for output in sample(["the big dog"] * 8)}) > 4
    assert translator(SENTENCES, Sample(temperature=0.0)) == translator(SENTENCES)
    assert translator.graph(Sample()).experimental_get_tracing_count() == 1
    assert sample([]) == []


@pytest.mark.slow
def test_scores_of_pairs_equal_those_of_the_function_for_any_batch_size(translator):
    targets = ["dog", "", "the cat runs", "a a a", "cat", "the", "big big"]
    scores = translator.score(SENTENCES, targets, batch_size=3)
    for sentence, target, ours in zip(SENTENCES, targets, scores, strict=True):
        source, target = (
            translator.source_tokenizer.encode([side]).to_tensor() for side in (sentence, target)
        )
        gains, sums = score(translator.model, source[:, :11], target)
        np.testing.assert_allclose(ours.score, sums[0], atol=1e-4)
        assert (ours.tokens, ours.truncated) == (gains.shape[1], False)
    again = translator.score(SENTENCES, targets, batch_size=100)
    np.testing.assert_allclose([e.score for e in again], [e.score for e in scores], atol=1e-4)
    assert translator.score([], []) == []


def test_a_long_pair_is_truncated_and_marked(translator):
    long = "the big dog and a cat runs and the big cat runs"
    for source, target in [(long, "dog"), ("dog", long), ("dog", "dog")]:
        (result,) = translator.score([source], [target])
        assert isinstance(result, Score)
        assert result.truncated == (long in (source, target))
        assert (result.tokens == 10) == (target == long), "a cut text has no end"


@pytest.mark.long
@pytest.mark.slow
def test_alignments_have_a_row_for_each_token(translator):
    for layer, head in [(-1, None), (0, 1)]:
        alignments = translator.align(SENTENCES, layer, head, batch_size=3)
        for sentence, ours in zip(SENTENCES, alignments, strict=True):
            if not sentence.strip():
                assert ours.source == ["</s>"] and ours.target == [] and ours.weights.size == 0
                continue
            ids = translator.source_tokenizer.encode([sentence]).to_tensor()[:, :11]
            assert ours.source == translator.source_tokenizer.pieces(ids[0].numpy())
            tokens, _ = by_greedy(translator.model, ids)
            output = tokens[0].numpy()[: np.count_nonzero(tokens[0])]
            assert ours.target == translator.target_tokenizer.pieces(output)
            inputs = {"source": ids, "target": np.insert(output[:-1], 0, 2)[None]}
            weights = translator.model.attention_weights(inputs)
            weights = weights[f"decoder/block_{layer % 2}/cross_attention"][0].numpy()
            expected = weights.mean(0) if head is None else weights[head]
            np.testing.assert_allclose(ours.weights, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_earlier_calls_add_nothing_to_an_export(translator, tmp_path):
    translator(["dog"], Sample())
    translator.score(["dog"], ["cat"])
    translator.align(["dog"])
    tf.saved_model.save(translator, tmp_path, {"serving_default": translator.graph()})
    loaded = tf.saved_model.load(tmp_path)
    assert list(loaded.signatures) == ["serving_default"]
    public = {name for name in dir(loaded) if not name.startswith("__")}
    assert not public & {"_searcher", "_scorer", "_aligner"}


def test_the_arguments_of_samples_scores_and_alignments_are_checked(translator):
    with pytest.raises(
        ValueError, match=r"`temperature` must be at least 0 and finite\. Received: .*=-1\."
    ):
        translator(["dog"], Sample(temperature=-1))
    with pytest.raises(TypeError, match="`sentences` must be a list of strings. Received: 7"):
        translator(7, Sample())
    with pytest.raises(TypeError, match="`sources` must be a list of strings. Received: 'dog'"):
        translator.score("dog", ["dog"])
    with pytest.raises(TypeError, match="`targets` must be a list of strings. Received: 'dog'"):
        translator.score(["dog"], "dog")
    message = r"`targets` must have one .* for each source\. Received: 2 sources, 1 targets\."
    with pytest.raises(ValueError, match=message):
        translator.score(["dog", "cat"], ["dog"])
    with pytest.raises(ValueError, match=r"There are 2 layers and 2 heads\. .*=\(2, None\)\."):
        translator.align(["dog"], layer=2)
