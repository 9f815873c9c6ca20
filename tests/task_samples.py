"""Pipelines of every task, with random weights, and inputs or a beam search for each."""

import functools

import marian_models
import numpy as np
import pipelines
from support import normal, randomise, with_effect

from keras_transformer import Beam, Transformer, TransformerConfig, Translator
from keras_transformer.models import Calculator, SeriesConfig, SeriesRegressor
from keras_transformer.pipelines import CalculatorPipeline, SeriesSimulator
from keras_transformer.positions import Sinusoidal
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tokenizers import SentencePieceTokenizer

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


@functools.cache
def student():
    """A translator in the layout of Marian's students, with their kind of vocabulary."""
    sizes = {"vocab_size": 48, "num_layers": 2, "num_decoder_layers": 1, "d_model": 16, "d_ff": 24}
    options = {"num_heads": 2, "max_length": 12, "attention_bias": True, "output_bias": True}
    layout = {"decoder": "ssru", "decoder_start": "zeros"}
    position = Sinusoidal("halves", endpoint=True)
    config = TransformerConfig(**sizes, **options, **layout, dropout=0.0, position=position)
    vocabulary = SentencePieceTokenizer(marian_models.vocabulary(48, **marian_models.IDS))
    model = randomise(Transformer(config))
    for weight in model.weights:
        if weight.path.endswith("query/kernel"):  # so that outputs depend on the source
            weight.assign(4 * weight)
    return Translator(model, vocabulary)


EXPRESSIONS = ["101+11", "1*1", "1101*1011", "0+0", "10+1"]
STORIES = [("a cat runs. the big dog runs.", "the dog"), ("the cat runs.", "a cat")]
RECORDINGS = [
    encode_wav(RNG.normal(size=size).astype("float32") / 4, 1000) for size in (400, 90, 250)
]
SAMPLES = {
    pipelines.classifier: pipelines.LINES,
    pipelines.multi_label_classifier: pipelines.LINES,
    pipelines.embedder: pipelines.LINES,
    pipelines.sparse_embedder: pipelines.LINES,
    pipelines.token_classifier: pipelines.LINES,
    pipelines.filler: [line.replace("cat", "<mask>") for line in pipelines.LINES],
    pipelines.reranker: [("a cat", line) for line in pipelines.LINES],
    pipelines.ranker: [("a cat", line) for line in pipelines.LINES],
    pipelines.answerer: [("a cat", line) for line in pipelines.LINES],
    pipelines.story_answerer: STORIES,
    reading_transformer: STORIES,
    pipelines.image_embedder: list(RNG.integers(0, 255, (4, 4, 6, 1)).astype("uint8")),
    pipelines.image_classifier: list(RNG.integers(0, 255, (4, 4, 6, 1)).astype("uint8")),
    pipelines.speech_recognizer: RECORDINGS,
    pipelines.simulator: list(normal(4, 9, 2)),
    lstm_simulator: list(normal(4, 9, 2)),
    gru_attention_simulator: list(normal(4, 9, 2)),
    neural_gpu: EXPRESSIONS,
    extended_neural_gpu: EXPRESSIONS,
    calculating_transformer: EXPRESSIONS,
}
# Those that generate text, and a beam for each.
GENERATORS = {
    student: Beam(3),
    pipelines.translator: Beam(3),
    pipelines.recurrent_translator: Beam(3, normalization="power", stopping="score"),
    pipelines.generator: Beam(3, length_penalty=0.0),
    pipelines.summarizer: Beam(2, stopping="narrow"),
}
