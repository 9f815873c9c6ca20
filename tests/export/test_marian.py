"""Our models in Marian's file format: read by an independent reference, or refused by name."""

import dataclasses
import functools
import json
import types

import marian_models
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from marian_models import IDS
from marian_reference import Marian, SaturatingMarian
from marks import long, slow
from searching import by_greedy
from support import listing, randomise

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Constraints, Shortlist
from keras_transformer.export import MarianOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.marian import export as module
from keras_transformer.export.marian.arrays import cut_shortlist
from keras_transformer.export.marian.calibration import find_multipliers
from keras_transformer.export.marian.export import export_marian
from keras_transformer.feed_forwards import Plain
from keras_transformer.mixers import CrossAttention
from keras_transformer.norms import LayerNorm
from keras_transformer.positions import Sinusoidal
from keras_transformer.pretrained.files.marian.binary import read_bin
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tokenizers import SentencePieceTokenizer

STUDENT = {
    "vocab_size": 48, "num_layers": 2, "num_decoder_layers": 1, "d_model": 16, "d_ff": 24,
    "num_heads": 2, "max_length": 12, "dropout": 0.0, "decoder": "ssru", "decoder_start": "zeros",
    "attention_bias": True, "output_bias": True, 
    "position": Sinusoidal("halves", endpoint=True),
}  # fmt: skip
VARIANTS = {
    "student": {},
    "self_attention": {"decoder": "self_attention", "num_decoder_layers": 2},
    "without_biases": {
        **{"attention_bias": False, "output_bias": False},
        **{"feed_forward": Plain(bias=False)},
    },
    "swish": {"activation": "silu", "banned_ids": (7, 9)},
    "two_vocabularies": {"tie": "target", "target_vocab_size": 40},
    "nothing_tied": {"tie": "none"},
}
SENTENCES = marian_models.sentences(9)


@functools.cache
def tokenizer(size=48):
    return SentencePieceTokenizer(marian_models.vocabulary(size, **IDS))


@functools.cache
def translator(**changes):
    config = TransformerConfig(**{**STUDENT, **changes})
    model = randomise(Transformer(config))
    for weight in model.weights:
        if weight.path.endswith("query/kernel"):
            weight.assign(4 * weight)
    return Translator(model, (tokenizer(config.tokens.vocab_size), tokenizer(config.output_size)))


def settings_of(path):
    arrays = dict(np.load(path))
    text = bytes(arrays.pop("special:model.yml"))
    assert text.endswith(b"\0")
    return arrays, yaml.safe_load(text[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "student",
        long("self_attention"),
        long("without_biases"),
        long("swish"),
        long("two_vocabularies"),
        "nothing_tied",
    ],
)
def test_the_file_computes_in_marian_what_the_model_computes(tmp_path, name):
    ours = translator(**VARIANTS[name])
    report = export_marian(ours, tmp_path / "marian", SENTENCES)
    assert report["agreement"] == 1.0 and report["score_difference"] < 1e-4
    arrays, settings = settings_of(tmp_path / "marian" / "model.npz")
    marian = Marian(arrays, settings, np.float64, IDS["end"], IDS["unknown"])
    source, *_ = ours.encode(SENTENCES)
    config = ours.model.config
    banned = np.isin(np.arange(config.output_size), [IDS["unknown"]])
    tokens, _ = by_greedy(ours.model, source, constraints=Constraints(banned=banned))
    for row, found in zip(source.numpy(), tokens.numpy(), strict=True):
        expected, _ = marian.greedy(row[row != config.tokens.pad_id], config.max_length)
        assert found[found != config.tokens.pad_id].tolist() == expected
    lengths = {np.count_nonzero(row != config.tokens.pad_id) for row in tokens.numpy()}
    assert len(lengths) > 1 or lengths != {1}


