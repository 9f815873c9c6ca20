"""Ensembles: the mean of the probabilities of several models, in every task."""

import functools
import shutil

import numpy as np
import pytest
import tensorflow as tf
from pipelines import (
    LINES,
    answerer,
    classifier,
    generator,
    image_classifier,
    recurrent_translator,
    token_classifier,
    tokenizer,
    translator,
    with_larger_weights,
    write_run,
)
from sentencepiece import sentencepiece_model_pb2
from support import normal, randomise

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.decoding import Ensemble, Sample, Shortlist
from keras_transformer.export.parity import in_float32
from keras_transformer.models import SeriesConfig, SeriesRegressor
from keras_transformer.pipelines import Run, SeriesSimulator, TextClassificationPipeline
from keras_transformer.tasks import open_run
from keras_transformer.tasks.ensemble import vocabulary_difference
from keras_transformer.tasks.shortlists import learn_shortlist
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer

SOURCES = [*LINES, "dog", ""]
TARGETS = ["the dog runs", "a cat", "big", "the cat and a dog", "cat", "a dog"]
LONG = "the big dog and the cat and a dog and the big cat runs"


def other_model(pipeline, **changes):
    """Returns another model for the same task, with another depth and other weights."""
    config = pipeline.model.config
    fields = {**config.to_flat(), "num_layers": config.num_layers + 1, **changes}
    model = type(pipeline.model)(**fields)
    randomise(model, seed=7)
    for weight in model.weights:
        if weight.path.endswith(("positions", "query/kernel")):
            weight.assign(4 * weight)
    return model


@functools.cache
def other_pipeline(make):
    """Returns the pipeline of `other_model`."""
    return make().with_model(other_model(make()))


@functools.cache
def ensemble(make):
    return make().with_model([make().model, other_pipeline(make).model])


@functools.cache
def translators():
    """Returns translators of two architectures: attention and SSRUs in the decoder."""
    models = [translator().model, recurrent_translator().model]
    return Translator(models, tokenizer()), Translator(models[::-1], tokenizer())


def probabilities_of_translations(model, source, target):
    """Returns the probability of every token of one target, in float64."""
    (source,), (target,) = (tokenizer().encode([text]).to_list() for text in (source, target))
    inputs = {"source": np.array([source]), "target": np.array([[2, *target[:-1]]])}
    logits = np.asarray(model(inputs)[0], "float64")
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return shares[range(len(target)), target]


# Models that generate text


@pytest.mark.long
@pytest.mark.slow
def test_a_score_uses_the_mean_of_the_probabilities():
    ours = translators()[0].score(SOURCES[:2], TARGETS[:2])
    for score, source, target in zip(ours, SOURCES, TARGETS, strict=False):
        each = [
            probabilities_of_translations(one().model, source, target)
            for one in (translator, recurrent_translator)
        ]
        assert score.score == pytest.approx(np.log(np.mean(each, axis=0)).sum(), abs=1e-4)
        assert abs(np.log(each[0]).sum() - np.log(each[1]).sum()) > 0.1, "the models are alike"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "search", [Greedy(), pytest.param(Beam(3), marks=pytest.mark.long)], ids=str
)
def test_a_search_gives_the_same_in_any_order_of_models(search):
    ours, swapped = (one(SOURCES, search) for one in translators())
    assert ours == swapped
    alone = [one()(SOURCES, search) for one in (translator, recurrent_translator)]
    assert ours not in alone, "or the models could not be told apart"


def test_a_list_of_one_model_is_that_model():
    alone = translator().with_model([translator().model])
    assert alone.whole is alone.searched is translator().model
    assert classifier().with_model([classifier().model]).models == classifier().models


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "search"),
    [
        (recurrent_translator, Beam(3)),
        pytest.param(translator, Sample(temperature=0.7, seed=2), marks=pytest.mark.long),
        pytest.param(generator, Greedy(), marks=pytest.mark.long),
    ],
)
def test_a_model_with_itself_searches_as_alone(make, search):
    n = 2 if isinstance(search, Beam) else 1
    expected = make().n_best(SOURCES, n, search)
    found = make().with_model([make().model] * 2).n_best(SOURCES, n, search)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.text for one in ours] == [one.text for one in theirs]
        scores = [[one.score for one in row] for row in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-4)


