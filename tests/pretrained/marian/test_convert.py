"""Marian's models as Transformers: equal results, and refused files."""

import functools

import marian_models
import numpy as np
import pytest
from marian_reference import Marian
from marks import slow, slow_except
from searching import by_beam, by_greedy

from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.decoding import SearchOptions
from keras_transformer.pretrained.files.marian import gelu
from keras_transformer.pretrained.files.marian.arrays import SETTINGS, Quantized
from keras_transformer.pretrained.files.marian.binary import write_bin
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training.converted import settings_of
from keras_transformer.training.factory import model_config

VARIANTS = {
    "student": {},
    "self_attention": {"transformer_decoder_autoreg": "self-attention", "dec_depth": 2},
    "swish": {"transformer_ffn_activation": "swish"},
    "gelu": {
        "transformer_ffn_activation": "gelu", "transformer_heads": 4,
        "version": "v1.12.3 d225c24d 2023-03-01 13:48:09 +0000",
    },
    "old_gelu": {
        "transformer_ffn_activation": "gelu",
        "transformer_decoder_autoreg": "self-attention",
        "version": "v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800",
    },
    "two_vocabularies": {
        "dim_vocabs": [31, 37], "tied_embeddings_all": False, "tied_embeddings": True,
    },
    "nothing_tied": {"dim_vocabs": [37, 31], "tied_embeddings_all": False},
    "output_not_tied": {"tied_embeddings_all": False, "tied_embeddings_src": True},
    "no_dropout": {"transformer_postprocess": "an", "transformer_postprocess_emb": ""},
}  # fmt: skip
LIMIT = 9


def write_vocabularies(folder, options):
    sizes = list(dict.fromkeys(options["dim-vocabs"]))
    files = [folder / f"{size}.spm" for size in sizes]
    for file, size in zip(files, sizes, strict=True):
        file.write_bytes(marian_models.vocabulary(size))
    return files


def converted(folder, options, arrays=None, write=write_npz, suffix=".npz"):
    path = folder / f"model{suffix}"
    write(path, marian_models.arrays(options) if arrays is None else arrays)
    return read_checkpoint(path, vocabularies=write_vocabularies(folder, options))


@pytest.fixture(scope="module")
def variant(tmp_path_factory):
    @functools.cache
    def make(name):
        options = marian_models.settings(**VARIANTS[name])
        made = converted(tmp_path_factory.mktemp(name), options)
        return made, Marian(marian_models.arrays(options), options, np.float64)

    return make


def sources(made):
    return made.tokenizers.source.encode(marian_models.sentences()).to_list()


@pytest.mark.parametrize("name", slow_except(VARIANTS, "no_dropout"))
def test_log_probabilities_equal_those_of_marian(variant, name):
    made, marian = variant(name)
    target = np.array([[made.model.config.tokens.bos_id, 5, 9, 22, 7, 3]])
    for source in sources(made)[:2]:
        logits = made.model({"source": np.array([source]), "target": target}).numpy()[0]
        logits = logits.astype("float64")
        ours = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        heads, state = marian.begin(source)
        for index, last in enumerate([None, *target[0, 1:]]):
            expected, state = marian.step(last, index, heads, state)
            np.testing.assert_allclose(ours[index, : len(expected)], expected, atol=2e-5, rtol=0)
            assert (ours[index, len(expected) :] < -900).all()


@pytest.mark.parametrize("name", [slow("student"), "no_dropout"])
def test_searches_equal_those_of_marian(variant, name):
    made, marian = variant(name)
    rows = sources(made)
    pad_id = made.model.config.tokens.pad_id
    width = max(map(len, rows))
    batch = np.array([row + [pad_id] * (width - len(row)) for row in rows])
    assert any(3 * len(row) < LIMIT for row in rows)
    tokens, scores = by_greedy(made.model, batch, LIMIT)
    options = {"normalization": "power", "stopping": "narrow", "max_length": LIMIT}
    beams, ranked = by_beam(made.model, batch, 3, 3, 0.6, **options)
    for b, row in enumerate(rows):
        limit = min(LIMIT, 3 * len(row))  # Marian's own
        expected, total = marian.greedy(row, limit)
        assert [token for token in tokens[b].numpy() if token != pad_id] == expected
        assert abs(scores[b] - total) < 1e-4 * len(expected)
        hypotheses = marian.beam(row, 3, 0.6, limit)
        for n, (expected, _, score) in enumerate(hypotheses):
            assert tuple(token for token in beams[b, n].numpy() if token != pad_id) == expected
            assert abs(ranked[b, n] - score) < 1e-4


