import concurrent.futures
import json
import threading
import zipfile

import numpy as np
import pytest
from exporting import asked
from litert_files import PHONE, codes_of, operators, tables, translator_of
from marks import long
from searching import by_greedy
from support import listing

from keras_transformer import Greedy, Transformer, TransformerConfig, Translator
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.litert import calibration as calibrating
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert import tensorflow_converter
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.shapes import default_lengths
from keras_transformer.tasks.strings import map_sorted

pytest.importorskip("ai_edge_litert")


@pytest.fixture(scope="module")
def sources(translator, sentences):
    """Ids of the sentences, truncated as by the translator, with the model's outputs."""
    ids = [ids[:19] + [3] for ids in translator.source_tokenizer.encode(sentences[:34]).to_list()]
    ids = [row[: row.index(3) + 1] for row in ids]
    padded = np.zeros((len(ids), 20), "int32")
    for row, sentence in zip(padded, ids, strict=True):
        row[: len(sentence)] = sentence
    tokens, scores = by_greedy(translator.model, padded)
    return ids, tokens.numpy()[:, None], scores.numpy()[:, None]  # an n-best list of one


def test_the_report_states_what_was_written_and_checked(export, sentences):
    path, report = export("none")
    assert report["path"] == str(path)
    assert report["bytes"] == path.stat().st_size
    assert report["quantize"] == "none"
    assert (report["sentences"], report["agreement"]) == (len(sentences), 1.0)
    assert report["signatures"] == ["greedy_1x16", "greedy_1x20"]
    assert json.loads(json.dumps(report)) == report
    assert listing(path.parent) == ["none.tflite"]


def test_tokens_are_those_of_the_model(export, sources):
    ids, tokens, scores = sources
    assert len({tuple(row) for row in tokens[:, 0]}) > 25
    loaded = LiteRTTranslator(export("none")[0])
    ours, our_scores = loaded.decode(ids)
    np.testing.assert_array_equal(ours, tokens)
    np.testing.assert_allclose(our_scores, scores, atol=1e-4)


def test_every_signature_gives_the_same(export, sources):
    ids, tokens, _ = sources
    loaded = LiteRTTranslator(export("none")[0])
    for signature in loaded.signatures:
        fitting = [n for n, row in enumerate(ids) if len(row) <= signature.source_length]
        assert len(fitting) > 20
        ours, _ = loaded.decode([ids[n] for n in fitting], signature)
        np.testing.assert_array_equal(ours, tokens[fitting])


@pytest.mark.long
@pytest.mark.slow
def test_signatures_are_named_and_of_fixed_shape(export):
    from ai_edge_litert.interpreter import Interpreter

    for quantize in ("none", "int8"):
        interpreter = Interpreter(str(export(quantize)[0]))
        assert interpreter.get_signature_list() == {
            name: {"inputs": ["source"], "outputs": ["complete", "length", "score", "tokens"]}
            for name in ("greedy_1x16", "greedy_1x20")
        }
        run = interpreter.get_signature_runner("greedy_1x16")
        source, outputs = run.get_input_details()["source"], run.get_output_details()
        assert (source["shape"].tolist(), source["dtype"]) == ([1, 16], np.int32)
        assert source["shape_signature"].tolist() == [1, 16]
        assert (outputs["tokens"]["shape"].tolist(), outputs["tokens"]["dtype"]) == (
            [1, 20],
            np.int32,
        )
        assert (outputs["score"]["shape"].tolist(), outputs["score"]["dtype"]) == ([1], np.float32)


def test_the_length_counts_the_tokens_before_the_padding(export, sources):
    from ai_edge_litert.interpreter import Interpreter

    ids, tokens, _ = sources
    run = Interpreter(str(export("none")[0])).get_signature_runner("greedy_1x20")
    lengths = set()
    for row, expected in zip(ids, tokens[:, 0], strict=True):
        source = np.zeros((1, 20), np.int32)
        source[0, : len(row)] = row
        (length,) = run(source=source)["length"]
        ends = np.flatnonzero(expected == 3)
        assert length == (ends[0] + 1 if len(ends) else 20)
        lengths.add(int(length))
    assert len(lengths) > 3


