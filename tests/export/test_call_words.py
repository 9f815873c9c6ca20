"""Exports that take words with each call search like the run, and return its scores of tokens."""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from tiny_translators import SOURCES, translator

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Found
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.runtime import changed
from keras_transformer.export.words import WordInputs
from keras_transformer.options import OptionError

BEAM = Beam(5, length_penalty=1.0, min_length=4)
GLOSSARY = {"3": "Tagen", "weeks": ("12 weeks", "4 Tagen")}
TEXTS = [*SOURCES, "", "in 3 weeks", "in 4 Tagen"]
PREFIXES = ["in 4", "", "Tagen", "days", "weeks 12 in 3", ""]
WORDS = [{}, {"banned": ["y"], "prefix": PREFIXES}]
WITH_TERMS = [{}, {"glossary": GLOSSARY}, {"glossary": GLOSSARY, **WORDS[1]}]


def written(folder, name, search):
    format, path = (
        FORMATS[name],
        folder / {"onnx": "model.onnx", "litert": "model.tflite"}.get(name, name),
    )
    options = format.options(search=search, takes_words=True, token_scores=True)
    format.export(translator(), path, SOURCES, options)
    opened = keras_transformer.open(path)
    return opened if name == "saved-model" else opened.with_search(search)


@pytest.fixture(scope="module")
def beam_file(tmp_path_factory):
    return written(tmp_path_factory.mktemp("beam"), "onnx", BEAM)


@pytest.fixture(scope="module")
def greedy_file(tmp_path_factory):
    return written(tmp_path_factory.mktemp("greedy"), "onnx", Greedy())


def require_same(loaded, search, words):
    """A file returns words and scores of tokens together; a SavedModel has a signature for each."""
    token_scores = "saved_model" not in type(loaded).__module__ or not words
    words = {**words, "token_scores": True} if token_scores else words
    ours = loaded.with_settings(**words).answer(TEXTS, batch_size=4)
    theirs = translator().with_settings(**words).answer(TEXTS, search=search)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.token_scores is None) == (not token_scores)
        sides = [dict(enumerate(side.token_scores or ())) for side in (one, other)]
        pieces, gains = ([[pair[n] for pair in side.values()] for side in sides] for n in (0, 1))
        assert pieces[0] == pieces[1]
        np.testing.assert_allclose(*gains, atol=1e-4)
    assert [one.text for one in ours] == [one.text for one in theirs]
    np.testing.assert_allclose([a.score for a in ours], [b.score for b in theirs], atol=1e-4)
    assert [one.complete for one in ours] == [one.complete for one in theirs]
    return [one.text for one in ours]


@pytest.mark.parametrize("name", ["onnx", *map(slow, ("litert", "saved-model"))])
def test_a_beam_has_the_words_of_the_call(name, tmp_path, request):
    loaded = (
        request.getfixturevalue("beam_file") if name == "onnx" else written(tmp_path, name, BEAM)
    )
    outputs = [tuple(require_same(loaded, BEAM, words)) for words in WITH_TERMS]
    assert len({*outputs}) == len(WITH_TERMS)
    assert "Tagen" not in outputs[0][0] and "Tagen" in outputs[1][0]
    if name == "saved-model":
        require_refusals(loaded)


@pytest.mark.parametrize("name", ["run", "onnx", slow("litert")])
def test_a_term_that_the_vocabulary_lacks_is_refused_by_name(name, tmp_path, request):
    """A SavedModel refuses it in the call: see `require_refusals`."""
    loaded = translator() if name == "run" else None
    if loaded is None:
        file = name == "onnx"
        loaded = request.getfixturevalue("beam_file") if file else written(tmp_path, name, BEAM)
    with pytest.raises(ValueError, match="`glossary` has a term with characters .* lacks: '猫'"):
        loaded.with_settings(glossary={"weeks": "猫"}).answer(SOURCES[:2], search=BEAM)
    with pytest.raises(ValueError, match="`banned` has a phrase of more than 100 characters"):
        loaded.with_settings(banned=["y" * 101])


