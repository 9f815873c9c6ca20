"""Converted models against Hugging Face's own, with torch, in a process of its own.

`KERAS_TRANSFORMER_TRANSFORMERS` names the Python with torch and transformers; the default is the
Python of the tests.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import marian_in_numpy as marian
import numpy as np
import pytest
import tensorflow as tf
from opus_folders import vocabulary, write_vocabulary

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Sample, SearchOptions, Vocabulary
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.pretrained.read import read_checkpoint

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face.py")
VOCAB = vocabulary("source", "target")
SIZE, PAD = len(VOCAB), VOCAB["<pad>"]
LIMIT = 15  # limit of `generate`, which counts the first token

BASE = {
    "vocab_size": SIZE, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 33,
    "decoder_ffn_dim": 33, "max_position_embeddings": 31, "activation_function": "swish",
    "scale_embedding": True, "pad_token_id": PAD, "decoder_start_token_id": PAD, "bos_token_id": 0,
    "eos_token_id": 0, "forced_eos_token_id": 0, "dropout": 0.1,
}  # fmt: skip
GENERATION = {"max_length": LIMIT, "bad_words_ids": [[PAD]], "renormalize_logits": True}
SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam4": {"num_beams": 4},
    "beam6": {"num_beams": 6, "length_penalty": 0.6, "num_return_sequences": 6},
    "beam3": {"num_beams": 3, "length_penalty": 2.0},
    "counted": {"num_beams": 4, "early_stopping": True},
}

NOT_READ = {
    "normalize_before": True, "add_final_layer_norm": True, "normalize_embedding": True,
    "static_position_embeddings": False,
}  # fmt: skip


def case(kind="Marian", dtype="float32", seed=0, generation=None, sharpen=3.0, **config):
    fields = {**BASE, **config}
    if kind in ("Bart", "MBart", "Pegasus"):
        fields.pop("share_encoder_decoder_embeddings", None)
    return {
        "class": kind,
        "dtype": dtype,
        "seed": seed,
        "sharpen": sharpen,
        "config": fields,
        "generation": {**GENERATION, **(generation or {})},
        "searches": SEARCHES,
    }


CASES = {
    "shared": case(),
    "separate": case(share_encoder_decoder_embeddings=False, decoder_vocab_size=SIZE, seed=1),
    "untied": case(tie_word_embeddings=False, share_encoder_decoder_embeddings=False, seed=2),
    "float16": case(dtype="float16", seed=3),
    "bfloat16": case(dtype="bfloat16", seed=4),
    "relu": case(activation_function="relu", seed=5),
    "gelu_1": case(activation_function="gelu", encoder_layers=1, decoder_layers=1, seed=6),
    "gelu_12_unscaled": case(
        activation_function="gelu", encoder_layers=12, decoder_layers=12, scale_embedding=False,
        seed=7,
    ),
    "forced_end_of_its_own": case(
        seed=8, forced_eos_token_id=9, generation={"forced_eos_token_id": 9}
    ),
    "no_forced_end": case(
        seed=9, forced_eos_token_id=None, generation={"forced_eos_token_id": None}
    ),
    "another_start": case(
        seed=10, decoder_start_token_id=3, generation={"bad_words_ids": [[PAD], [3]]}
    ),
    "not_renormalised": case(seed=14, generation={"renormalize_logits": False}),
    "penalised": case(
        seed=16, generation={"renormalize_logits": False, "repetition_penalty": 1.4}
    ),
    "settings_not_read": case(seed=15, **NOT_READ),
    "pegasus": case("Pegasus", seed=11),
    "mbart": case("MBart", seed=12),
    "bart": case("Bart", seed=13, normalize_before=False),
}  # fmt: skip
# Settings in which older Marian models state the fixed order of sums of these classes.
FLAGS = {
    "pegasus": {"normalize_before": True, "add_final_layer_norm": True},
    "mbart": {
        "normalize_before": True, "add_final_layer_norm": True, "normalize_embedding": True,
        "static_position_embeddings": False, "extra_pos_embeddings": 2,
    },
    "bart": {
        "normalize_embedding": True, "static_position_embeddings": False, "extra_pos_embeddings": 2,
    },
}  # fmt: skip


def run_python(script, cases):
    """Returns the folder with the results of the other Python; `None` if it lacks the packages."""
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(cases))
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, script, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return place


@functools.cache
def folder():
    """Returns the folder of all cases, computed once by the other Python."""
    place = run_python(SCRIPT, CASES)
    if place is None:
        return None
    for name in CASES:
        write_vocabulary(place / name, VOCAB, VOCAB if name in ("separate", "untied") else None)
        if name in FLAGS:
            path = place / name / "config.json"
            settings = json.loads(path.read_text())
            settings |= {**FLAGS[name], "model_type": "marian"}
            path.write_text(json.dumps(settings))
    return place


@functools.cache
def converted(name):
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    return read_checkpoint(folder() / name), np.load(folder() / f"{name}.npz")


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", CASES)
def test_logits_and_encoder_states(name, side):
    checkpoint, expected = converted(name)
    model, source = checkpoint.model, expected[f"{side}_source"].astype("int32")
    target = expected["target"].astype("int32")
    states, real = model.encode(source)[0], source != PAD
    np.testing.assert_allclose(
        states.numpy()[real], expected[f"{side}_states"][real], rtol=0, atol=1e-5
    )
    logits = model({"source": source, "target": target}, training=False)
    np.testing.assert_allclose(logits, expected[f"{side}_logits"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_arithmetic_in_numpy_equals_torch(name):
    _, expected = converted(name)
    settings = json.loads((folder() / name / "config.json").read_text())
    if name == "settings_not_read":
        assert NOT_READ.items() <= settings.items()
        settings = {key: value for key, value in settings.items() if key not in NOT_READ}
    path = folder() / name / "model.safetensors"
    if not path.exists():
        pytest.skip("the weights are in PyTorch's format")
    weights = marian.read_tensors(path)
    source, target = expected["left_source"], expected["target"]
    states, logits = marian.forward(weights, settings, source, target)
    real = source != PAD
    # Torch computes in float32: its states differ by up to 1.1e-5.
    np.testing.assert_allclose(states[real], expected["left_states"][real], rtol=0, atol=2e-5)
    np.testing.assert_allclose(logits, expected["left_logits"], rtol=0, atol=1e-4)


def search_of(options, repetition_penalty=1.0):
    if options["num_beams"] == 1:
        return Greedy(repetition_penalty=repetition_penalty)
    return Beam(
        options["num_beams"],
        options.get("length_penalty", 1.0),
        normalization="power",
        extra_length=None,
        max_length=LIMIT - 1,
        stopping="count" if options.get("early_stopping") else "score",
        repetition_penalty=repetition_penalty,
    )


# Beams that stop by count rank truncated outputs last, which `generate` does not.
CUT = ("forced_end_of_its_own", "no_forced_end")


@pytest.mark.parametrize(
    ("name", "search"),
    [
        (name, search)
        for name in CASES
        for search in SEARCHES
        if not (search == "counted" and name in CUT)
    ],
)
def test_searches_emit_the_same_tokens(name, search):
    checkpoint, expected = converted(name)
    options = SEARCHES[search]
    count = options.get("num_return_sequences", 1)
    penalty = CASES[name]["generation"].get("repetition_penalty", 1.0)
    run = tf.function(
        lambda source: search_of(options, penalty)(
            checkpoint.model, source, SearchOptions(n_best=count, cache_length=LIMIT - 1)
        )[:2],
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )
    for side in ("right", "left"):
        tokens, scores = (
            value.numpy() for value in run(expected[f"{side}_source"].astype("int32"))
        )
        theirs = expected[f"{side}_{search}"][:, 1:]  # without the first token
        theirs = np.pad(theirs, [(0, 0), (0, LIMIT - 1 - theirs.shape[1])], constant_values=PAD)
        np.testing.assert_array_equal(tokens.reshape(-1, LIMIT - 1), theirs)
        if f"{side}_{search}_scores" in expected:
            np.testing.assert_allclose(
                scores.reshape(-1), expected[f"{side}_{search}_scores"], rtol=0, atol=1e-4
            )


WARPERS = """
import sys, numpy as np, torch
from transformers.generation import logits_process as ours
data = np.load(sys.argv[1])
ids, logits = (torch.tensor(data[name]) for name in ("ids", "logits"))
steps = [ours.RepetitionPenaltyLogitsProcessor(1.7), ours.TemperatureLogitsWarper(0.8)]
steps += [ours.TopKLogitsWarper(30), ours.TopPLogitsWarper(0.95), ours.MinPLogitsWarper(0.05)]
for step in steps:
    logits = step(ids, logits)