@pytest.mark.parametrize("name", ["student", "self_attention", "two_vocabularies"])
def test_training_continues_with_the_same_configuration(variant, name):
    made, _ = variant(name)
    config = made.model.config
    ours = model_config(settings_of(config, made.tokenizers), made.tokenizers)
    assert made.generation.configure(ours) == config


GELU = {"transformer_ffn_activation": "gelu"}


@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800", "sigmoid"),
        ("v1.12.2 a23cc77e 2023-02-27 20:01:02 +0000", "sigmoid"),
        ("v1.9.56 8b8b7e2 2021-04-01 10:00:00 +0100", "sigmoid"),
        ("v1.7.0+8b0cc0b 2018-12-01", "sigmoid"),
        ("v1.12.3 d225c24d 2023-03-01 13:48:09 +0000", "exact"),
        ("v1.12.42 b7be0e964 2025-05-24 22:34:42 -0700", "exact"),
        ("1.13.0", "exact"),
        ("v2.0.0", "exact"),
        ("keras-transformer", "exact"),
        ("v1.12.3 keras-transformer", "exact"),
    ],
)
def test_the_version_in_a_file_determines_its_gelu(version, form):
    settings = marian_models.settings(**GELU, version=version)
    assert gelu.form_of(settings, "a.npz") == (form, [])


def test_without_a_version_a_warning_names_the_option(tmp_path):
    made = converted(tmp_path, marian_models.settings(**GELU))
    assert made.model.config.encoder.block.activation == "gelu"
    assert made.notes == [
        f"{tmp_path}/model.npz: gelu is read as the exact GELU of Marian 1.12.3 and later, but the "
        "file names no `version` of Marian (it names none); if an older Marian trained the model, "
        "convert it with --gelu sigmoid"
    ]
    form, (note,) = gelu.form_of({**marian_models.settings(**GELU), "version": "mine"}, "a.npz")
    assert form == "exact" and "(it names 'mine')" in note


def test_an_option_overrides_the_gelu_of_the_version(tmp_path):
    options = marian_models.settings(**GELU, version="v1.12.42 b7be0e964 2025-05-24")
    vocabularies = write_vocabularies(tmp_path, options)
    write_npz(tmp_path / "a.npz", marian_models.arrays(options))
    made = read_checkpoint(tmp_path / "a.npz", vocabularies=vocabularies, gelu="sigmoid")
    old = converted(tmp_path, {**options, "version": "v1.12.0 65bf82ff 2023-02-21"})
    assert made.notes == old.notes == [] and made.model.config.encoder.block.activation == "silu"
    for one, other in zip(made.model.get_weights(), old.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="`gelu` must be exact or sigmoid. Received: gelu='tanh'"):
        read_checkpoint(tmp_path / "a.npz", vocabularies=vocabularies, gelu="tanh")
    write_npz(tmp_path / "a.npz", marian_models.arrays(marian_models.settings()))
    with pytest.raises(ValueError, match=r"`gelu` has no effect on .*a\.npz: its .* is relu\."):
        read_checkpoint(tmp_path / "a.npz", vocabularies=vocabularies, gelu="exact")


def test_the_outputs_of_the_variants_are_not_empty(variant):
    lengths = [
        len(variant(name)[1].greedy(row, LIMIT)[0]) for name in VARIANTS for row in ([5, 0],)
    ]
    assert max(lengths) > 2


