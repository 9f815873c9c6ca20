"""Files with `unrolled`: functions without loops, whose step a program repeats."""

import json
import re
import shutil
import subprocess
import sys
import zipfile

import mixer_rows
import numpy as np
import pytest
import tensorflow as tf
from documents import blocks
from litert_files import functions_of
from marks import long, slow_except
from pipelines import classifier
from support import randomise, run_benchmark, small_config, small_fields, with_effect

import keras_transformer
from keras_transformer import Beam, LanguageModel, Transformer, Translator
from keras_transformer.decoding import Shortlist
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import searches
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.unrolled import StateTensor, UnrolledSearch
from keras_transformer.models import LanguageModelConfig
from keras_transformer.pipelines import TextGenerator

pytest.importorskip("ai_edge_litert")

# The rest of the program in docs/accelerators.md, which calls its function.
REST = """
import sys
rows = []
for ids in json.loads(sys.argv[1]):
    source = np.full([1, 16], metadata["tokens"]["pad"], np.int32)
    source[0, : len(ids)] = ids
    (signature,) = metadata["signatures"]
    rows.append(search(signature["unrolled"], source=source)["tokens"][0].tolist())
imported = {name.partition(".")[0] for name in sys.modules}
assert not imported & {"tensorflow", "keras", "keras_transformer"}
print(json.dumps(rows))
"""
FEW = ["in 3 weeks", "after 12 hours and 30 minutes", "in 45 days", "weeks"]
LOOPS = {"WHILE", "IF", "CALL", "CALL_ONCE", "CUSTOM"}


@pytest.fixture(scope="module")
def unrolled(light, tmp_path_factory):
    """The path and the report of a file of a small model."""
    path = tmp_path_factory.mktemp("unrolled") / "x.tflite"
    return path, export_litert(light, path, FEW, LiteRTOptions(lengths=(16,), unrolled=True))


def require_no_loops(path):
    """Requires that a file has no loops, and that a delegate for fixed shapes can run it."""
    for name, function in functions_of(path).items():
        assert not function.operators & LOOPS, name
        # LiteRT's delegate for GPUs would run the layers before and after it apart.
        assert "DYNAMIC_UPDATE_SLICE" not in function.operators, name
        assert function.operators and function.is_fixed, name
        assert function.is_computed, f"an output of {name} is an input or a constant"
        assert not function.has_twins, f"two outputs of {name} are one tensor"


def test_a_file_has_no_loops_and_fixed_shapes(unrolled):
    path, report = unrolled
    require_no_loops(path)
    names = ["encode_greedy_1x16", "step_greedy_1x16"]
    assert report["signatures"] == names == sorted(functions_of(path))


def test_it_answers_as_the_model_does(unrolled, light, sentences):
    opened = keras_transformer.open(unrolled[0])
    expected, answers = light.answer(sentences), opened.answer(sentences)
    assert [one.text for one in answers] == [one.text for one in expected]
    assert [one.complete for one in answers] == [one.complete for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in answers] == pytest.approx(scores, abs=1e-4)
    assert len({one.text for one in answers}) > 25


def test_an_invalid_row_has_no_output(unrolled):
    loaded = LiteRTTranslator(unrolled[0])
    source = np.full([1, 16], loaded.tokenizers.source.vocab_size, np.int32)
    outputs = loaded.signatures[0].run(loaded.run_signature, source=source)
    assert outputs["length"] == 0 and outputs["score"] == np.float32(-1e9)
    assert not outputs["tokens"].any() and outputs["complete"] == 1


