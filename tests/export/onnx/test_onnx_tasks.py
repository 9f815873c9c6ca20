"""Every task as an .onnx file: the answers of the run, alone and in a batch."""

import numpy as np
import pipelines
import pytest
from support import normal, randomise, with_effect

import keras_transformer
from keras_transformer import Beam
from keras_transformer.export import OnnxOptions, export_onnx
from keras_transformer.models import Calculator, SeriesConfig, SeriesRegressor
from keras_transformer.pipelines import CalculatorPipeline, SeriesSimulator
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

pytestmark = pytest.mark.slow
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(3)


def calculator(encoder, **options):
    """Returns a calculator with random weights whose answers differ."""
    sizes = {"num_layers": 2, "d_model": 8, "max_length": 12, "dropout": 0.0}
    model = randomise(Calculator(encoder=encoder, **sizes, **options))
    if model.config.writes_tape:  # otherwise a bias decides about all digits alike
        model.decoder.output_layer.bias.assign([0.0, 0.0])
    return CalculatorPipeline(model)


def neural_gpu():
    return calculator("neural_gpu", layout="aligned", image_width=3)


def extended_neural_gpu():
    return calculator("extended_neural_gpu", layout="aligned", image_width=3)


def calculating_transformer():
    return calculator("transformer", num_heads=2, d_ff=12, position="rotary")


def recurrent_simulator(encoder):
    config = pipelines.simulator().model.config.to_flat()
    fields = with_effect(SeriesConfig, **{**config, "encoder": encoder})
    return SeriesSimulator(randomise(SeriesRegressor(**fields)))


def lstm_simulator():
    return recurrent_simulator("lstm")


def gru_attention_simulator():
    return recurrent_simulator("gru_attention")


def reading_transformer():
    """A Transformer that answers questions about stories."""
    return pipelines.story_answerer("transformer")


EXPRESSIONS = ["101+11", "1*1", "1101*1011", "0+0", "10+1"]
STORIES = [("a cat runs. the big dog runs.", "the dog"), ("the cat runs.", "a cat")]
RECORDINGS = [
    encode_wav(RNG.normal(size=size).astype("float32") / 4, 1000) for size in (400, 90, 250)
]
SAMPLES = {
    pipelines.classifier: pipelines.LINES,
    pipelines.embedder: pipelines.LINES,
    pipelines.token_classifier: pipelines.LINES,
    pipelines.filler: [line.replace("cat", "<mask>") for line in pipelines.LINES],
    pipelines.answerer: [("a cat", line) for line in pipelines.LINES],
    pipelines.story_answerer: STORIES,
    reading_transformer: STORIES,
    pipelines.image_classifier: list(RNG.integers(0, 255, (4, 4, 6, 1)).astype("uint8")),
    pipelines.speech_recognizer: RECORDINGS,
    pipelines.simulator: list(normal(4, 9, 2)),
    lstm_simulator: list(normal(4, 9, 2)),
    gru_attention_simulator: list(normal(4, 9, 2)),
    neural_gpu: EXPRESSIONS,
    extended_neural_gpu: EXPRESSIONS,
    calculating_transformer: EXPRESSIONS,
}
GENERATORS = {
    pipelines.translator: Beam(3),
    pipelines.recurrent_translator: Beam(3, normalization="power", stopping="score"),
    pipelines.generator: Beam(3, length_penalty=0.0),
    pipelines.summarizer: Beam(2, stopping="narrow"),
}


@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
def test_answers_in_one_pass(make, tmp_path):
    pipeline, samples = make(), SAMPLES[make]
    report = export_onnx(pipeline, tmp_path / "x.onnx", samples)
    assert report["agreement"] == 1.0
    loaded = keras_transformer.open(tmp_path / "x.onnx")
    expected, tolerance = pipeline.answer(samples), pipeline.codec.tolerance
    for batch_size in (1, 64):
        answers = loaded.answer(samples, batch_size=batch_size)
        assert all(a.agrees(b, tolerance) for a, b in zip(expected, answers, strict=True))
        assert max(a.gap(b) for a, b in zip(expected, answers, strict=True)) < tolerance
    assert len({str(answer) for answer in expected}) > 1


@pytest.mark.parametrize("make", GENERATORS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_generated_texts(make, kind, tmp_path):
    pipeline, samples = make(), [*pipelines.LINES, ""]
    search = GENERATORS[make] if kind == "beam" else pipeline.search
    n = 2 if kind == "beam" else 1
    options = OnnxOptions(search=search, n_best=n if kind == "beam" else None)
    report = export_onnx(pipeline, tmp_path / "x.onnx", samples, options)
    assert report["agreement"] == 1.0
    loaded = keras_transformer.open(tmp_path / "x.onnx")
    expected = pipeline.n_best(samples, n, search)
    assert len({row[0].text for row in expected}) > 1
    for batch_size in (1, 64):
        rows = loaded.n_best(samples, n, batch_size=batch_size)
        texts = [[[one.text for one in row] for row in side] for side in (rows, expected)]
        assert texts[0] == texts[1]
        scores = [[one.score for row in side for one in row] for side in (rows, expected)]
        np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)