@pytest.mark.slow
def test_the_folder_can_be_read_by_marian_and_browsers(tmp_path):
    path, ours = tmp_path / "marian", translator(d_model=64, d_ff=64)
    report = export_marian(ours, path, SENTENCES, MarianOptions("int8"))
    assert listing(path) == sorted(
        ["decoder.intgemm.yml", "decoder.yml", "metadata.json", "model.bin", "model.npz",
         "model.intgemm.alphas.bin", "vocab.spm"]
    )  # fmt: skip
    assert report["bytes"] == sum(file.stat().st_size for file in path.iterdir())
    assert json.loads((path / "metadata.json").read_text())["agreement"]["sentences"] == 9
    decoder = yaml.safe_load((path / "decoder.intgemm.yml").read_text())
    assert decoder["models"] == ["model.intgemm.alphas.bin"]
    assert decoder["vocabs"] == ["vocab.spm"] * 2
    assert decoder["gemm-precision"] == "int8shiftAlphaAll"
    assert decoder["max-length-factor"] == 3
    assert (path / "vocab.spm").read_bytes() == tokenizer().model
    arrays, settings = settings_of(path / "model.npz")
    floats = read_bin(path / "model.bin")
    for name, array in arrays.items():
        np.testing.assert_array_equal(floats[name], array)
    bias = arrays["decoder_ff_logit_out_b"][0]
    assert (bias[[0, 2]] == -1000).all() and (np.delete(bias, [0, 2]) > -10).all()
    assert settings["dim-vocabs"] == [48, 48]


def watched(arrays, settings, ours):
    """Returns the int8 multipliers, from the inputs of each product in the reference."""
    largest = {}

    class Watching(Marian):
        def product(self, x, name):
            largest.setdefault(name, []).append(np.abs(x).max())
            return super().product(x, name)

        def output(self, x):
            largest.setdefault("none", []).append(np.abs(x).max())
            return super().output(x)

    marian = Watching(arrays, settings, np.float64, IDS["end"], IDS["unknown"])
    for row in ours.encode(SENTENCES)[0].numpy():  # truncated at the maximum source length
        source = row[row != IDS["padding"]]
        marian.greedy(source, min(12, 3 * len(source)))  # Marian's own limit
    return {
        name: 127 / (np.mean(values) + 1.1 * np.std(values)) for name, values in largest.items()
    }


@pytest.mark.long
@pytest.mark.slow
def test_a_shortlist_is_exported_for_the_tokens_that_marian_has(tmp_path):
    lists = [[3, 5], [], [7], *[[number % 40, 4] for number in range(45)], []]
    offsets = np.cumsum([0, *map(len, lists)])
    ids = [token for row in lists for token in row]
    whole = Shortlist(first=4, best=2, offsets=offsets, ids=ids)
    export_marian(translator(), tmp_path / "first", SENTENCES)
    back = read_checkpoint(tmp_path / "first" / "model.npz")
    loaded = Translator(
        back.model, back.tokenizers, 12, whole
    )  # of 49 entries, the last of which is not a token
    report = export_marian(loaded, tmp_path / "second", SENTENCES)
    assert report["agreement"] == 1.0 and report["shortlist"]["first"] == 4
    written = Shortlist.read(tmp_path / "second" / "lex.s2t.bin")
    assert (written.vocab_size, written.first, written.best) == (48, 4, 2)
    assert written.ids.tolist() == ids
    decoder = yaml.safe_load((tmp_path / "second" / "decoder.yml").read_text())
    assert decoder["shortlist"] == ["lex.s2t.bin", False]
    lists[0] = [48]
    wrong = Shortlist(4, 2, np.cumsum([0, *map(len, lists)]), [i for row in lists for i in row])
    with pytest.raises(ExportError, match="tokens that Marian's vocabulary .*, 48 for example"):
        export_marian(loaded.with_shortlist(wrong), tmp_path / "third", SENTENCES)


