"""Sentence encoders: pooling and unit length around the encoders of the other tests."""

import json

import bert_folders
import bert_in_numpy
import distilbert_folders
import distilbert_in_numpy
import encoder_folders
import encoders_in_numpy
import numpy as np
import pytest
import roberta_folders

from keras_transformer import from_pretrained
from keras_transformer.pipelines import Embedder
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.text.prompts import TextPrompts
from keras_transformer.training.converted import write_converted

KIND = "sentence_transformers.models."
MEAN, CLS, MAX = "pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_max_tokens"
CONFIG = "config_sentence_transformers.json"
ALL = (MEAN, CLS, MAX, "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_lasttoken")


def add_modules(folder, pooling=(MEAN,), kinds=("Transformer", "Pooling", "Normalize"), **first):
    """Adds the files of a sentence encoder to a folder with its encoder."""
    modules = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": KIND + kind}
        for n, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    flags = {"word_embedding_dimension": 24, **{name: name in pooling for name in ALL}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags))
    if first:
        (folder / "sentence_bert_config.json").write_text(json.dumps(first))


def vectors_of(hidden, real, pooling, normalize):
    """Pools hidden states `[B, S, D]` one text at a time."""
    rows = []
    for states, kept in zip(hidden, real, strict=True):
        states = states[kept]
        pool = {MEAN: lambda x: x.sum(0) / len(x), CLS: lambda x: x[0], MAX: lambda x: x.max(0)}
        row = pool[pooling](states)
        rows.append(row / np.sqrt((row**2).sum()) if normalize else row)
    return np.array(rows)


def bert(folder):
    settings, tensors = bert_folders.write_folder(folder, **bert_folders.PLAIN)
    ids, types = bert_folders.random_rows(settings)
    return ids, ids != 0, bert_in_numpy.forward(tensors, settings, ids, types)[0]


def distilbert(folder):
    changes = {"architectures": ["DistilBertModel"]}
    settings, tensors = distilbert_folders.write_folder(folder, **changes)
    ids, _ = bert_folders.random_rows(settings)
    return ids, ids != 0, distilbert_in_numpy.forward(tensors, settings, ids)[0]


def roberta(folder):
    settings, tensors = roberta_folders.write_folder(folder, architectures=["RobertaModel"])
    ids = roberta_folders.random_rows(settings)
    return ids, ids != 1, roberta_folders.forward(tensors, settings, ids)[0]


def mpnet(folder):
    settings, tensors = encoder_folders.write_folder(folder, "mpnet", "Model")
    ids, types = encoder_folders.random_rows(settings, (15, 5, 2))
    return ids, ids != 1, encoders_in_numpy.forward(tensors, settings, ids, types)[0]


@pytest.mark.parametrize(
    ("encoder", "pooling", "normalize"),
    [
        (mpnet, MEAN, True),
        (bert, MEAN, True),
        (bert, CLS, False),
        (distilbert, MEAN, False),
        (roberta, MAX, True),
    ],
)
def test_vectors_equal_those_of_the_reference(tmp_path, encoder, pooling, normalize):
    folder = tmp_path / "checkpoint"
    ids, real, hidden = encoder(folder)
    kinds = ("Transformer", "Pooling", "Normalize")[: 3 if normalize else 2]
    add_modules(folder, (pooling,), kinds, max_seq_length=15, do_lower_case=False)
    checkpoint = read_checkpoint(folder)
    assert checkpoint.task == "embedding" and checkpoint.notes == []
    assert checkpoint.model.config.max_length == 15
    expected = vectors_of(hidden, real, pooling, normalize)
    np.testing.assert_allclose(checkpoint.model(ids), expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_converted_run_embeds_texts_and_cuts_them_as_the_checkpoint_does(tmp_path):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder, max_seq_length=6)
    (folder / "config_sentence_transformers.json").write_text('{"default_prompt_name": null}')
    pipeline = open_run(write_converted(read_checkpoint(folder), tmp_path / "run").path)
    assert isinstance(pipeline, Embedder)
    texts = ["the film is good", "the film is good , not bad"]
    results = pipeline.answer(texts)
    assert [result.truncated for result in results] == [False, True]
    # Both are [CLS], the first words and [SEP].
    (whole,) = pipeline.embed(["the film is good"])
    np.testing.assert_allclose(results[1].values, whole, atol=1e-6)
    np.testing.assert_array_equal(pipeline.embed(texts), from_pretrained(folder).embed(texts))


def test_the_newer_name_of_the_pooling_is_read(tmp_path):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    assert read_checkpoint(folder).model.config.head.pooling == "first"


@pytest.mark.parametrize(
    ("of_module", "of_tokenizer", "expected"),
    [
        (None, "9", 9),  # as version 6 of sentence-transformers writes it
        (7, "9", 7),
        (9, "7", 9),  # as it reads both
        (None, "1000000000000000019884624838656", None),
        (None, "1e30", None),
        (None, "null", None),
    ],
)
def test_the_limit_may_be_that_of_the_tokenizer(tmp_path, of_module, of_tokenizer, expected):
    folder = tmp_path / "checkpoint"
    bert(folder)
    whole = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    add_modules(folder, **({} if of_module is None else {"max_seq_length": of_module}))
    (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {of_tokenizer}}}')
    assert read_checkpoint(folder).model.config.max_length == (expected or whole)


