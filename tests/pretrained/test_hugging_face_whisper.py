"""Whisper against Hugging Face's own model, features and tokenizer; see `test_hugging_face.py`."""

import functools
import json
import pathlib

import numpy as np
import pytest
import whisper_folders
from test_hugging_face import run_python
from whisper_folders import END, GENERATION, IDS, MERGES, PIECES, SIZES

from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.features import frames_of

pytestmark = pytest.mark.slow
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_whisper.py")
SECONDS = (1.0, 0.4, 0.73, 0.9)
TEXTS = ["a dog runs", " The film's not very good.", "über 2 Hügel ж", "a  b\tc", ""]
SHAPE = {
    "d_model": 24, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_layers": 2,
    "encoder_ffn_dim": 33, "decoder_ffn_dim": 33, "max_source_positions": 50,
    "max_target_positions": 29,
}  # fmt: skip
CONFIG = {**SIZES, **SHAPE}
del CONFIG["architectures"], CONFIG["model_type"]
FEATURES = {"chunk_length": 1}
BEAM = {"num_beams": 4}
LANGUAGES = {
    f"{kind}_{code}": {"language": code, "task": "transcribe", **options}
    for code in whisper_folders.LANGUAGES
    for kind, options in (("greedy", {"num_beams": 1}), ("beam", BEAM))
}
TIMES = {
    f"{name}_times": {**options, "return_timestamps": True} for name, options in LANGUAGES.items()
}
SEARCHES = {
    **LANGUAGES,
    **TIMES,
    "translate": {"language": "fr", "task": "translate", "num_beams": 1},
    "penalty": {**LANGUAGES["beam_de"], "length_penalty": 2.0, "max_length": 9},
    # With a forced end: beams that stop by count rank truncated outputs last, unlike `generate`.
    "counted": {
        **LANGUAGES["beam_en"], "length_penalty": 0.5, "early_stopping": True,
        "forced_eos_token_id": IDS[END],
    },
}  # fmt: skip
ENGLISH = {"is_multilingual": False, "max_length": 29, "no_timestamps_token_id": IDS[PIECES[-52]]}


def case(seed, searches, generation=GENERATION, features=FEATURES, **config):
    config = {**CONFIG, **config}
    features = {"feature_size": config["num_mel_bins"], **features}
    return {
        "seed": seed, "searches": searches, "config": config, "features": features,
        "generation": {**generation, "max_length": config["max_target_positions"]},
        "pieces": PIECES, "merges": MERGES, "texts": TEXTS, "seconds": SECONDS,
    }  # fmt: skip


CASES = {
    "multilingual": case(0, SEARCHES, num_mel_bins=80),
    "large": case(1, SEARCHES, num_mel_bins=128),
    "english": case(
        2,
        {
            "greedy": {"num_beams": 1},
            "beam": BEAM,
            "times": {"num_beams": 1, "return_timestamps": True},
        },
        ENGLISH,
        num_mel_bins=80,
    ),
}


@functools.cache
def folder():
    return run_python(SCRIPT, CASES)


@functools.cache
def converted(name, search=None):
    if folder() is None:
        pytest.skip("torch and transformers are missing: see test_hugging_face.py")
    path = folder() / name / "generation_config.json"
    options = dict(CASES[name]["searches"][search]) if search else {}
    code, task = options.pop("language", None), options.pop("task", None)
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "num_beams": 1, **options}))
    try:
        target = "en" if task == "translate" else None
        read = read_checkpoint(folder() / name, source_language=code, target_language=target)
    finally:
        path.write_text(json.dumps(settings))
    return read, np.load(folder() / f"{name}.npz")


@pytest.mark.parametrize("name", CASES)
def test_features_states_and_logits(name):
    read, expected = converted(name)
    model = read.model
    frames = frames_of(model.config.input, expected["samples"], expected["lengths"])
    np.testing.assert_allclose(frames, expected["features"], rtol=0, atol=1e-4)
    states = model.encode(expected["features"])[0]
    np.testing.assert_allclose(states, expected["states"], rtol=0, atol=1e-4)
    inputs = {"source": expected["features"], "target": expected["target"].astype("int32")}
    logits = model(inputs, training=False)
    np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=1e-4)


def with_our_padding(rows, width, pad):
    """Outputs without the token that starts them, followed by our padding."""
    ours = np.full((len(rows), width), pad)
    for row, theirs in zip(ours, rows[:, 1:], strict=True):
        ends = np.flatnonzero(theirs == IDS[END])
        count = ends[0] + 1 if len(ends) else len(theirs)
        row[:count] = theirs[:count]
    return ours


@pytest.mark.parametrize(
    ("name", "search"), [(name, search) for name in CASES for search in CASES[name]["searches"]]
)
def test_tokens_and_scores(name, search):
    read, expected = converted(name, search)
    features = expected["features"]
    tokens, scores = (x.numpy()[:, 0] for x in read.search(read.model, features)[:2])
    theirs = with_our_padding(expected[search], tokens.shape[1], read.model.config.pad_id)
    np.testing.assert_array_equal(tokens, theirs)
    if f"{search}_scores" in expected:
        np.testing.assert_allclose(scores, expected[f"{search}_scores"], rtol=0, atol=1e-4)


def test_the_outputs_above_are_varied():
    rows, ends, times = [], 0, 0
    for name in CASES:
        for search in CASES[name]["searches"]:
            found = converted(name)[1][search]
            rows += [tuple(row) for row in found]
            ends += sum(IDS[END] in row for row in found.tolist())
            times += sum(max(row) >= IDS["<|0.00|>"] for row in found.tolist())
    assert len({*rows}) > len(rows) / 2
    assert ends > 5
    assert times > 5


def test_token_ids():
    read, _ = converted("multilingual")
    theirs = json.loads((folder() / "multilingual.json").read_text())
    ours = read.tokenizers.target.tokenize(TEXTS)
    assert ours.to_list() == theirs
    assert [text.decode() for text in read.tokenizers.target.decode(ours).numpy()] == TEXTS
