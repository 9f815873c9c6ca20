"""ColBERT models of PyLate, sentence-transformers and Stanford: vectors, settings and refusals."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bert_in_numpy
import numpy as np
import pytest
from colbert_folders import (
    PASSAGES,
    QUERIES,
    write_modules,
    write_pylate,
    write_sentence_transformers,
    write_stanford,
)

from keras_transformer import from_pretrained
from keras_transformer.pretrained.read import read_checkpoint

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
MIN = {"strategy": "min", "length": 8, "attend": True}
FOLDERS = {
    "pylate": write_pylate,
    "two layers": functools.partial(
        write_pylate, layers=({"outputs": 24, "use_residual": True}, {"outputs": 5})
    ),
    "attended": functools.partial(write_pylate, attend_to_expansion_tokens=True),
    "not expanded": functools.partial(write_pylate, do_query_expansion=False, query_prefix=""),
    "modernbert": functools.partial(write_pylate, family="modernbert"),
    "stanford": write_stanford,
    "sentence-transformers": write_sentence_transformers,
    "min": functools.partial(write_sentence_transformers, expansion=MIN),
}
SAME = {"rtol": 0, "atol": 1e-5}


def reference(ids, attended, settings, tensors, matrix):
    """Vectors of the tokens of rows of BERT, in float64."""
    weights = {name.removeprefix("bert."): values for name, values in tensors.items()}
    words, places, types = (
        weights[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    )
    x = words[ids] + places[: ids.shape[1]] + types[0]
    x = bert_in_numpy.layer_norm(weights, "embeddings.LayerNorm", x, settings["layer_norm_eps"])
    x = bert_in_numpy.blocks(weights, settings, x, attended) @ matrix.T
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", ["two layers", "attended", "stanford"])
def test_vectors_equal_the_reference(tmp_path, name):
    parts = FOLDERS[name](tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.task == "late_interaction" and checkpoint.notes == []
    head, pieces = checkpoint.model.config.head, checkpoint.tokenizers.source
    assert (head.query_length, head.passage_length) == (9, 14)
    marks = ("[unused0]", "[unused1]") if name == "stanford" else ("[Q] ", "[D] ")
    assert tuple(pieces.pieces([head.query_marker_id, head.passage_marker_id])) == marks
    assert {*pieces.pieces(head.skipped_ids)} == {".", ","}
    q, p = head.query_marker_id, head.passage_marker_id
    mask, end = head.expansion_id, pieces.eos_id
    assert pieces.pieces([mask]) == ["[MASK]"]
    ids = np.array([[pieces.bos_id, q, 8, 9, end, mask, mask], [pieces.bos_id, p, 9, 7, 8, end, 0]])
    attended = ids != 0
    if name != "attended":
        attended[0, 5:] = False
    expected = reference(ids, attended, *parts)
    np.testing.assert_allclose(checkpoint.model(ids)[ids != 0], expected[ids != 0], **SAME)


REFUSED = {
    "module": (
        lambda folder: write_modules(folder, ("x.Dense", "1_Dense"), ("x.Pooled", "2_Pooled")),
        "modules of a model with vectors of tokens must be Transformer and Dense, .*Dense, Pooled.",
    ),
    "order": (
        lambda folder: write_modules(
            folder, ("x.Dense", "1_Dense"), ("x.Normalize", "2"), ("x.Dense", "1_Dense")
        ),
        "no Dense may come after Normalize",
    ),
    "activation": (
        {"1_Dense/config.json": {"activation_function": "torch.nn.modules.activation.Tanh"}},
        "1_Dense/config.json: `activation_function` must be .*Identity. Received: .*Tanh",
    ),
    "prefix": (
        {"tokenizer.json": {"added_tokens": []}},
        r"`query_prefix` must be one token of the vocabulary. Received: '\[Q\] '.",
    ),
    "token": (
        {"config_sentence_transformers.json": {"query_prefix": ""}},
        r"added tokens must be special or markers. Received: '\[Q\] '.",
    ),
    "length": (
        {"config_sentence_transformers.json": {"document_length": 300}},
        "`document_length` must be from 4 to 21, the number of positions. Received: 300.",
    ),
    "words": (
        {"config_sentence_transformers.json": {"skiplist_words": "."}},
        "`skiplist_words` must be a list of words. Received: '.'.",
    ),
    "similarity": (
        {"config_sentence_transformers.json": {"similarity_fn_name": "meanmaxsim"}},
        "`similarity_fn_name` must be .*'maxsim'.* Received: 'meanmaxsim'.",
    ),
    "width": (
        {"1_Dense/config.json": {"out_features": 10**9}},
        r"1_Dense/linear.weight must have the shape \[1000000000, 24\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_place_here_is_refused(tmp_path, case):
    write_pylate(tmp_path)
    change, message = REFUSED[case]
    if callable(change):
        change(tmp_path)
    else:
        for name, values in change.items():
            path = tmp_path / name
            path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    model_type = {"model_type": "ColBERT"} if case == "module" else {}
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **model_type}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value)


@functools.cache
def answers():
    """Returns our pipelines and the answers of sentence-transformers by the names of folders."""
    probe = [PYTHON, "-c", "import torch; from sentence_transformers import MultiVectorEncoder"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    for name, write in FOLDERS.items():
        write(place / name)
    cases = {"names": [*FOLDERS], "queries": QUERIES, "passages": PASSAGES}
    (place / "cases.json").write_text(json.dumps(cases))
    script = pathlib.Path(__file__).with_name("late_interaction_answers.py")
    subprocess.run([PYTHON, script, place], check=True)
    theirs = json.loads((place / "answers.json").read_text())
    return {name: (from_pretrained(place / name), theirs[name]) for name in FOLDERS}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_answers_are_those_of_sentence_transformers(name):
    found = answers()
    if found is None:
        pytest.skip("KERAS_TRANSFORMER_TRANSFORMERS names no Python with sentence-transformers 6")
    ranker, theirs = found[name]
    for ours, part in (
        (ranker.embed_queries(QUERIES), "queries"),
        (ranker.embed_passages(PASSAGES), "passages"),
    ):
        for vectors, expected in zip(ours, theirs[part], strict=True):
            np.testing.assert_allclose(vectors, expected, **SAME)
    scores = ranker.similarities(QUERIES, PASSAGES)
    np.testing.assert_allclose(scores, theirs["scores"], rtol=0, atol=1e-4)