def test_a_phone_without_tensorflow_gives_the_same(export, sources, python):
    ids, tokens, _ = sources
    fitting = [n for n, row in enumerate(ids) if len(row) <= 16][:10]
    answers = python(PHONE, export("none")[0], "greedy_1x16", json.dumps([ids[n] for n in fitting]))
    np.testing.assert_array_equal(json.loads(answers), tokens[fitting, 0])


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_ran_other_models_before_gives_the_same(export, sources):
    """Dynamic shapes under XNNPACK gave tokens that depended on leftover memory."""
    ids, tokens, _ = sources
    loaded = {q: LiteRTTranslator(export(q)[0]) for q in ("int8", "none", "float16")}
    first = {q: program.decode(ids[:12])[0] for q, program in loaded.items()}
    for _ in range(5):
        for quantize, program in loaded.items():
            again = LiteRTTranslator(export(quantize)[0])
            for run in (program, again):
                np.testing.assert_array_equal(run.decode(ids[:12])[0], first[quantize])
    np.testing.assert_array_equal(first["none"], tokens[:12])


def test_the_compiled_model_api_gives_the_same(export, sources):
    """The interface returns garbage if an output of the graph comes directly from a WHILE."""
    compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
    ids, tokens, _ = sources
    row = next(n for n, sentence in enumerate(ids) if len(sentence) <= 16)
    model = compiled_model.CompiledModel.from_file(str(export("none")[0]))
    inputs = model.create_input_buffers(0)
    outputs = model.create_output_buffers(0)
    source = np.zeros((1, 16), np.int32)
    source[0, : len(ids[row])] = ids[row]
    inputs[0].write(source)
    model.run_by_index(0, inputs, outputs)
    names = model.get_signature_by_index(0)["outputs"]
    ours = outputs[names.index("tokens")].read(20, np.int32)
    np.testing.assert_array_equal(ours.ravel(), tokens[row, 0])


@pytest.mark.slow
def test_builtin_operators_only_and_no_output_comes_from_a_loop(export, quantize="int8"):
    names, ends = operators(export(quantize)[0])
    assert "WHILE" in names and "CUSTOM" not in names
    assert "DYNAMIC_UPDATE_SLICE" in names  # the cache is written with it, see `fast_step`
    assert len(ends) == 8 and "WHILE" not in ends.values()


def attributes(model):
    """Returns the attributes of every layer of a model, without the layers' own counters."""
    layers = [model, *model._flatten_layers(include_self=False)]
    return {
        (number, name): id(value)
        for number, layer in enumerate(layers)
        for name, value in vars(layer).items()
    }


@pytest.mark.long
@pytest.mark.slow
def test_an_export_does_not_change_the_model(
    translator, sentences, calibration, tmp_path, monkeypatch
):
    """No layer gets another function at any time, and every weight stays bitwise the same."""
    model, seen = translator.model, []
    translator.answer_batch(sentences[:1])
    before, weights = attributes(model), [weight.numpy().tobytes() for weight in model.weights]

    def watched(function):
        def watch(*args, **kwargs):
            seen.append(attributes(model) == before)
            return function(*args, **kwargs)

        return watch

    for module, name in (
        (Greedy, "__call__"),
        (tensorflow_converter, "convert_functions"),
        (calibrating, "share_outside"),
    ):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    options = {"calibration": calibration[:20], "lengths": [20]}
    monkeypatch.setattr(calibrating, "MAX_OUTSIDE", 1.0)
    export_litert(
        translator,
        tmp_path / "x.tflite",
        sentences[:3],
        **asked(LiteRTOptions, "int8_static", **options),
    )
    assert len(seen) >= 3 and all(seen)
    assert attributes(model) == before
    assert [weight.numpy().tobytes() for weight in model.weights] == weights


