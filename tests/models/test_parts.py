"""Parts of models: copying parts between models, and adding a new head or input."""

import dataclasses

import keras
import numpy as np
import pytest
from marks import slow
from support import randomise, sentences, small_config, small_fields, to_numpy

import keras_transformer.models
from keras_transformer import LanguageModel, Transformer, TransformerConfig
from keras_transformer.config.label_heads import TokenLabelsHead
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.tokens import TokenInput
from keras_transformer.models import (
    ClassifierConfig,
    LanguageModelConfig,
    SeriesRegressor,
    TextClassifier,
)
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head, make_logits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.parts import copy_parts

MODEL = {"rtol": 0, "atol": 1e-4}
LABELS = ("a", "b", "c")


def classifier(**changes):
    fields = small_fields(ClassifierConfig, num_layers=2, **changes)
    return randomise(TextClassifier(ClassifierConfig(**fields, labels=LABELS)), seed=1)


def language_model(**changes):
    fields = small_fields(LanguageModelConfig, num_layers=2, **changes)
    return randomise(LanguageModel(LanguageModelConfig(**fields)), seed=2)


def translation_model(**changes):
    return randomise(Transformer(small_config(num_layers=2, **changes)), seed=3)


def values_of(model):
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.mark.parametrize(
    ("make", "stack", "table"),
    [
        (language_model, "decoder", "embedding"),
        (translation_model, "encoder", "embedding"),
        (lambda: translation_model(tie="none"), "encoder", "source_embedding"),
    ],
)
def test_an_encoder_of_another_task_initialises_a_classifier(make, stack, table):
    model, other = classifier(), make()
    before, theirs = values_of(model), values_of(other)
    copied = copy_parts(model, other, ["input", "encoder"])
    assert copied.copied == {"input": "input", "encoder": stack}
    assert copied.new == {"head": "not requested"}
    for path, value in values_of(model).items():
        first, _, rest = path.partition("/")
        name = {"encoder": stack, "embedding": table}.get(first)
        expected = before[path] if name is None else theirs[f"{name}/{rest}"]
        np.testing.assert_array_equal(value, expected, err_msg=path)


def test_the_copied_encoder_computes_the_same():
    model, other = classifier(), translation_model()
    tokens = sentences((5, 9))
    copy_parts(model, other, ["input", "encoder"])
    padding_mask = model.parts.input.padding_mask(tokens)
    hidden = model.encoder(model.parts.input(tokens), padding_mask)
    np.testing.assert_array_equal(to_numpy(hidden), to_numpy(other.encode(tokens)[0]))


@pytest.mark.parametrize("tie", ["all", slow("target"), slow("none")])
def test_the_parts_contain_all_weights(tie):
    one, two = (
        translation_model(tie=tie),
        randomise(Transformer(small_config(tie=tie, num_layers=2))),
    )
    copied = copy_parts(one, two)
    assert list(copied.copied) == ["input", "encoder", "decoder", "head"] and not copied.new
    for weight, other in zip(one.weights, two.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), other.numpy(), err_msg=weight.path)


@pytest.mark.parametrize(
    ("changes", "part", "reason"),
    [
        slow(
            {"d_ff": 23}, "encoder", "block_0/feed_forward/inner/kernel is 22 x 17 here and 22 x 23"
        ),
        ({"norm": "pre"}, "encoder", "the other model also has norm/"),
        slow({"vocab_size": 20}, "input", "embedding/table is 19 x 22 here and 20 x 22 there"),
        ({"position": "learned"}, "input", "the other model also has embedding/positions"),
    ],
)
def test_a_part_that_does_not_fit_stays_unchanged(changes, part, reason):
    model, before = classifier(), values_of(classifier())
    copied = copy_parts(model, translation_model(**changes), ["input", "encoder"])
    assert reason in copied.new[part] and part not in copied.copied
    layer = {"input": "embedding"}.get(part, part)
    for path, value in values_of(model).items():
        if path.startswith(f"{layer}/"):
            np.testing.assert_array_equal(value, before[path], err_msg=path)


def test_a_decoder_with_a_memory_is_no_encoder():
    copied = copy_parts(language_model(), translation_model(), ["decoder"])
    assert "the other model also has" in copied.new["decoder"]
    copied = copy_parts(classifier(), SeriesRegressor("tiny", num_layers=1), ["encoder", "decoder"])
    assert "encoder" in copied.new and "decoder" not in copied.new  # the classifier has no decoder