def test_marian_can_read_a_shortlist_without_the_tokens_that_it_lacks():
    """No list may begin after the last id, and the last remaining token has no list."""
    made = types.SimpleNamespace(model=translator().model, tokenizers=translator().tokenizers)
    sizes = {"vocab_size": 49, "banned_ids": (48,)}
    made.model = types.SimpleNamespace(config=dataclasses.replace(made.model.config, **sizes))
    learned = Shortlist.from_counts([[5, 7, 2], [5, 9, 1]], 49, first=4, best=2)
    cut = cut_shortlist(learned, made)
    assert cut.vocab_size == 48 and cut.offsets[-2] < len(cut.ids)
    assert cut.ids.tolist() == [7, 9, 0] and Shortlist.from_bytes(cut.to_bytes()).best == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder", [long("ssru"), pytest.param("self_attention", marks=pytest.mark.slow)]
)
def test_the_multipliers_come_from_the_largest_activations(tmp_path, decoder):
    ours = translator(d_model=64, d_ff=64, decoder=decoder)
    export_marian(ours, tmp_path / "marian", SENTENCES, MarianOptions("int8"))
    arrays, settings = settings_of(tmp_path / "marian" / "model.npz")
    expected = watched(arrays, settings, ours)
    written = read_bin(tmp_path / "marian" / "model.intgemm.alphas.bin")
    found = {name for name in written if name.endswith("_QuantMultA")}
    assert found == {f"{name}_QuantMultA" for name in expected} | {"Wemb_QuantMultA"}
    for name, value in expected.items():
        np.testing.assert_allclose(written[f"{name}_QuantMultA"], [[value]], rtol=1e-5)
    table = written["Wemb_QuantMultA"]
    np.testing.assert_allclose(table.floats(), written["none_QuantMultA"], rtol=1e-6)


@pytest.mark.slow
def test_the_emulated_engine_nearly_equals_the_float_model(tmp_path):
    ours = translator(d_model=64, d_ff=64)
    export_marian(ours, tmp_path / "marian", SENTENCES, MarianOptions("int8"))
    arrays, settings = settings_of(tmp_path / "marian" / "model.npz")
    written = read_bin(tmp_path / "marian" / "model.intgemm.alphas.bin")
    engines = [
        Marian(arrays, settings, np.float32, IDS["end"], IDS["unknown"]),
        SaturatingMarian(written, settings, IDS["end"], IDS["unknown"]),
    ]
    source = ours.source_tokenizer.encode(SENTENCES[:1]).to_list()[0]
    floats, integers = (engine.step(None, 0, *engine.begin(source))[0] for engine in engines)
    likely = floats > -900
    error = np.abs(floats - integers)[likely]
    assert 0 < error.max() < 0.5, error.max()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        slow({"norm": "pre"}, r"`norm`=PreNorm\(\): it must be PostNorm\(\)"),
        slow(
            {
                "position": "rotary",
                "decoder": "self_attention",
            },
            r"`position`=Rotary\(\)",
        ),
        (
            {"position": "sinusoidal"},
            r"`position`=Sinusoidal\(\): it must be Sinusoidal\(layout='halves', endpoint=True\)",
        ),
        slow({"position": Sinusoidal("halves")}, r"`position`=Sinusoidal\(layout='halves'\)"),
        slow({"position": Sinusoidal("halves", True, 2)}, r"`position`=.*offset=2\): it must be"),
        ({"score": "dot_product"}, r"`score`=DotProduct\(\)"),
        slow({"decoder_start": "token"}, "`decoder_start`='token': it must be 'zeros'"),
        slow(
            {"normalization": LayerNorm(1e-5)},
            r".*=1e-05\): it must be LayerNorm\(\)",
        ),
        ({"embedding_scale": 1.0}, "`embedding_scale`=1.0"),
        slow({"d_k": 4}, "`d_k`=4: it must be None"),
        slow({"activation": "tanh"}, "`activation`='tanh': it must be 'relu' or 'silu' or 'gelu'"),
        ({"embedding_norm": True}, "`embedding_norm`=True"),
        slow({"final_norm": True}, "`final_norm`=True"),
        slow(
            {"activation": "gelu_tanh"}, "`activation`='gelu_tanh': it must be 'relu' or 'silu' or"
        ),
        ({"num_key_value_heads": 1}, "`num_key_value_heads`=1: it must be None"),
        slow({"attention_bias": ("key",)}, "`attention_bias`=.'key',.: it must be True"),
        ({"normalization": "rms"}, r"`normalization`=RMSNorm\(\): it must be LayerNorm\(\)"),
        slow({"normalization": LayerNorm(offset=False)}, r".*offset=False\): it must be"),
        slow({"window": 4, "decoder": "self_attention"}, r"`window`=LocalWindow\(size=4\): it"),
        slow(
            {"cross_attention": CrossAttention(num_heads=1), "decoder": "self_attention"},
            "`cross_attention`=Cross.*: it must be None, as in the encoder",
        ),
        slow(
            {"decoder": "ssru", "cross_attention": CrossAttention(num_heads=1)}, "`num_heads`=1: it"
        ),
        slow({"encoder": "gru"}, "`mixer`='gru': it must be 'self_attention' in the encoder"),
        ({"mixer": "gru", "position": "none", "norm": "pre"}, "`mixer`='gru': it must be 'self_"),
        ({"decoder": "lstm", "position": "none"}, "`mixer`='lstm': it must be 'self_.* or 'ssru'"),
        ({"feed_forward": "gated"}, r"`feed_forward`=Gated\(\): it must be Plain\(\)"),
        slow({"forced_eos_id": 3}, "`forced_eos_id`=3"),
        (
            {"suppressed_ids": (5,)},
            "`suppressed_ids` other than the unknown token. Received: \\(5,",
        ),
    ],
)
def test_options_that_marian_does_not_have_are_refused_by_name(tmp_path, changes, message):
    with pytest.raises(ExportError, match=f"Marian cannot express {message}"):
        export_marian(translator(**changes), tmp_path / "marian", SENTENCES)
    assert not (tmp_path / "marian").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "`d_model` must be a multiple of 64 .* Received: d_model=16"),
        ({"d_model": 64}, "`d_ff` must be a multiple of 64"),
        ({"d_model": 64, "d_ff": 64, "vocab_size": 44}, "must be a multiple of 8 .* Received: 44"),
        ({"d_model": 64, "d_ff": 64, "tie": "none"}, '`tie` must be "all"'),
        (
            {"d_model": 64, "d_ff": 64, "activation": "gelu"},
            r"`activation` must not be gelu.*, which computes x \* sigmoid\(1\.702 x\)",
        ),
    ],
)
def test_models_that_the_engine_does_not_compute_in_int8_are_refused_by_name(
    tmp_path, changes, message
):
    with pytest.raises(ExportError, match=message):
        export_marian(translator(**changes), tmp_path / "marian", SENTENCES, MarianOptions("int8"))