def require_refusals(loaded):
    many = loaded.with_settings(banned=["y"] * 251)
    with pytest.raises(OptionError, match=r"`banned` has more than 250 .* Received: 251, .* 1\.$"):
        many.answer(SOURCES[:2])
    unknown = loaded.with_settings(glossary={"weeks": "猫"})
    with pytest.raises(OptionError, match=r"`glossary` has .* lacks. Received: .*猫.* number 2\."):
        unknown.answer(SOURCES[:2])
    assert unknown.answer(SOURCES[:1])[0].text
    for setting in ({"banned": ["a\nb"]}, {"glossary": {"weeks": "a\tb"}}):
        with pytest.raises(OptionError, match=f"`{[*setting][0]}` must have no newlines and tabs"):
            loaded.with_settings(**setting).answer(SOURCES)


@pytest.mark.parametrize("name", ["onnx", *map(slow, ("litert", "saved-model"))])
def test_greedy_search_has_the_words_of_the_call(name, tmp_path, request):
    loaded = (
        request.getfixturevalue("greedy_file")
        if name == "onnx"
        else written(tmp_path, name, Greedy())
    )
    outputs = [tuple(require_same(loaded, Greedy(), words)) for words in WORDS]
    assert len({*outputs}) == len(WORDS)


def ids(loaded, texts):
    tokenizer = loaded.tokenizers.source
    return [[*row, tokenizer.eos_id] for row in tokenizer.tokenize(texts)[:, :8].to_list()]


def test_rows_do_not_influence_each_other(beam_file):
    """Each row of a batch as on its own, with more padding and with words of another row."""
    words = beam_file.with_settings(glossary=GLOSSARY, prefix=PREFIXES[:3])
    rows, inputs = ids(beam_file, SOURCES), words.word_inputs(SOURCES)
    before = beam_file.find(rows, words=inputs).tokens
    inputs["banned"] = before[:, :, 3:5].copy()  # two tokens of its own output
    inputs["banned"][2] = 0
    together = beam_file.find(rows, words=inputs)
    assert np.any(before != together.tokens, axis=(1, 2)).tolist() == [True, True, False]
    assert len({row.tobytes() for row in together.tokens}) == 3
    wide = {
        name: np.pad(values, [(0, 0)] + [(0, 2)] * (values.ndim - 1))
        for name, values in inputs.items()
    }
    np.testing.assert_array_equal(beam_file.find(rows, words=wide).tokens, together.tokens)
    for number, row in enumerate(rows):
        alone = {name: values[[number]] for name, values in inputs.items()}
        np.testing.assert_array_equal(
            beam_file.find([row], words=alone).tokens[0], together.tokens[number]
        )


def test_empty_inputs_are_no_words(beam_file):
    """Sizes of 0 in every axis but the batch."""
    rows = ids(beam_file, SOURCES)
    for sizes in ({"banned": (0, 0), "terms": (0, 0, 0)}, {"banned": (0, 3), "terms": (0, 1, 4)}):
        sizes["prefix"] = (0,)
        empty = {name: np.zeros([3, *shape], np.int32) for name, shape in sizes.items()}
        found = beam_file.find(rows, words=empty)
        np.testing.assert_array_equal(found.tokens, beam_file.find(rows).tokens)


@pytest.mark.parametrize("name", ["prefix", "banned", "terms"])
@pytest.mark.parametrize("bad", [-1, 25, 2**31 - 1])
def test_an_unknown_id_makes_its_row_invalid(beam_file, name, bad):
    rows, inputs = ids(beam_file, SOURCES), beam_file.word_inputs(SOURCES)
    right = beam_file.find(rows, words=inputs)
    inputs[name] = inputs[name].copy()
    inputs[name][1].flat[-1] = bad
    found = beam_file.find(rows, words=inputs)
    assert found.scores[1, 0] == np.float32(-1e9) and not found.tokens[1].any()
    for number in (0, 2):
        np.testing.assert_array_equal(found.tokens[number], right.tokens[number])


@pytest.mark.parametrize("rows", [0, 1, 2, 4])
@pytest.mark.parametrize("name", ["prefix", "banned"])
def test_words_of_another_number_of_rows_make_all_rows_invalid(greedy_file, name, rows):
    """A single row of words would otherwise count for all, and one source get several outputs."""
    source = ids(greedy_file, SOURCES)
    width = max(map(len, source))
    source = np.array([row + [0] * (width - len(row)) for row in source], np.int32)
    inputs = greedy_file.without_words(len(source))
    right = greedy_file._model.run(source=source, **inputs)
    assert right["tokens"].any(axis=-1).all()
    inputs[name] = np.resize(np.array([6], np.int32), [rows, *inputs[name].shape[1:]])
    outputs = greedy_file._model.run(source=source, **inputs)
    assert outputs["tokens"].shape[0] == len(source) and not outputs["tokens"].any()
    assert outputs["score"].tolist() == [np.float32(-1e9)] * len(source)
    if rows > 1:
        one = greedy_file._model.run(source=source[:1], **inputs)
        assert one["tokens"].shape[0] == 1 and not one["tokens"].any()


