"""Converted text encoders against Hugging Face's own, with torch, in a process of its own.

`KERAS_TRANSFORMER_TRANSFORMERS` names the Python with torch and transformers; the default is the
Python of the tests.
"""

import base64
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import distilbert_folders
import numpy as np
import pytest
import roberta_folders
import unigram_folders
from bert_folders import PIECES, SIZES, TAGGER
from label_sets import LONG, check_sets
from masked_heads import check_words, masked_texts

from keras_transformer import from_pretrained
from keras_transformer.pretrained.read import read_checkpoint

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_bert.py")
NAMES = ("model_type", "architectures")
BASE = {key: value for key, value in SIZES.items() if key not in NAMES}
DISTILLED = {key: value for key, value in distilbert_folders.SIZES.items() if key not in NAMES}
ROBUST = {key: value for key, value in roberta_folders.SIZES.items() if key not in NAMES}
MULTILINGUAL, FRENCH = (
    {k: v for k, v in unigram_folders.settings_of(family).items() if k not in NAMES}
    for family in unigram_folders.FAMILIES
)
SMALL = {**BASE, "embedding_size": 10}
UNTIED = {"tie_word_embeddings": False}
LABELS = {"id2label": TAGGER["id2label"]}
ONE = {"id2label": {"0": "LABEL_0"}}
TEXTS = ["A dogs is running.", "the film is not very good", "bad film, cats", "", "\u00e9 run & a"]
LARGE = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 12,
         "num_attention_heads": 4}  # fmt: skip