def test_the_token_that_marian_does_not_have_is_never_emitted(variant):
    made, _ = variant("student")
    config = made.model.config
    assert config.tokens.pad_id == config.tokens.bos_id == 37
    assert (config.tokens.eos_id, config.head.rules.suppressed_ids, config.tokens.vocab_size) == (
        0,
        (1,),
        38,
    )
    tokenizer = made.tokenizers.source
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.eos_id) == (37, 1, 0)
    text = " ".join(marian_models.WORDS[:3])
    assert tokenizer.decode(tokenizer.encode([text])).numpy() == [text.encode()]
    for search in (Greedy(), Beam(3)):
        tokens = search(made.model, [[5, 7, 0]], SearchOptions(cache_length=LIMIT)).tokens.numpy()
        assert 1 not in tokens


def test_a_float_bin_file_gives_the_same_model(tmp_path, variant):
    ours, _ = variant("student")
    theirs = converted(tmp_path, marian_models.settings(), write=write_bin, suffix=".bin")
    for one, other in zip(ours.model.get_weights(), theirs.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_quantised_bin_file_gives_the_dequantised_values(tmp_path, variant):
    arrays = marian_models.arrays(marian_models.settings())
    for name, array in list(arrays.items()):
        if "_W" in name and "_ln_" not in name or name == "Wemb":
            arrays[name] = Quantized.of(array)
    ours, _ = variant("student")
    made = converted(tmp_path, marian_models.settings(), arrays, write_bin, ".bin")
    kernel = made.model.encoder.blocks[1].self_attention.query.kernel.numpy()
    np.testing.assert_array_equal(kernel, arrays["encoder_l2_self_Wq"].floats())
    expected = ours.model.encoder.blocks[1].self_attention.query.kernel.numpy()
    assert 0 < np.abs(kernel - expected).max() < np.abs(expected).max() / 200


def test_the_old_name_of_the_output_is_read(tmp_path, variant):
    options = marian_models.settings(**VARIANTS["nothing_tied"])
    arrays = marian_models.arrays(options)
    arrays["decoder_ff_logit_out_W"] = arrays.pop("decoder_ff_logit_out_Wt").T.copy()
    made, (expected, _) = converted(tmp_path, options, arrays), variant("nothing_tied")
    for one, other in zip(made.model.get_weights(), expected.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_output_weights_for_fewer_tokens_are_reported(tmp_path):
    options = marian_models.settings(**VARIANTS["nothing_tied"])
    arrays = marian_models.arrays(options)
    arrays["decoder_ff_logit_out_Wt"] = arrays["decoder_ff_logit_out_Wt"][:30]
    with pytest.raises(ValueError, match=r"out_Wt must have the shape \[31, 16\].* Received: \[30"):
        converted(tmp_path, options, arrays)


def test_without_a_bias_the_padding_token_also_has_no_probability(tmp_path):
    options = marian_models.settings(output_omit_bias=True)
    arrays = marian_models.arrays(options)
    bias = arrays.pop("decoder_ff_logit_out_b")
    inputs = {"source": np.array([[5, 7, 0]]), "target": np.array([[37, 5, 9]])}
    without = converted(tmp_path, options, arrays).model(inputs).numpy()
    arrays["decoder_ff_logit_out_b"] = bias
    expected = converted(tmp_path, marian_models.settings(), arrays).model(inputs).numpy()
    assert (without[..., 37] < -900).all()
    np.testing.assert_allclose(without[..., :37] + bias[0], expected[..., :37], atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "amun"}, "`type` must be transformer. Received: 'amun'"),
        ({"transformer_preprocess": "n"}, "`transformer-preprocess` must be ''"),
        ({"transformer_postprocess": "dah"}, "`transformer-postprocess` must be 'dan'"),
        ({"transformer_postprocess_emb": "dn"}, "`transformer-postprocess-emb` must be"),
        ({"transformer_ffn_activation": "tanh"}, "`transformer-ffn-activation` must be 'relu' or"),
        ({"transformer_decoder_autoreg": "average-attention"}, "`transformer-decoder-autoreg` m"),
        ({"dec_cell": "gru"}, "`dec-cell` must be 'ssru'. Received: 'gru'"),
        ({"transformer_tied_layers": [1, 1]}, "`transformer-tied-layers` must be"),
        (
            {"transformer_train_position_embeddings": True},
            "`transformer-train-position-embeddings`",
        ),
        ({"tied_embeddings": "no"}, "`tied-embeddings` must be true or false. Received: 'no'"),
        ({"dim_emb": None}, "`dim-emb` must be a whole number of at least 1. Received: nothing"),
        ({"enc_depth": 10**9}, "the tensor encoder_l1000000000_ffn_W1 is missing"),
        ({"dim_emb": 18}, r"encoder_l2_ffn_W1 must have the shape \[18, 24\]"),
        ({"dim_vocabs": [40, 40]}, "37.spm has 37 pieces, the model 40 entries"),
        ({"dim_vocabs": [37]}, "`dim-vocabs` must be the sizes of two vocabularies"),
        ({"dec_depth": 2}, "the tensor decoder_l2_ffn_W1 is missing"),
        ({"enc_depth": 1}, "Unused: encoder_l2_ffn_W1, encoder_l2_ffn_W2.* and 13 more"),
        ({"transformer_decoder_dim_ffn": 7}, "`transformer-decoder-dim-ffn` must be 0"),
    ],
)
def test_settings_that_cannot_be_expressed_are_reported(tmp_path, changes, message):
    arrays = marian_models.arrays(marian_models.settings())
    changed = marian_models.settings(**changes)
    arrays[SETTINGS] = marian_models.as_array(changed)
    files = write_vocabularies(tmp_path, marian_models.settings())
    write_npz(tmp_path / "model.npz", arrays)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path / "model.npz", vocabularies=files)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("Wemb"), "model.npz: the tensor (encoder_Wemb|Wemb) is missing"),
        (
            lambda arrays: arrays.update(Wemb=arrays["Wemb"][:30]),
            r"Wemb must have the shape \[37, 16\].* Received: \[30, 16\]",
        ),
        (lambda arrays: arrays.pop("decoder_l1_rnn_bf"), "decoder_l1_rnn_bf is missing"),
        (
            lambda arrays: arrays.update(decoder_l1_rnn_bf=np.zeros((1, 9), "float32")),
            r"decoder_l1_rnn_bf must have the shape \[1, 16\].* Received: \[1, 9\]",
        ),
        (
            lambda arrays: arrays.update(decoder_l1_rnn_bf=np.zeros(16, "float32")),
            r"decoder_l1_rnn_bf must have the shape \[1, 16\].* Received: \[16\]",
        ),
        (
            lambda arrays: arrays.update(decoder_l1_rnn_bf=np.zeros((2, 16), "float32")),
            r"decoder_l1_rnn_bf must have the shape \[1, 16\].* Received: \[2, 16\]",
        ),
        (
            lambda arrays: arrays.update(decoder_ff_logit_out_b=np.zeros((1, 30), "float32")),
            r"decoder_ff_logit_out_b must have the shape \[1, 37\].* Received: \[1, 30\]",
        ),
        (
            lambda arrays: arrays.update(more=np.zeros((1, 9), "float32")),
            r"every tensor must be used by the model\. Unused: more\.",
        ),
    ],
)
def test_missing_or_wrong_weights_are_reported(tmp_path, change, message):
    arrays = marian_models.arrays(marian_models.settings())
    change(arrays)
    with pytest.raises(ValueError, match=message):
        converted(tmp_path, marian_models.settings(), arrays)


