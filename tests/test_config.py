"""TransformerConfig: presets of Table 3, their numbers of parameters, error messages."""

import json
import math

import keras
import pytest
from support import small_config

import keras_transformer as kt
from keras_transformer import DecoderBlock, EncoderBlock, Transformer, TransformerConfig
from keras_transformer.config import ModelConfig, OldConfigurationError
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.rules import OutputRules
from keras_transformer.config.stack import StackConfig
from keras_transformer.export.formats import FORMATS
from keras_transformer.mixers import AttentionHeads, CrossAttention, LocalWindow, SelfAttention
from keras_transformer.models import PRESETS, ClassifierConfig, LanguageModelConfig, SeriesConfig
from keras_transformer.positions import Sinusoidal
from keras_transformer.search_settings import CheckedSettings, SearchSettings
from keras_transformer.serving.options import ServerOptions
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.time_series.config import RecurrentConfig
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings
from keras_transformer.training.settings.training_sections import TrainingSettings

TWICE = "`num_heads` must be given once, in the table `mixer` or beside it. Received: num_heads=2"

# Table 3, column "params", in millions. Rows A, D and E give no number: the base model's 65
# applies.
TABLE_3 = {
    "base": 65,
    "b_d_k_16": 58,
    "b_d_k_32": 60,
    "c_layers_2": 36,
    "c_layers_4": 50,
    "c_layers_8": 80,
    "c_d_model_256": 28,
    "c_d_model_1024": 168,
    "c_d_ff_1024": 53,
    "c_d_ff_4096": 90,
    "big": 213,
}

# Table 3, all other columns of every row: N, d_model, d_ff, h, d_k, d_v, dropout.
ROWS = {
    "base": (6, 512, 2048, 8, 64, 64, 0.1),
    "a_heads_1": (6, 512, 2048, 1, 512, 512, 0.1),
    "a_heads_4": (6, 512, 2048, 4, 128, 128, 0.1),
    "a_heads_16": (6, 512, 2048, 16, 32, 32, 0.1),
    "a_heads_32": (6, 512, 2048, 32, 16, 16, 0.1),
    "b_d_k_16": (6, 512, 2048, 8, 16, 64, 0.1),
    "b_d_k_32": (6, 512, 2048, 8, 32, 64, 0.1),
    "c_layers_2": (2, 512, 2048, 8, 64, 64, 0.1),
    "c_layers_4": (4, 512, 2048, 8, 64, 64, 0.1),
    "c_layers_8": (8, 512, 2048, 8, 64, 64, 0.1),
    "c_d_model_256": (6, 256, 2048, 8, 32, 32, 0.1),
    "c_d_model_1024": (6, 1024, 2048, 8, 128, 128, 0.1),
    "c_d_ff_1024": (6, 512, 1024, 8, 64, 64, 0.1),
    "c_d_ff_4096": (6, 512, 4096, 8, 64, 64, 0.1),
    "d_dropout_0.0": (6, 512, 2048, 8, 64, 64, 0.0),
    "d_dropout_0.2": (6, 512, 2048, 8, 64, 64, 0.2),
    "d_label_smoothing_0.0": (6, 512, 2048, 8, 64, 64, 0.1),
    "d_label_smoothing_0.2": (6, 512, 2048, 8, 64, 64, 0.1),
    "e_learned_positions": (6, 512, 2048, 8, 64, 64, 0.1),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3),
}


# Student models as shipped in browsers: N of encoder and decoder, d_model, d_ff, h.
STUDENTS = {"student_tiny": (6, 2, 256, 1536, 8), "student_base_memory": (6, 4, 384, 1536, 8)}

WHOLE = ("base", "c_layers_2", "c_layers_4", "c_layers_8", "big")


def parameters_of(name, vocab_size, num_layers=None):
    """Counts by hand: one shared matrix, attention without biases, Eq. 2 with both biases."""
    layers, d_model, d_ff, heads, d_k, d_v, _ = ROWS[name]
    layers = num_layers or layers
    attention = 2 * d_model * heads * d_k + 2 * d_model * heads * d_v
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_block = attention + feed_forward + 2 * norm
    decoder_block = 2 * attention + feed_forward + 3 * norm
    positions = 512 * d_model if name == "e_learned_positions" else 0
    return vocab_size * d_model + positions + layers * (encoder_block + decoder_block)


def vocabularies_implied_by(name):
    """Returns the smallest and largest vocabulary whose count rounds to the printed millions."""
    smallest = next(
        v for v in range(10**5) if parameters_of(name, v) >= (TABLE_3[name] - 0.5) * 1e6
    )
    largest = next(v for v in range(10**5) if parameters_of(name, v) >= (TABLE_3[name] + 0.5) * 1e6)
    return smallest, largest - 1


