"""Models with random weights agree in CTranslate2; unsupported options are reported by name."""

import json

import numpy as np
import pytest
import tensorflow as tf
from marks import long, slow
from searching import by_beam, by_greedy
from support import randomise, small_config, small_fields

from keras_transformer import LanguageModel, Transformer
from keras_transformer.export.ctranslate2 import expressible
from keras_transformer.export.ctranslate2.expressible import check_expressible
from keras_transformer.export.ctranslate2.spec import make_spec
from keras_transformer.export.errors import ExportError
from keras_transformer.installation import install_hint
from keras_transformer.models import LanguageModelConfig
from keras_transformer.norms import LayerNorm, PreNorm, RMSNorm
from keras_transformer.positions import LinearScaling, Llama3Scaling, Relative, Rotary, T5Bias

ctranslate2 = pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))

PIECES = [f"piece {number}" for number in range(19)]


def random_model(seed=0, **changes):
    return randomise(Transformer(small_config(**changes)), seed)


def model_that_ends(seed, eos, sharpness=1, **changes):
    """A model with random weights that ends some sentences and emits no padding or start token.

    The last normalisation sets the first component of every hidden state to 1; there the output
    weights of the special tokens hold the amount that is added to their logits.
    """
    model = random_model(seed, tie="none", **changes)
    norm = model.decoder.norm or model.decoder.blocks[-1].feed_forward_norm
    for weights, first in ((norm.gamma, 0), (norm.beta, 1)):
        values = weights.numpy()
        values[0] = first
        weights.assign(values)
    kernel = sharpness * model.output_layer.kernel.numpy()  # [D, V]
    kernel[0] = 0
    kernel[0, [model.config.tokens.pad_id, model.config.tokens.bos_id]] = -20
    kernel[0, model.config.tokens.eos_id] = eos
    model.output_layer.kernel.assign(kernel)
    return model


def random_sources(config, count=24, seed=0):
    """Returns token ids `[count, 14]` of sentences of 2 to 14 tokens."""
    random = np.random.default_rng(seed)
    words = [
        w
        for w in range(19)
        if w not in (config.tokens.pad_id, config.tokens.bos_id, config.tokens.eos_id)
    ]
    sources = np.full((count, 14), config.tokens.pad_id, "int32")
    for row in sources:
        length = random.integers(2, 15)
        row[: length - 1] = random.choice(words, length - 1)
        row[length - 1] = config.tokens.eos_id
    return sources


def load(model, folder, quantize=None):
    spec = make_spec(model, PIECES, PIECES, 1, 29)
    spec.optimize(quantize)
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), intra_threads=1)


def texts_of(sources, config):
    """Returns sources without their ends as lists of tokens."""
    ends = [list(row).index(config.tokens.eos_id) for row in sources]
    return [[PIECES[token] for token in row[:end]] for row, end in zip(sources, ends, strict=True)]


def search(loaded, sources, config, **options):
    """Returns hypotheses as lists of tokens, including their end, and their scores."""
    results = loaded.translate_batch(
        texts_of(sources, config),
        **{
            "return_end_token": True,
            "return_scores": True,
            "min_decoding_length": 0,
            "max_decoding_length": 29,
            **options,
        },
    )
    return [result.hypotheses[0] for result in results], [result.scores[0] for result in results]