def test_vocabularies_are_found_next_to_the_model(tmp_path):
    options = marian_models.settings(**VARIANTS["two_vocabularies"])
    path = tmp_path / "model.npz"
    write_npz(path, marian_models.arrays(options))
    with pytest.raises(ValueError, match="must have one vocabulary beside it.* Received: none"):
        from_pretrained(path)
    for name, size in (("trgvocab.spm", 37), ("srcvocab.spm", 31)):
        (tmp_path / name).write_bytes(marian_models.vocabulary(size))
    made = from_pretrained(path)
    assert made.source_tokenizer.model == marian_models.vocabulary(31)
    assert made.target_tokenizer.model == marian_models.vocabulary(37)
    (tmp_path / "more.spm").touch()
    with pytest.raises(ValueError, match="Received: srcvocab.spm, more.spm, trgvocab.spm"):
        from_pretrained(path)


def test_vocabularies_that_do_not_fit_are_reported(tmp_path):
    options = marian_models.settings()
    write_npz(tmp_path / "model.npz", marian_models.arrays(options))
    large = tmp_path / "large.spm"
    large.write_bytes(marian_models.vocabulary(41))
    with pytest.raises(ValueError, match="large.spm has 41 pieces, the model 37 entries"):
        read_checkpoint(tmp_path / "model.npz", vocabularies=[large])
    large.write_bytes(marian_models.vocabulary(31))
    with pytest.raises(ValueError, match="large.spm has 31 pieces, the model 37 entries"):
        read_checkpoint(tmp_path / "model.npz", vocabularies=[large])
    large.write_bytes(b"- a\n- b\n")
    with pytest.raises(ValueError, match="large.spm: `model` must be the bytes of a SentencePiece"):
        read_checkpoint(tmp_path / "model.npz", vocabularies=[large])
    with pytest.raises(ValueError, match="`vocabularies` must be one SentencePiece file"):
        read_checkpoint(tmp_path / "model.npz", vocabularies=[])