@pytest.mark.slow
def test_prompts_are_kept_in_the_run(tmp_path):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder)
    texts = {"query": "the film ", "document": ""}
    settings = {"prompts": texts, "default_prompt_name": None}
    (folder / CONFIG).write_text(json.dumps(settings))
    checkpoint = read_checkpoint(folder)
    assert checkpoint.prompts == TextPrompts(texts)
    run = write_converted(checkpoint, tmp_path / "run")
    assert run.read_prompts() == TextPrompts(texts)
    pipeline = Embedder.from_run(run.path)
    expected = pipeline.embed(["the film is good", "the film is bad"])
    found = pipeline.embed(["is good", "is bad"], prompt="query")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    (folder / CONFIG).write_text(json.dumps({**settings, "default_prompt_name": "query"}))
    assert read_checkpoint(folder).prompts.text == "the film "
    np.testing.assert_allclose(from_pretrained(folder).embed(["is good"]), expected[:1], atol=1e-6)
    (folder / CONFIG).write_text('{"prompts": {"query": "", "document": ""}}')
    assert read_checkpoint(folder).prompts is None


def replaced(folder, name, content):
    (folder / name).write_text(content)


BROKEN = {
    "other module": (
        lambda folder: add_modules(folder, kinds=("Transformer", "Pooling", "CNN")),
        "must be Transformer, Pooling and, optionally, Dense.* Received: Transformer, Pooling, CNN",
    ),
    "no pooling": (
        lambda folder: add_modules(folder, kinds=("Transformer",)),
        "modules.json: the modules must be .* Received: Transformer.",
    ),
    "two poolings": (
        lambda folder: add_modules(folder, (MEAN, CLS)),
        "1_Pooling/config.json: exactly one of .* must be true. Received: .*mean_tokens, .*cls",
    ),
    "square root": (
        lambda folder: add_modules(folder, ("pooling_mode_mean_sqrt_len_tokens",)),
        "exactly one of .* must be true. Received: pooling_mode_mean_sqrt_len_tokens.",
    ),
    "newer": (
        lambda folder: replaced(folder, "1_Pooling/config.json", '{"pooling_mode": "weighted"}'),
        "`pooling_mode` must be one of mean, max, cls, lasttoken. Received: 'weighted'.",
    ),
    "no file": (
        lambda folder: (folder / "1_Pooling" / "config.json").unlink(),
        "1_Pooling/config.json is missing.",
    ),
    "default prompt": (
        lambda folder: replaced(
            folder, "config_sentence_transformers.json", '{"default_prompt_name": "query"}'
        ),
        "`default_prompt_name` must be null, without `prompts`. Received: 'query'.",
    ),
    "other default prompt": (
        lambda folder: replaced(
            folder, CONFIG, '{"default_prompt_name": "a", "prompts": {"b": ""}}'
        ),
        "`default_prompt_name` must be one of b, or null. Received: 'a'.",
    ),
    "prompts": (
        lambda folder: replaced(folder, CONFIG, '{"prompts": {"query": 3}}'),
        "config_sentence_transformers.json: `prompts` must be texts by name.",
    ),
    "prompt without a name": (
        lambda folder: replaced(folder, CONFIG, '{"prompts": {"": "query: "}}'),
        "config_sentence_transformers.json: `prompts` must be texts by name.",
    ),
    "pooling without the prompt": (
        lambda folder: replaced(
            folder, "1_Pooling/config.json", '{"pooling_mode": "mean", "include_prompt": false}'
        ),
        "1_Pooling/config.json: `include_prompt` must be true or null. Received: False.",
    ),
    "length": (
        lambda folder: replaced(folder, "sentence_bert_config.json", '{"max_seq_length": 1}'),
        "`max_seq_length` must be a whole number of at least 2. Received: 1.",
    ),
    "length of the tokenizer": (
        lambda folder: replaced(folder, "tokenizer_config.json", '{"model_max_length": "9"}'),
        "tokenizer_config.json: `model_max_length` must be a whole number of at least 2.",
    ),
    "object": (
        lambda folder: replaced(folder, "modules.json", "{}"),
        "modules.json must contain a JSON array. Received: dict.",
    ),
    "no type": (
        lambda folder: replaced(folder, "modules.json", '[{"path": ""}]'),
        "modules.json: module 0 must have a `type` and a `path`, strings.",
    ),
    "outside": (
        lambda folder: replaced(
            folder,
            "modules.json",
            (folder / "modules.json").read_text().replace("1_Pooling", "../other"),
        ),
        "is a link to a file outside|config.json is missing",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_other_modules_and_damaged_files_are_refused(tmp_path, case):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text(json.dumps({MEAN: True}))
    change, message = BROKEN[case]
    change(folder)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(folder)
    assert "\n" not in str(error.value)


def test_lower_case_of_a_tokenizer_with_case_is_refused(tmp_path):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder, do_lower_case=True)
    read_checkpoint(folder)  # the tokenizer of this folder does it as well
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with pytest.raises(ValueError, match="`do_lower_case` must be false, or the tokenizer must do"):
        read_checkpoint(folder)