def pieces_of(tokens, config):
    """Returns the same lists from rows of token ids."""
    rows = [list(row) for row in tokens.numpy()]
    ends = [
        row.index(config.tokens.eos_id) + 1 if config.tokens.eos_id in row else len(row)
        for row in rows
    ]
    return [[PIECES[token] for token in row[:end]] for row, end in zip(rows, ends, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        long({}),
        long({"norm": "pre", "position": "learned", "normalization": LayerNorm(0.05)}),
        long({"tie": "none", "attention_bias": True, "d_k": 7, "d_v": 4, "activation": "gelu"}),
        long({"tie": "target", "position": "none", "activation": "swish", "target_vocab_size": 13}),
        long(
            {"num_layers": 3, "num_decoder_layers": None, "num_heads": 2, "d_k": None, "d_v": None}
        ),
        long({"score": "dot_product", "norm": "pre"}),
        long({"score": "general", "attention_bias": True, "position": "binary"}),
        long({"tie": "all", "output_bias": True}),
        long({"norm": "pre", "final_norm": False, "embedding_norm": True}),
        long({"embedding_norm": True, "embedding_scale": 1.0}),
        long({"embedding_scale": 1.7}),
        long({"tie": "none", "output_bias": True, "target_vocab_size": 13}),
        long({"norm": "pre", "attention_bias": True, "pad_id": 4, "bos_id": 0, "eos_id": 2}),
        long({"position": Relative(3), "d_k": 7, "d_v": 4, "score": "general"}),
        long(
            {
                "encoder": {"position": Rotary(99.0), "d_k": 6, "num_heads": 2},
                "decoder": {"position": "alibi", "d_k": 6},
            }
        ),
        long(
            {
                "position": T5Bias(11, 8, shared=True),
                "normalization": RMSNorm(0.05),
                "norm": "pre",
                "score": "dot_product",
            }
        ),
        long(
            {
                "position": "t5",
                "feed_forward": {"kind": "gated", "bias": False},
                "activation": "gelu_tanh",
                "normalization": RMSNorm(0.05),
            }
        ),
        long(
            {
                "num_heads": 4,
                "num_key_value_heads": 2,
                "d_k": 6,
                "d_v": 8,
                "position": "rotary",
                "attention_bias": True,
                "normalization": {"kind": "layer", "offset": False},
            }
        ),
        long({"num_key_value_heads": 1, "attention_bias": ["key"], "activation": "tanh"}),
        long(
            {
                "position": Rotary(scaling=LinearScaling(3.0)),
                "d_k": 6,
                "d_v": 6,
                "encoder": {
                    "query_key_norm": "rms",
                    "position": Rotary(scaling=Llama3Scaling(3.0, 8.5, 30.2)),
                },
            }
        ),
        {"decoder_start": "zeros", "embedding_scale": 1.7, "embedding_norm": True},
        {"feed_forward": "gated", "activation": "sigmoid", "norm": "pre"},
    ],
    ids=lambda changes: ", ".join(map(str, changes.values())) or "small",
)
def test_every_kind_of_model_gives_the_same(changes, tmp_path):
    model = random_model(**changes)
    config, sources = model.config, random_sources(model.config)
    tokens, scores = by_greedy(model, sources)
    loaded = load(model, tmp_path)
    pieces, exported_scores = search(loaded, sources, config, beam_size=1, length_penalty=0)
    assert pieces == pieces_of(tokens, config)
    np.testing.assert_allclose(exported_scores, scores, rtol=1e-5, atol=1e-5)
    assert len(np.unique(np.round(scores, 3))) > 20  # they depend on the source


@pytest.mark.slow
@pytest.mark.long
def test_t5_distances_of_long_texts_give_the_same(tmp_path):
    """Also those beyond the largest distance of a bucket, in both stacks."""
    model = random_model(position="t5", max_length=320, norm="pre", score="dot_product")
    words = [word for word in range(19) if word not in (0, 2, 3)]
    sources = np.zeros((2, 300), "int32")
    for row, length in zip(sources, (300, 171), strict=True):
        row[:length] = [*np.random.default_rng(length).choice(words, length - 1), 3]
    tokens, scores = tf.function(lambda: by_greedy(model, sources, max_length=290))()
    options = {"beam_size": 1, "length_penalty": 0, "max_decoding_length": 290}
    outputs, exported = search(load(model, tmp_path), sources, model.config, **options)
    assert outputs == pieces_of(tokens, model.config) and max(map(len, outputs)) == 290
    np.testing.assert_allclose(exported, scores, rtol=1e-5)


