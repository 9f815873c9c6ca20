"""GPT-2's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from gpt2_folders import (
    PIECES,
    SIZES,
    TEXTS,
    forward,
    ids_of,
    random_rows,
    write_folder,
    write_vocabulary,
)
from marks import slow_except

from keras_transformer import Greedy, from_pretrained
from keras_transformer.decoding import Sample
from keras_transformer.decoding.generation import Generation
from keras_transformer.export import SavedModelOptions, export_litert, export_saved_model
from keras_transformer.pipelines import TextGenerator
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_gpt2.py")
BUFFERS = {
    "h.0.attn.bias": np.zeros([1, 1, 3, 3], "float32"),
    "h.1.attn.masked_bias": np.zeros([1], "float32"),
}
END = SIZES["eos_token_id"]
KINDS = {
    "language model": {},
    "names of the first release": {"prefix": "", "more": BUFFERS},
    "body": {"prefix": "", "architectures": ["GPT2Model"]},
    "an inner width": {"n_inner": 34},
    "float16": {"dtype": "float16"},
    "relu": {"activation_function": "relu"},
    "output weights of its own": {"tie_word_embeddings": False},
}
CASES = {
    "small": {**{k: SIZES[k] for k in SIZES if k not in ("model_type", "architectures")}},
    "deeper": {
        **{k: SIZES[k] for k in SIZES if k not in ("model_type", "architectures")},
        "n_layer": 6,
        "n_inner": 50,
        "n_embd": 32,
        "n_head": 4,
    },
}


@pytest.mark.parametrize("kind", slow_except(KINDS, "body", "float16", "output weights of its own"))
def test_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, **KINDS[kind])
    model, ids = read_checkpoint(tmp_path).model, random_rows(settings)
    logits = model(ids, training=False).numpy()
    expected = forward(tensors, settings, ids)
    np.testing.assert_allclose(logits[..., :-1], expected, rtol=0, atol=1e-4)
    assert logits.shape[-1] == len(PIECES) + 1 and (logits[..., -1] < -900).all()


@pytest.mark.parametrize("by_name", [True, False])
def test_a_checkpoint_may_have_its_own_padding(by_name, tmp_path):
    """Its logits are those of the file, except that padding has no probability."""
    size, own = len(PIECES), {"pad_token": {"content": "<|pad|>"}}
    changes = {"vocab_size": size + 1, **({} if by_name else {"pad_token_id": size})}
    settings, tensors = write_folder(tmp_path, **changes)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<|pad|>": size}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(own))
    checkpoint, ids = read_checkpoint(tmp_path), random_rows(SIZES)
    assert (
        checkpoint.model.config.tokens.pad_id == size
        and checkpoint.model.config.tokens.vocab_size == size + 1
    )
    logits = checkpoint.model(ids, training=False).numpy()
    expected = forward(tensors, settings, ids)[..., :size]
    np.testing.assert_allclose(logits[..., :size], expected, rtol=0, atol=1e-4)
    assert (logits[..., size] < -900).all()


@pytest.mark.parametrize(
    "ends, expected", [(5, (5,)), ([5, 6], (5, 6)), ([END, 5], (5,)), (END, ())]
)
def test_every_end_token_of_outputs_is_kept(ends, expected, tmp_path):
    """`<|endoftext|>` ends texts even if the settings for outputs name other tokens only."""
    write_folder(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    checkpoint = read_checkpoint(tmp_path)
    config = checkpoint.model.config
    assert (config.tokens.eos_id, config.head.rules.end_ids) == (
        END,
        expected,
    ) and checkpoint.notes == []


def test_the_search_of_outputs_is_read(tmp_path):
    """As `generate` does: `top_k` is 50 if it is missing; `null` counts as missing."""
    write_folder(tmp_path)

    def read(**settings):
        (tmp_path / "generation_config.json").write_text(json.dumps(settings))
        return read_checkpoint(tmp_path)

    given = {"temperature": 0.6, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.3}
    checkpoint = read(do_sample=True, **given, max_length=90, top_h=None)
    right = Sample(0.6, 50, 0.9, min_p=0.1, repetition_penalty=1.3)
    assert checkpoint.search == right and checkpoint.notes == []
    stored = Generation.from_dict(json.loads(json.dumps(checkpoint.generation.to_dict())))
    assert stored == checkpoint.generation
    assert read(do_sample=True, top_k=0, temperature=None).search == Sample(1.0)
    assert read(repetition_penalty=1.1, top_p=0.9).search == Greedy(repetition_penalty=1.1)
    assert read(do_sample=False, temperature=0.6).generation is None
    checkpoint = read(do_sample=True, typical_p=0.9, num_beams=4, no_repeat_ngram_size=3)
    assert checkpoint.notes == [
        "`num_beams` = 4 is not carried over",
        "`no_repeat_ngram_size` = 3 is not carried over",
        "`typical_p` = 0.9 is not carried over",
    ]
    for name, value, rule in (
        ("temperature", 0.0, "a number above 0"),
        ("top_p", 1.5, "a number between 0 and 1"),
        ("repetition_penalty", -1.0, "a number above 0"),
        ("do_sample", "yes", "true or false"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be {rule}"):
            read(**{"do_sample": True, name: value})


def test_two_kinds_of_padding_are_refused(tmp_path):
    write_folder(tmp_path, vocab_size=len(PIECES) + 2, pad_token_id=len(PIECES) + 1)
    named = {"added_tokens_decoder": {str(len(PIECES)): {"content": "<p>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**named, "pad_token": "<p>"}))
    with pytest.raises(ValueError, match="`pad_token_id` must be the id of <p>, which pads texts"):
        read_checkpoint(tmp_path)


def greedy_by_hand(tensors, settings, prompt):
    """The ids of a text that begins with those of a prompt; with its end, if it has one."""
    row = [settings["bos_token_id"], *prompt]
    while len(row) <= settings["n_positions"]:
        row.append(int(forward(tensors, settings, np.array([row]))[0, -1].argmax()))
        if row[-1] == settings["eos_token_id"]:
            break
    return row[1:]


def greedy(generator, texts):
    """The ids that greedy search returns for prompts, and the texts of the pipeline."""
    config = generator.model.config
    prompts = generator.source_tokenizer.encode(texts)
    tokens = Greedy()(generator.model, prompts.to_tensor(config.tokens.pad_id)).tokens.numpy()[:, 0]
    rows = [[int(token) for token in row if token != config.tokens.pad_id] for row in tokens]
    found = generator(texts, search=Greedy())
    decoded = generator.target_tokenizer.decode(tf.ragged.constant(rows, dtype=tf.int32))
    assert found == [text.decode() for text in decoded.numpy()]
    return rows, found


@pytest.mark.long
@pytest.mark.slow
def test_texts_go_on_as_in_numpy_in_a_run_as_well(tmp_path):
    settings, tensors = write_folder(tmp_path / "hf")
    generator = from_pretrained(tmp_path / "hf")
    assert isinstance(generator, TextGenerator)
    encoded = generator.source_tokenizer.encode(TEXTS).to_list()
    assert encoded == [[*ids_of(text), settings["eos_token_id"]] for text in TEXTS]
    rows, found = greedy(generator, TEXTS)
    assert rows == [greedy_by_hand(tensors, settings, ids_of(text)) for text in TEXTS]
    assert all(answer.startswith(text) for answer, text in zip(found, TEXTS, strict=True))
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(TEXTS, search=Greedy()) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["GPT2ForTokenClassification"]}, "`architectures` must be one of GPT2L"),
        ({"scale_attn_by_inverse_layer_idx": True}, "`scale_attn_by_inverse_layer_idx` must be fa"),
        ({"add_cross_attention": True}, "`add_cross_attention` must be false"),
        ({"activation_function": "gelu_fast"}, "`activation_function` must be one of relu, "),
        ({"eos_token_id": 3}, r"`eos_token_id` must be \d+, the id of <\|endoftext\|>"),
        ({"n_layer": 10**9}, r"h\.9+\.mlp\.c_fc\.weight is missing"),
        ({"n_inner": 10**11}, r"c_fc\.weight must have the shape \[24, 10+\]"),
        ({"n_positions": 10**11}, r"wpe\.weight must have the shape \[10+, 24\]"),
        ({"vocab_size": 10**9}, r"wte\.weight must have 1000000000 rows, as `vocab_size`"),
        ({"pad_token_id": 10**9}, r"`pad_token_id` must be one of the \d+ token ids"),
        ({"pad_token_id": 40}, r"`pad` must not be a piece of text"),
    ],
)
def test_settings_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    write_folder(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, **changes}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_tensors_that_do_not_fit_are_named(tmp_path):
    write_folder(tmp_path, more={"transformer.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"Unused: transformer\.strange\."):
        read_checkpoint(tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_a_saved_model_of_strings_and_a_tflite_file_of_ids(tmp_path):
    """Both are kept only if they answer as the model in memory does."""
    write_folder(tmp_path / "hf")
    generator, search = from_pretrained(tmp_path / "hf"), Greedy()
    report = export_saved_model(
        generator, tmp_path / "saved", TEXTS, SavedModelOptions(search=search)
    )
    assert report["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        (name,) = signature.inputs
        feed = {signature.inputs[name].name: [text.encode() for text in TEXTS]}
        found = session.run({k: v.name for k, v in signature.outputs.items()}, feed)
    texts = [text.decode() for text in found[generator.output].ravel()]
    assert texts == generator(TEXTS, search=search)
    assert export_litert(generator, tmp_path / "m.tflite", TEXTS)["agreement"] == 1


@functools.cache
def folder():
    """All cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(CASES))
    (place / "texts.json").write_text(json.dumps([ids_of(text) for text in TEXTS]))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in CASES:
        write_vocabulary(place / name)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_logits_and_outputs_of_hugging_face(name):
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    generator = from_pretrained(folder() / name)
    expected = np.load(folder() / f"{name}.npz")
    logits = generator.model(expected["ids"].astype("int32"), training=False).numpy()
    np.testing.assert_allclose(logits[..., :-1], expected["logits"], rtol=0, atol=1e-4)
    theirs = json.loads((folder() / f"{name}.json").read_text())
    assert greedy(generator, TEXTS)[0] == [row[1:] for row in theirs]