def test_parts_have_names():
    with pytest.raises(ValueError, match=r"among input, encoder, decoder, head\. Received: body\."):
        copy_parts(classifier(), classifier(), ["body"])


@pytest.mark.parametrize(
    ("tie", "changes"),
    [
        slow(
            "all", {"encoder": {"position": "learned"}, "decoder": {"position": "rotary"}, "d_k": 6}
        ),
        slow("all", {"encoder": {"num_heads": 2, "d_ff": 23, "norm": "pre"}}),
        slow("all", {"decoder": {"activation": "gelu", "max_length": 31, "position": "learned"}}),
        ("none", {"encoder": {"embedding_norm": True}, "dropout": 0.1}),
    ],
)
def test_encoder_and_decoder_may_differ_in_every_option(changes, tie, tmp_path):
    """A matrix is one variable even with two kinds of positions; cached decoding is the same."""
    model = randomise(Transformer(**small_config(tie=tie, **changes).to_flat()))
    tables = {id(w) for w in model.weights if w.path.endswith("table")}
    assert len(tables) == {"all": 1, "none": 2}[tie]
    source, target = sentences((5, 9)), sentences((7, 4), first=2, seed=1)
    logits = to_numpy(model({"source": source, "target": target}))
    memory, padding_mask = model.encode(source)
    cache, heads = model.start(memory, 7)
    for index in range(4):
        step = model.step(target[:, index : index + 1], cache, index, heads, padding_mask)
        cache = step.cache
        np.testing.assert_allclose(to_numpy(step.logits)[:, 0], logits[:, index], **MODEL)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.config == model.config
    np.testing.assert_allclose(
        to_numpy(again({"source": source, "target": target})), logits, **MODEL
    )


def test_a_model_is_made_from_options_without_a_configuration():
    model = Transformer(num_layers=1, d_model=16, num_heads=2, d_ff=8, vocab_size=11)
    assert model.config == TransformerConfig(
        num_layers=1, d_model=16, num_heads=2, d_ff=8, vocab_size=11
    )
    assert Transformer("tiny", num_layers=1, vocab_size=11).config.d_model == 128
    with pytest.raises(TypeError, match=r"part of `config` if a .* is given\. Received: d_ff\."):
        Transformer(model.config, d_ff=9)


def test_options_are_read_from_the_part_that_has_them():
    config = small_config(encoder={"num_heads": 2}, d_model=22)
    assert config.d_model == 22 and config.decoder.block.attention.num_heads == 3
    with pytest.raises(AttributeError, match="num_heads"):
        _ = config.num_heads
    with pytest.raises(ValueError, match="`d_model` must be the same in encoder and decoder"):
        small_config(encoder={"d_model": 24})
    with pytest.raises(ValueError, match=r"Received: encoder\.depth\."):
        small_config(encoder={"depth": 2})
    assert dataclasses.replace(config, dropout=0.2).encoder.block.attention.num_heads == 2


KINDS_OF_MODELS = {
    "SeriesConfig": [{"encoder": name} for name in ("transformer", "gru", "lstm_attention")],
    "TransformerConfig": [
        {"decoder": "ssru", "decoder_start": "zeros", "num_decoder_layers": 2},
        {"encoder": {"num_heads": 4}},
    ],
    "ImageClassifierConfig": [{"patch_size": 8}],
    "SpanPredictorConfig": [{"max_answer": 7}],
    "MultiLabelClassifierConfig": [{"threshold": 0.3}],
    "MultiVectorEncoderConfig": [
        {"expansion": "attended", "expansion_id": 7, "skipped_ids": (5, 6), "query_length": 9}
    ],
    "PairScorerConfig": [{"score_activation": "none"}],
    "TokenClassifierConfig": [{"labels": ("O", "B-X")}],
    "ClassifierConfig": [{"pooling": "max"}],
    "EmbedderConfig": [{"pooling": "max", "dimensions": 7, "similarity_scale": 3.0}],
    "LanguageModelConfig": [{"tie": "none"}],
    "SparseEmbedderConfig": [{"pooling": "sum", "max_active": 7, "text_flops": 0.1}],
    "MaskedLanguageModelConfig": [
        {"transform": False, "masking_rate": 0.4, "embedding_size": 7, "tie": "none"}
    ],
}


