"""Numbers that depend on positions alone are computed by a file, not stored in it."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import stored_shapes
from marks import long
from pipelines import SIZES, SPEECH, tokenizer, with_larger_weights
from support import randomise, small_config
from tasks.test_speech_recognizer import recording

from keras_transformer import Greedy, Transformer, Translator
from keras_transformer.decoding import BestPath
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.litert.kernels import Positions
from keras_transformer.layers.kernels import Kernels
from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig
from keras_transformer.never import never
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.features import within


@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
def test_samples_after_the_end_become_zeros_for_every_length(known):
    for size in (1, 255, 256, 257, 512, 700):
        samples = np.random.default_rng(size).normal(size=(4, size)).astype("float32")
        samples[0, 0] = np.inf  # from which the number 0 is computed
        lengths = np.array([size, size - 1, size // 2, 0], "int32")
        spec = tf.TensorSpec([4, size] if known else [None, None])
        zeroed = tf.function(within, input_signature=[spec, tf.TensorSpec([None], tf.int32)])
        expected = samples.copy()
        for row, length in zip(expected, lengths, strict=True):
            row[length:] = 0
        np.testing.assert_array_equal(zeroed(samples, lengths), expected)


def test_the_number_that_prevents_constants_is_always_zero():
    for value in (1.0, np.inf, -np.inf, np.nan):
        for rank in (1, 2, 4):
            assert int(never(tf.fill([2] * rank, value))) == 0
    assert int(never(tf.zeros([3, 0]))) == 0


@pytest.mark.slow
def test_layers_of_a_graph_share_the_number():
    config = small_config(position="alibi", norm="pre", num_layers=3)
    model = randomise(Transformer(config))
    other = Transformer(config, kernels=Kernels(positions=Positions()))
    other.set_weights(model.get_weights())
    source = tf.constant([[5, 6, 7, 3, 0], [8, 3, 0, 0, 0]])
    graphs = [tf.function(one.encode, autograph=False) for one in (model, other)]
    ours, theirs = (encode(source)[0] for encode in graphs)
    np.testing.assert_array_equal(ours, theirs)
    counts = [
        sum(
            operation.type == "Greater"
            for operation in encode.get_concrete_function(source).graph.get_operations()
        )
        for encode in graphs
    ]
    assert counts[1] == counts[0] + 1


@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "search"), [("int8", BestPath()), long("none", Greedy())])
def test_a_file_of_speech_stores_neither_distances_nor_numbers(quantize, search, tmp_path):
    pytest.importorskip("ai_edge_litert")
    options = {"max_seconds": 2.0, "encoder": {"attention_position": "alibi"}}
    config = SpeechTransformerConfig(vocab_size=30, **{**SIZES, **SPEECH, **options})
    model, path = with_larger_weights(SpeechTransformer(config)), tmp_path / "x.tflite"
    pipeline = SpeechRecognizer(model, tokenizer(), search=search)
    sounds = [encode_wav(recording(length, length), 1000) for length in (2000, 1333, 90)]
    limits = {} if quantize == "none" else {"max_loss": 100.0, "max_score_loss": 10.0}
    report = export_litert(pipeline, path, sounds, **asked(LiteRTOptions, quantize, **limits))
    assert quantize != "none" or report["agreement"] == 1
    shapes = stored_shapes(path)  # 125 positions of 2,000 samples
    assert (125, 125) not in [shape[-2:] for shape in shapes]
    assert not any({2000, 1792} & {*shape} for shape in shapes)


@pytest.mark.long
@pytest.mark.slow
def test_a_file_of_text_stores_no_distances(tmp_path):
    pytest.importorskip("ai_edge_litert")
    length = 61
    config = small_config(position="alibi", norm="pre", max_length=length, vocab_size=30)
    translator = Translator(randomise(Transformer(config)), tokenizer())
    path = tmp_path / "x.tflite"
    report = export_litert(
        translator, path, ["a cat", "the big dog"], LiteRTOptions(lengths=[length])
    )
    assert report["score_difference"] < 1e-4
    assert (length, length) not in [shape[-2:] for shape in stored_shapes(path)]


def test_the_number_does_not_keep_its_graph():
    positions = Positions()
    graph = tf.Graph()
    with graph.as_default():
        assert positions(tf.range(3), tf.ones([1, 2])).shape == [3]
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert kept() is None