@pytest.mark.long
@pytest.mark.slow
def test_texts_continue_their_prompts_by_the_mean():
    both = ensemble(generator)
    prompts = ["a cat", "", "the big"]
    for text, prompt in zip(both(prompts), prompts, strict=True):
        assert text.startswith(prompt)
    rows = [make.score(LINES) for make in (generator(), other_pipeline(generator), both)]
    for first, second, mean in zip(*rows, strict=True):
        assert min(first.score, second.score) - 1 < mean.score
        assert mean.score <= max(first.score, second.score) + mean.tokens * np.log(2)
    ids = tokenizer().encode([LINES[0]]).to_list()[0]
    each = []
    for model in both.models:
        logits = np.asarray(model(np.array([[2, *ids[:-1]]]))[0], "float64")
        each.append((np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))[range(len(ids)), ids])
    assert rows[2][0].score == pytest.approx(np.log(np.mean(each, axis=0)).sum(), abs=1e-4)


@pytest.mark.long
@pytest.mark.slow
def test_an_alignment_is_the_mean_of_all_models():
    both = translators()[0]
    same = Translator([translator().model] * 2, tokenizer())
    for ours, theirs in zip(same.align(SOURCES), translator().align(SOURCES), strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-5)
        assert ours.words() == theirs.words()
    found = both.align(["a cat runs"])[0]
    source = tokenizer().encode(["a cat runs"]).to_tensor()
    pieces = {piece: number for number, piece in enumerate(tokenizer().pieces(range(30)))}
    target = [pieces[piece] for piece in found.target]
    inputs = {"source": source, "target": np.array([[2, *target[:-1]]])}
    cross = []  # weights of the last layer, [H, T, S]
    for model in both.models:
        last = f"decoder/block_{model.config.decoder_layers - 1}/cross_attention"
        cross.append(model.attention_weights(inputs)[last][0])
    expected = np.mean([np.mean(weights, axis=0) for weights in cross], axis=0)
    np.testing.assert_allclose(found.weights, expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"There are 1 layers and 2 heads.*alignment=\(1, 0\)"):
        both.align(["a cat"], layer=1, head=0)  # only the second model has that layer


@pytest.mark.long
@pytest.mark.slow
def test_a_shortlist_can_be_used_with_several_models():
    shortlist = Shortlist.from_counts([[7, 12, 3], [8, 15, 5], [9, 20, 1]], 30, first=6)
    both, swapped = (one.with_shortlist(shortlist) for one in translators())
    assert both(SOURCES) == swapped(SOURCES) != translators()[0](SOURCES)
    same = Translator([translator().model] * 2, tokenizer()).with_shortlist(shortlist)
    assert same(SOURCES, Beam(2)) == translator().with_shortlist(shortlist)(SOURCES, Beam(2))


# Single-pass models


@pytest.mark.long
@pytest.mark.slow
def test_probabilities_of_labels_are_means():
    texts = ["a cat", "the big dog runs", "", LONG]
    rows = [
        one.classify(texts)
        for one in (classifier(), other_pipeline(classifier), ensemble(classifier))
    ]
    for first, second, mean in zip(*rows, strict=True):
        expected = (first.probabilities + second.probabilities) / 2
        np.testing.assert_allclose(mean.probabilities, expected, atol=1e-6)
        assert mean.label == classifier().labels[expected.argmax()]
        assert mean.probability == pytest.approx(expected.max(), abs=1e-6)
        assert mean.truncated == first.truncated
    assert len({result.label for row in rows for result in row}) > 1


@pytest.mark.long
@pytest.mark.slow
def test_probabilities_of_words_are_means():
    texts = ["a cat", "the big dog runs", LONG]
    rows = [
        one.answer(texts)
        for one in (
            token_classifier(),
            other_pipeline(token_classifier),
            ensemble(token_classifier),
        )
    ]
    for first, second, mean in zip(*rows, strict=True):
        expected = (first.probabilities + second.probabilities) / 2  # [W, C]
        np.testing.assert_allclose(mean.probabilities, expected, atol=1e-6)
        read = expected.any(axis=1)
        labels = np.array(token_classifier().labels)[expected.argmax(axis=1)]
        assert list(mean.labels) == np.where(read, labels, "O").tolist()
    assert rows[0][-1].truncated and len({row.labels for rows_ in rows for row in rows_}) > 3


