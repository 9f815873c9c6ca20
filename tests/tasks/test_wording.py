"""Words that the outputs of a `Translator` must or must not contain, and scores of their tokens."""

import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from uncertain_models import talkative

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.decoding import Constraints, SearchOptions
from keras_transformer.text.terms import contains
from keras_transformer.tokenizers import SentencePieceTokenizer

SOURCES = ["in 3 days", "days", "in 12 weeks", "", "in 3 weeks"]
GLOSSARY = {"3": "Tagen", "weeks": ("12 weeks", "4 Tagen")}


@pytest.fixture(scope="module")
def translator():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["in 3 days", "in 12 weeks", "in 4 Tagen"] * 5),
        model_writer=model, vocab_size=25, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        minloglevel=2, model_type="bpe",
    )  # fmt: skip
    return Translator(
        talkative(vocab_size=25), SentencePieceTokenizer(model.getvalue()), max_length=12
    )


def test_an_output_has_the_terms_of_its_source(translator):
    worded = translator.with_settings(glossary=GLOSSARY)
    results = worded(SOURCES)
    for source, output in zip(SOURCES, results, strict=True):
        assert worded.wording.missing(source, output) == []
    assert "Tagen" in results[0] and results[3] == ""
    assert results == [worded(source) for source in SOURCES]
    plain = translator(SOURCES, search=Beam(10))
    assert results[1] == plain[1] and results[0] != plain[0]
    assert translator(SOURCES, search=Beam(10)) == plain  # it is as it was
    assert worded.with_settings(glossary={})(SOURCES, search=Beam(10)) == plain


def test_an_output_has_no_banned_phrase_however_it_is_split(translator):
    # After a prefix, since a token that continues a word may begin an output of random weights.
    begun = translator.with_settings(prefix="in 3 days")
    outputs = [word for output in begun(SOURCES) for word in output.split()[3:]]
    words = sorted({word for word in outputs if len(word) < 6 and word.isalnum()})
    worded = begun.with_settings(banned=words)
    assert words and not any(worded.wording.unwanted(output) for output in worded(SOURCES))
    tokens, tokenizer = worded._wording_tokens(), translator.target_tokenizer
    texts = {b.decode() for b in tokenizer.decode(tf.constant(tokens.phrases)).numpy()}
    assert {*words} <= texts
    ways = translator.with_settings(banned=["in"])._wording_tokens().phrases
    spelled = [tokenizer.pieces([token for token in way if token]) for way in ways.tolist()]
    assert ["\u2581in"] in spelled and ["\u2581", "i", "n"] in spelled


def test_prefixes_are_those_of_the_inputs(translator):
    prefixes = ["in 4", "", "Tagen", "days", "weeks"]
    results = translator.with_settings(prefix=prefixes)(SOURCES, batch_size=2)
    for prefix, output, source in zip(prefixes, results, SOURCES, strict=True):
        assert output.startswith(prefix) if source else output == ""
        assert output == translator.with_settings(prefix=prefix)(source)
    assert results[1] == translator(SOURCES[1])


def test_token_scores_add_up_to_the_score(translator):
    scored = translator.with_settings(token_scores=True)
    results = scored.answer(SOURCES)
    assert results == translator.answer(SOURCES)
    for result, source in zip(results, SOURCES, strict=True):
        total = sum(gain for _, gain in result.token_scores)
        np.testing.assert_allclose(total, result.score, rtol=0, atol=1e-4)
        assert (result.token_scores == ()) == (source == "")
    assert translator.answer("days").token_scores is None
    several = scored.n_best("in 3 days", 3, search=Beam(4, normalization="none"))
    for result in several:
        total = sum(gain for _, gain in result.token_scores)
        np.testing.assert_allclose(total, result.score, rtol=0, atol=1e-4)


def test_the_words_are_constraints_of_the_search(translator):
    """A search that gets the same tokens returns the same output."""
    worded, search = translator.with_settings(glossary={"3": "Tagen"}, banned=["in"]), Beam(10)
    tokens = worded._wording_tokens()
    constraints = Constraints(
        terms=tokens.values(["in 3 days"], [0])[1],
        banned_phrases=tokens.phrases,
        word_starts=tokens.word_starts,
    )
    source, *_ = translator.encode(tf.constant(["in 3 days"]))
    options = SearchOptions(constraints=constraints, cache_length=translator.max_length)
    found = search(translator.model, source, options)
    text = translator.target_tokenizer.decode(found.tokens[:, 0])[0].numpy().decode()
    assert worded("in 3 days", search=search) == text


def test_a_term_ends_where_a_word_ends(translator):
    starts = translator.with_settings(glossary={"a": "3"})._wording_tokens().word_starts
    pieces = translator.target_tokenizer.pieces(range(25))
    for piece, begins in zip(pieces, starts, strict=True):
        assert begins == (piece.startswith("\u2581") or not piece[:1].isalnum())


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"glossary": ["a"]}, TypeError, "`glossary` must be a dictionary from source terms to"),
        ({"glossary": {"a": ""}}, ValueError, "`glossary` has a term without words"),
        ({"glossary": {"a": "\u732b"}}, ValueError, "`glossary` has a term with characters that"),
        (
            {"glossary": {"a": "in 3 days"}, "banned": ["In", "3"]},
            ValueError,
            "`glossary` demands what `banned` forbids: 'in 3 days' contains '3'",
        ),
        ({"banned": "in"}, TypeError, "`banned` must be a list of strings"),
        ({"banned": [3]}, TypeError, "`banned` must consist of strings"),
        ({"banned": ["x", "y" * 101]}, ValueError, "100 characters. Ban a .* Received: 101 char"),
        ({"spans": True}, ValueError, "`spans` has no effect on a model for translation"),
    ],
)
def test_bad_settings_are_errors(translator, settings, error, message):
    with pytest.raises(error, match=message):
        translator.with_settings(**settings)


def test_a_glossary_needs_a_beam_and_each_input_a_prefix(translator):
    worded = translator.with_settings(glossary=GLOSSARY)
    with pytest.raises(ValueError, match=r"`glossary` needs a beam. Received: search=Greedy"):
        worded(SOURCES, search=Greedy())
    with pytest.raises(ValueError, match=r"`prefix` must have one string for each input\. .* 1 "):
        translator.with_settings(prefix=["in"])(SOURCES)


def test_the_output_of_a_glossary_contains_the_term_as_a_word(translator):
    output = translator.with_settings(glossary={"days": "4"})("days")
    assert contains(output, "4")