@pytest.mark.parametrize("name", [None, "prefix", "banned", "terms"])
def test_a_call_without_words_takes_the_search_without_rules(name):
    """Rules of a .tflite file took four times as long as the search itself."""
    words = WordInputs(translator(), True)

    def find(constraints):
        tokens = tf.fill([2, 1, 1], 7 if constraints is None else 8)
        return Found(tokens, scores=tf.zeros([2, 1]), complete=tf.ones([2, 1], tf.bool))

    @tf.function(input_signature=[words.specs()], autograph=False)
    def search(inputs):
        return words.searched(find, dict(zip(words.names, inputs, strict=True))).tokens

    inputs = {spec.name: np.zeros([2] * len(spec.shape), np.int32) for spec in words.specs()}
    if name is not None:
        inputs[name].flat[-1] = 5  # in the second row
    assert search([*inputs.values()]).numpy().ravel().tolist() == [8 if name else 7] * 2


def test_a_glossary_needs_a_beam(greedy_file):
    with pytest.raises(
        OptionError, match=r"`glossary` needs a beam, and .*onnx is searched with gr"
    ):
        greedy_file.with_settings(glossary=GLOSSARY)


def test_an_export_without_words_says_how_to_get_them(greedy_file):
    metadata = {name: value for name, value in greedy_file.metadata.items() if name != "words"}
    without = changed(greedy_file, metadata=metadata)
    with pytest.raises(
        OptionError, match=r"`banned` needs an export that takes words: .*--takes-w"
    ):
        without.with_settings(banned=["in"])
    assert "glossary" in greedy_file.accepts and "glossary" not in without.accepts


def test_an_export_has_its_own_words_or_takes_them():
    for setting in ({"banned": ["in"]}, {"prefix": "in"}):
        with pytest.raises(ExportError, match="`takes_words` has no effect with `(banned|prefix)`"):
            WordInputs(translator().with_settings(**setting), True)


@pytest.mark.slow
@pytest.mark.parametrize("search", [Greedy(), BEAM], ids=str)
def test_a_search_without_loops_takes_words_and_returns_scores_of_tokens(tmp_path, search):
    format, path = FORMATS["litert"], tmp_path / "model.tflite"
    options = format.options(
        unrolled=True, takes_words=True, token_scores=True, lengths=[9], search=search
    )
    format.export(translator(), path, SOURCES, options)
    loaded = keras_transformer.open(path).with_search(search)
    words = WORDS if search == Greedy() else WITH_TERMS
    outputs = [tuple(require_same(loaded, search, given)) for given in words]
    assert len({*outputs}) == len(words)


def test_words_that_a_graph_of_fixed_shape_cannot_hold_are_refused(beam_file):
    sizes = {"prefix": [2], "banned": [3, 2], "terms": [1, 2, 2]}
    words = {**beam_file.metadata["words"], "sizes": sizes}
    small = changed(beam_file, metadata={**beam_file.metadata, "words": words})
    inputs = small.with_settings(glossary={"days": "d"}, prefix=["in", ""]).word_inputs(
        ["days", "y"]
    )
    assert [inputs[name].shape for name in sizes] == [(2, 2), (2, 3, 2), (2, 1, 2, 2)]
    for settings, message in (
        ({"prefix": ["", "in 4 Tagen"]}, r"`prefix` is .* at most 2 tokens. Received: . for input"),
        (
            {"banned": ["Tagen"]},
            r"`banned` is too large for .* at most 2 tokens in a phrase. Rec",
        ),
        ({"glossary": {"y": ["d", "y"]}}, r"`glossary` is .* at most 2 spellings of a term. Rec"),
        (
            {"glossary": {"y": "Tagen"}},
            r"at most 2 tokens in a spelling. Received: . for input",
        ),
    ):
        with pytest.raises(OptionError, match=message) as caught:
            small.with_settings(**settings).word_inputs(["days", "y"])
        assert "banned" in settings or str(caught.value).endswith("input number 2.")