ANSWERS = {"max_position_embeddings": 80, "id2label": {"0": "START", "1": "END"}}
PAIRS = [
    ("the dog", "A dog is running, good dog."),
    ("is the film bad", "The  film (bad!) is not very good; dogs run."),
    ("good film", "a good film \u00e9, a very bad film, a good dog and a bad cat"),
    ("", "caf\u00e9 \u2603x it's 2 dogs  run,\tgood\u00a0film"),
    ("a \u4e2d", "the \u4e2d\u6587 dog's film, \U0001f600 \u00c9 good\n"),
    *((f"{a} {b}", "A dogs is running: the film, cats & a good dog.") for a in ("the", "a")
      for b in ("dog", "cat", "film")),
]  # fmt: skip
SCORED = [
    *PAIRS,
    ("the good dog and the bad cat " * 6, "A dog is running, good dog. " * 9),
    ("good film " * 40, "the cat"),
    ("a", "a very good film and a very bad film, " * 12),
]
SETS = {**LABELS, "problem_type": "multi_label_classification"}
SIX = (
    ("base", "Bert", BASE),
    ("distilled", "DistilBert", DISTILLED),
    ("robust", "Roberta", ROBUST),
    ("small", "Electra", SMALL),
    ("multilingual", "XLMRoberta", MULTILINGUAL),
    ("french", "Camembert", FRENCH),
)
CASES = {
    "labels": {"class": "BertForSequenceClassification", "config": BASE},
    "relu": {"class": "BertForSequenceClassification", "config": {**BASE, "hidden_act": "relu"}},
    "tanh form": {
        "class": "BertForSequenceClassification",
        "config": {**BASE, "hidden_act": "gelu_new"},
    },
    "12 layers": {"class": "BertForSequenceClassification", "config": {**BASE, **LARGE}},
    "float16": {"class": "BertModel", "config": BASE, "dtype": "float16"},
    "bfloat16": {"class": "BertModel", "config": BASE, "dtype": "bfloat16"},
    "masked": {"class": "BertForMaskedLM", "config": BASE},
    "masked, untied": {"class": "BertForMaskedLM", "config": {**BASE, **UNTIED}},
    "masked, relu": {"class": "BertForMaskedLM", "config": {**BASE, "hidden_act": "relu"}},
    "pretraining": {"class": "BertForPreTraining", "config": BASE},
    "tokens": {"class": "BertForTokenClassification", "config": {**BASE, **LABELS}},
    "distilled": {"class": "DistilBertForSequenceClassification", "config": DISTILLED},
    "distilled sinusoids": {
        "class": "DistilBertForSequenceClassification",
        "config": {**DISTILLED, "sinusoidal_pos_embds": True},
    },
    "distilled tokens": {
        "class": "DistilBertForTokenClassification",
        "config": {**DISTILLED, **LABELS},
    },
    "distilled masked": {"class": "DistilBertForMaskedLM", "config": DISTILLED},
    "distilled masked, untied": {
        "class": "DistilBertForMaskedLM",
        "config": {**DISTILLED, **UNTIED},
    },
    "distilled body": {"class": "DistilBertModel", "config": DISTILLED},
    "robust": {"class": "RobertaForSequenceClassification", "config": ROBUST},
    "robust masked": {"class": "RobertaForMaskedLM", "config": ROBUST},
    "robust masked, untied": {"class": "RobertaForMaskedLM", "config": {**ROBUST, **UNTIED}},
    "answers": {"class": "BertForQuestionAnswering", "config": {**BASE, **ANSWERS}},
    "distilled answers": {
        "class": "DistilBertForQuestionAnswering",
        "config": {**DISTILLED, **ANSWERS},
    },
    "robust answers": {
        "class": "RobertaForQuestionAnswering",
        "config": {**ROBUST, **ANSWERS},
    },
    "robust tokens": {"class": "RobertaForTokenClassification", "config": {**ROBUST, **LABELS}},
    "small discriminator": {"class": "ElectraForSequenceClassification", "config": SMALL},
    "small tokens": {"class": "ElectraForTokenClassification", "config": {**SMALL, **LABELS}},
    "small answers": {"class": "ElectraForQuestionAnswering", "config": {**SMALL, **ANSWERS}},
    "small generator": {"class": "ElectraForMaskedLM", "config": SMALL},
    "small generator, untied": {"class": "ElectraForMaskedLM", "config": {**SMALL, **UNTIED}},
    "generator": {"class": "ElectraForMaskedLM", "config": {**BASE, "embedding_size": 24}},
    "small pretraining": {"class": "ElectraForPreTraining", "config": SMALL},
    "multilingual": {"class": "XLMRobertaForSequenceClassification", "config": MULTILINGUAL},
    "multilingual tokens": {
        "class": "XLMRobertaForTokenClassification",
        "config": {**MULTILINGUAL, **LABELS},
    },
    "multilingual answers": {
        "class": "XLMRobertaForQuestionAnswering",
        "config": {**MULTILINGUAL, **ANSWERS},
    },
    "multilingual masked": {"class": "XLMRobertaForMaskedLM", "config": MULTILINGUAL},
    "multilingual masked, untied": {
        "class": "XLMRobertaForMaskedLM",
        "config": {**MULTILINGUAL, **UNTIED},
    },
    "french masked": {"class": "CamembertForMaskedLM", "config": FRENCH},
    "french": {"class": "CamembertForSequenceClassification", "config": FRENCH},
    "french tokens": {"class": "CamembertForTokenClassification", "config": {**FRENCH, **LABELS}},
    **{
        f"{name} score": {"class": f"{kind}ForSequenceClassification", "config": {**config, **ONE}}
        for name, kind, config in SIX
    },
    **{
        f"{name} sets": {"class": f"{kind}ForSequenceClassification", "config": {**config, **SETS}}
        for name, kind, config in SIX
    },
    "robust body": {"class": "RobertaModel", "config": ROBUST},
}

SCORES = [name for name in CASES if name.endswith(" score")]


def texts_of(family):
    """Returns the texts of a family, for its pipelines."""
    if family in unigram_folders.FAMILIES:
        return unigram_folders.TEXTS
    return roberta_folders.TEXTS if family == "roberta" else TEXTS


