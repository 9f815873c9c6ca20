"""Every option of every model changes the model, or is refused in one line that names it."""

import functools
import json

import keras
import numpy as np
import pytest
from support import randomise, to_numpy

import keras_transformer as kt

STACK = {"num_layers": 2, "d_model": 8, "num_heads": 2, "d_ff": 6, "max_length": 16}
TOKENS = {**STACK, "vocab_size": 11}
IMAGE = {"image_height": 4, "image_width": 8, "patch_size": 2, "channels": 1}
SERIES = {"inputs": ("a", "b"), "input_mean": (0.0, 0.0), "input_scale": (1.0, 1.0)}
T, S = 9, 7
IDS = np.random.default_rng(0).integers(4, 11, (2, T)).astype("int32")
IDS[0, 3], IDS[1, 6:] = 2, 0  # a start token within a row, and padding
# Rows of a question, a start token, a passage, an end token and padding.
QUESTIONS = np.array([[5, 2, 7, 8, 9, 6, 3, 0, 0], [4, 6, 9, 2, 5, 10, 8, 3, 0]], "int32")
PAIRS = np.array([[2, 5, 3, 8, 9, 6, 3, 0, 0], [2, 6, 9, 3, 5, 10, 8, 3, 0]], "int32")
PIXELS = np.random.default_rng(1).uniform(0, 255, (2, 4, 8, 1)).astype("float32")
SPEECH = {"sample_rate": 100, "window_length": 20, "hop_length": 10, "num_mel_filters": 6}
FRAMES = np.random.default_rng(3).uniform(-1.5, 1.5, (2, S, 6)).astype("float32")
FRAMES[1, 4:] = 0  # padding
STEPS = np.random.default_rng(2).uniform(-2, 2, (2, T, 2)).astype("float32")
SYMBOLS = np.array([[1, 2, 3, 2, 2], [2, 4, 1, 0, 0]], "int32")
# The smallest configuration of each kind, and the inputs of its model.
KINDS = {
    "Transformer": (TOKENS, {"source": IDS[:, :S], "target": IDS}),
    "SpeechTransformer": ({**TOKENS, **SPEECH}, {"source": FRAMES, "target": IDS}),
    "LanguageModel": (TOKENS, IDS),
    "TextClassifier": (TOKENS, IDS),
    "TextEmbedder": (TOKENS, IDS),
    "TokenClassifier": (TOKENS, IDS),
    "MaskedLanguageModel": (TOKENS, IDS),
    "SparseTextEmbedder": (TOKENS, IDS),
    "SpanPredictor": (TOKENS, QUESTIONS),
    "MultiLabelClassifier": (TOKENS, IDS),
    "PairScorer": (TOKENS, PAIRS),
    "MultiVectorEncoder": (TOKENS, IDS),
    "ImageClassifier": (
        {**{name: value for name, value in STACK.items() if name != "max_length"}, **IMAGE},
        PIXELS,
    ),
    "ImageEmbedder": (
        {**{name: value for name, value in STACK.items() if name != "max_length"}, **IMAGE},
        PIXELS,
    ),
    "Calculator": (STACK, SYMBOLS),
    "SeriesRegressor": ({**STACK, **SERIES}, STEPS),
}
# Another value for each option.
VALUES = {
    **{"num_layers": 3, "d_model": 12, "num_heads": 4, "num_key_value_heads": 1, "d_ff": 10},
    **{"d_k": 6, "d_v": 6, "dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5},
    **{"activation": "gelu", "feed_forward": "gated", "norm": "pre", "normalization": "rms"},
    **{"attention_bias": True, "layer_scale": 0.5},
    **{"score": "general", "mixer": {"d_k": 6}, "cross_attention": {"num_heads": 1}},
    **{"final_norm": True, "embedding_norm": True},
    **{"position": "learned", "attends_to_start": False, "query_key_norm": "rms"},
    **{"window": 1, "vocab_size": 13, "embedding_scale": 3.0, "segments": "from_bos"},
    **{"tie": "none", "output_bias": True, "target_vocab_size": 13, "decoder_start": "zeros"},
    **{"language_codes": "before"},
    **{
        "pooling": "max",
        "pooler": True,
        "pooler_activation": "relu",
        "labels": ("x", "y", "z", "w"),
    },
    **{
        "image_height": 6,
        "image_width": 6,
        "channels": 3,
        "patch_size": 4,
        "class_tokens": 2,
        "classifiers": 2,
        "input_mean": (0.5, 1.0),
    },
    **{"input_scale": (2.0, 3.0), "snow": ("a", "b"), "target_mean": 1.0, "target_scale": 2.0},
    **{"num_decoder_layers": 3, "max_length": 20, "pad_id": 1, "embedding_size": 6},
    **{"pair_layout": "bert", "dimensions": 5, "normalize": False},
    **{"causal": True, "after_pooling": ["layer_norm"]},
    **{"num_mel_filters": 5, "pad_to_max_seconds": True},
    **{"kernel_size": 5, "conv_stride": 1, "conv_activation": "relu"},
    **{"projection_bias": True, "expansion": "attended"},
    **{"attention_position": "alibi", "transform": True, "transform_activation": "relu"},
    "saturation": "double_log",
}
# Other values where these are the defaults.
OWN_VALUES = {
    **dict.fromkeys([("SpanPredictor", "segments"), ("PairScorer", "segments")], "none"),
    **dict.fromkeys(
        [
            (kind, name)
            for kind in ("MaskedLanguageModel", "SparseTextEmbedder")
            for name in ("output_bias", "transform")
        ],
        False,
    ),
    ("SparseTextEmbedder", "pooling"): "sum",
}
# Options that affect searches, data and answers but not the model's computation.
ELSEWHERE = {
    **{"bos_id": "data, searches", "eos_id": "data, searches", "banned_ids": "searches"},
    **{"suppressed_ids": "searches", "forced_eos_id": "searches", "max_answer": "answers"},
    **{"forced_bos_id": "searches", "no_repeat_ngram": "searches"},
    **{"score_activation": "answers", "threshold": "answers", "separator": "answers"},
    **{"stride": "windows", "resize": "files", "inputs": "names", "target": "name"},
    **{"interpolation": "files", "resize_to": "files", "center_crop": "files"},
    **{"table": "files", "scored": "windows", "similarity_scale": "loss", "symmetric": "loss"},
    **{"query_length": "rows", "passage_length": "rows", "expansion_length": "rows"},
    **{"query_marker_id": "rows", "passage_marker_id": "rows", "skipped_ids": "answers"},
    **{"expansion_id": "rows"},
    **{"no_answer": "answers", "masking_rate": "masks", "mask_share": "masks"},
    **{"max_active": "answers", "query_flops": "loss", "text_flops": "loss"},
    **{"flops_updates": "loss", "random_share": "masks", "whole_word_masking": "masks"},
    **{"sample_rate": "features", "window_length": "features", "hop_length": "features"},
    **{"max_seconds": "windows", "prompt_ids": "searches", "first_suppressed_ids": "searches"},
    **{"timestamp_id": "searches", "max_first_timestamp": "searches"},
    **{"no_timestamps_id": "searches", "language_ids": "searches", "task_ids": "searches"},
    **{"detect_language": "searches", "end_ids": "searches", "max_length_ratio": "searches"},
    **{"no_speech_id": "searches", "no_speech_threshold": "answers"},
    **{"previous_id": "searches", "alignment_heads": "words"},
    **{"layout": "aligned", "image_width": 2, "kernel_size": 5, "gate_cutoff": 1.5},
    **{"log_probability_threshold": "answers", "compression_ratio_threshold": "answers"},
}
# Options that only set a limit: the maximum length, for any position; the padding id of models all
# of whose tokens attend to earlier ones only.
LIMITS = {
    *((kind, "pad_id") for kind in ("LanguageModel", "SpeechTransformer")),
    *((kind, "max_length") for kind in KINDS),
    ("PairScorer", "pair_layout"),  # rows are assembled before the model
}
# Further base configurations, with the options to test on each; `None`: all options.
BESIDE = [
    ("LanguageModel", {"position": "rotary"}, ["attends_to_start"]),
    ("Transformer", {"tie": "none"}, ["target_vocab_size"]),
    ("Transformer", {"decoder": "ssru"}, None),
    ("TextClassifier", {"pooler": True}, ["pooler_activation"]),
    ("SpanPredictor", {"transform": True}, ["transform_activation"]),
    ("PairScorer", {"pooler": True}, ["pooler_activation"]),
    ("ImageClassifier", {"class_tokens": 2}, ["classifiers"]),
    *(
        ("Calculator", {"encoder": f"{kind}neural_gpu", "num_layers": 2}, None)
        for kind in ("", "extended_")
    ),
    *(("SeriesRegressor", {"encoder": kind}, None) for kind in ("lstm", "gru_attention")),
]


YARN = {"kind": "yarn", "factor": 4.0, "short_wave": 4.0, "long_wave": 90.0}
RAMP = {name: YARN[name] for name in ("factor", "short_wave", "long_wave")}
BUCKETS = {"buckets": 4, "distance": 3}
# Positions, and other values of their options; each must have an effect.
POSITIONS = [
    ("Transformer", {"kind": "sinusoidal"}, {"layout": "halves", "endpoint": True, "offset": 1}),
    ("ImageClassifier", {"kind": "sinusoidal"}, {"layout": "halves", "offset": 1}),
    ("Transformer", {"kind": "rotary"}, {"base": 100.0}),
    ("Transformer", {"kind": "rotary"}, {"scaling": {"kind": "linear", "factor": 2.0}}),
    ("Transformer", {"kind": "rotary", "scaling": YARN}, {"scaling": {"kind": "llama3", **RAMP}}),
    *(
        ("Transformer", {"kind": "rotary", "scaling": YARN}, {"scaling": {**YARN, **change}})
        for change in ({"factor": 5.0}, {"short_wave": 5.0}, {"long_wave": 70.0}, {"scale": 1.5})
    ),
    ("Transformer", {"kind": "relative"}, {"distance": 2}),
    ("Transformer", {"kind": "t5", **BUCKETS}, {"distance": 6, "buckets": 8, "shared": True}),
    (
        "TokenClassifier",
        # With up to 8 buckets, all far distances share one, wherever it begins.
        {"kind": "disentangled", "buckets": 12, "distance": 8},
        {"distance": 7, "buckets": 8, "shared": True},
    ),
]


# The options that a kind needs.
ALTERNATING = {"kind": "alternating", "size": 1, "global_every": 2}
NEEDED = {"local": {"kind": "local", "size": 1}, "alternating": ALTERNATING}
# Other values of the options of parts of a block, compared with `kind` alone or the options before.
VALUES_OF_BLOCKS = [
    ("normalization", {"kind": "layer", "offset": False}),
    ("normalization", {"kind": "layer", "epsilon": 0.1}),
    ("normalization", {"kind": "rms", "epsilon": 0.1}),
    ("feed_forward", {"kind": "plain", "bias": False}),
    ("feed_forward", {"kind": "gated", "bias": False}),
    ("norm", {"kind": "pre", "first": False}),
    ("window", {"kind": "local", "size": 2}),
    ("window", {**ALTERNATING, "size": 2}),
    ("window", {**ALTERNATING, "global_every": 3}),
    ("window", {**ALTERNATING, "position": "alibi"}),
]


def names_of(kind):
    config = getattr(kt.models, kind).config_class
    return [n for n in (*config.options(), *config.aliases) if n not in ELSEWHERE]


# These have the stack and the embedding of a text classifier.
LIKE_A_CLASSIFIER = (
    "TextEmbedder",
    "TokenClassifier",
    "MaskedLanguageModel",
    "SparseTextEmbedder",
    "SpanPredictor",
    "MultiLabelClassifier",
    "PairScorer",
    "MultiVectorEncoder",
)


def own_names(kind):
    """Returns the options that no other row tests in the same code."""
    shared = names_of("TextClassifier") if kind in LIKE_A_CLASSIFIER else ()
    return [name for name in names_of(kind) if name not in shared]


ROWS = [
    *((kind, {}, name) for kind in KINDS for name in own_names(kind)),
    *((kind, context, n) for kind, context, names in BESIDE for n in names or names_of(kind)),
]
ROWS = [(kind, c, name) for kind, c, name in ROWS if (kind, name) not in LIMITS and name not in c]


@functools.cache
def computed(kind, fields):
    """Returns names and shapes of the weights, and outputs without and with dropout."""
    model_class, inputs = getattr(kt.models, kind), KINDS[kind][1]
    config = model_class.config_class(**json.loads(fields))
    if kind in ("ImageClassifier", "ImageEmbedder"):
        inputs = np.resize(inputs, (2, *config.input.shape))
    if kind == "SpeechTransformer":
        inputs = {**inputs, "source": inputs["source"][..., : config.input.num_mel_filters]}
    keras.utils.set_random_seed(0)
    model = randomise(model_class(config))
    outputs = [to_numpy(model(inputs, training=training)) for training in (False, True)]
    return [(weight.path, tuple(weight.shape)) for weight in model.weights], outputs


def differs(one, other):
    (shapes, outputs), (other_shapes, other_outputs) = one, other
    return shapes != other_shapes or any(
        not np.array_equal(*pair) for pair in zip(outputs, other_outputs, strict=True)
    )


LONG = [pytest.mark.slow, pytest.mark.long]


def row_of(kind, context, name):
    """Returns the arguments of a test; those of one model are fast."""
    marks = () if context.get("encoder") == "lstm" else LONG
    return pytest.param(kind, context, name, marks=marks, id=f"{kind}-{[*context.values()]}-{name}")


@pytest.mark.parametrize(("kind", "context", "name"), [row_of(*row) for row in ROWS])
def test_an_option_has_an_effect_or_is_refused(kind, context, name):
    base = {**KINDS[kind][0], **context}
    config = getattr(kt.models, kind).config_class
    if context.get("encoder", "transformer") != "transformer":
        unused = config.without_effect(base)
        base = {key: value for key, value in base.items() if key not in unused - {"max_length"}}
    changed = {**base, name: OWN_VALUES.get((kind, name), VALUES[name])}
    try:
        config(**changed)
    except ValueError as error:
        assert name in str(error) and "\n" not in str(error)
        return
    assert differs(*(computed(kind, json.dumps(fields)) for fields in (base, changed)))


@pytest.mark.parametrize(
    ("kind", "position", "name", "value"),
    [
        pytest.param(kind, position, name, value, marks=LONG if number else ())
        for number, (kind, position, changes) in enumerate(POSITIONS)
        for name, value in changes.items()
    ],
    ids=str,
)
def test_an_option_of_a_position_has_an_effect(kind, position, name, value):
    """One with buckets may also need another distance."""
    changed = {**position, name: value}
    if name == "buckets":
        position, changed = ({**fields, "distance": 9} for fields in (position, changed))
    one, other = (
        computed(kind, json.dumps({**KINDS[kind][0], "position": fields}))
        for fields in (position, changed)
    )
    assert differs(one, other)


@pytest.mark.parametrize(("option", "value"), VALUES_OF_BLOCKS, ids=str)
def test_an_option_of_a_block_has_an_effect(option, value):
    one, other = (
        computed("TextClassifier", json.dumps({**TOKENS, "num_layers": 3, option: fields}))
        for fields in (NEEDED.get(value["kind"], value["kind"]), value)
    )
    assert differs(one, other)
