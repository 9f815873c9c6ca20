"""ALBERT, MPNet, DeBERTa and ModernBERT against Hugging Face's own, with torch, in a process.

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

import encoder_folders
import numpy as np
import pytest
from bert_folders import TAGGER
from label_sets import LONG as LONG_TEXT
from label_sets import check_sets
from masked_heads import check_words, masked_texts

from keras_transformer import from_pretrained
from keras_transformer.pretrained.read import read_checkpoint

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_encoders.py")
LABELS = {"id2label": TAGGER["id2label"]}
LARGE = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 12,
         "num_attention_heads": 4}  # fmt: skip
V3 = {"position_buckets": 256, "max_position_embeddings": 512, **LARGE}
ANSWERS = {"max_position_embeddings": 80, "id2label": {"0": "START", "1": "END"}}
TEXTS = ["A dogs is running.", "the film is not very good", "bad film, cats", "", "\u00e9 run & a"]
PAIRS = [
    ("the dog", "A dog is running, good dog."),
    ("is the film bad", "The film (bad!) is not very good; dogs run."),
    ("good film", "a good film, a very bad film, a good dog and a bad cat"),
    *((f"{a} {b}", "A dogs is running: the film, cats & a good dog.") for a in ("the", "a")
      for b in ("dog", "cat", "film")),
]  # fmt: skip
LONG = [
    ("the good dog and the bad cat " * 6, "A dog is running, good dog. " * 9),
    ("good film " * 40, "the cat"),
    ("a", "a very good film and a very bad film, " * 12),
]
# Family, head and changes of the settings of each case.
HEADS = {
    "texts": ("SequenceClassification", {}),
    "scores": ("SequenceClassification", {"id2label": {"0": "LABEL_0"}}),
    "sets": (
        "SequenceClassification",
        {**LABELS, "problem_type": "multi_label_classification"},
    ),
    "words": ("TokenClassification", LABELS),
    "answers": ("QuestionAnswering", ANSWERS),
    "body": ("Model", {}),
    "masked": ("MaskedLM", {}),
    "masked, untied": ("MaskedLM", {"tie_word_embeddings": False}),
}
MORE = {
    "albert large": ("albert", "SequenceClassification", {**LARGE, "num_hidden_groups": 5}),
    "albert inner groups": ("albert", "Model", {"inner_group_num": 2}),
    "mpnet large": ("mpnet", "SequenceClassification", LARGE),
    "deberta-v2 large": ("deberta-v2", "SequenceClassification", V3),
    "deberta-v2 learned": ("deberta-v2", "Model", {"position_biased_input": True}),
    "albert masked, relu": ("albert", "MaskedLM", {"hidden_act": "relu", "embedding_size": 24}),
    "deberta-v2 masked, newer": ("deberta-v2", "MaskedLM", {"legacy": False, "hidden_act": "relu"}),
    "deberta-v2 masked, newer, untied": (
        "deberta-v2", "MaskedLM", {"legacy": False, "tie_word_embeddings": False}
    ),
    "modernbert masked, biases": (
        "modernbert", "MaskedLM",
        {"classifier_bias": True, "norm_bias": True, "classifier_activation": "relu"},
    ),
    "modernbert masked, sparse": (
        "modernbert", "MaskedLM", {"decoder_bias": False, "sparse_prediction": True,
                                   "tie_word_embeddings": False},
    ),
    "modernbert large": ("modernbert", "SequenceClassification",
                         {**LARGE, "classifier_pooling": "cls"}),
    "modernbert biases": (
        "modernbert", "TokenClassification",
        {**LABELS, "norm_bias": True, "mlp_bias": True, "attention_bias": True,
         "classifier_bias": True},
    ),
}  # fmt: skip
CASES = {
    **{
        f"{family} {kind}": (family, head, changes)
        for family in encoder_folders.CLASSES
        for kind, (head, changes) in HEADS.items()
    },
    **MORE,
}
SPECIAL = {
    "albert": ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
    "mpnet": ("<pad>", "[UNK]", "<s>", "</s>", "<mask>"),
}
BRACKETS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


@functools.cache
def folder():
    """Returns the folder of all cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place, cases = pathlib.Path(tempfile.mkdtemp()), {}
    (place / "pairs.json").write_text(json.dumps(PAIRS))
    (place / "scored.json").write_text(json.dumps(PAIRS + LONG))
    for name, (family, head, changes) in CASES.items():
        path = place / f"{family}.json"
        path.write_text(json.dumps(encoder_folders.tokenizer_json(family)))
        known = encoder_folders.settings_of(family, "Model", **changes)
        first = 2 if family == "mpnet" else 0
        cases[name] = {
            "class": encoder_folders.CLASSES[family] + ("" if head == "Model" else "For") + head,
            "config": {k: v for k, v in known.items() if k not in ("model_type", "architectures")},
            "tokenizer": str(path),
            "special": dict(zip(ROLES, SPECIAL.get(family, BRACKETS), strict=True)),
            "length": known["max_position_embeddings"] - first,
            "texts": TEXTS,
            "masked": masked_texts(SPECIAL.get(family, BRACKETS)[-1]),
        }
    (place / "cases.json").write_text(json.dumps(cases))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    if done.returncode:
        pytest.fail(done.stderr[-3000:], pytrace=False)
    for name, (family, *_) in CASES.items():
        content = (place / f"{family}.json").read_text()
        (place / name / "tokenizer.json").write_text(content)
    return place