@pytest.mark.parametrize(
    ("name", "changes"),
    [(name, changes) for name, several in KINDS_OF_MODELS.items() for changes in several],
)
def test_flat_options_and_parts_describe_the_same_configuration(name, changes):
    kind = getattr(keras_transformer.models, name)
    config = kind(**changes)
    assert kind(**config.to_flat()) == config == kind.from_dict(config.to_dict())


# A new kind of head takes a configuration, a `Head`, and the line `head_class` in its model.


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreHead(PartConfig):
    scale: float = dataclasses.field(default=2.0, metadata={"help": "Factor.", "set_by": None})


class Score(Head):
    def make_layers(self, config, policy, kernels):
        output = keras.layers.Dense(1, dtype=policy, name="output")
        scaling = keras.layers.Rescaling(config.head.scale, name="scaling")
        return {"output_layer": output, "scaling": scaling, "logits": make_logits(policy)}

    def __call__(self, hidden, inputs=None, padding_mask=None):
        x = self.layers["output_layer"](hidden[:, 0])  # [B, 1]
        return self.layers["logits"](self.layers["scaling"](x))


class ScorerConfig(ModelConfig):
    description = {
        "input": Part(TokenInput()),
        "encoder": Part(StackConfig(), leave_out=("mixer",)),
        "head": Part(ScoreHead()),
    }


@keras.saving.register_keras_serializable(package="tests")
class Scorer(EncoderModel):
    config_class = ScorerConfig
    input_class, head_class = EmbeddedTokens, Score
    default_name = "scorer"


def test_a_new_head_is_a_class_and_a_line(tmp_path):
    """It is configured, built, trained, saved, and initialised from another model's parts."""
    model = Scorer(**small_fields(ScorerConfig, num_layers=2), scale=3.0)
    assert model.config.head.scale == 3.0 and "scale" in ScorerConfig.options()
    assert copy_parts(model, translation_model(), ["input", "encoder"]).copied
    tokens = sentences((5, 9))
    model.compile("sgd", "mse")
    model.fit(tokens, np.ones((2, 1)), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.config == model.config
    np.testing.assert_array_equal(to_numpy(again(tokens)), to_numpy(model(tokens)))


def test_an_option_of_two_parts_is_refused():
    with pytest.raises(TypeError, match="is an option of both `input` and `head`"):
        type(
            "Ambiguous",
            (ModelConfig,),
            {"description": {"input": Part(TokenLabelsHead()), "head": Part(TokenLabelsHead())}},
        )


@pytest.mark.parametrize(
    ("here", "there", "kept"), [(2, 3, [0, 2]), slow(6, 12, [0, 2, 4, 7, 9, 11])]
)
def test_a_smaller_stack_gets_evenly_spaced_layers(here, there, kept):
    """Three and six of twelve layers are those of Shleifer and Rush (2020)."""
    sizes = {"d_model": 4, "d_ff": 4, "num_heads": 1}
    other = translation_model(**sizes, num_decoder_layers=there)
    model = translation_model(**sizes, num_decoder_layers=here)
    assert "decoder" in copy_parts(model, other).new
    copied = copy_parts(model, other, shrink=True)
    assert copied.layers == {"decoder": kept} and not copied.new
    theirs = values_of(other)
    for path, value in values_of(model).items():
        parts = path.split("/")
        if parts[:2] == ["decoder", parts[1]] and parts[1].startswith("block_"):
            parts[1] = f"block_{kept[int(parts[1][6:])]}"
        np.testing.assert_array_equal(value, theirs["/".join(parts)], err_msg=path)


def test_a_stack_with_more_layers_is_not_copied():
    model = translation_model(num_decoder_layers=3)
    copied = copy_parts(model, translation_model(num_decoder_layers=2), shrink=True)
    assert "the other model has no" in copied.new["decoder"] and not copied.layers


def test_a_smaller_recurrent_stack_gets_evenly_spaced_layers():
    model, other = (
        randomise(SeriesRegressor("tiny", encoder="lstm", d_model=4, num_layers=n), seed=n)
        for n in (2, 3)
    )
    copied = copy_parts(model, other, ["encoder"], shrink=True)
    assert copied.layers == {"encoder": [0, 2]}
    ours, theirs = (one.parts.weights("encoder") for one in (model, other))
    for path, variable in ours.items():
        source = theirs[path.replace("recurrent_1/", "recurrent_2/")]
        np.testing.assert_array_equal(variable.numpy(), source.numpy(), err_msg=path)
    assert len([path for path in ours if path.startswith("recurrent_1/")]) == 3
