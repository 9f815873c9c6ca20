"""Converted Llamas and Qwens in CTranslate2: the run's tokens, greedily and with a beam."""

import dataclasses

import llama_folders
import numpy as np
import pytest

from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.export import CTranslate2Options, ExportError, export_ctranslate2
from keras_transformer.export.ctranslate2 import stacks
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.installation import install_hint

pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))
pytestmark = pytest.mark.slow

WORDS = ["A", "dog", "is", "the", "film", "2123", "cats", "good", "bad", "and"]
RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(RANDOM.choice(WORDS, RANDOM.integers(1, 5))) for _ in range(60)]
# CTranslate2 does not count the first token of a prompt that no token begins.
BEAMS = {
    False: Beam(4, normalization="average", extra_length=None),
    True: Beam(4, length_penalty=0.0, extra_length=None),
}
CASES = {
    "llama3": ("llama3", {}),
    "llama without scaling, tied": (
        "llama3",
        {"rope_scaling": None, "tie_word_embeddings": True, "num_key_value_heads": 6},
    ),
    "smollm": ("smollm", {}),
    "smollm untied": ("smollm", {"tie_word_embeddings": False, "rope_scaling": None}),
    "qwen2": ("qwen2", {}),
    "qwen2 tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", {}),
}


def generator_of(folder, kind, changes):
    """Returns the pipeline of a checkpoint whose outputs depend on the prompt, and often end."""
    llama_folders.write_folder(folder, kind, max_position_embeddings=60, **changes)
    pipeline = from_pretrained(folder)
    model, end = pipeline.model, pipeline.model.config.tokens.eos_id
    for weight in model.weights:
        if weight.path.endswith(("query/kernel", "query_norm/scale")):
            weight.assign(4 * weight)
    if model.config.head.is_tied:
        weight, column = model.embedding.table, (end, slice(None))
    else:
        weight, column = model.output_layer.kernel, (slice(None), end)
    values = weight.numpy()
    values[column] *= 5
    weight.assign(values)
    return pipeline


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_tokens_are_those_of_the_run(name, tmp_path):
    pipeline = generator_of(tmp_path / "hf", *CASES[name])
    report = export_ctranslate2(pipeline, tmp_path / "m", TEXTS)
    scores = [best.score for best in pipeline.answer_batch(TEXTS, search=pipeline.greedy)]
    assert report["agreement"] == 1
    assert report["score_difference"] < 1e-6 * max(map(abs, scores))  # sums of up to 60 terms
    greedy = open_ctranslate2(tmp_path / "m", num_threads=1).answer_batch(TEXTS)
    texts = [best.text for best in greedy]
    assert texts == pipeline(TEXTS, search=pipeline.greedy) and len({*texts}) > 30
    assert report["beam_sentences"] >= 5 and report["beam_agreement"] == 1
    search = BEAMS[pipeline.model.config.decoder.hides_start]
    beam = open_ctranslate2(tmp_path / "m", search).answer_batch(TEXTS)
    expected = pipeline.answer_batch(TEXTS, search=search)
    # Outputs that end right after the prompt, or at the limit, differ: see `export_ctranslate2`.
    same = [ours.text == theirs.text for ours, theirs in zip(beam, expected, strict=True)]
    assert sum(same) >= report["beam_sentences"]


@pytest.mark.long
def test_the_folder_of_a_llama_in_int8(tmp_path):
    pipeline = generator_of(tmp_path / "hf", *CASES["llama3"])
    report = export_ctranslate2(
        pipeline, tmp_path / "m", TEXTS, CTranslate2Options("int8", max_score_loss=0.2)
    )
    assert report["in_float32"]["score_error"] < 0.2


def test_positions_without_their_scaling_are_detected(tmp_path, monkeypatch):
    """Without the factor, CTranslate2 divides no position and reports nothing."""
    pipeline = generator_of(tmp_path / "hf", *CASES["llama3"])
    monkeypatch.setattr(stacks, "vars", lambda spec: {}, raising=False)
    with pytest.raises(ExportError, match="differ from those of the model in memory"):
        export_ctranslate2(pipeline, tmp_path / "m", TEXTS)
    assert not (tmp_path / "m").exists()


@pytest.mark.long
def test_each_of_several_end_tokens_ends_an_output(tmp_path):
    pipeline = generator_of(tmp_path / "hf", "llama3", {})
    config, texts = pipeline.model.config, TEXTS[:20]
    ids = pipeline.source_tokenizer.encode(texts)
    padded = ids.to_tensor(config.tokens.pad_id)
    plain = Greedy()(pipeline.model, padded).tokens[:, 0].numpy()
    rest = [row[len(prompt) - 1 :] for row, prompt in zip(plain, ids.to_list(), strict=True)]
    words = np.bincount(np.concatenate(rest), minlength=config.tokens.vocab_size)
    words[[config.tokens.pad_id, config.tokens.bos_id, config.tokens.eos_id]] = 0
    further = int(words.argmax())  # the most frequent token of all outputs
    config = dataclasses.replace(config, end_ids=(further,))
    model = type(pipeline.model)(config)
    model.set_weights(pipeline.model.get_weights())
    ended = pipeline.with_model(model)
    assert export_ctranslate2(ended, tmp_path / "m", texts)["agreement"] == 1
    found = open_ctranslate2(tmp_path / "m", search=Greedy())
    tokens, scores = found.decode(ids.to_list())
    ours = Greedy()(model, padded)
    assert (tokens[:, 0] != plain).any()
    np.testing.assert_array_equal(tokens[:, 0], ours.tokens[:, 0])
    np.testing.assert_allclose(scores[:, 0], ours.scores[:, 0], rtol=0, atol=1e-3)
