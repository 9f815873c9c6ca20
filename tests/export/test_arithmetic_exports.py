"""Exports of Neural GPUs and of a Transformer give the values and probabilities of the run."""

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from support import randomise

from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.models import Calculator
from keras_transformer.pipelines import CalculatorPipeline

pytestmark = pytest.mark.slow
EXPRESSIONS = ["101+11", "1*1", "1101*1011", "0+0", "10+1"]
ENCODERS = {
    "neural_gpu": {"layout": "aligned", "image_width": 3},
    "extended_neural_gpu": {"layout": "aligned", "image_width": 3},
    "transformer": {"num_heads": 2, "d_ff": 12, "position": "rotary"},
}


@pytest.fixture(scope="module", params=ENCODERS)
def calculate(request):
    options = {"num_layers": 2, "d_model": 8, "max_length": 12, "dropout": 0.0}
    model = randomise(Calculator(encoder=request.param, **options, **ENCODERS[request.param]))
    if model.config.writes_tape:  # otherwise a bias decides about all digits alike
        model.decoder.output_layer.bias.assign([0.0, 0.0])
    return CalculatorPipeline(model)


def assert_same(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        assert result.text == wanted.text
        np.testing.assert_allclose(result.probabilities, wanted.probabilities, rtol=0, atol=1e-5)


def test_a_saved_model(calculate, tmp_path):
    """Strings and symbols, both loaders of TensorFlow, and expressions that are refused."""
    expected = calculate.answer(EXPRESSIONS)
    assert len({result.text for result in expected}) > 2
    path = export_saved_model(calculate, tmp_path, EXPRESSIONS)["path"]
    loaded = SavedModelSinglePass(path)
    assert_same(loaded.answer_batch(EXPRESSIONS), expected)
    symbols = calculate.codec.encode(tf.constant(EXPRESSIONS))[0]["symbols"]
    with SessionModel(path) as model:
        answer = model.run("serving_default", expressions=EXPRESSIONS)
        assert answer["value"].astype(str).tolist() == [one.text for one in expected]
        by_symbols = model.run("symbols", symbols=symbols)
        np.testing.assert_allclose(
            by_symbols["probabilities"], answer["probabilities"], rtol=0, atol=1e-5
        )
        for wrong, message in (("12+3", "An expression must be two"), ("1" * 9 + "*1", "at most")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                model.run("serving_default", expressions=[wrong])
        with pytest.raises(tf.errors.InvalidArgumentError, match="`symbols` must"):
            model.run("symbols", symbols=np.array([[0, 1, 1]], np.int32))


def test_a_tflite_file(calculate, tmp_path):
    """Several lengths; a row that is not valid changes no other one."""
    pytest.importorskip("ai_edge_litert")
    options = asked(LiteRTOptions, "none", batch_sizes=(1, 3), lengths=[6, 12])
    report = export_litert(calculate, tmp_path / "x.tflite", EXPRESSIONS, **options)
    assert {*report["signatures"]} == {f"calculate_{b}x{t}" for b in (1, 3) for t in (6, 12)}
    loaded = LiteRTSinglePass(report["path"])
    expected = calculate.answer(EXPRESSIONS)
    assert_same(loaded.answer_batch(EXPRESSIONS), expected)
    with pytest.raises(ValueError, match="An expression must have at most 12 symbols"):
        loaded.answer_batch(["1" * 99 + "*1"])
    good = calculate.codec.encode(tf.constant(["1+0"]))[0]["symbols"].numpy()[0].tolist()
    good += [0] * (6 - len(good))
    rows = np.array([good, [0, 1, 1, 0, 0, 0], good], np.int32)
    answer = loaded.run_signature("calculate_3x6", symbols=rows)
    alone = calculate.answer("1+0").probabilities
    np.testing.assert_allclose(answer["probabilities"][0, : len(alone)], alone, rtol=0, atol=1e-5)
    assert not np.any(answer["probabilities"][1]) and np.all(answer["label"][1] == -1)
    np.testing.assert_array_equal(answer["probabilities"][2], answer["probabilities"][0])