def test_wrong_arguments_are_reported(tmp_path):
    with pytest.raises(ValueError, match="`quantize` must be one of none, int8"):
        export_marian(translator(), tmp_path / "m", SENTENCES, MarianOptions("float16"))
    with pytest.raises(ValueError, match="`calibration` must contain at least one sentence"):
        export_marian(
            translator(), tmp_path / "m", SENTENCES, MarianOptions("int8"), calibration=[""]
        )
    with pytest.raises(ValueError, match="`calibration` has no effect"):
        export_marian(translator(), tmp_path / "m", SENTENCES, calibration=SENTENCES)
    with pytest.raises(ValueError, match="None of the 1 sentences holds a token"):
        find_multipliers(translator(), [""])
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").touch()
    with pytest.raises(ExportError, match="thesis.tex"):
        export_marian(translator(), tmp_path / "m", SENTENCES)


@pytest.mark.slow
def test_an_export_with_other_weights_is_not_kept(tmp_path, monkeypatch):
    def wrong(model, tokenizers):
        arrays = make(model, tokenizers)
        name = "decoder_l1_context_Wv"
        return {**arrays, name: -arrays[name]}

    make = module.make_arrays
    monkeypatch.setattr(module, "make_arrays", wrong)
    with pytest.raises(ExportError, match="differ from those of the model in memory"):
        export_marian(translator(), tmp_path / "marian", SENTENCES)
    assert not list(tmp_path.iterdir())


def test_an_incorrectly_written_export_is_not_kept(tmp_path, monkeypatch):
    def wrong(path, arrays):
        write_npz(path, {**arrays, "Wemb": arrays["Wemb"] + 1})

    monkeypatch.setattr(module, "write_npz", wrong)
    with pytest.raises(ExportError, match="model.npz, read again, differs from what was written"):
        export_marian(translator(), tmp_path / "marian", SENTENCES)


