"""The figure of a structure shows the boxes, shapes and numbers of the model."""

import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from support import small_config

from keras_transformer import LanguageModel, Transformer
from keras_transformer.models import (
    ClassifierConfig,
    LanguageModelConfig,
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    SeriesConfig,
    SeriesRegressor,
    SpanPredictor,
    SpanPredictorConfig,
    TextClassifier,
    TokenClassifier,
    TokenClassifierConfig,
)
from keras_transformer.plots.figure import save_figure
from keras_transformer.plots.structure import structure_figure
from keras_transformer.training.factory import weightless_model
from keras_transformer.training.settings.toml import load_settings

SIZES = {"vocab_size": 1900, "num_layers": 3, "d_model": 20, "d_ff": 17, "num_heads": 5}


def transformer(**changes):
    return Transformer(small_config(vocab_size=1900, **changes))


def classifier():
    config = ClassifierConfig(
        **SIZES, labels=("a", "b", "c"), pooling="attention", norm="pre", position="rotary"
    )
    return TextClassifier(config)


def language_model():
    return LanguageModel(LanguageModelConfig(**SIZES, output_bias=True, position="learned"))


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def numbers(pattern, texts):
    matches = [re.fullmatch(pattern, text) for text in texts]
    return [int(match[1].replace(",", "")) for match in matches if match]


MODELS = {
    "post-norm": transformer,
    "pre-norm": lambda: transformer(norm="pre", position="alibi"),
    "ssru": lambda: transformer(decoder="ssru"),
    "untied": lambda: transformer(tie="none", target_vocab_size=1700),
    "classifier": classifier,
    "language model": language_model,
    "token classifier": lambda: TokenClassifier(
        TokenClassifierConfig(**SIZES, labels=("O", "B-X", "I-X"))
    ),
    "masked language model": lambda: MaskedLanguageModel(MaskedLanguageModelConfig(**SIZES)),
    "span predictor": lambda: SpanPredictor(SpanPredictorConfig(**SIZES)),
}


@pytest.mark.parametrize("name", ["ssru", "classifier", "token classifier", "span predictor"])
def test_the_parameters_add_up_to_those_of_the_model(name):
    """Counts what is outside of frames, plus what is in a frame times the number of its blocks."""
    model = MODELS[name]()
    shown = texts(structure_figure(model))
    counts = numbers(r"([\d,]+) parameters", shown)
    sizes = numbers(r"([\d,]+)\nparameters each", shown)
    repeats = [int(text[2:]) for text in shown if text.startswith("× ")]
    stacks = [column.stack for column in model.columns]
    assert sizes == [stack.blocks[0].count_params() for stack in stacks]
    assert repeats == [stack.num_layers for stack in stacks]
    more = sum(count * (times - 1) for count, times in zip(sizes, repeats, strict=True))
    assert sum(counts) + more == model.count_params()
    assert f"{type(model).__name__}: {model.count_params():,} parameters" in shown


def test_shapes_have_letters_for_batch_and_lengths():
    shown = texts(structure_figure(transformer()))
    for text in (
        "source tokens [B, S]", "target tokens [B, T]", "memory [B, S, 22]", "logits [B, T, 1,900]",
        "1,900 × 22 → [B, S, 22]", "1,900 × 22 → [B, T, 22]", "22 → 17 → 22, relu",
        "3 heads, d_k = 5, d_v = 7", "22 × 1,900", "sinusoidal\npositions", "× 1", "× 2",
    ):  # fmt: skip
        assert text in shown, text
    assert shown.count("shared parameters") == 2  # the target embedding and the output layer


def boxes(figure):
    """Returns the titles of the boxes in each column, from bottom to top."""
    titles = [text for text in figure.axes[0].texts if text.get_weight() == "bold"]
    titles.sort(key=lambda text: (text.get_position()[0], text.get_position()[1]))
    return [text.get_text() for text in titles]


def test_the_boxes_of_the_paper():
    """Fig. 1, from bottom to top."""
    encoder = ["Embedding", "Multi-head attention", "Add & norm", "Feed forward", "Add & norm"]
    decoder = [
        "Embedding", "Masked multi-head attention", "Add & norm", "Multi-head attention to memory",
        "Add & norm", "Feed forward", "Add & norm", "Linear",
    ]  # fmt: skip
    assert boxes(structure_figure(transformer())) == encoder + decoder


