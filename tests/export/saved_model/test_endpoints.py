import numpy as np
import pytest
import tensorflow as tf
from searching import by_beam, by_greedy
from support import randomise

from keras_transformer import Beam, Transformer, TransformerConfig, Translator
from keras_transformer.decoding import Sample
from keras_transformer.export import export_saved_model
from keras_transformer.export.extent import CheckTime
from keras_transformer.export.place import silent
from keras_transformer.export.saved_model import generated
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.verify import _in_memory

BEAM = Beam(3, length_penalty=1.5, normalization="average", min_length=4)


@pytest.fixture(scope="module")
def call(translator):
    """A function that calls the endpoints of a beam of 3 that return 2."""
    endpoints = {
        signature.name: signature for signature in make_endpoints(translator, BEAM, n_best=2)
    }

    def call(name, sentences):
        endpoint = endpoints[name]
        outputs = endpoint.function(**endpoint.example(sentences))
        return {key: value.numpy() for key, value in outputs.items()}

    return call


@pytest.mark.slow
def test_with_a_beam_the_default_is_the_best_of_the_beam(call, translator, sentences):
    answer = call("serving_default", sentences)
    ours = translator.answer_batch(sentences, BEAM)
    assert [text.decode() for text in answer["translation"]] == [output.text for output in ours]
    assert answer["score"].tolist() == pytest.approx([output.score for output in ours], abs=1e-4)
    greedy = translator.answer_batch(sentences)
    assert [output.score for output in greedy] != pytest.approx(answer["score"].tolist(), abs=1e-2)


@pytest.mark.slow
def test_all_endpoints_have_the_settings_of_the_beam(call, translator, sentences):
    source = translator.encode(tf.constant(sentences))[0]
    limit = np.minimum(tf.reduce_sum(tf.cast(source != 0, tf.int32), axis=1) + 50, 20)
    tokens, scores = by_beam(
        translator.model, source, 3, 2, 1.5, normalization="average", min_length=4, max_length=limit
    )
    answer = call("beam_tokens", sentences)
    np.testing.assert_array_equal(answer["tokens"], tokens)
    np.testing.assert_allclose(answer["score"], scores, atol=1e-4)
    lists = translator.n_best_batch(sentences, 2, BEAM)
    texts = call("n_best", sentences)["translation"]
    assert [text.decode() for text in texts[:, 0]] == [row[0].text for row in lists]
    tokens, scores = by_greedy(translator.model, source)
    np.testing.assert_array_equal(call("tokens", sentences)["tokens"], tokens)


def test_the_n_best_of_an_empty_sentence_are_empty(call):
    answer = call("n_best", ["in 17 weeks", " "])
    assert answer["translation"][1].tolist() == [b"", b""]
    assert answer["score"][1].tolist() == [0.0, 0.0]
    assert all(answer["translation"][0])


def test_there_are_no_more_translations_than_hypotheses(translator):
    for n_best in (0, 4):
        with pytest.raises(ValueError, match=f"`n_best` must be .*n_best={n_best}, size=3"):
            make_endpoints(translator, BEAM, n_best)
    with pytest.raises(ValueError, match="`n_best` must be .*n_best=0"):
        make_endpoints(translator, n_best=0)


def test_an_export_has_greedy_search_or_a_beam(translator):
    message = r"`search` must be a `Greedy` or a `Beam`\. Received: search=Sample\(.*\)\.$"
    with pytest.raises(TypeError, match=message):
        make_endpoints(translator, Sample())


def shapes(translator, **options):
    outputs = {
        endpoint.name: endpoint.function.get_concrete_function().structured_outputs["score"].shape
        for endpoint in make_endpoints(translator, **options)
    }
    return outputs["serving_default"].rank, outputs["n_best"][1], outputs["beam_tokens"][1]


@pytest.fixture(scope="module")
def never_ending(tokenizer):
    """A model that always emits 7: the last norm gives ones, and the output weights prefer 7."""
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size,
        num_layers=1,
        d_model=8,
        d_ff=8,
        num_heads=2,
        max_length=9,
        tie="none",
    )
    model = randomise(Transformer(config))
    norm = model.decoder.blocks[-1].feed_forward_norm
    norm.gamma.assign(tf.zeros_like(norm.gamma))
    norm.beta.assign(tf.ones_like(norm.beta))
    kernel = np.zeros((8, tokenizer.vocab_size), "float32")
    kernel[:, 7], kernel[:, 3] = 1, -1
    model.output_layer.kernel.assign(kernel)
    return Translator(model, tokenizer)


@pytest.mark.slow
def test_decoding_ends_at_the_limit_if_the_model_never_ends(never_ending):
    for endpoint in make_endpoints(never_ending, Beam(2)):
        answer = endpoint.function(**endpoint.example(["in 17 weeks", "in 3"]))
        if "tokens" in answer:
            best = answer["tokens"].numpy().reshape(2, -1, 9)[:, 0]
            assert (best == 7).all()
        assert np.isfinite(answer["score"]).all()


@pytest.mark.long
@pytest.mark.slow
def test_the_number_of_translations_follows_the_beam(never_ending):
    assert shapes(never_ending) == (1, 4, 4)
    assert shapes(never_ending, n_best=6) == (1, 6, 6)
    assert shapes(never_ending, search=Beam(2)) == (1, 2, 2)


@pytest.mark.slow
def test_the_check_runs_each_search_in_memory_through_one_graph(translator, sentences):
    """A first call optimises a graph; it takes half a minute for 30 blocks."""
    endpoints = make_endpoints(translator)
    compared, answers = _in_memory(endpoints, sentences[:3], silent, CheckTime())
    assert compared == sentences[:3] and [*answers] == [endpoint.name for endpoint in endpoints]
    graphs = {id(endpoint._graph): endpoint._graph for endpoint in endpoints}.values()
    assert [graph.experimental_get_tracing_count() for graph in graphs] == [1, 1, 1]
    assert not any(kind.function.experimental_get_tracing_count() for kind in endpoints)


@pytest.mark.slow
def test_an_export_traces_each_search_once(translator, tmp_path, monkeypatch):
    """TensorFlow traces a `tf.function` again to save it: a minute for 30 blocks."""
    graphs = []

    def counted(*arguments, **options):
        made = make_endpoints(*arguments, **options)
        graphs.extend({id(endpoint._graph): endpoint._graph for endpoint in made}.values())
        return made

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(generated, "make_endpoints", counted)
    monkeypatch.setattr(generated, "verify", stop)
    monkeypatch.setattr(generated, "make_requests", lambda *arguments: [])
    with pytest.raises(KeyboardInterrupt):
        export_saved_model(translator, tmp_path / "x", ["in 3 weeks"])
    counts = [graph.experimental_get_tracing_count() for graph in graphs]
    assert counts == [0, 0, 0, 1, 1, 1], "those of the model in memory, and the exported ones"