@functools.cache
def folder():
    """Returns the folder of all cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(CASES))
    known = {
        "bert": {"pieces": PIECES, "texts": TEXTS},
        "roberta": {
            "pieces": roberta_folders.PIECES,
            "merges": roberta_folders.MERGES,
            "texts": roberta_folders.TEXTS,
        },
    }
    (place / "pairs.json").write_text(json.dumps(PAIRS))
    (place / "scored.json").write_text(json.dumps(SCORED))
    for family in unigram_folders.FAMILIES:
        charsmap = base64.b64encode(unigram_folders.charsmap()).decode()
        pieces = unigram_folders.scored(family)
        texts = {"pieces": pieces, "charsmap": charsmap, "texts": texts_of(family)}
        known[family] = texts
    for family, content in known.items():
        content["masked"] = masked_texts("[MASK]" if family == "bert" else "<mask>")
    (place / "texts.json").write_text(json.dumps(known))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in CASES:
        family = json.loads((place / name / "config.json").read_text())["model_type"]
        if family == "roberta":
            roberta_folders.write_vocabulary(place / name)
        elif family in unigram_folders.FAMILIES:
            content = json.dumps(unigram_folders.tokenizer_json(family))
            (place / name / "tokenizer.json").write_text(content)
        else:
            (place / name / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    return place


def case_of(name):
    """The folder of a case, and what the other Python computed."""
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    return folder() / name, np.load(folder() / f"{name}.npz")


@pytest.mark.parametrize("name", CASES)
def test_states_and_logits(name):
    path, expected = case_of(name)
    model = read_checkpoint(path).model
    ids = expected["ids"].astype("int32")
    tokens, real = model.parts.input, ids != model.config.tokens.pad_id
    states = model.encoder(tokens(ids, training=False), tokens.padding_mask(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected["states"][real], rtol=0, atol=1e-5)
    if "logits" in expected:
        logits = model(ids, training=False).numpy()
        every = ... if logits.ndim == 2 else real & (logits > -1e8).any(axis=-1)
        assert np.any(logits[every])
        np.testing.assert_allclose(logits[every], expected["logits"][every], rtol=0, atol=1e-5)
        if not CASES[name]["class"].endswith("Classification") or name in SCORES:
            return
        labels = tuple(CASES[name]["config"]["id2label"].values())
        assert model.config.head.labels == labels


@pytest.mark.parametrize(
    "name",
    [n for n in CASES if CASES[n]["class"].endswith("Classification") and n not in SCORES],
)
def test_answers_of_pipelines(name):
    """Texts have the same labels in the same order, and words the label of their first token."""
    path, _ = case_of(name)
    theirs = json.loads((path.parent / f"{name}.json").read_text())
    pipeline = from_pretrained(path)
    texts = texts_of(json.loads((path / "config.json").read_text())["model_type"])
    if name.endswith(" sets"):
        check_sets(pipeline, [*texts, LONG], theirs)
        return
    assert len(theirs) == len(texts)
    for text, ours, rows in zip(texts, pipeline.answer(texts), theirs, strict=True):
        if CASES[name]["class"].endswith("SequenceClassification"):
            assert ours.label == rows[0]["label"]
            ranked = [pipeline.labels[number] for number in np.argsort(-ours.probabilities)]
            assert ranked == [row["label"] for row in rows]
            scores = [row["score"] for row in rows]
            np.testing.assert_allclose(-np.sort(-ours.probabilities), scores, rtol=0, atol=1e-5)
            continue
        if ours.truncated or "  " in text or "\u00a0" in text:  # spaces that have tokens there
            continue
        first = {row["start"]: row for row in reversed(rows)}
        starts = [n for n in range(len(text)) if text[n] != " " and (n == 0 or text[n - 1] == " ")]
        assert list(ours.labels) == [first[start]["label"] for start in starts]
        scores = [first[start]["score"] for start in starts]
        np.testing.assert_allclose(ours.probabilities.max(axis=-1), scores, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_pairs(name):
    """A reranker has the logit of each pair, also of pairs that are truncated."""
    path, _ = case_of(name)
    theirs = json.loads((path.parent / f"{name}.json").read_text())
    results = from_pretrained(path).answer(SCORED)
    assert any(result.truncated for result in results[len(PAIRS) :])
    logits = [logit for _, logit in theirs]
    assert np.ptp(logits) > 1e-3
    np.testing.assert_allclose([one.logit for one in results], logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if "QuestionAnswering" in CASES[n]["class"]])
def test_answers_to_questions(name):
    path, _ = case_of(name)
    theirs = json.loads((path.parent / f"{name}.json").read_text())
    results = from_pretrained(path).answer(PAIRS)
    assert len({result.text for result in results}) > 3
    for (_, passage), ours, (text, score, begin, end, none) in zip(
        PAIRS, results, theirs, strict=True
    ):
        assert (ours.text, ours.begin) == (text, len(passage[:begin].encode()))
        assert ours.end == len(passage[:end].encode())
        assert ours.probability == pytest.approx(score, abs=1e-5)
        assert ours.no_answer == pytest.approx(none, abs=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n]["class"].endswith("MaskedLM")])
def test_words_for_masks(name):
    """The best five words of each mask and their probabilities, as in the pipeline."""
    path, _ = case_of(name)
    theirs = json.loads((path.parent / f"{name}.json").read_text())
    family = json.loads((path / "config.json").read_text())["model_type"]
    brackets = family in ("bert", "distilbert", "electra")
    texts = masked_texts("[MASK]" if brackets else "<mask>")
    check_words(from_pretrained(path).answer(texts), theirs)