@pytest.mark.long
@pytest.mark.slow
def test_probabilities_of_both_ends_are_means():
    """For a passage in one window; the best pair is chosen by their sums."""
    examples = [("a cat", "the big dog"), ("dog", "a cat runs"), ("the", "")]
    rows = [
        one.answer(examples) for one in (answerer(), other_pipeline(answerer), ensemble(answerer))
    ]
    for first, second, mean in zip(*rows, strict=True):
        expected = (first.probabilities + second.probabilities) / 2  # [2, G]
        np.testing.assert_allclose(mean.probabilities, expected, atol=1e-6)
        if expected.size:
            pairs = expected[0][:, None] * expected[1]
            pairs = np.triu(pairs)
            assert mean.segments == np.unravel_index(pairs.argmax(), pairs.shape)
            assert mean.probability == pytest.approx(pairs.max(), abs=1e-6)
    examples = [("a cat", LONG), ("dog", "a cat runs")]  # the first example needs several windows
    same = answerer().with_model([answerer().model] * 2).answer(examples)
    for ours, theirs in zip(same, answerer().answer(examples), strict=True):
        assert ours == theirs or ours.probability == pytest.approx(theirs.probability, rel=1e-5)
        np.testing.assert_allclose(ours.probabilities, theirs.probabilities, atol=1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_probabilities_of_images_are_means():
    images = list(np.random.default_rng(3).integers(0, 256, (5, 4, 6, 1)).astype("uint8"))
    rows = [
        one.classify(images)
        for one in (
            image_classifier(),
            other_pipeline(image_classifier),
            ensemble(image_classifier),
        )
    ]
    for first, second, mean in zip(*rows, strict=True):
        expected = (first.probabilities + second.probabilities) / 2
        np.testing.assert_allclose(mean.probabilities, expected, atol=1e-6)
        assert mean.label == image_classifier().labels[expected.argmax()]


def simulator(scale=1.0, **changes):
    fields = {"num_layers": 1, "d_model": 8, "max_length": 7, "scored": 3, "dropout": 0.0}
    fields |= {"inputs": ("rain", "warmth"), "target": "flow", "input_mean": (1.0, 2.0)}
    fields |= {"input_scale": (3.0, 4.0), "target_scale": scale, "encoder": "gru"}
    return SeriesSimulator(randomise(SeriesRegressor(SeriesConfig(**{**fields, **changes}))))


def test_values_of_a_series_are_means_each_in_its_own_scale():
    one, two = simulator(), simulator(scale=100.0, encoder="lstm", input_mean=(0.0, 5.0))
    series = normal(20, 2, seed=4)
    both = SeriesSimulator([one.model, two.model])
    expected = (one(series) + two(series)) / 2
    assert np.abs(expected - one(series)).max() > 1
    np.testing.assert_allclose(both(series), expected, rtol=1e-5, atol=1e-5)
    swapped = SeriesSimulator([two.model, one.model])
    np.testing.assert_allclose(swapped(series), expected, rtol=1e-5, atol=1e-5)


# Requirements for models of an ensemble


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scored": 4}, "model 1 and model 2 cannot form an ensemble: `scored` is 3 and 4"),
        ({"max_length": 8}, "`window` is 7 and 8"),
        ({"target": "level"}, "`target` is 'flow' and 'level'"),
        ({"table": {"step": "1 hour"}}, "`table.step` is None and '1 hour'"),
        ({"inputs": ("warmth", "rain")}, "number 1 of `inputs` is 'rain' and 'warmth'"),
    ],
)
def test_series_of_another_kind_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SeriesSimulator([simulator().model, simulator(**changes).model])


def test_series_may_differ_in_the_number_of_filled_steps():
    tables = [{"fill": "linear", "filled": filled} for filled in (3, 4)]
    both = SeriesSimulator([simulator(table=table).model for table in tables])
    assert both(normal(20, 2)).shape == (20,)


def test_other_limits_of_outputs_are_refused():
    one, other = translator(), other_model(translator(), max_length_ratio=1.5)
    with pytest.raises(ValueError, match=r"`max_length_ratio` is None and 1\.5\.$"):
        Translator([one.model, other], one.tokenizers)
    with pytest.raises(
        ValueError, match=r"vocabulary\. Received: `max_length_ratio` is None and 1\.5"
    ):
        Ensemble([one.model, other])


def test_other_labels_are_refused():
    labels = classifier().labels
    for changed, message in (
        (labels[::-1], "number 1 of `labels` is 'bad' and 'so so'"),
        (labels[:2], r"`labels` is \['bad', 'good', 'so so'\] and \['bad', 'good'\]"),
    ):
        model = other_model(classifier(), labels=changed)
        with pytest.raises(ValueError, match=f"model 1 and model 2 cannot .* ensemble: {message}"):
            TextClassificationPipeline([classifier().model, model], tokenizer())