def test_every_row_of_table_3_has_a_preset():
    assert set(PRESETS) == {*ROWS, "tiny", "small", *STUDENTS}


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_has_the_values_of_its_row(name):
    config = TransformerConfig.preset(name)
    d_k = (
        config.encoder.block.attention.d_k
        or config.d_model // config.encoder.block.attention.num_heads
    )
    d_v = (
        config.encoder.block.attention.d_v
        or config.d_model // config.encoder.block.attention.num_heads
    )
    row = (
        config.num_layers,
        config.d_model,
        config.encoder.block.d_ff,
        config.encoder.block.attention.num_heads,
        d_k,
        d_v,
    )
    assert (*row, config.encoder.block.dropout) == ROWS[name]
    assert config.decoder.num_layers in (None, config.num_layers)
    assert config.encoder.position.kind == (
        "learned" if name == "e_learned_positions" else "sinusoidal"
    )
    assert (config.encoder.block.norm.kind, config.head.tie, config.encoder.block.activation) == (
        "post",
        "all",
        "relu",
    )


@pytest.mark.parametrize("name", STUDENTS)
def test_students_have_the_sizes_of_marian(name):
    config = TransformerConfig.preset(name)
    sizes = (config.num_layers, config.decoder_layers, config.d_model, config.encoder.block.d_ff)
    assert (*sizes, config.encoder.block.attention.num_heads) == STUDENTS[name]
    assert (config.decoder.mixer.kind, config.head.decoder_start) == ("ssru", "zeros")
    assert (config.encoder.block.norm.kind, config.head.tie, config.encoder.block.activation) == (
        "post",
        "all",
        "relu",
    )
    assert config.encoder.block.mixer.use_bias and config.head.output_bias
    assert config.encoder.position == Sinusoidal("halves", endpoint=True)


def test_a_preset_of_another_model_is_reported_in_one_line():
    with pytest.raises(ValueError, match=r"small for a LanguageModelConfig\. .*'student_tiny'"):
        LanguageModelConfig.preset("student_tiny")


@pytest.mark.parametrize("position", ["rotary", "relative", "alibi", "t5"])
def test_a_recurrent_decoder_refuses_positions_of_attention(position):
    with pytest.raises(ValueError, match="`position` must be added to .*position=[RAT]"):
        small_config(decoder="ssru", position=position, d_k=6)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (SeriesConfig, {"encoder": "lstm", "d_ff": 3}, "`d_ff` .* `SeriesConfig` with encoder='l"),
        (SeriesConfig, {"encoder": "gru", "num_heads": 4}, "`num_heads` has no effect on .*='gru'"),
        (SeriesConfig, {"encoder": "gru_attention", "norm": "pre"}, "`norm` has no effect on a"),
        (RecurrentConfig.from_flat, {"num_heads": 4}, "`num_heads` has no effect without a self-"),
        (ClassifierConfig, {"pooler_activation": "relu"}, "has no effect without `pooler`.*'relu'"),
        (StackConfig.from_flat, {"mixer": "ssru", "window": 3}, r"`window` is no option of SSRU"),
        (
            LanguageModelConfig,
            {"mixer": "ssru", "window": 3},
            "`window` has no .*decoder=SSRU",
        ),
        (ClassifierConfig, {"mixer": "ssru"}, r"`mixer` of the encoder must read both directions"),
        (
            ClassifierConfig,
            {"mixer": SelfAttention(num_heads=4), "num_heads": 2},
            r"`num_heads` is no option of SelfAttention\(num_heads=4\), or has another value there",
        ),
        (
            ClassifierConfig,
            {"mixer": SelfAttention(), "attention_bias": True},
            r"`attention_bias` is no option of SelfAttention\(\), or has another value there",
        ),
        (ClassifierConfig, {"mixer": {"num_heads": 4}, "num_heads": 2}, TWICE),
        (TransformerConfig, {"encoder": {"mixer": {"num_heads": 4}, "num_heads": 2}}, TWICE),
        (EncoderBlock, {"num_heads": 2, "d_ff": 8, "mixer": {"num_heads": 4}}, TWICE),
        (
            DecoderBlock,
            {"num_heads": 2, "d_ff": 8, "mixer": "ssru", "cross_attention": {"num_heads": 1}},
            "`num_heads` must be given once, in `cross_attention` or beside it. Received: num_hea",
        ),
        (
            TransformerConfig,
            {"num_decoder_layers": 3, "decoder": {"num_layers": 2}},
            "`num_decoder_layers` and `num_layers` of the decoder must be .*: 3 and 2",
        ),
    ],
)
def test_an_option_without_effect_is_refused(kind, options, message):
    with pytest.raises(ValueError, match=message) as error:
        kind(**options)
    assert "\n" not in str(error.value)


