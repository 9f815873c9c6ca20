"""Beams of every kind in a .tflite file, and the default search of a file."""

import json
import re
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from exporting import asked

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.main import cli
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.litert.beams import beam_in, check_beam, search_in, searches_metadata
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS, make_signatures
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator

NARROW = Beam(4, 1.0, normalization="power", stopping="narrow", extra_length=None, max_length=9)
KINDS = [
    NARROW,
    Beam(4, 1.0, normalization="power", stopping="score", extra_length=3),
    Beam(4, 0.6, stopping="score"),
]
SENTENCES = ["in 17 weeks", "after 12 hours and 30 minutes", "45 days", "", "weeks and 5 €", "in 3"]


SHAPES = [5], [2], 9, 9  # of signatures
GREEDY, BOTH, ONLY_BEAM = (
    [vars(signature) for signature in make_signatures(*shapes)]
    for shapes in (SHAPES, (*SHAPES, 4), (*SHAPES[:3], None, 4))
)


def test_a_file_has_signatures_of_its_searches():
    names = [[signature["name"] for signature in made] for made in (GREEDY, BOTH, ONLY_BEAM)]
    assert names == [["greedy_2x5"], ["greedy_2x5", "beam4_2x5"], ["beam4_2x5"]]


def test_a_file_without_greedy_search_says_so():
    metadata = {SIGNATURES: ONLY_BEAM, **searches_metadata(None, NARROW, NARROW)}
    assert search_in(metadata, None, SIGNATURES, "x") == NARROW
    for search in (Greedy(), Greedy(9)):
        with pytest.raises(ValueError, match="^x was exported with --beam-only, so it has no gree"):
            search_in(metadata, search, SIGNATURES, "x")


def test_a_file_knows_its_beam_and_its_default():
    metadata = {SIGNATURES: BOTH, **json.loads(json.dumps(searches_metadata(None, NARROW, NARROW)))}
    assert search_in(metadata, None, SIGNATURES, "x") == beam_in(metadata) == NARROW
    assert search_in(metadata, Greedy(), SIGNATURES, "x") == Greedy()
    metadata |= searches_metadata(None, NARROW, Greedy())
    assert search_in(metadata, None, SIGNATURES, "x") == Greedy() and beam_in(metadata) == NARROW
    assert searches_metadata(None, None, NARROW) == {}


def test_a_beam_of_another_kind_than_the_files_is_refused():
    metadata = {SIGNATURES: BOTH, **searches_metadata(None, NARROW, Greedy())}
    other = Beam(4, 0.3, normalization="power", stopping="narrow", extra_length=7)
    assert search_in(metadata, other, SIGNATURES, "x") == other
    for beam, name, value in (
        (Beam(4, stopping="narrow"), "normalization", "power"),
        (Beam(4, normalization="power"), "stopping", "narrow"),
    ):
        message = f'`{name}` of the beam of x is "{value}", which is fixed in the export. Received:'
        with pytest.raises(ValueError, match=re.escape(message)):
            search_in(metadata, beam, SIGNATURES, "x")
    with pytest.raises(ValueError, match="no `max_length` if the .tflite file takes strings"):
        check_beam(NARROW, STRINGS)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("beam", KINDS, ids=str)