DECODERS = "model.npz.decoder.yml", "other.yml"


def with_decoders(folder, *contents):
    """Writes a model whose outputs need many tokens, with these files of its decoder."""
    options = marian_models.settings()
    write_npz(folder / "model.npz", marian_models.arrays(options))
    for name, content in zip(DECODERS, contents, strict=False):
        (folder / name).write_text(content)
    files = write_vocabularies(folder, options)
    return functools.partial(read_checkpoint, folder / "model.npz", vocabularies=files)


@pytest.mark.parametrize(
    ("content", "factor"),
    [
        (None, 3.0),  # Marian's default
        ("models: [model.npz]\nmax-length-factor: 2", 2.0),
        ("models: [/elsewhere/model.npz]\nmax-length-factor: 1.5", 1.5),
        ("models: [model.npz]", 3.0),
        ("models: [another.npz]\nmax-length-factor: 2", 3.0),
        ("models: model.npz\nmax-length-factor: 2", 3.0),
        ("a: [", 3.0),
        ("\x00", 3.0),
    ],
)
def test_the_limit_of_outputs_is_that_of_marians_decoder(tmp_path, content, factor):
    made = with_decoders(tmp_path, *([] if content is None else [content]))()
    assert (
        made.generation.rules.max_length_ratio
        == made.model.config.head.rules.max_length_ratio
        == factor
    )


def test_the_limit_may_be_in_the_model_or_an_option(tmp_path):
    options = marian_models.settings(max_length_factor=2.5)
    assert converted(tmp_path, options).generation.rules.max_length_ratio == 2.5
    vocabularies = write_vocabularies(tmp_path, options)
    path = tmp_path / "model.npz"
    made = read_checkpoint(path, vocabularies=vocabularies, max_length_ratio=1.5)
    assert made.model.config.head.rules.max_length_ratio == 1.5


@pytest.mark.parametrize("value", ["0", "-1", "three", ".inf", "true"])
def test_a_wrong_limit_is_reported(tmp_path, value):
    read = with_decoders(tmp_path, f"models: [model.npz]\nmax-length-factor: {value}")
    with pytest.raises(ValueError, match=r"decoder.yml: max-length-factor must be at least 0.1"):
        read()


def test_files_that_contradict_each_other_are_reported(tmp_path):
    lines = "models: [model.npz]\nmax-length-factor: {}"
    read = with_decoders(tmp_path, lines.format(2), lines.format(3))
    with pytest.raises(
        ValueError, match=r"npz.decoder.yml and .*other.yml .* 2 and 3.*--max-length-r"
    ):
        read()
    assert read(max_length_ratio=2).model.config.head.rules.max_length_ratio == 2