np.save(sys.argv[1] + ".npy", torch.softmax(logits, -1).numpy())
"""


def test_a_sample_draws_with_the_probabilities_of_the_logits_processors(tmp_path):
    if folder() is None:
        pytest.skip("needs KERAS_TRANSFORMER_TRANSFORMERS, a Python with torch and transformers")
    rng, count = np.random.default_rng(0), 20_000
    logits = rng.normal(0, 2, [3, 50]).astype("float32")
    ids = rng.integers(1, 50, [3, 8])
    np.savez(tmp_path / "logits.npz", ids=ids, logits=logits)
    subprocess.run([PYTHON, "-c", WARPERS, tmp_path / "logits.npz"], check=True)
    expected = np.load(tmp_path / "logits.npz.npy")
    sample = Sample(0.8, 30, 0.95, min_p=0.05, repetition_penalty=1.7)
    draws = tf.constant((np.arange(count, dtype="float32")[:, None] + 0.5) / count)
    for row, read, right in zip(logits, ids, expected, strict=True):
        begin, *others = read.tolist()  # the decoder reads its first token before an output
        penalty = Repetition.of(sample, Vocabulary(50, 0, begin, 49))
        seen = penalty.seen(tf.constant([[others]]), tf.fill([7], True))
        penalised = penalty.of_logits(tf.constant(row[None, None]), seen)[0]
        tokens = sample.draw(tf.repeat(penalised, count, axis=0), draws)
        shares = np.bincount(tokens, minlength=50) / count
        assert (right[shares > 0] > 0).all() and (right > 0).sum() < 30
        np.testing.assert_allclose(shares, right, rtol=0, atol=2 / count)


@pytest.mark.parametrize("name", ["shared", "forced_end_of_its_own", "no_forced_end"])
def test_greedy_search_stops_where_generate_does(name):
    """The model has 31 positions; the search of the checkpoint has a lower limit."""
    checkpoint, expected = converted(name)
    assert checkpoint.search == Greedy(max_length=LIMIT - 1)
    tokens = checkpoint.search(checkpoint.model, expected["right_source"].astype("int32"))[0]
    theirs = expected["right_greedy"][:, 1:]
    theirs = np.pad(theirs, [(0, 0), (0, LIMIT - 1 - theirs.shape[1])], constant_values=PAD)
    np.testing.assert_array_equal(tokens[:, 0], theirs)
    assert (theirs[:, LIMIT - 2] != PAD).any()


def test_the_outputs_above_are_varied():
    """Some end before the limit, some at the limit, and they depend on the source."""
    rows = [row for name in CASES for row in converted(name)[1]["right_beam4"]]
    lengths = [int((row[1:] != PAD).sum()) for row in rows]
    assert sum(length < LIMIT - 1 for length in lengths) > 10
    assert sum(length == LIMIT - 1 for length in lengths) > 10
    assert len({tuple(row) for row in rows}) > len(rows) / 3
