"""SPLADE: heads for masked tokens of all families, pooled, in the formats in which they exist."""

import json

import bert_folders
import llama_folders
import numpy as np
import pytest
from click.testing import CliRunner
from marks import slow
from masked_heads import KINDS, forward, random_rows, write_folder

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.pipelines import SparseEmbedder
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run

OLD = "sentence_transformers.sparse_encoder.models."
TASK = "sparse_embedding"


def add_modules(folder, kinds=("MLMTransformer", "SpladePooling"), of_all=None, **settings):
    """Adds the files of sentence-transformers to a folder with an encoder."""
    rows = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": OLD + kind}
        for n, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_SpladePooling").mkdir(exist_ok=True)
    (folder / "1_SpladePooling" / "config.json").write_text(json.dumps(settings))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(of_all or {}))


def weights_of(logits, real, pooling="max", double=False):
    """The weights `[B, V]`, one text at a time, in float64."""
    rows = []
    for values, kept in zip(logits, real, strict=True):
        values = np.log(1 + np.maximum(values[kept], 0))
        values = np.log(1 + values) if double else values
        rows.append(values.max(0) if pooling == "max" else values.sum(0))
    return np.array(rows)


@pytest.mark.parametrize(
    ("kind", "tied"),
    [
        ("distilbert", True),
        *(slow(kind, True) for kind in KINDS if kind != "distilbert"),
        slow("modernbert", False),
    ],
)
def test_a_masked_language_model_may_be_read_as_splade(kind, tied, tmp_path):
    settings, tensors = write_folder(tmp_path, kind, tied)
    checkpoint = read_checkpoint(tmp_path, task=TASK)
    assert checkpoint.task == TASK and not checkpoint.notes
    assert read_checkpoint(tmp_path).task == "masked_language_modelling"
    ids, types = random_rows(kind, settings)
    logits = forward(kind, tensors, settings, ids, types)
    expected = weights_of(logits, ids != settings["pad_token_id"])
    np.testing.assert_allclose(checkpoint.model(ids), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("first", "settings", "pooling", "double"),
    [
        (
            "MLMTransformer",
            {"pooling_strategy": "sum", "embedding_dimension": 7},
            "sum",
            False,
        ),
        slow("Transformer", {"activation_function": "log1p_relu"}, "max", True),
    ],
)
def test_folders_of_sentence_transformers(first, settings, pooling, double, tmp_path):
    theirs, tensors = write_folder(tmp_path, "bert")
    prompts = {"query": "the film ", "document": ""}
    add_modules(tmp_path, (first, "SpladePooling"), {"prompts": prompts}, **settings)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 15}')
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.task == TASK and checkpoint.model.config.max_length == 15
    assert read_checkpoint(tmp_path, task=TASK).task == TASK
    assert checkpoint.prompts.texts == prompts
    ids, types = random_rows("bert", theirs)
    logits = forward("bert", tensors, theirs, ids, types)
    expected = weights_of(logits, ids != 0, pooling, double)
    np.testing.assert_allclose(checkpoint.model(ids), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("kinds", "settings", "message"),
    [
        (("Router",), {}, "must be Transformer, Pooling .* and SpladePooling. Received: Router."),
        (("Transformer", "Pooling", "SparseAutoEncoder"), {}, "Received: .*, SparseAutoEncoder."),
        (("SparseStaticEmbedding",), {}, "Received: SparseStaticEmbedding."),
        (("MLMTransformer", "SpladePooling", "Normalize"), {}, "Pooling, Normalize."),
        (("MLMTransformer", "SpladePooling"), {"pooling_strategy": "mean"},
         "`pooling_strategy` must be one of max, sum"),
        (("MLMTransformer", "SpladePooling"), {"activation_function": "tanh"},
         "`activation_function` must be one of relu, log1p_relu"),
    ],
)  # fmt: skip
def test_other_modules_and_settings_are_refused_by_name(kinds, settings, message, tmp_path):
    write_folder(tmp_path, "bert")
    add_modules(tmp_path, kinds, **settings)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


def test_a_checkpoint_without_a_head_for_masked_tokens_is_refused(tmp_path):
    bert_folders.write_folder(tmp_path, **bert_folders.PLAIN)
    message = "`architectures` must be BertForMaskedLM for sparse vectors. Received: .*BertModel"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path, task=TASK)
    add_modules(tmp_path)
    with pytest.raises(ValueError, match=message):
        read_checkpoint(tmp_path)
    llama_folders.write_folder(tmp_path / "llama", "qwen3")
    with pytest.raises(ValueError, match="`task` must be language_modelling, that of the check"):
        read_checkpoint(tmp_path / "llama", task=TASK)
    add_modules(tmp_path / "llama", ("Transformer", "SpladePooling"))
    with pytest.raises(ValueError, match="needs an encoder with a head for masked tokens. Rec"):
        read_checkpoint(tmp_path / "llama")


@pytest.mark.slow
def test_the_commands_convert_and_print_weights(tmp_path):
    write_folder(tmp_path / "hf", "distilbert")
    run = str(tmp_path / "run")
    arguments = ["convert", "hf", str(tmp_path / "hf"), run, "--task"]
    done = CliRunner().invoke(cli, [*arguments, "translation"])
    assert "`task` must be masked_language_modelling, that of the checkpoint" in done.output
    done = CliRunner().invoke(cli, [*arguments, TASK])
    assert done.exit_code == 0, done.output
    text = "the film is good"
    done = CliRunner().invoke(cli, ["predict", run, "--max-active", "3"], input=f"{text}\n\n")
    assert done.exit_code == 0, done.output
    line, empty = done.stdout.splitlines()
    pipeline = from_pretrained(tmp_path / "hf", task=TASK)
    assert isinstance(pipeline, SparseEmbedder) and empty == ""
    assert line == pipeline.with_settings(max_active=3)(text)
    assert open_run(run)(text) == pipeline(text)