def test_a_program_that_knows_only_the_metadata_runs_it(unrolled, light, tmp_path):
    """It loops over the names of the tensors, and has no package but LiteRT."""
    ids = light.source_tokenizer.encode(FEW).to_list()
    (block,) = [one for one in blocks("docs/accelerators.md", "python")]
    shutil.copy(unrolled[0], tmp_path / "demo.tflite")
    done = subprocess.run(
        [sys.executable, "-c", block.code + REST, json.dumps(ids)],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    tokens, _ = LiteRTTranslator(unrolled[0]).decode(ids)
    assert json.loads(done.stdout) == tokens[:, 0].tolist()


def test_the_metadata_describe_the_state(unrolled):
    metadata = json.loads(zipfile.ZipFile(unrolled[0]).read("metadata.json"))
    signature = metadata["signatures"][0]["unrolled"]
    state = {one["name"]: one for one in signature["state"]}
    functions = functions_of(unrolled[0])
    assert set(functions[signature["encode"]].outputs) == {*state}
    step = functions[signature["step"]]
    assert set(step.inputs) == {"source", *state}
    changed = {name for name, one in state.items() if one["changes"]}
    assert changed == {*step.outputs} & {*state} and {"running", "tokens"} <= {*step.outputs}
    for name, one in state.items():
        assert (tuple(one["shape"]), one["dtype"]) == step.inputs[name]
    kept = {name for name in state if name not in changed}
    assert any("memory_heads" in name for name in kept) and not any("cache" in n for n in kept)


def test_a_search_that_does_not_end_is_an_error():
    search = UnrolledSearch("encode", "step", (StateTensor("state_index", "int32", (1,), True),))
    outputs = {"running": np.ones(1, np.int32), "state_index": np.zeros(1, np.int32)}
    with pytest.raises(ExportError, match="^step did not end within 5 steps"):
        search.run(lambda name, **inputs: outputs, 5, source=np.zeros([1, 3], np.int32))


def test_what_it_cannot_be_used_with_is_refused(light, tmp_path):
    with pytest.raises(ValueError, match="`tokenizer` has no effect with `unrolled`"):
        LiteRTOptions(tokenizer=True, unrolled=True)
    with pytest.raises(ValueError, match="`unrolled` has no effect on a model for classification"):
        export_litert(classifier(), tmp_path / "x", ["a"], LiteRTOptions(unrolled=True))
    pairs = [(7, 8, 1), (9, 10, 1)]
    shortlist = Shortlist.from_counts(pairs, light.source_tokenizer.vocab_size, 4, 2)
    with pytest.raises(ExportError, match="`unrolled` needs a model without a shortlist"):
        options = LiteRTOptions(unrolled=True)
        export_litert(light.with_shortlist(shortlist), tmp_path / "x", FEW, options)


def test_a_model_with_a_loop_is_refused():
    @tf.function
    def loop(x):
        return tf.while_loop(lambda x: tf.reduce_all(x < 9), lambda x: x + 1, [x])

    function = loop.get_concrete_function(tf.TensorSpec([2]))
    with pytest.raises(ExportError, match="^`unrolled` cannot be used, because encode has a loop"):
        searches.require_no_loops(function, "encode")


@pytest.mark.slow
def test_a_recurrent_encoder_is_refused(tokenizer, tmp_path):
    """Its loop over the source would be in the file."""
    translator, path = translator_of(mixer_rows.model_options("gru"), tokenizer), tmp_path / "x"
    with pytest.raises(ExportError, match="x: `unrolled` cannot .* encode_greedy_1x12 has a loop"):
        export_litert(translator, path, FEW, LiteRTOptions(lengths=(12,), unrolled=True))


def translator_of(options, tokenizer):
    config = small_config(
        vocab_size=tokenizer.vocab_size, **{"max_length": 12, "norm": "pre", **options}
    )
    return Translator(randomise(Transformer(config)), tokenizer)


def generator_of(options, tokenizer):
    fields = {**small_fields(LanguageModelConfig), "vocab_size": tokenizer.vocab_size}
    fields = with_effect(LanguageModelConfig, **{**fields, "max_length": 16, **options})
    return TextGenerator(randomise(LanguageModel(LanguageModelConfig(**fields))), tokenizer)


def in_the_decoder(kind):
    """The options of a translator with a mixer that its encoder does not have."""
    return {"decoder": {"mixer": mixer_rows.mixer_of(kind)}, **mixer_rows.MIXERS[kind].model}


KINDS = {
    **{
        kind: (translator_of, in_the_decoder(kind)) for kind in ("ssru", "gru", "gated_convolution")
    },
    "language model": (generator_of, {}),
    "language model with a state": (generator_of, {"mixer": "gru"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(KINDS, "ssru", "language model", mark=long))
def test_every_kind_of_model_with_greedy_search_and_a_beam(kind, tokenizer, tmp_path):
    """The check of the export compares tokens and scores of both searches with the model."""
    make, options = KINDS[kind]
    pipeline, path = make(options, tokenizer), tmp_path / "x.tflite"
    asked = LiteRTOptions(
        search=Beam(3), n_best=2, lengths=(pipeline.max_length,), batch_sizes=(2,), unrolled=True
    )
    report = export_litert(pipeline, path, FEW, asked)
    assert report["agreement"] == report["beam"]["agreement"] == 1.0
    require_no_loops(path)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["int8", "int4", "int8_static"])
def test_every_number_format(quantize, light, calibration, tmp_path):
    """The check of the export compares tokens and scores with the model."""
    data = {"calibration": calibration} if quantize == "int8_static" else {}
    options = LiteRTOptions(quantize=quantize, lengths=(16,), unrolled=True)
    report = export_litert(light, tmp_path / "x.tflite", FEW, options, **data)
    assert report["agreement"] > 0.9
    require_no_loops(tmp_path / "x.tflite")


@pytest.mark.slow
def test_a_file_with_loops_answers_the_same(light, tmp_path):
    """In float16, in one benchmark."""
    files = [tmp_path / f"{name}.tflite" for name in ("loops", "unrolled")]
    for path in files:
        unrolled = path.stem == "unrolled"
        options = LiteRTOptions(quantize="float16", lengths=(16,), unrolled=unrolled)
        export_litert(light, path, FEW, options)
    require_no_loops(files[1])
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("\n".join(FEW), "utf-8")
    done = run_benchmark("unrolled.py", *files, sentences, "--count", "3", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| unrolled \| 0\.\d\d \| [\d.]+ \|\n3 sentences of ", done.stdout)