def test_it_returns_what_the_run_returns(light, tmp_path, beam):
    path = tmp_path / "x.tflite"
    options = {"lengths": [16], "batch_sizes": [1, 3], "n_best": 3}
    report = export_litert(light, path, SENTENCES, **asked(LiteRTOptions, search=beam, **options))
    assert report["beam"]["hypotheses"] == 3 * len(SENTENCES)
    ours = LiteRTTranslator(path, beam).n_best_batch(SENTENCES, 3)
    theirs = light.n_best(SENTENCES, 3, beam)
    assert [row[0].text for row in ours] == [row[0].text for row in theirs]
    scores, expected, others = (
        np.array([row[0].score for row in rows])
        for rows in (ours, theirs, light.n_best(SENTENCES, 3, Beam(4)))
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    if beam.normalization == "power":
        assert np.abs(scores - others).max() > 1e-3
    with pytest.raises(ValueError, match="of the beam of .*x.tflite is "):
        LiteRTTranslator(path, Beam(4))


@pytest.mark.long
@pytest.mark.slow
def test_the_default_of_the_run_is_the_default_of_its_file(light, tmp_path):
    path = tmp_path / "x.tflite"
    translator = Translator(light.model, light.tokenizers, search=NARROW)
    report = export_litert(translator, path, SENTENCES, LiteRTOptions(lengths=[16], n_best=2))
    assert report["signatures"] == ["greedy_1x16", "beam4_1x16"]
    assert LiteRTTranslator(path).search == NARROW
    metadata = json.loads(zipfile.ZipFile(path).read("metadata.json"))
    assert metadata["default_search"] == "beam" and metadata["beam"]["stopping"] == "narrow"
    expected = {
        (): light.n_best(SENTENCES, 1, NARROW),
        ("--greedy",): light.n_best(SENTENCES, 1, Greedy(NARROW.max_length)),
        ("--beam", "4"): light.n_best(SENTENCES, 1, NARROW),
        ("--beam", "4", "--max-output", "3"): light.n_best(
            SENTENCES, 1, Beam(4, 1.0, "power", extra_length=None, max_length=3, stopping="narrow")
        ),
    }
    for options, rows in expected.items():
        lines = "".join(f"{sentence}\n" for sentence in SENTENCES)
        done = CliRunner().invoke(cli, ["translate", str(path), *options], input=lines)
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines() == [best.text for (best,) in rows], options
    assert expected["--greedy",] != expected["--beam", "4", "--max-output", "3"]


@pytest.mark.long
@pytest.mark.slow
def test_a_file_with_a_beam_only_returns_what_the_run_returns(unigram_translator, tmp_path):
    """Its default search is the beam, although that of the run is greedy search."""
    path, beam = tmp_path / "x.tflite", Beam(3, 0.6)
    options = {"search": beam, "n_best": 2, "lengths": [20]}
    report = export_litert(
        unigram_translator,
        path,
        SENTENCES,
        **asked(LiteRTOptions, beam_only=True, tokenizer=True, **options),
    )
    assert report["signatures"] == ["beam3_1x20", "translate_beam3_1x20"]
    assert report["agreement"] == report["strings"]["agreement"] == 1
    assert report["hypotheses"] == 2 * len(SENTENCES)
    assert "beam" not in report and "beam" not in report["strings"]
    expected = unigram_translator.n_best(SENTENCES, 2, beam)
    texts = [[output.text for output in row] for row in expected]
    loaded = LiteRTTranslator(path)
    assert loaded.search == beam
    rows = loaded.n_best_batch(SENTENCES, 2)
    assert [[output.text for output in row] for row in rows] == texts
    scores, of_beam = ([best.score for best, *_ in side] for side in (rows, expected))
    of_greedy = [best.score for (best,) in unigram_translator.n_best(SENTENCES, 1, Greedy())]
    assert scores == pytest.approx(of_beam, rel=1e-4, abs=1e-5)
    assert scores != pytest.approx(of_greedy, rel=1e-2), "which have no length penalty"
    of_strings = LiteRTStringTranslator(path).answer_batch(SENTENCES)
    assert [output.text for output in of_strings] == [row[0] for row in texts]
    lines = "".join(f"{sentence}\n" for sentence in SENTENCES)
    done = CliRunner().invoke(cli, ["translate", str(path)], input=lines)
    assert done.stdout.splitlines() == [row[0] for row in texts], done.output
    done = CliRunner().invoke(cli, ["translate", str(path), "--greedy"], input=lines)
    assert done.exit_code and "so it has no greedy search" in done.output


def test_a_beam_only_needs_a_beam(light, tmp_path):
    path, options = tmp_path / "x.tflite", {"beam_only": True, "lengths": [16]}
    message = r"`beam_only` needs a `Beam`. Received: beam_only=True, search=Greedy\("
    with pytest.raises(ValueError, match=message):
        export_litert(light, path, SENTENCES, LiteRTOptions(**options))
    message = r"`alignment` has no effect with `beam_only`. Received: alignment=\(-1, None\)."
    with pytest.raises(ValueError, match=message):
        LiteRTOptions(search=NARROW, alignment=(-1, None), **options)
    assert not path.exists()