def test_options_of_one_stack_and_defaults_are_not_refused():
    config = TransformerConfig(decoder="ssru", encoder={"window": 3})
    assert (config.encoder.window, config.decoder.window) == (LocalWindow(3), None)
    assert SeriesConfig(encoder="lstm", d_ff=2048).encoder.cells == "lstm"
    own = TransformerConfig.preset("tiny", mixer={"num_heads": 2}, decoder={"num_heads": 8})
    assert own.encoder.block.mixer.num_heads == 2
    part = TransformerConfig(num_heads=2, encoder={"mixer": {"num_heads": 4}})
    heads = [stack.block.mixer.num_heads for stack in (part.encoder, part.decoder)]
    assert heads == [4, 2] and own.decoder.block.mixer.num_heads == 8
    for value in ({"num_heads": 1}, CrossAttention(num_heads=1)):
        cross = TransformerConfig(num_heads=2, decoder="ssru", cross_attention=value)
        assert cross.encoder.block.mixer.num_heads == 2
        assert cross.decoder.block.memory_attention == CrossAttention(num_heads=1)
    objects = TransformerConfig.preset("tiny", decoder=SelfAttention(num_heads=2))
    assert [stack.block.mixer.num_heads for stack in objects.stacks] == [4, 2]
    student = TransformerConfig.preset("student_tiny", decoder={"num_layers": 4})
    assert student.decoder.num_layers == 4


@pytest.mark.parametrize("given", ["attention", {}, {"dropout": 0.3}])
@pytest.mark.parametrize("heads", [{"mixer": {"num_heads": 2}}, {"num_heads": 2}])
def test_cross_attention_has_the_options_of_self_attention(heads, given):
    """Unless it is given others."""
    preset = TransformerConfig.preset("tiny", cross_attention=given, **heads)
    block = preset.decoder.block
    dropout = 0.3 if isinstance(given, dict) and given else 0.0
    assert block.memory_attention == CrossAttention(num_heads=2, dropout=dropout)
    options = {"mixer": {"num_heads": 2}, "cross_attention": given}
    assert DecoderBlock(None, 8, **options).config.block.memory_attention == block.memory_attention


def test_cross_attention_keeps_its_options_with_another_mixer():
    stack = StackConfig.from_flat(num_heads=4, attention_bias=True).with_options(mixer="ssru")
    assert stack.block.memory_attention == CrossAttention(num_heads=4, use_bias=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_layers"),
    [*((name, 1) for name in ROWS), *((name, None) for name in WHOLE)],
)
def test_number_of_parameters(name, num_layers, monkeypatch):
    """One block per stack; all blocks for rows that vary the depth and for the largest row."""
    for initializer in (keras.initializers.GlorotUniform, keras.initializers.RandomNormal):
        # Zeros instead of hundreds of millions of random numbers that no test reads.
        monkeypatch.setattr(
            initializer, "__call__", lambda self, shape, dtype=None: keras.ops.zeros(shape, dtype)
        )
    changes = {} if num_layers is None else {"num_layers": num_layers}
    model = Transformer(TransformerConfig.preset(name, vocab_size=41_100, **changes))
    assert model.count_params() == parameters_of(name, 41_100, num_layers)