@pytest.mark.long
@pytest.mark.slow
def test_a_model_can_translate_in_another_thread_during_its_export(translator, sentences, tmp_path):
    expected, over, answers = translator.answer_batch(sentences[:4]), threading.Event(), []

    def translate():
        while not over.is_set():
            # A new graph each time, so that a changed layer would be traced into it.
            fresh = Translator(translator.model, translator.source_tokenizer)
            answers.append(fresh.answer_batch(sentences[:4]))

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(translate)
        try:
            export_litert(
                translator, tmp_path / "x.tflite", sentences[:3], LiteRTOptions(lengths=[20])
            )
        finally:
            over.set()
        done.result()
    assert answers and all(answer == expected for answer in answers)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float16", "int8"])
def test_the_tied_table_is_stored_once(export, translator, quantize):
    """It is used twice, for the embedding and for the logits, in each of two signatures."""
    table = translator.model.source_embedding.table.numpy()
    stored = {"none": table, "float16": table.astype(np.float16), "int8": codes_of(table)}
    assert tables(export(quantize)[0], table.shape) == [stored[quantize].tobytes()]


def test_other_weights_are_also_stored_once(export, translator):
    kernel = translator.model.decoder.blocks[0].feed_forward.inner.kernel.numpy()
    assert export("none")[0].read_bytes().count(kernel.T.tobytes()) == 1


@pytest.mark.slow
def test_sizes_depend_on_the_quantisation(export, translator):
    parameters = translator.model.count_params()
    vocabulary = len(translator.source_tokenizer.model)
    for quantize, bytes_per_weight in {"none": 4, "float16": 2, "int8": 1}.items():
        size = export(quantize)[0].stat().st_size
        graphs = size - bytes_per_weight * parameters - vocabulary
        assert 0 < graphs < 2 * 90_000, quantize  # two signatures, each with a loop


def test_the_file_contains_its_vocabulary_and_metadata(export, translator):
    path, report = export("none")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["tokenizer.model", "metadata.json"]
        assert {item.compress_type for item in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("tokenizer.model") == translator.source_tokenizer.model
        metadata = json.loads(archive.read("metadata.json"))
    assert metadata["tokens"] == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
    assert metadata["vocab_size"] == translator.source_tokenizer.vocab_size
    assert metadata["max_length"] == 20
    assert metadata["quantize"] == "none"
    assert metadata["signatures"] == [
        {
            "name": f"greedy_1x{length}",
            "batch_size": 1,
            "source_length": length,
            "target_length": 20,
            "beam_size": None,
            "n_best": 1,
            "alignment": None,
            "max_length": None,
            "unrolled": None,
        }
        for length in (16, 20)
    ]
    for name in ("sentences", "agreement", "token_agreement"):
        assert metadata["agreement"][name] == report[name]
    assert "differences" not in metadata["agreement"]  # the file contains no sentences


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [long("float16"), long("int8"), "int8_static"])
def test_quantised_files_lose_little(export, quantize):
    """Their products are exact in integers, so the loss is the same on every processor."""
    path, report = export(quantize)
    assert abs(report["score_loss"]) <= 0.02 and 0 < report["score_error"] <= 0.02
    assert report["processor"]["name"]
    metadata = LiteRTTranslator(path).metadata["agreement"]
    for name in ("score_loss", "score_error", "processor", "hypotheses"):
        assert metadata[name] == report[name]


@pytest.mark.slow
def test_batches_and_lengths_can_be_chosen(translator, sentences, tmp_path):
    path = tmp_path / "batches.tflite"
    report = export_litert(
        translator, path, sentences, LiteRTOptions(lengths=[20], batch_sizes=[1, 4])
    )
    assert report["signatures"] == ["greedy_1x20", "greedy_4x20"]
    assert report["agreement"] == 1.0
    loaded = LiteRTTranslator(path)
    assert [x.text for x in loaded.answer_batch(sentences[:7])] == translator(sentences[:7])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("alignment", [(1, None), pytest.param((0, 1), marks=pytest.mark.long)])