def test_objects_that_are_not_models_or_runs_are_refused():
    with pytest.raises(TypeError, match="`model` must be a TextClassifier; .* type int"):
        TextClassificationPipeline([classifier().model, 3], tokenizer())
    with pytest.raises(TypeError, match="must be a TextClassifier; .* type list"):
        TextClassificationPipeline([], tokenizer())
    with pytest.raises(ValueError, match="`path` must name at least one run. Received: none"):
        Translator.from_run([])
    with pytest.raises(TypeError, match="must be the folder of a run, or a list .* path=3"):
        open_run(3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda both: both.attention("a cat"),
        lambda both: learn_shortlist(both, ["a"], ["b"]),
        in_float32,
    ],
)
def test_functions_without_ensemble_support_are_reported(ask):
    message = "Models of an ensemble .*: use one of them. Received: 2 models"
    with pytest.raises(ValueError, match=message):
        ask(translators()[0])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs with untrained models."""
    folder = tmp_path_factory.mktemp("runs")
    pieces = tokenizer(31)
    other_pieces = with_larger_weights(other_model(classifier(), vocab_size=31))
    made = {
        "one": translator(),
        "two": recurrent_translator(),
        "labels": classifier(),
        "pieces": TextClassificationPipeline(other_pieces, pieces),
    }
    return {name: write_run(one, folder / name) for name, one in made.items()}


@pytest.mark.long
@pytest.mark.slow
def test_several_runs_answer_as_an_ensemble(runs):
    both = [runs["one"], runs["two"]]
    opened = open_run(both)
    assert type(opened) is Translator and len(opened.models) == 2
    assert opened.max_length == 11 and opened.search == Greedy()
    source = tf.constant([[7, 8, 3]])
    for model, make in zip(opened.models, (translator, recurrent_translator), strict=True):
        target = tf.constant([[2, 9, 10]])
        inputs = {"source": source, "target": target}
        np.testing.assert_array_equal(model(inputs), make().model(inputs))
    assert Translator.from_run(tuple(both), max_length=5).max_length == 5


@pytest.mark.long
@pytest.mark.slow
def test_the_search_of_several_runs_is_used_if_all_agree(runs, tmp_path):
    folders = [shutil.copytree(runs["one"], tmp_path / name) for name in "ab"]
    Run(folders[0]).write_search(Beam(3))
    assert Translator.from_run(folders).search == Greedy()
    Run(folders[1]).write_search(Beam(3))
    assert Translator.from_run(folders).search == Beam(3)


def test_tokens_in_another_order_are_another_vocabulary():
    one, other = Tokenizers.of(tokenizer()), exchanged()
    assert vocabulary_difference(one, Tokenizers.of(tokenizer())) is None
    six, seven = tokenizer().pieces([6, 7])
    expected = f"token 6 of their source vocabularies is {six!r} and {seven!r}"
    assert vocabulary_difference(one, other) == expected


def test_the_maximum_input_length_is_limited_by_the_models():
    models = translators()[0].models
    with pytest.raises(ValueError, match="between 1 and the model's 11. Received: max_length=12"):
        Translator(models, tokenizer(), max_length=12)


@pytest.mark.long
@pytest.mark.slow
def test_runs_that_do_not_fit_are_reported(runs, tmp_path):
    with pytest.raises(ValueError, match="one and .*labels cannot form an ensemble: their tasks"):
        open_run([runs["one"], runs["labels"]])
    with pytest.raises(ValueError, match="labels/model.keras must hold a Transformer. Received"):
        Translator.from_run([runs["one"], runs["labels"]])
    message = "labels and .*pieces cannot form .*: their source vocabularies have 30 and 31 token"
    with pytest.raises(ValueError, match=message):
        open_run([runs["labels"], runs["pieces"]])
    swapped = shutil.copytree(runs["labels"], tmp_path / "swapped")
    Run(swapped).write_tokenizers(exchanged())
    with pytest.raises(ValueError, match=r"token 6 of their source vocabularies is '.*' and '.*'"):
        open_run([runs["labels"], swapped])


def exchanged():
    """Returns a vocabulary of the same tokens in which two have swapped places."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer().model)
    six, seven = proto.pieces[6].piece, proto.pieces[7].piece
    proto.pieces[6].piece, proto.pieces[7].piece = seven, six
    return Tokenizers.of(SentencePieceTokenizer(proto.SerializeToString()))
