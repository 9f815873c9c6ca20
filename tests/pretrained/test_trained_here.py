"""A model trained here, written as a Hugging Face checkpoint and converted back."""

import json

import numpy as np
import pytest
import safetensors.numpy
from click.testing import CliRunner
from exporting import asked
from small_runs import CONFIG, write_pairs, write_small_corpus

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.main import cli
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.litert.export import export_litert
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

pytestmark = pytest.mark.slow
MARIAN = """
attention_bias = true
output_bias = true
position = { kind = "sinusoidal", layout = "halves" }
normalization = { kind = "layer", epsilon = 0.00001 }
activation = "silu"
"""
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {
    "query": "q_proj", "key": "k_proj", "value": "v_proj", "output_projection": "out_proj",
}  # fmt: skip
NORMS = {**ATTENTIONS, "feed_forward": "final"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A translator that reverses digits, and pairs of numbers and their reverses."""
    folder = tmp_path_factory.mktemp("trained")
    write_small_corpus(folder)
    write_pairs(folder, "train", 1500, seed=1)
    for old, new in {
        "d_model = 16": "d_model = 64",
        "d_ff = 24": "d_ff = 64",
        "max_length = 20": f"max_length = 20{MARIAN}",
        "dropout = 0.2": "dropout = 0.0",
        "batch_tokens = 60": "batch_tokens = 400",
        "updates = 11": "updates = 400",
        "validate_every = 6": "validate_every = 400",
        "checkpoint_every = 2": "checkpoint_every = 400",
    }.items():
        assert old in CONFIG
        (folder / "config.toml").write_text(
            (folder / "config.toml").read_text().replace(old, new, 1)
        )
    train(load_settings(folder / "config.toml"), folder / "run")
    rows = np.random.default_rng(3).integers(0, 10, (60, 5))
    lines, references = (
        [*map("".join, row)] for row in (rows.astype(str), rows[:, ::-1].astype(str))
    )
    return Translator.from_run(folder / "run"), lines, references


def tensors_of(model):
    """Returns the weights by the names of the file, in PyTorch's orientation."""
    tensors = {
        "model.shared.weight": model.source_embedding.table.numpy(),
        "final_logits_bias": model.output_bias.numpy()[None],
    }

    def add_linear(name, layer):
        tensors[f"{name}.weight"] = np.ascontiguousarray(layer.kernel.numpy().T)
        tensors[f"{name}.bias"] = layer.bias.numpy()

    for stack in (model.encoder, model.decoder):
        for number, block in enumerate(stack.blocks):
            name = f"model.{stack.name}.layers.{number}"
            for ours, theirs in ATTENTIONS.items():
                if hasattr(block, ours):
                    for projection, short in PROJECTIONS.items():
                        layer = getattr(getattr(block, ours), projection)
                        add_linear(f"{name}.{theirs}.{short}", layer)
            add_linear(f"{name}.fc1", block.feed_forward.inner)
            add_linear(f"{name}.fc2", block.feed_forward.outer)
            for ours, theirs in NORMS.items():
                if hasattr(block, f"{ours}_norm"):
                    norm = getattr(block, f"{ours}_norm")
                    tensors[f"{name}.{theirs}_layer_norm.weight"] = norm.gamma.numpy()
                    tensors[f"{name}.{theirs}_layer_norm.bias"] = norm.beta.numpy()
    return tensors


def write_checkpoint(translator, folder):
    """Writes the checkpoint; padding and start keep their probability and are never emitted."""
    config, tokenizer = translator.model.config, translator.source_tokenizer
    settings = {
        "model_type": "marian",
        "vocab_size": config.tokens.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.num_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.encoder.block.attention.num_heads,
        "encoder_ffn_dim": config.encoder.block.d_ff,
        "max_position_embeddings": config.max_length,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": config.tokens.pad_id,
        "decoder_start_token_id": config.tokens.bos_id,
        "eos_token_id": config.tokens.eos_id,
        "bad_words_ids": [[config.tokens.pad_id], [config.tokens.bos_id]],
        "num_beams": 3,
        "length_penalty": 0.7,
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings))
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (folder / "source.spm").write_bytes(tokenizer.model)
    safetensors.numpy.save_file(tensors_of(translator.model), folder / "model.safetensors")


@pytest.fixture(scope="module")
def converted(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted")
    write_checkpoint(trained[0], folder / "hf")
    done = CliRunner().invoke(cli, ["convert", "hf", *map(str, (folder / "hf", folder / "run"))])
    assert done.exit_code == 0, done.output
    return Translator.from_run(folder / "run")


@pytest.mark.long
def test_it_translates_as_the_run_does_token_for_token(trained, converted):
    ours, lines, references = trained
    results = ours.score(lines, references)
    assert sum(pair.score for pair in results) > -sum(pair.tokens for pair in results), "trained"
    source = ours.encode(lines)[0]
    np.testing.assert_array_equal(converted.encode(lines)[0], source)
    assert converted.search == Beam(
        3, 0.7, normalization="power", extra_length=None, stopping="score"
    )
    for search in (Greedy(), converted.search):
        one, other = (search(side.model, source) for side in (ours, converted))
        np.testing.assert_array_equal(one.tokens, other.tokens)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)


@pytest.mark.long
def test_its_int8_file_passes_the_agreement_check(trained, converted, tmp_path):
    _, lines, references = trained
    options = {"references": references, "lengths": [20], "search": Greedy()}
    report = export_litert(
        converted, tmp_path / "x.tflite", lines, **asked(LiteRTOptions, "int8", **options)
    )
    assert report["score_loss"] < 0.1 and report["token_agreement"] > 0.8
    assert (tmp_path / "x.tflite").stat().st_size == report["bytes"]