def test_it_returns_the_attention_of_each_token(deep, sentences, sources, tmp_path, alignment):
    from ai_edge_litert.interpreter import Interpreter

    path = tmp_path / "x.tflite"
    export_litert(deep, path, sentences, LiteRTOptions(lengths=[20], alignment=alignment))
    run = Interpreter(str(path)).get_signature_runner("greedy_1x20")
    layer, head = alignment
    for row in sources[0][:8]:
        source = np.zeros((1, 20), np.int32)
        source[0, : len(row)] = row
        expected = by_greedy(deep.model, source)[0][0].numpy()
        answer = run(source=source)
        length = int(answer["length"][0])
        target = np.concatenate([[2], expected[: length - 1]])[None].astype(np.int32)
        weights = deep.model.attention_weights({"source": source, "target": target})
        weights = weights[f"decoder/block_{layer}/cross_attention"][0].numpy()  # [H, T, S]
        weights = weights.mean(axis=0) if head is None else weights[head]
        assert answer["alignment"].shape == (1, 20, 20)
        np.testing.assert_allclose(answer["alignment"][0, :length], weights, atol=1e-5)
        assert not answer["alignment"][0, length:].any()
    loaded = LiteRTTranslator(path)
    assert loaded.metadata["signatures"][0]["alignment"] == list(alignment)
    texts = [*sentences[:4], ""]
    for ours, theirs in zip(loaded.align(texts), deep.align(texts, *alignment), strict=True):
        assert (ours.source, ours.target) == (theirs.source, theirs.target)
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-5)
        assert ours.translation.text == theirs.translation.text and ours.words() == theirs.words()


def test_the_default_lengths_are_few():
    assert default_lengths(20) == [16, 20]
    assert default_lengths(16) == [16]
    assert default_lengths(5) == [5]
    assert default_lengths(100) == [16, 64, 100]
    assert default_lengths(512) == [16, 64, 256, 512]


def test_translations_do_not_depend_on_the_order(export, translator, sentences):
    loaded = LiteRTTranslator(export("none")[0])
    ours = [output.text for output in map_sorted(loaded.answer_batch, sentences[::-1], 5)]
    assert ours == translator(sentences[::-1])


def in_int8(preset, vocab_size, **changes):
    """Returns an untrained model with greedy search and a beam, as bytes, and its signatures."""
    model = Transformer(TransformerConfig.preset(preset, vocab_size=vocab_size, **changes))
    limit = model.config.max_length
    signatures = [
        FixedSignature(f"{beam}_{length}", 1, length, limit, beam, 4 if beam else 1)
        for beam in (None, 4)
        for length in default_lengths(limit)
    ]
    return model, conversion.convert(translator_of(model), signatures, "int8")


@pytest.mark.long
@pytest.mark.slow
def test_the_scales_of_a_large_table_are_stored_twice_and_not_rounded(tmp_path):
    """Once for the embedding, once to describe the table in the bodies of all loops.

    The converter rounds constants of more than 1,024 numbers to 8 bits, and describes the table
    again in each of the four loops.
    """
    model, content = in_int8("tiny", 2000, num_layers=1, d_ff=8, d_model=32, max_length=20)
    table = model.source_embedding.table.numpy()
    scales = (np.abs(table).max(axis=1).astype(np.float64) / 127).astype(np.float32)
    assert content.count(scales.tobytes()) == 2
    (tmp_path / "x.tflite").write_bytes(content)
    assert tables(tmp_path / "x.tflite", table.shape) == [codes_of(table).tobytes()]
    assert [scales.tobytes()] == tables(tmp_path / "x.tflite", (2000, 1))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "vocab_size", "megabytes"),
    [("tiny", 10_000, 2.9), pytest.param("base", 4_000, 12.4, marks=pytest.mark.long)],
)
def test_int8_is_small(preset, vocab_size, megabytes):
    """One layer is representative: a byte per weight; the rest is eight graphs and scales."""
    model, content = in_int8(preset, vocab_size, max_length=128, num_layers=1)
    assert model.count_params() < len(content) < megabytes * 1e6