def case_of(name):
    """Returns the folder of a case, its arrays and its answers."""
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    arrays = np.load(folder() / f"{name}.npz")
    return folder() / name, arrays, json.loads((folder() / f"{name}.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_states_and_logits(name):
    path, expected, answers = case_of(name)
    checkpoint = read_checkpoint(path)
    model, ids = checkpoint.model, expected["ids"].astype("int32")
    tokens, real = model.parts.input, ids != model.config.tokens.pad_id
    states = model.encoder(tokens(ids, training=False), tokens.padding_mask(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected["states"][real], rtol=0, atol=1e-5)
    assert checkpoint.tokenizers.source.encode(TEXTS).to_list() == answers["tokens"]
    if "logits" in expected:
        logits = model(ids, training=False).numpy()
        every = ... if logits.ndim == 2 else real & (logits > -1e8).any(axis=-1)
        assert np.any(logits[every])
        np.testing.assert_allclose(logits[every], expected["logits"][every], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [n for n in CASES if CASES[n][1].endswith("Classification") and not n.endswith("scores")],
)
def test_answers_of_pipelines(name):
    """Texts have the same labels in the same order, and words the label of their first token."""
    path, _, answers = case_of(name)
    pipeline, theirs = from_pretrained(path), answers["answers"]
    if name.endswith(" sets"):
        check_sets(pipeline, [*TEXTS, LONG_TEXT], theirs)
        return
    for text, ours, rows in zip(TEXTS, pipeline.answer(TEXTS), theirs, strict=True):
        if CASES[name][1] == "SequenceClassification":
            assert ours.label == rows[0]["label"]
            ranked = [pipeline.labels[number] for number in np.argsort(-ours.probabilities)]
            assert ranked == [row["label"] for row in rows]
            scores = [row["score"] for row in rows]
            np.testing.assert_allclose(-np.sort(-ours.probabilities), scores, rtol=0, atol=1e-5)
            continue
        # In some vocabularies a token begins with the space before it.
        first = {row["start"] + (text[row["start"]] == " "): row for row in reversed(rows)}
        starts = [n for n in range(len(text)) if text[n] != " " and (n == 0 or text[n - 1] == " ")]
        assert list(ours.labels) == [first[start]["label"] for start in starts]
        scores = [first[start]["score"] for start in starts]
        np.testing.assert_allclose(ours.probabilities.max(axis=-1), scores, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith("scores")])
def test_scores_of_pairs(name):
    """A reranker has the ids and the logit of each pair, also of pairs that are truncated."""
    path, _, answers = case_of(name)
    reranker = from_pretrained(path)
    results = reranker.answer(PAIRS + LONG)
    assert any(result.truncated for result in results[len(PAIRS) :])
    theirs = [logit for _, logit in answers["answers"]]
    assert np.ptp(theirs) > 1e-3
    np.testing.assert_allclose([one.logit for one in results], theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][1] == "QuestionAnswering"])
def test_answers_to_questions(name):
    path, _, answers = case_of(name)
    results = from_pretrained(path).answer(PAIRS)
    assert len({result.text for result in results}) > 2
    for (_, passage), ours, (text, score, begin, end, none) in zip(
        PAIRS, results, answers["answers"], strict=True
    ):
        begin += len(text) - len(text.lstrip())  # in some vocabularies words begin with a space
        assert (ours.text, ours.begin) == (text.lstrip(), len(passage[:begin].encode()))
        assert ours.end == len(passage[:end].encode())
        assert ours.probability == pytest.approx(score, abs=1e-5)
        assert ours.no_answer == pytest.approx(none, abs=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][1] == "MaskedLM"])
def test_words_for_masks(name):
    """The best five words of each mask and their probabilities, as in the pipeline."""
    path, _, answers = case_of(name)
    pipeline = from_pretrained(path)
    check_words(pipeline.answer(masked_texts(pipeline.source_tokenizer.mask)), answers["answers"])