def test_number_of_parameters_printed_in_table_3():
    """The paper does not give the vocabulary of Table 3; section 5.1 has "about 37000" tokens.

    With one shared matrix, the printed millions of each row imply an interval. All rows but the
    last share 41,004 to 41,208 (41,000 would miss only the row d_ff = 1024, with 52.498 million),
    and none of their intervals contains 37,000: the base model would print 63. The last row, big,
    implies 35,368 to 36,344, and would print 218 with the vocabulary of the others. So the paper
    contradicts itself here: no vocabulary gives both 65 and 213.
    """
    implied = {name: vocabularies_implied_by(name) for name in TABLE_3}
    assert implied == {
        "base": (39_841, 41_793),
        "b_d_k_16": (39_993, 41_945),
        "b_d_k_32": (39_291, 41_244),
        "c_layers_2": (40_624, 42_577),
        "c_layers_4": (39_256, 41_208),
        "c_layers_8": (40_426, 42_378),
        "c_d_model_256": (39_670, 43_576),
        "c_d_model_1024": (40_599, 41_574),
        "c_d_ff_1024": (41_004, 42_956),
        "c_d_ff_4096": (39_469, 41_421),
        "big": (35_368, 36_344),
    }
    others = [interval for name, interval in implied.items() if name != "big"]
    assert max(low for low, _ in others) == 41_004
    assert min(high for _, high in others) == 41_208
    for name, millions in TABLE_3.items():
        vocab_size = 36_000 if name == "big" else 41_100
        assert math.floor(parameters_of(name, vocab_size) / 1e6 + 0.5) == millions


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_number_of_parameters_of_tied_and_untied_weights(tie):
    """Three matrices [V, D], stored as one, two or three variables."""
    whole = Transformer(small_config(tie="all")).count_params()
    matrices = {"all": 1, "target": 2, "none": 3}[tie]
    model = Transformer(small_config(tie=tie))
    assert model.count_params() == whole + (matrices - 1) * 19 * 22


def test_a_preset_with_changes():
    config = TransformerConfig.preset("big", vocab_size=99, dropout=0.1)
    assert (config.tokens.vocab_size, config.encoder.block.dropout, config.d_model) == (
        99,
        0.1,
        1024,
    )


def test_dictionary_round_trip():
    config = small_config(
        norm="pre", position="learned", tie="target", target_vocab_size=23, banned_ids=(1, 5)
    )
    fields = config.to_dict()
    assert TransformerConfig.from_dict(fields) == config
    assert list(fields) == ["input", "encoder", "decoder", "head"]
    assert TransformerConfig.from_dict(json.loads(json.dumps(fields))) == config
    assert fields["head"]["target_vocab_size"] == config.output_size == 23
    assert small_config().output_size == 19


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        small_config().d_model = 1


@pytest.mark.parametrize(
    "name", ["vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_length"]
)
def test_sizes_must_be_positive(name):
    with pytest.raises(ValueError, match=rf"`{name}` must be at least 1\. Received: {name}=0\."):
        small_config(**{name: 0})


@pytest.mark.parametrize("name", ["target_vocab_size", "num_decoder_layers", "d_k", "d_v"])
def test_sizes_with_a_default_must_be_positive(name):
    message = rf"`{name}` must be at least 1, or None\. Received: {name}=0\."
    with pytest.raises(ValueError, match=message):
        small_config(**{name: 0}, tie="none")


def test_heads_must_divide_the_width():
    message = r"`d_model` must be divisible by `num_heads`.*Received: d_model=22, num_heads=3"
    with pytest.raises(ValueError, match=message):
        small_config(d_k=None)
    with pytest.raises(ValueError, match=message):
        small_config(d_v=None)


def test_an_odd_width_has_no_sinusoids():
    with pytest.raises(ValueError, match=r"`d_model` must be even .*Received: d_model=21"):
        small_config(d_model=21)
    assert small_config(d_model=21, position="learned").d_model == 21


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5])
@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_rates_must_be_in_0_to_1(name, rate):
    message = rf"`{name}` must be at least 0 and below 1\. Received: {name}={rate}\."
    with pytest.raises(ValueError, match=message):
        small_config(**{name: rate})


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("norm", "post, pre, a table .*"),
        ("position", "alibi, binary, .*, rotary, .*, t5, .*a table .*"),
        ("tie", "all, target, none"),
    ],
)
def test_invalid_choices_are_reported_with_the_valid_ones(name, choices):
    message = rf"`{name}` must be one of {choices}\. (.*)?Received: {name}='other'\."
    with pytest.raises(ValueError, match=message):
        small_config(**{name: "other"})


def test_a_shared_matrix_needs_a_shared_vocabulary():
    message = r"`tie='all'` needs one vocabulary.*Received: vocab_size=19, target_vocab_size=23"
    with pytest.raises(ValueError, match=message):
        small_config(target_vocab_size=23)


@pytest.mark.parametrize(
    "ids", [{"pad_id": 19}, {"bos_id": -1}, {"eos_id": 19}, {"pad_id": 3, "eos_id": 3}]
)
def test_special_tokens_must_be_in_the_vocabulary(ids):
    message = r"`pad_id`, `bos_id` and `eos_id` must be in the vocabulary.*Received: pad_id="
    with pytest.raises(ValueError, match=message):
        small_config(**ids)


def test_an_unknown_preset_is_reported_with_the_known_ones():
    message = r"`name` must be one of base, .*tiny, small, .* for a TransformerConfig\. .*'huge'"
    with pytest.raises(ValueError, match=message):
        TransformerConfig.preset("huge")


