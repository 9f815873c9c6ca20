"""Beam search in a .tflite file."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import PHONE, model_of, operators, tables
from searching import by_beam
from support import listing

from keras_transformer import Beam
from keras_transformer.decoding import Sample
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import generated
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.searches import LoopSearches
from keras_transformer.tasks.strings import map_sorted

pytest.importorskip("ai_edge_litert")

BEAM, BEST, LIMIT = Beam(4), 3, 20
OTHER_SCORES = Beam(4, normalization="none")
FIXED = r"of a beam in a .tflite file must be .*Received: search=Beam\(.*\)\.$"


@pytest.fixture(scope="module")
def beam_export(deep, sentences, tmp_path_factory):
    """A function that takes a quantisation and returns path and report of a file with a beam.

    The model has two layers, so that its hypotheses have several lengths.
    """
    folder, files = tmp_path_factory.mktemp("beam"), {}

    def of(quantize="none"):
        if quantize not in files:
            path = folder / f"{quantize}.tflite"
            files[quantize] = (
                path,
                export_litert(
                    deep,
                    path,
                    sentences,
                    LiteRTOptions(
                        quantize, lengths=[LIMIT], batch_sizes=[1, 3], search=BEAM, n_best=BEST
                    ),
                ),
            )
        return files[quantize]

    return of


@pytest.fixture(scope="module")
def ids(deep, sentences):
    rows = deep.source_tokenizer.encode(sentences[:32]).to_list()
    return [row for row in rows if len(row) <= LIMIT]


def padded(ids):
    source = np.zeros((len(ids), LIMIT), np.int32)
    for row, tokens in zip(source, ids, strict=True):
        row[: len(tokens)] = tokens
    return source


@pytest.mark.slow
@pytest.mark.long
def test_the_report_states_the_agreement_of_both_searches(beam_export, sentences):
    path, report = beam_export()
    searches = ("greedy_1x20", "greedy_3x20", "beam4_1x20", "beam4_3x20")
    assert report["signatures"] == list(searches)
    for metrics in (report, report["beam"]):
        assert metrics["near_ties"] + metrics["other_hypotheses"] <= 2
    assert report["hypotheses"] == len(sentences)
    assert report["beam"]["hypotheses"] == BEST * len(sentences)
    assert report["sentences"] == report["beam"]["sentences"] == len(sentences)
    metadata = LiteRTTranslator(path).metadata
    assert metadata["signatures"][2] == {
        "name": "beam4_1x20",
        "batch_size": 1,
        "source_length": LIMIT,
        "target_length": LIMIT,
        "max_length": None,
        "unrolled": None,
        "beam_size": 4,
        "n_best": BEST,
        "alignment": None,
    }
    assert metadata["agreement"]["beam"]["identical"] == report["beam"]["identical"]
    assert "differences" not in metadata["agreement"]["beam"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("length_penalty, extra_length", [(0.6, 50), (0, 50), (2.5, 1)])
def test_n_best_tokens_equal_those_of_the_model(
    beam_export, deep, ids, length_penalty, extra_length
):
    beam = Beam(4, length_penalty, extra_length=extra_length)
    loaded = LiteRTTranslator(beam_export()[0], beam)
    tokens, scores = loaded.decode(ids)
    limits = tf.constant([len(row) + extra_length for row in ids])
    expected, expected_scores = by_beam(
        deep.model, padded(ids), 4, BEST, length_penalty, max_length=limits
    )
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4)
    assert len({tuple(row) for row in tokens[:, 1]}) > 20  # the second-best outputs also differ


@pytest.mark.long
@pytest.mark.slow
def test_the_controls_are_inputs(beam_export, ids):
    """The same file gives other lengths and other best hypotheses."""
    path = beam_export()[0]
    short = LiteRTTranslator(path, Beam(4, extra_length=0)).decode(ids)[0]
    assert all(
        len(row) >= np.count_nonzero(best) for row, best in zip(ids, short[:, 0], strict=True)
    )
    outputs = [LiteRTTranslator(path, Beam(4, a)).decode(ids)[0] for a in (0, 20)]
    assert (outputs[0] != outputs[1]).any()


@pytest.mark.slow
def test_a_beam_translates_as_in_the_run(beam_export, deep, sentences):
    loaded = LiteRTTranslator(beam_export()[0], Beam(4, 1.0))
    expected = [best for (best,) in deep.n_best(sentences, 1, Beam(4, 1.0))]
    outputs = map_sorted(loaded.answer_batch, sentences, 5)
    assert [output.text for output in outputs] == [output.text for output in expected]
    np.testing.assert_allclose(
        [output.score for output in outputs], [output.score for output in expected], rtol=1e-4
    )


@pytest.mark.slow
def test_a_phone_without_tensorflow_gives_the_same(beam_export, ids, python):
    path = beam_export()[0]
    controls = "max_length=np.array([20], np.int32), length_penalty=np.array([0.6], np.float32)"
    phone = PHONE.replace("run(source=source)", f"run(source=source, {controls})")
    assert phone != PHONE
    answers = python(phone, path, "beam4_1x20", json.dumps(ids[:6]))
    expected, _ = LiteRTTranslator(path, BEAM).decode(ids[:6])
    np.testing.assert_array_equal(json.loads(answers), expected)


@pytest.mark.slow
def test_the_compiled_model_api_gives_the_same(beam_export, ids):
    compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
    path, report = beam_export()
    model = compiled_model.CompiledModel.from_file(str(path))
    number = report["signatures"].index("beam4_1x20")
    number = [model.get_signature_by_index(n)["key"] for n in range(4)].index("beam4_1x20")
    signature = model.get_signature_by_index(number)
    inputs, outputs = model.create_input_buffers(number), model.create_output_buffers(number)
    values = {
        "source": padded(ids[:1]),
        "max_length": np.array([LIMIT], np.int32),
        "length_penalty": np.array([0.6], np.float32),
    }
    for name, buffer in zip(signature["inputs"], inputs, strict=True):
        buffer.write(values[name])
    model.run_by_index(number, inputs, outputs)
    tokens = outputs[signature["outputs"].index("tokens")].read(BEST * LIMIT, np.int32)
    expected, _ = LiteRTTranslator(path, BEAM).decode(ids[:1])
    np.testing.assert_array_equal(tokens.reshape(1, BEST, LIMIT), expected)


@pytest.mark.long
@pytest.mark.slow
def test_in_int8_it_loses_little_and_stores_the_table_once(beam_export, deep):
    path, report = beam_export("int8")
    assert abs(report["beam"]["score_loss"]) <= 0.02 and report["beam"]["score_error"] <= 0.02
    assert report["beam"]["hypotheses"] == BEST * report["sentences"]
    names, ends = operators(path)
    assert "CUSTOM" not in names and "WHILE" not in ends.values()
    assert len(tables(path, deep.model.source_embedding.table.shape)) == 1


def test_a_file_without_a_beam_is_reported(export):
    with pytest.raises(
        ValueError,
        match="was exported for greedy search only, so it has no beam of size 4. Export it again",
    ):
        LiteRTTranslator(export("none")[0], BEAM)


@pytest.mark.slow
def test_a_beam_that_the_file_does_not_have_is_reported(beam_export):
    path = beam_export()[0]
    message = f"{path} has no beam of size 5, only of size 4. Export it again with --beam 5."
    with pytest.raises(ValueError, match=re.escape(message)):
        LiteRTTranslator(path, Beam(5))
    with pytest.raises(ValueError, match=FIXED):
        LiteRTTranslator(path, OTHER_SCORES)
    with pytest.raises(ValueError, match=r"`min_length` of the beam of .* is 1, which is fixed in"):
        LiteRTTranslator(path, Beam(4, min_length=2))


def test_wrong_searches_are_refused(deep, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "convert", None)
    with pytest.raises(ValueError, match=FIXED):
        export_litert(deep, tmp_path / "x.tflite", ["a"], LiteRTOptions(search=OTHER_SCORES))
    message = "`search` must be a `Greedy` or a `Beam`. Received: search="
    for search in ((Beam(2), Beam(3)), Sample()):
        with pytest.raises(TypeError, match=re.escape(f"{message}{search!r}.")):
            export_litert(deep, tmp_path / "x.tflite", ["a"], LiteRTOptions(search=search))
    with pytest.raises(ValueError, match="`n_best` must be between 1 and `size`"):
        export_litert(deep, tmp_path / "x.tflite", ["a"], LiteRTOptions(search=Beam(2), n_best=3))
    assert listing(tmp_path) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_minimum_length_is_part_of_the_file(deep, sentences, tmp_path, normalization="power"):
    """Outputs equal those of the run, also where a limit for the source would be shorter."""
    beam = Beam(2, 1.0, normalization, min_length=9, extra_length=2, stopping="score")
    path = tmp_path / "x.tflite"
    options = {"lengths": [LIMIT], "search": beam, "n_best": 2}
    report = export_litert(deep, path, sentences, **asked(LiteRTOptions, **options))
    assert report["beam"]["agreement"] == 1
    texts = [text for text in sentences if text.strip()]
    loaded = LiteRTTranslator(path, beam)
    assert loaded.search == beam
    with_minimum = [best.text for best in map_sorted(loaded.answer_batch, texts, 8)]
    assert with_minimum == deep(texts, search=beam)
    assert with_minimum != deep(texts, search=Beam(2, 1.0, normalization, stopping="score"))
    ids = [row for row in deep.source_tokenizer.encode(texts[:9]).to_list() if len(row) <= LIMIT]
    tokens, _ = loaded.decode(ids)
    assert ((tokens != deep.model.config.tokens.pad_id).sum(axis=2) >= 9).all()


@pytest.mark.long
@pytest.mark.slow
def test_a_beam_that_disagrees_is_detected(deep, sentences, tmp_path, monkeypatch):
    """Greedy search agrees and the beam does not: the file is not kept."""

    class SecondBest(Beam):
        def __call__(self, model, source, options):
            outputs = super().__call__(model, source, dataclasses.replace(options, n_best=2))
            fields = outputs._asdict().items()
            second = {name: value[:, 1:] for name, value in fields if value is not None}
            return outputs._replace(**second)

    monkeypatch.setattr(
        generated, "LoopSearches", lambda beam, **options: LoopSearches(SecondBest(2), **options)
    )
    options = {"lengths": [LIMIT], "search": Beam(2)}
    with pytest.raises(ExportError, match="x.tflite.* differ"):
        export_litert(deep, tmp_path / "x.tflite", sentences, **asked(LiteRTOptions, **options))
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_wrong_second_hypothesis_is_detected(
    beam_export, deep, sentences, tmp_path, monkeypatch, wrong="score"
):
    """The best hypothesis is right in every sentence."""
    content = model_of(beam_export()[0])
    monkeypatch.setattr(generated, "convert", lambda *args, **kwargs: content)
    decode = LiteRTTranslator.decode

    def damaged(self, sources, signature=None):
        tokens, scores = decode(self, sources, signature)
        if scores.shape[1] > 1 and wrong == "order":
            tokens[:, [1, 2]], scores[:, [1, 2]] = tokens[:, [2, 1]], scores[:, [2, 1]]
        elif scores.shape[1] > 1:
            scores[:, 1] += 0.01
        return tokens, scores

    monkeypatch.setattr(LiteRTTranslator, "decode", damaged)
    options = {"lengths": [LIMIT], "batch_sizes": [1, 3], "search": BEAM, "n_best": BEST}
    message = "prefers its own by" if wrong == "order" else "its score is"
    with pytest.raises(ExportError, match=f"x.tflite: .* outputs differ .*{message}"):
        export_litert(deep, tmp_path / "x.tflite", sentences, **asked(LiteRTOptions, **options))
    assert listing(tmp_path) == []
