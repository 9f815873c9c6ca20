"""Token ids that are not a sentence, in a .tflite file and in its translator."""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from litert_files import translator_of, untrained_translator
from marks import slow

from keras_transformer import Transformer, TransformerConfig
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.source_ids import RULE, check_source_ids
from keras_transformer.tasks import signatures
from keras_transformer.tasks.generator import signature_of_ids

pytest.importorskip("ai_edge_litert")

PAD, UNK, BOS, EOS = range(4)
VOCABULARY, LENGTH, LIMIT = 11, 5, 7
SIGNATURES = [
    FixedSignature("greedy_1", 1, LENGTH, LIMIT, alignment=(0, 1)),
    FixedSignature("greedy_3", 3, LENGTH, LIMIT),
    FixedSignature("beam_1", 1, LENGTH, LIMIT, 4, 2),
    FixedSignature("beam_3", 3, LENGTH, LIMIT, 4, 2),
]
FEW = [SIGNATURES[0], SIGNATURES[3]]  # each search, each batch size, with and without alignment
RIGHT = [
    [7, 9, EOS, PAD, PAD],
    [EOS, PAD, PAD, PAD, PAD],
    [10, UNK, 4, 8, EOS],
]
WRONG = {
    "only padding": [PAD] * LENGTH,
    "no end": [7, 9, 4, PAD, PAD],
    "no end, full": [7, 9, 4, 5, 6],
    "negative": [7, -1, EOS, PAD, PAD],
    "the lowest": [np.iinfo(np.int32).min, 9, EOS, PAD, PAD],
    "negative after the end": [7, 9, EOS, PAD, -1],
    "too large": [7, VOCABULARY, EOS, PAD, PAD],
    "the highest": [7, np.iinfo(np.int32).max, EOS, PAD, PAD],
    "padding first": [PAD, 7, 9, EOS, PAD],
    "padding inside": [7, PAD, 9, EOS, PAD],
    "an end inside": [7, EOS, 9, EOS, PAD],
    "two ends": [7, 9, EOS, EOS, PAD],
    "a token after the end": [7, 9, EOS, 5, PAD],
    "a token after the padding": [7, 9, EOS, PAD, 5],
    "bos": [BOS, 7, 9, EOS, PAD],
}


def test_only_the_token_that_begins_may_stand_for_unknown_text():
    ids = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS, "vocab_size": VOCABULARY}
    ids |= {"languages": None, "starts_with_bos": False}
    begins = types.SimpleNamespace(**{**ids, "unk_id": BOS})
    check_source_ids([[7, BOS, EOS]], begins)  # as in MADLAD-400
    for role in ("pad", "eos"):
        ends = types.SimpleNamespace(**{**ids, "unk_id": ids[f"{role}_id"]})  # as in GPT-2
        with pytest.raises(ValueError, match=f"has {role}_id before its end"):
            check_source_ids([[7, ends.unk_id, 9, EOS]], ends)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    return Transformer(
        TransformerConfig(
            vocab_size=VOCABULARY, num_layers=1, d_model=8, d_ff=12, num_heads=2, max_length=LIMIT
        )
    )


@pytest.fixture(
    scope="module",
    params=["none", pytest.param("int8", marks=[pytest.mark.slow, pytest.mark.long])],
)
def quantize(request):
    return request.param


@pytest.fixture(scope="module")
def checked(model, quantize):
    """Functions from `source` to the outputs, by signature."""
    return _runners(model, quantize)