LANGUAGE_MODELS = [
    {"norm": "pre", "position": "learned", "activation": "gelu_tanh", "attention_bias": True},
    {"num_heads": 4, "num_key_value_heads": 2, "d_k": 6, "d_v": 6, "position": "rotary",
     "norm": "pre", "normalization": "rms", "feed_forward": {"kind": "gated", "bias": False},
     "activation": "silu", "tie": "none", "embedding_scale": 1.0},
    {"position": "alibi", "tie": "none", "output_bias": True},
    {"position": "relative", "embedding_norm": True, "pad_id": 4, "bos_id": 2, "eos_id": 2},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("changes", LANGUAGE_MODELS, ids=["gpt2", "llama", "alibi", "relative"])
def test_every_kind_of_language_model_gives_the_same(changes, tmp_path):
    """An output begins with its prompt; the score is that of the continuation."""
    config = LanguageModelConfig(**small_fields(LanguageModelConfig, **changes))
    model = randomise(LanguageModel(config))
    sources = random_sources(config)
    sources[-1] = [config.tokens.eos_id, *[config.tokens.pad_id] * 13]  # an empty prompt
    tokens, scores = tf.function(lambda: by_greedy(model, sources))()
    make_spec(model, PIECES, PIECES, 1, 29).save(str(tmp_path))
    loaded = ctranslate2.Generator(str(tmp_path), intra_threads=1)
    prompts = [[PIECES[config.tokens.bos_id], *text] for text in texts_of(sources, config)]
    options = {"return_scores": True, "return_end_token": True, "max_length": 29}
    results = loaded.generate_batch(prompts, beam_size=1, length_penalty=0, **options)
    assert [result.sequences[0] for result in results] == pieces_of(tokens, config)
    exported = [result.scores[0] for result in results]
    np.testing.assert_allclose(exported, scores, rtol=1e-5, atol=1e-5)
    assert len(np.unique(np.round(scores, 3))) > 20  # they depend on the prompt


@pytest.mark.slow
def test_a_beam_gives_the_same(
    tmp_path, seed=2, eos=1.0, norm="post", normalization="none", length_penalty=1e-09
):
    """Except if the limit came before the end: see `export_ctranslate2`."""
    model = model_that_ends(seed, eos, norm=norm)
    config, sources = model.config, random_sources(model.config)
    decode = tf.function(lambda: by_beam(model, sources, normalization=normalization))
    tokens, scores = decode()
    loaded = load(model, tmp_path)
    outputs, exported_scores = search(
        loaded, sources, config, beam_size=4, length_penalty=length_penalty
    )
    ended = [output[-1] == PIECES[config.tokens.eos_id] for output in outputs]
    assert sum(ended) > 10 and len({tuple(output) for output in outputs}) > 9
    for row, mine in enumerate(pieces_of(tokens[:, 0], config)):
        if ended[row]:
            assert outputs[row] == mine
            assert exported_scores[row] == pytest.approx(float(scores[row, 0]), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("normalization", "length_penalty"), [("none", 1e-9)], ids=str)
def test_a_beam_after_a_forced_token_gives_the_same(normalization, length_penalty, tmp_path):
    """Except in sentences with an output that ends after the token, which CTranslate2 drops."""
    model = model_that_ends(0, -1.0, norm="pre", forced_bos_id=7)
    config, sources = model.config, random_sources(model.config, 100)
    options = {"n_best": 4, "normalization": normalization}
    tokens, scores = tf.function(lambda: by_beam(model, sources, **options))()
    found, exported = search(
        load(model, tmp_path),
        sources,
        config,
        beam_size=4,
        length_penalty=length_penalty,
        target_prefix=[[PIECES[7]]] * len(sources),
    )
    dropped = ((tokens.numpy() != config.tokens.pad_id).sum(axis=2) == 2).any(axis=1)
    ended = np.array([output[-1] == PIECES[config.tokens.eos_id] for output in found])
    rows = np.flatnonzero(ended & ~dropped)
    assert len(rows) > 40 and 0 < dropped.sum() < 5
    mine = pieces_of(tokens[:, 0], config)
    assert [found[row] for row in rows] == [mine[row] for row in rows]
    np.testing.assert_allclose(np.array(exported)[rows], scores[:, 0].numpy()[rows], atol=1e-5)


@pytest.mark.slow
def test_with_a_length_penalty_of_zero_ctranslate2_does_not_stop(tmp_path):
    """Hence `normalization="none"` becomes 1e-9 there: with 0 another stopping rule applies."""
    model = model_that_ends(3, 9, sharpness=6, norm="pre")
    config, sources = model.config, random_sources(model.config)
    _, scores = tf.function(lambda: by_beam(model, sources, normalization="none"))()
    loaded = load(model, tmp_path)
    outputs, equal = search(loaded, sources, config, beam_size=4, length_penalty=1e-9)
    _, longer = search(loaded, sources, config, beam_size=4, length_penalty=0)
    ended = np.array([output[-1] == PIECES[config.tokens.eos_id] for output in outputs])
    np.testing.assert_allclose(np.array(equal)[ended], scores[:, 0][ended], atol=1e-4)
    assert (np.array(longer) > np.array(equal) + 0.01)[ended].sum() > 5


def test_the_defaults_of_ctranslate2_do_not_fail(tmp_path):
    """They allow more tokens than the model's limit of 29, so it has positions for them."""
    loaded = load(random_model(), tmp_path)
    assert loaded.translate_batch([PIECES[5:] * 4])[0].hypotheses[0]


def test_the_defaults_for_special_tokens_are_those_of_the_model(tmp_path):
    load(random_model(pad_id=4, bos_id=0, eos_id=2), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert {name: config[name] for name in config if name.endswith("_token")} == {
        "bos_token": "piece 0",
        "decoder_start_token": "piece 0",
        "unk_token": "piece 1",
        "eos_token": "piece 2",
    }
    assert config["add_source_eos"] and config["layer_norm_epsilon"] == 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        slow(
            {"activation": "leaky_relu"},
            "activations relu, gelu, gelu_tanh, silu, tanh, sigmoid. This model has leaky_relu",
        ),
        (
            {"tie": "none", "target_vocab_size": 23},
            "23 target tokens, but its vocabulary names only 19",
        ),
        slow({"decoder": "ssru"}, "cannot express a decoder of SSRUs"),
        slow({"mixer": "gru"}, "cannot express an encoder of GRUs"),
        (
            {"position": "rotary", "d_k": 6, "score": "general"},
            "cannot express general scores of rotary positions",
        ),
        slow({"position": "alibi"}, "cannot express alibi positions of an encoder"),
        ({"score": "additive"}, "cannot express additive scores"),
        slow({"final_norm": True}, "cannot express a final norm after post-norm blocks"),
        (
            {"encoder": {"normalization": LayerNorm(1e-5)}},
            "normalisations that differ in `epsilon`",
        ),
        slow({"window": 4}, "cannot express local attention"),
        (
            {"encoder": {"query_key_norm": "layer", "d_k": 6, "d_v": 6}},
            "cannot express layer normalisation of queries and keys",
        ),
        slow(
            {"encoder": {"query_key_norm": "rms", "d_k": 6, "d_v": 4}},
            r"cannot express normalised heads of two sizes \(`query_key_norm`\)",
        ),
        (
            {"encoder": {"query_key_norm": "rms", "score": "general", "d_k": 6, "d_v": 6}},
            r"cannot express general scores of normalised queries \(`query_key_norm`\)",
        ),
        slow(
            {"query_key_norm": "rms", "d_k": 6, "d_v": 6},
            r"cannot express normalised queries and keys of cross-attention \(`query_key_norm`\)",
        ),
        ({"norm": PreNorm(first=False)}, "cannot express a first block without its first"),
        ({"cross_attention": {"num_heads": 1}}, "cannot express `cross_attention`"),
    ],
)
def test_options_that_ctranslate2_does_not_support_are_reported(changes, message):
    with pytest.raises(ExportError, match=message):
        make_spec(Transformer(small_config(**changes)), PIECES, PIECES, 1, 29)


def test_an_option_that_is_not_known_is_refused_by_name(monkeypatch):
    """So is one that blocks get later."""
    monkeypatch.setattr(expressible, "EXPRESSED", expressible.EXPRESSED - {"normalization"})
    check_expressible(small_config(position="t5"))
    with pytest.raises(ExportError, match=r"cannot express `normalization`\.$"):
        check_expressible(small_config(normalization="rms"))
    monkeypatch.setitem(expressible.POSITIONS, "t5", ("distance", "buckets"))
    with pytest.raises(ExportError, match=r"cannot express T5Bias\(shared=True\) positions\.$"):
        check_expressible(small_config(position=T5Bias(shared=True)))


def test_tokens_need_different_names():
    names = [*PIECES[:-1], PIECES[5]]
    with pytest.raises(ExportError, match=r"different names .* of this model: 'piece 5'\.$"):
        make_spec(Transformer(small_config()), names, names, 1, 29)