def test_an_unknown_field_is_reported_with_the_known_ones():
    with pytest.raises(ValueError, match=r"fields vocab_size, .*Received: depth"):
        TransformerConfig.preset("base", depth=3)


def test_options_of_another_version_are_named_in_one_line():
    fields = TransformerConfig(vocab_size=19).to_dict()
    fields["decoder"]["rotary_base"] = None
    with pytest.raises(
        OldConfigurationError, match=r"options of another version, rotary_base: tra"
    ):
        TransformerConfig.from_dict(fields)


# Options that several classes declare, and why.
DECLARED_AGAIN = {
    # Layers of another kind, with other ranges and meanings.
    **dict.fromkeys(["num_layers", "d_model", "max_length", "dropout", "normalization"], "LSTM"),
    # Columns of a mental image and of a picture, symbols and tokens, kernels of other convolutions.
    **dict.fromkeys(["image_width", "embedding_scale", "kernel_size"], "NeuralGPU"),
    # A subclass has another default or other choices.
    **dict.fromkeys(["labels", "pooling", "output_bias", "tie", "transform"], "another default"),
    # Vectors of texts and of tokens: the first features and a linear map, cosines and their sums.
    **dict.fromkeys(["dimensions", "similarity_scale"], "other meanings"),
    # Pairs with and without an answer in them; languages of generated data and of requests.
    **dict.fromkeys(["pair_layout", "source_language", "target_language"], "other choices"),
    # Each search has its own, whose declaration is one function; a run has a rule for all of them.
    **dict.fromkeys(["max_length_ratio", "repetition_penalty"], "searches"),
    "seed": "one of a training, one of outputs that are drawn",
    # Two formats have the option, whose declaration is one function of `export/options.py`.
    **dict.fromkeys(
        ["lengths", "batch_sizes", "search", "n_best", "alignment", "tokenizer", "streaming"],
        "formats",
    ),
    **dict.fromkeys(["quantize", "takes_words", "token_scores"], "formats"),
}


def test_no_option_of_a_model_a_search_or_an_export_is_declared_twice():
    """Settings of training and optimizer have names of their own as well."""
    for task in TASKS.values():
        assert issubclass(task.config_class, ModelConfig)
    classes = [AttentionHeads, SelfAttention, OutputRules, *all_subclasses(PartConfig)]
    searches = {kt.Beam, kt.decoding.BestPath, kt.Greedy, kt.decoding.Sample}
    assert searches <= all_subclasses(SearchSettings)
    exports = {FORMATS[name].options for name in FORMATS}
    assert exports | {ServerOptions} <= all_subclasses(CheckedSettings)
    classes += [*all_subclasses(CheckedSettings), TrainingSettings, OptimizerSettings]
    places = {}
    for owner in classes:
        if owner.__module__.startswith("keras_transformer."):
            for name, kind in vars(owner).get("__annotations__", {}).items():
                if "ClassVar" not in str(kind):
                    places.setdefault(name, set()).add(owner.__name__)
    assert {*places} > {"num_heads", "window", "mixer", "size", "banned_ids", "updates", "pooling"}
    twice = {name: owners for name, owners in places.items() if len(owners) > 1}
    assert twice.keys() == DECLARED_AGAIN.keys(), twice


def all_subclasses(base):
    return {*base.__subclasses__()}.union(*map(all_subclasses, base.__subclasses__()))


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (LanguageModelConfig, {"decoder": "ssru"}, r"`decoder` must be a `StackConfig` or a dictio"
         r"nary of its options, such as \{'num_layers': 6\}. Received: decoder='ssru'."),
        (ClassifierConfig, {"encoder": 3}, "`encoder` must be a .*`mixer`. Received: encoder=3"),
        (TransformerConfig, {"encoder": 3}, "`encoder` must be a .*`mixer`. Received: encoder=3"),
        (TransformerConfig, {"decoder": 3}, "`decoder` must be a `StackConfig`, a dictionary of "
         "its options or a string, its `mixer`. Received: decoder=3."),
        (TransformerConfig, {"head": "x"}, r"`head` must be a `TargetHead` or a dictionary of its "
         r"options, such as \{'tie': 'all'\}. Received: head='x'."),
    ],
)  # fmt: skip
def test_a_part_is_a_configuration_or_a_dictionary(make, options, message):
    for build in (make, lambda **given: make.preset("tiny", **given)):
        with pytest.raises(TypeError, match=message):
            build(**options)