@pytest.fixture(scope="module")
def unchecked(model, quantize):
    """The same functions without the check of the ids."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            signatures.Signature, "lenient", lambda self, **inputs: self.function(**inputs)
        )
        return _runners(model, quantize)


def _runners(model, quantize):
    from ai_edge_litert.interpreter import Interpreter

    chosen = FEW if quantize == "none" else SIGNATURES
    interpreter = Interpreter(
        model_content=conversion.convert(translator_of(model), chosen, quantize)
    )
    return {signature.name: _runner(interpreter, signature) for signature in chosen}


def _runner(interpreter, signature):
    run = interpreter.get_signature_runner(signature.name)
    controls = {}
    if signature.beam_size is not None:
        controls["max_length"] = np.full(signature.batch_size, LIMIT, np.int32)
        controls["length_penalty"] = np.array([0.6], np.float32)
    return lambda rows: run(source=np.array(rows, np.int32), **controls)


def is_nothing(outputs, row):
    assert not outputs["tokens"][row].any()
    assert (outputs["score"][row] == -1e9).all()
    assert not outputs["length"][row].any()
    return "alignment" not in outputs or not outputs["alignment"][row].any()


@pytest.mark.long
@pytest.mark.slow
def test_valid_ids_give_bitwise_the_outputs_without_the_check(checked, unchecked):
    batches = {"1": [[row] for row in RIGHT], "3": [RIGHT]}
    for name, run in checked.items():
        for batch in batches[name[-1]]:
            outputs, expected = run(batch), unchecked[name](batch)
            assert outputs.keys() == expected.keys()
            for key, value in expected.items():
                np.testing.assert_array_equal(outputs[key], value)
            assert outputs["length"].all() and (outputs["score"] > -100).all()


@pytest.mark.parametrize("kind", [slow(kind) for kind in WRONG])
def test_wrong_ids_give_an_empty_output(checked, kind):
    for name in checked.keys() & {"greedy_1", "beam_1"}:
        outputs = checked[name]([WRONG[kind]])
        shape = (1, LIMIT) if name == "greedy_1" else (1, 2, LIMIT)
        assert outputs["tokens"].shape == shape
        assert is_nothing(outputs, 0)


@pytest.mark.parametrize("place", range(3))
def test_wrong_ids_in_a_batch_do_not_affect_the_other_rows(checked, place):
    names = checked.keys() & {"greedy_3", "beam_3"}
    for name, wrong in itertools.product(names, WRONG.values()):
        expected = checked[name](RIGHT)
        outputs = checked[name]([*RIGHT[:place], wrong, *RIGHT[place + 1 :]])
        assert is_nothing(outputs, place)
        others = [row for row in range(3) if row != place]
        for key in ("tokens", "length"):
            np.testing.assert_array_equal(outputs[key][others], expected[key][others])
        np.testing.assert_allclose(outputs["score"][others], expected["score"][others], rtol=1e-5)


def test_a_vocabulary_without_its_own_start_token_loses_no_id():
    """If decoding starts with eos or pad, that token follows the rules of eos or pad."""
    for bos in (PAD, EOS):
        config = TransformerConfig(
            vocab_size=VOCABULARY, num_layers=1, d_model=8, d_ff=8, num_heads=1, bos_id=bos
        )
        signature = signature_of_ids(lambda source: {"length": tf.ones([3], tf.int32)}, config)
        assert signature.lenient(source=tf.constant(RIGHT))["length"].numpy().tolist() == [1, 1, 1]


@pytest.fixture(scope="module")
def translator(tokenizer):
    return untrained_translator(tokenizer)


@pytest.fixture(scope="module")
def file(translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("ids") / "x.tflite"
    export_litert(
        translator,
        path,
        ["in 3", "after 7 days"],
        LiteRTOptions(lengths=[6, 12], source_language="en", target_language="de"),
    )
    return path


def test_the_metadata_state_the_rule_and_the_languages(file):
    metadata = LiteRTTranslator(file).metadata
    assert metadata["source"] == RULE
    assert (metadata["source_language"], metadata["target_language"]) == ("en", "de")


@pytest.mark.parametrize(
    "source, message",
    [
        ([], r"`sources\[1\]` does not end in eos_id: a source must .* 3. Received: \[\]"),
        ([7, 9], r"`sources\[1\]` does not end in eos_id.* Received: \[7, 9\]"),
        ([7, 9, 3, 0], r"does not end in eos_id.* Received: \[7, 9, 3, 0\]"),
        ([7, -1, 3], r"has the id -1, which is not in the vocabulary of \d+\D"),
        ([10**6, 3], r"has the id 1000000, which is not in the vocabulary of \d+\D"),
        ([7, 3, 8, 3], "has eos_id before its end"),
        ([7, 0, 3], "has pad_id before its end"),
        ([2, 7, 3], "has bos_id before its end"),
        ([7.0, 3], "contains something other than integers"),
        ([7] * 12 + [3], r"`sources\[1\]` has 13 tokens .* largest signature, greedy_1x12, takes"),
    ],
)
def test_the_translator_refuses_wrong_ids(file, source, message):
    with pytest.raises(ValueError, match=message):
        LiteRTTranslator(file).decode([[7, 3], source])


@pytest.mark.parametrize("sources", [[7, 3], ["in 3 weeks"], "in 3 weeks"])
def test_the_translator_refuses_anything_but_a_list_of_lists(file, sources):
    with pytest.raises(TypeError, match="`sources` must be a list of lists of token ids. Received"):
        LiteRTTranslator(file).decode(sources)


def test_a_given_signature_takes_no_longer_ids(file):
    loaded = LiteRTTranslator(file)
    short, long = loaded.signatures
    with pytest.raises(ValueError, match="has 7 tokens .* signature, greedy_1x6, takes 6"):
        loaded.decode([[7] * 6 + [EOS]], short)
    tokens, scores = loaded.decode([[7] * 6 + [EOS]], long)
    assert tokens.any() and (scores < 0).all()
    other = FixedSignature("greedy_1x8", 1, 8, 12)
    with pytest.raises(ValueError, match="must be one of .*: greedy_1x6, greedy_1x12. .*1x8"):
        loaded.decode([[7, EOS]], other)