def test_a_recurrent_decoder_has_no_self_attention():
    shown = boxes(structure_figure(transformer(decoder="ssru")))
    decoder = shown[5:]
    assert decoder[:4] == ["Embedding", "SSRU", "Add & norm", "Multi-head attention to memory"]
    assert "Masked multi-head attention" not in shown
    assert "state of 22" in texts(structure_figure(transformer(decoder="ssru")))


def test_models_without_norms_or_with_factors_have_none():
    """Two blocks of a decoder of dilated convolutions have states of different sizes."""
    options = {"feed_forward": "none", "position": "none", "num_decoder_layers": 3}
    mixers = {"mixer": "dilated_convolution", "cross_attention": "same_position"}
    figure = structure_figure(transformer(**options, **mixers, normalization="none"))
    sublayers = ["DilatedConvolution", "Add", "Memory, same position", "Add"]
    assert boxes(figure) == [
        *("Embedding", "DilatedConvolution", "Add", "Embedding", *sublayers, "Linear")
    ]
    assert {"state of 22 to 88", "both directions"} <= {*texts(figure)}
    assert "0 parameters" not in texts(figure)
    figure = structure_figure(transformer(**options, mixer="lstm", normalization="scale"))
    assert "state of 44" in texts(figure) and "Add & scale" in boxes(figure)
    assert not {"Norm", "Add & norm"} & {*boxes(figure)}


def test_pre_norm_comes_before_the_sublayers_and_at_the_end():
    sublayers = ["Norm", "Multi-head attention", "Add", "Norm", "Feed forward", "Add"]
    assert boxes(structure_figure(classifier())) == [
        "Embedding", *sublayers, "Norm", "Pooling", "Linear"
    ]  # fmt: skip
    shown = texts(structure_figure(classifier()))
    assert {"5 heads, d_k = 4, rotary positions", "logits [B, 3]", "attention of the tokens"} <= {
        *shown
    }
    assert not any("\npositions" in text for text in shown)


def test_a_language_model_has_one_column_and_its_bias():
    figure = structure_figure(language_model())
    assert boxes(figure)[-2:] == ["Linear", "Bias"]
    assert "learned\npositions" in texts(figure)


@pytest.mark.parametrize("name", ["post-norm", "classifier"])
def test_no_text_leaves_the_figure_or_overlaps_another(name, tmp_path):
    figure = structure_figure(MODELS[name]())
    save_figure(figure, tmp_path / "x.png")
    renderer = FigureCanvasAgg(figure).get_renderer()
    extents = [text.get_window_extent(renderer) for text in figure.axes[0].texts if text.get_text()]
    frame = figure.bbox
    for number, one in enumerate(extents):
        assert frame.x0 <= one.x0 and one.x1 <= frame.x1 and one.y1 <= frame.y1
        assert not any(one.overlaps(other) for other in extents[:number])


@pytest.mark.parametrize(
    "config", ["wmt14_en_de_base", "sst2", "language_model_multi30k", "multi30k_tokenized"]
)
def test_a_configuration_has_the_sizes_of_its_model_without_allocating_it(config, monkeypatch):
    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", "data")  # it is not opened
    settings = load_settings(config)
    model = weightless_model(settings)
    assert all(weight._value is None for weight in model.weights), "no weight has a value"
    assert model.count_params() == sum(int(weight.shape.num_elements()) for weight in model.weights)
    if config == "wmt14_en_de_base":
        # The paper's model of 65 million has 37,000 tokens of 512 features, and 6 blocks of both
        # kinds.
        attention, feed, norm = 4 * 512**2, 2 * 512 * 2048 + 2048 + 512, 2 * 512
        blocks = 6 * (attention + feed + 2 * norm) + 6 * (2 * attention + feed + 3 * norm)
        assert model.count_params() == 37_000 * 512 + blocks


def test_a_model_that_reads_no_tokens_is_reported():
    model = SeriesRegressor(SeriesConfig(num_layers=1, d_model=4, d_ff=5, num_heads=2))
    with pytest.raises(ValueError, match="`model` must read tokens .* Received: a SeriesRegressor"):
        structure_figure(model)
