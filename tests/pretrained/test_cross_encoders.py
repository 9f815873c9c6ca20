"""Checkpoints with one logit against their arithmetic in NumPy, and their activations."""

import json

import bert_folders
import bert_in_numpy
import bert_in_python
import numpy as np
import pytest

from keras_transformer import from_pretrained
from keras_transformer.pipelines import Reranker
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

ONE = {"id2label": {"0": "LABEL_0"}}
IDENTITY = "torch.nn.modules.linear.Identity"
PAIRS = [
    ("a dog", "the film is very good."),
    ("the film is very good.", "a dog"),
    ("", "cats"),
    ("a cat", ""),
    ("good film", "a good film, a very bad film, a good dog and a bad cat"),
    ("good dog " * 9, "the film is bad " * 9),
]


def logit(settings, tensors, query, passage, longest=21):
    known = {piece: number for number, piece in enumerate(bert_folders.PIECES)}
    texts = [list(bert_in_python.ids(text, known, True)[1:-1]) for text in (query, passage)]
    while sum(map(len, texts)) > longest - 3:  # both texts get equal shares of an even space
        max(texts, key=len).pop()
    row = [3, *texts[0], 4, *texts[1], 4]
    types = [0] * (len(texts[0]) + 2) + [1] * (len(texts[1]) + 1)
    states = bert_in_numpy.forward(tensors, settings, np.array([row]), np.array([types]))[0]
    first = states.reshape(-1, states.shape[-1])[0]
    dense = tensors["bert.pooler.dense.weight"], tensors["bert.pooler.dense.bias"]
    pooled = np.tanh(dense[0] @ first + dense[1])
    return float((tensors["classifier.weight"] @ pooled + tensors["classifier.bias"])[0])


@pytest.mark.slow
@pytest.mark.parametrize("function", [None, IDENTITY])
def test_scores_are_those_of_the_checkpoint(function, tmp_path):
    named = {} if function is None else {"sentence_transformers": {"activation_fn": function}}
    settings, tensors = bert_folders.write_folder(tmp_path / "hf", **ONE, **named)
    reranker = from_pretrained(tmp_path / "hf")
    assert isinstance(reranker, Reranker)
    results = reranker.answer(PAIRS)
    for pair, result in zip(PAIRS, results, strict=True):
        expected = logit(settings, tensors, *pair)
        assert result.logit == pytest.approx(expected, abs=1e-5)
        score = expected if function else 1 / (1 + np.exp(-expected))
        assert result.value == pytest.approx(score, abs=1e-5)
        assert result.truncated == (len(pair[0]) > 50)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(PAIRS) == [result.text for result in results]


@pytest.mark.parametrize(
    ("settings", "of_all", "expected"),
    [
        ({"sbert_ce_default_activation_function": IDENTITY}, {}, "none"),
        ({"sentence_transformers": {"version": "4.0.1"}}, {}, "sigmoid"),
        # A section with the newer name hides the older one, even if it is null.
        (
            {
                "sentence_transformers": {"activation_fn": None},
                "sbert_ce_default_activation_function": IDENTITY,
            },
            {},
            "sigmoid",
        ),
        ({"sentence_transformers": {"activation_fn": "my.module.Function"}}, {}, "sigmoid"),
        (
            {"sentence_transformers": {"activation_fn": "torch.nn.Sigmoid"}},
            {"activation_fn": IDENTITY},
            "none",
        ),
    ],
)
def test_the_activation_is_found_as_in_sentence_transformers(settings, of_all, expected, tmp_path):
    bert_folders.write_folder(tmp_path, **ONE, **settings)
    name = tmp_path / "config_sentence_transformers.json"
    name.write_text(json.dumps({"model_type": "CrossEncoder", **of_all}))
    kinds = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.x.Transformer"}]
    (tmp_path / "modules.json").write_text(json.dumps(kinds))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 12}))
    config = read_checkpoint(tmp_path).model.config
    assert config.head.score_activation == expected
    assert config.max_length == 12


def test_another_activation_is_refused(tmp_path):
    named = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}
    bert_folders.write_folder(tmp_path, **ONE, **named)
    with pytest.raises(ValueError, match="`activation_fn` must be one of PyTorch's Sigmoid"):
        from_pretrained(tmp_path)