def test_a_full_disk_is_reported_in_one_line(tmp_path, full_disk):
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="File too large") as caught, full_disk(5_000):
        export_marian(translator(), tmp_path / "x", SENTENCES)
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == ["x"]


@pytest.mark.long
@pytest.mark.slow
def test_a_model_converted_from_marian_is_exported_unchanged(tmp_path):
    export_marian(translator(), tmp_path / "first", SENTENCES)
    back = read_checkpoint(tmp_path / "first" / "model.npz")
    export_marian(Translator(back.model, back.tokenizers, 12), tmp_path / "second", SENTENCES)
    for name in ("model.npz", "model.bin", "vocab.spm"):
        first, second = (tmp_path / side / name for side in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_the_gelu_of_old_marian_is_written_as_a_swish_for_every_version(tmp_path):
    options = marian_models.settings(
        dim_emb=64, transformer_dim_ffn=64, dim_vocabs=[40, 40], transformer_ffn_activation="gelu",
        version="v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800",
    )  # fmt: skip
    (tmp_path / "vocab.spm").write_bytes(marian_models.vocabulary(40))
    write_npz(tmp_path / "model.npz", marian_models.arrays(options))
    read = read_checkpoint(tmp_path / "model.npz", max_length=12)
    report = export_marian(
        Translator(*read[:2]), tmp_path / "out", SENTENCES, MarianOptions("int8")
    )
    assert report["agreement"] == 1 and "minimum_marian_version" not in report
    weights, written = settings_of(tmp_path / "out" / "model.npz")
    assert written["transformer-ffn-activation"] == "swish"
    theirs = Marian(marian_models.arrays(options), options, np.float64)
    ours = Marian(weights, written, np.float64)
    for row in read.tokenizers.source.encode(SENTENCES).to_list():
        np.testing.assert_allclose(ours.encode(row), theirs.encode(row), rtol=0, atol=1e-6)
        assert ours.greedy(row, 12)[0] == theirs.greedy(row, 12)[0]


@pytest.mark.slow
def test_an_export_with_gelu_names_the_oldest_version_that_computes_it(tmp_path):
    report = export_marian(translator(activation="gelu"), tmp_path / "out", SENTENCES)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert report["minimum_marian_version"] == metadata["minimum_marian_version"] == "1.12.3"
    _, written = settings_of(tmp_path / "out" / "model.npz")
    assert written["version"] == "v1.12.3 keras-transformer"
    read = read_checkpoint(tmp_path / "out" / "model.npz")
    assert (read.model.config.encoder.block.activation, read.notes) == ("gelu", [])


@pytest.mark.long
@pytest.mark.slow
def test_the_commands_convert_a_file_and_export_it_again(tmp_path):
    options = marian_models.settings(dim_emb=64, transformer_dim_ffn=64, dim_vocabs=[40, 40])
    write_npz(tmp_path / "model.npz", marian_models.arrays(options))
    (tmp_path / "vocab.spm").write_bytes(marian_models.vocabulary(40))
    (tmp_path / "lines").write_text("\n".join(SENTENCES))
    model, vocab, run, lines, out = (
        str(tmp_path / name) for name in ("model.npz", "vocab.spm", "run", "lines", "out")
    )
    command = ["convert", "marian", model, run, "--vocab", vocab, "--max-length", "15"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    done = CliRunner().invoke(cli, ["translate", run, "--input", lines])
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 9
    command = ["export", "marian", run, out, "--quantize", "int8", "--sentences", lines]
    done = CliRunner().invoke(cli, [*command, "--calibration", lines])
    assert done.exit_code == 0, done.output
    theirs = dict(np.load(tmp_path / "model.npz"))
    ours, _ = settings_of(tmp_path / "out" / "model.npz")
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name])
    command = ["export", "marian", run, out, "--sentences", lines, "--calibration", lines]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2 and "--calibration needs --quantize int8" in done.output
