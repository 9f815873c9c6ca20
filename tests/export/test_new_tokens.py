"""Limits of new tokens in exports: those of a prompt or a forced beginning do not count."""

import functools

import numpy as np
import pytest
from exporting import asked
from pipelines import SIZES, tokenizer, with_larger_weights
from searching import by_greedy

from keras_transformer import (
    Beam,
    Greedy,
    LanguageModel,
    Transformer,
    TransformerConfig,
    Translator,
)
from keras_transformer.export import LiteRTOptions, SavedModelOptions
from keras_transformer.export.ctranslate2.export import export_ctranslate2
from keras_transformer.export.ctranslate2.translator import (
    CTranslate2TextGenerator,
    CTranslate2Translator,
)
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.models import LanguageModelConfig
from keras_transformer.pipelines import TextGenerator

NEW, LONGEST = 5, 32
# Of 0 to about 20 tokens, and one that leaves only some positions.
PROMPTS = ["", "dog", "a cat", "the big dog", "the big dog and the cat runs", "the " * 20]
BEAM = Beam(3, 0.0, normalization="power", extra_length=None, max_length=NEW)


@functools.cache
def generator(search=Greedy(NEW)):
    sizes = {**SIZES, "max_length": LONGEST, "dropout": 0.0}
    config = LanguageModelConfig(vocab_size=30, **sizes, tie="none")
    model = with_larger_weights(LanguageModel(config))
    kernel = model.output_layer.kernel.numpy()
    kernel[:, [0, 2, 3]] *= 0.2  # no padding, and few ends
    model.output_layer.kernel.assign(kernel)
    return TextGenerator(model, tokenizer(), search=search)


@functools.cache
def texts(search):
    """Returns the run's outputs, each computed alone."""
    return [generator()([prompt], search)[0] for prompt in PROMPTS]


def require_equal(outputs, search):
    """Requires the outputs of the run, each computed alone."""
    assert [output.text for output in outputs] == texts(search)


@pytest.mark.slow
def test_prompts_of_all_lengths_get_new_tokens_in_a_run():
    prompts = tokenizer().encode(PROMPTS)
    lengths = prompts.row_lengths().numpy() - 1
    assert lengths[0] == 0 and 18 <= max(lengths) <= LONGEST - NEW
    tokens, _ = by_greedy(generator().model, prompts.to_tensor(0), NEW)
    new = np.count_nonzero(tokens, axis=1) - lengths
    assert new.max() == NEW and (new == NEW).sum() > 2
    found = [text.decode() for text in tokenizer().decode(tokens).numpy()]
    (outputs,) = zip(*generator().n_best(PROMPTS, 1, Greedy(NEW)), strict=True)
    assert [output.text for output in outputs] == found == texts(Greedy(NEW))


@pytest.mark.long
@pytest.mark.slow
def test_in_a_saved_model(tmp_path, search=BEAM, jit=False):
    shapes = {"batch_sizes": (4,), "lengths": (LONGEST,)} if jit else {}
    export_saved_model(
        generator(search), tmp_path / "1", PROMPTS, **asked(SavedModelOptions, jit=jit, **shapes)
    )
    require_equal(SavedModelTranslator(tmp_path / "1").answer_batch(PROMPTS), search)


@pytest.mark.slow
@pytest.mark.long
def test_in_a_signature_with_settings(tmp_path):
    export_saved_model(generator(Greedy()), tmp_path / "1", PROMPTS)
    loaded = SavedModelTranslator(tmp_path / "1", Beam(1, max_length=NEW))
    require_equal(loaded.answer_batch(PROMPTS), Greedy(NEW))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, pytest.param(3, marks=pytest.mark.long)])
def test_in_litert(batch, tmp_path):
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "model.tflite"
    beam = Beam(3, 0.0, normalization="power", extra_length=None)
    sizes = {"lengths": (LONGEST,), "batch_sizes": (1, batch) if batch > 1 else (1,)}
    export_litert(generator(), path, PROMPTS, **asked(LiteRTOptions, search=beam, **sizes))
    require_equal(LiteRTTranslator(path, Greedy(NEW)).answer_batch(PROMPTS), Greedy(NEW))
    require_equal(LiteRTTranslator(path, BEAM).answer_batch(PROMPTS), BEAM)
    with pytest.raises(ValueError, match=f"`max_length` of the greedy search of .* is {NEW}, whic"):
        LiteRTTranslator(path, Greedy(NEW + 1))


@pytest.mark.long
@pytest.mark.slow
def test_in_ctranslate2(tmp_path):
    pytest.importorskip("ctranslate2")
    export_ctranslate2(generator(), tmp_path / "ct2", PROMPTS)
    for search in (Greedy(), Greedy(NEW), BEAM):
        loaded = CTranslate2TextGenerator(tmp_path / "ct2", search)
        right = Greedy(NEW) if search == Greedy() else search
        require_equal(loaded.answer_batch(PROMPTS), right)
    (alone,) = CTranslate2TextGenerator(tmp_path / "ct2").answer_batch(PROMPTS[4:5])
    assert alone.text == texts(Greedy(NEW))[4]


def translator(search, **rules):
    sizes = {**SIZES, "max_length": LONGEST, "dropout": 0.0}
    config = TransformerConfig(vocab_size=30, **sizes, tie="none", **rules)
    model = with_larger_weights(Transformer(config))
    kernel = model.output_layer.kernel.numpy()
    kernel[:, [0, 2, 3]] *= 0.2
    model.output_layer.kernel.assign(kernel)
    return Translator(model, tokenizer(), search=search)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "rules", "limits"),
    [(Greedy(3), {"forced_bos_id": 9}, {4})],
    ids=["forced beginning"],
)
def test_limits_of_translations_in_ctranslate2(search, rules, limits, tmp_path):
    """Sentences of several lengths, whose outputs have limits of their own, share a call."""
    pytest.importorskip("ctranslate2")
    ours = translator(search, **rules)
    sentences = PROMPTS[1:]
    export_ctranslate2(ours, tmp_path / "ct2", sentences)
    loaded = CTranslate2Translator(tmp_path / "ct2")
    expected = ours.n_best(sentences, 1, search)
    assert [one.text for one in loaded.answer_batch(sentences)] == [x.text for (x,) in expected]
    lengths = tokenizer().encode(sentences).row_lengths().numpy()
    found = [loaded.limit([5] * (length - 1) + [3]) for length in lengths]
    assert found == [ours.limit(search, int(length)) for length in lengths]
    assert {*found} == limits
    assert not all(one.complete for (one,) in expected), "limits are reached"


@pytest.mark.long
@pytest.mark.slow
def test_a_forced_beginning_is_not_new_in_litert(tmp_path):
    pytest.importorskip("ai_edge_litert")
    ours, path = translator(Greedy(3), forced_bos_id=9), tmp_path / "model.tflite"
    beam = Beam(2, max_length=3)
    export_litert(ours, path, PROMPTS[1:], LiteRTOptions(search=beam, lengths=(LONGEST,)))
    for search in (Greedy(3), beam):
        expected = [best.text for (best,) in ours.n_best(PROMPTS, 1, search)]
        assert [
            one.text for one in LiteRTTranslator(path, search).answer_batch(PROMPTS)
        ] == expected
    assert LiteRTTranslator(path, Greedy(3)).signatures[0].target_length == 4
