"""The folder for CTranslate2: checked before it is kept, loaded, and used by other programs."""

import json
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from exporting import asked
from marks import slow
from support import listing

from keras_transformer import Beam, Translator
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Shortlist
from keras_transformer.export import CTranslate2Options
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.ctranslate2 import export, generated
from keras_transformer.export.ctranslate2.export import export_ctranslate2
from keras_transformer.export.ctranslate2.metadata import read_metadata
from keras_transformer.export.ctranslate2.spec import make_spec
from keras_transformer.export.ctranslate2.translator import CTranslate2Translator
from keras_transformer.export.errors import ExportError
from keras_transformer.export.reference import Output, Reference, with_tokens
from keras_transformer.installation import install_hint
from keras_transformer.pipelines import Run
from keras_transformer.tasks.strings import map_sorted

ctranslate2 = pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))

MEAN, SUM = (Beam(4, normalization=name, extra_length=None) for name in ("average", "none"))
FILES = ["config.json", "model.bin", "shared_vocabulary.json", "tokenizer.model"]

# A program that runs CTranslate2: that package and SentencePiece, without our package.
SERVER = """
import json, sys
import ctranslate2, sentencepiece
vocabulary = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1] + "/tokenizer.model")
translator = ctranslate2.Translator(sys.argv[1], intra_threads=1)
batch = vocabulary.encode(json.loads(sys.argv[2]), out_type=str)
options = {"beam_size": 1, "min_decoding_length": 0, "max_decoding_length": 20}
with open(sys.argv[1] + "/config.json") as file:
    options["max_input_length"] = json.load(file)["max_length"]
results = translator.translate_batch(batch, **options)
assert not {"tensorflow", "keras", "keras_transformer"} & set(sys.modules)
print(json.dumps([vocabulary.decode(result.hypotheses[0]) for result in results]))
"""


@pytest.fixture(scope="module")
def exported(translator, sentences, tmp_path_factory):
    """A function that takes a quantisation and returns the folder and report of an export."""
    folder, made = tmp_path_factory.mktemp("ctranslate2"), {}

    def of(quantize):
        if quantize not in made:
            path = folder / quantize / "model"
            made[quantize] = (
                path,
                export_ctranslate2(translator, path, sentences, CTranslate2Options(quantize)),
            )
        return made[quantize]

    return of


def test_the_report_states_what_was_written_and_checked(exported, sentences):
    path, report = exported("none")
    assert report["path"] == str(path)
    assert report["bytes"] == sum(file.stat().st_size for file in path.iterdir())
    assert (report["quantize"], report["sentences"]) == ("none", len(sentences))
    assert report["identical"] + report["near_ties"] == len(sentences)
    assert report["beam_agreement"] > 0.9
    assert report["processor"]["name"] and "sentences_left_out" not in report
    metadata = json.loads((path / "config.json").read_text())["agreement"]
    assert metadata["score_difference"] == report["score_difference"]
    assert "differences" not in metadata and metadata["processor"] == report["processor"]
    # The beam check leaves out at least the empty sentence.
    assert 30 <= report["beam_sentences"] < len(sentences)
    assert json.loads(json.dumps(report)) == report
    assert listing(path.parent) == ["model", *(f"model/{name}" for name in FILES)]
    assert path.stat().st_mode & 0o777 == path.parent.stat().st_mode & 0o777


@pytest.mark.slow
def test_a_program_without_tensorflow_gives_the_same(exported, sentences, python):
    """It agrees with our own loader of the file, which is compared with the model below.

    With `max_input_length` CTranslate2 truncates at the same token; only empty sentences are left
    out.
    """
    texts = [text for text in sentences if text.strip()]
    answers = json.loads(python(SERVER, exported("none")[0], json.dumps(texts)))
    loaded = CTranslate2Translator(exported("none")[0], num_threads=1)
    expected = loaded.answer_batch(texts)
    assert {output.truncated for output in expected} == {True, False}
    assert answers == [output.text for output in expected]


def test_the_loaded_folder_translates_as_the_model_in_memory(exported, translator, sentences):
    """Token for token except for near ties, which the processor's kernels decide."""
    loaded = CTranslate2Translator(exported("none")[0], num_threads=1)
    reference = Reference(translator)
    agreement = Agreement(translator, sentences, left_out=7)
    expected = reference.outputs(sentences)
    assert any(row[0].truncated for row in expected)
    for batch_size in (64, 4):
        outputs = map_sorted(loaded.answer_batch, sentences, batch_size)
        outputs = [[Output(output.text, output.score, output.truncated)] for output in outputs]
        outputs = with_tokens(translator.source_tokenizer, outputs, expected)
        report = agreement.judge(reference.search, expected, outputs, "loaded")
        assert report["sentences_left_out"] == 7, "the metrics say that the check was bounded"
    assert loaded.answer_batch([]) == []


def codes_of(table):
    """Returns the table in int8 with one scale per row."""
    codes = np.zeros(table.shape, np.int8)
    for row, values in zip(codes, table, strict=True):
        row[:] = np.rint(values * (np.float32(127) / np.abs(values).max()))
    return codes


@pytest.mark.slow
def test_the_tied_table_is_stored_once(exported, translator, quantize="int8"):
    table = translator.model.source_embedding.table.numpy()
    stored = {"none": table, "float16": table.astype(np.float16), "int8": codes_of(table)}
    content = (exported(quantize)[0] / "model.bin").read_bytes()
    assert content.count(stored[quantize].tobytes()) == 1


@pytest.mark.slow
def test_quantised_models_are_smaller_and_lose_little(exported, quantize="int8"):
    """The weights lose little on every processor; its kernels may lose more."""
    _, report = exported(quantize)
    assert report["quantize"] == quantize
    weights = report["in_float32"]
    assert abs(weights["score_loss"]) <= 0.01 and 0 < weights["score_error"] <= 0.01
    assert weights["token_agreement"] >= 0.9
    assert report["score_loss"] <= generated.MAX_KERNEL_LOSS[quantize]
    assert report["bytes"] < exported("none")[1]["bytes"]


def test_wrong_arguments_are_refused_before_any_work(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "make_spec", None)
    for wrong, message in [
        ({"quantize": "int4"}, "`quantize` must be one of none, float16, int8. .*='int4'"),
        ({"min_agreement": 2}, "`min_agreement` must be between 0 and 1, or None. .*=2"),
        ({"samples": [" "]}, "at least one sentence"),
    ]:
        with pytest.raises(ValueError, match=message):
            export_ctranslate2(
                translator,
                tmp_path / "x",
                **asked(CTranslate2Options, **{"samples": ["in 3"], **wrong}),
            )
    assert listing(tmp_path) == []


def test_a_shortlist_is_not_dropped_silently(translator, tmp_path):
    size = translator.model.config.tokens.vocab_size
    restricted = translator.with_shortlist(Shortlist.from_counts([[5, 6, 1]], size, first=4))
    with pytest.raises(ExportError, match="cannot contain a shortlist. Export the pipeline"):
        export_ctranslate2(restricted, tmp_path / "x", ["in 3 weeks"])
    assert listing(tmp_path) == []


def test_without_ctranslate2_the_message_gives_the_install_command(
    exported, translator, tmp_path, monkeypatch
):
    folder, _ = exported("none")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    message = re.escape(install_hint("ctranslate2"))
    with pytest.raises(ValueError, match=message):
        export_ctranslate2(translator, tmp_path / "x", ["in 3 weeks"])
    with pytest.raises(ValueError, match=message):
        CTranslate2Translator(folder)
    assert listing(tmp_path) == []


def of_a_changed_model(monkeypatch, change):
    """Makes exports write a model whose table `change` has changed."""

    def make(model, *args):
        table = model.target_embedding.table
        before = table.numpy()
        table.assign(change(before.copy()))
        spec = make_spec(model, *args)
        table.assign(before)
        return spec

    monkeypatch.setattr(generated, "make_spec", make)


@pytest.mark.slow
def test_a_model_that_differs_by_one_weight_is_detected(
    translator, sentences, tmp_path, monkeypatch
):
    def change(table):
        table[7, 3] += 0.05
        return table

    of_a_changed_model(monkeypatch, change)
    with pytest.raises(ExportError, match="x: .* differ"):
        export_ctranslate2(translator, tmp_path / "new" / "x", sentences)
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_harmful_quantisation_is_detected(translator, sentences, tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    of_a_changed_model(monkeypatch, lambda table: table + 0.1 * random.normal(size=table.shape))
    with pytest.raises(
        ExportError, match="x: .* by .* nats per token, but at most 0.03 is allowed .*; .*% of the"
    ):
        export_ctranslate2(translator, tmp_path / "x", sentences, CTranslate2Options("int8"))
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_kernels_that_lose_a_lot_are_detected(translator, sentences, tmp_path, monkeypatch):
    monkeypatch.setitem(generated.MAX_KERNEL_LOSS, "int8", 1e-6)
    with pytest.raises(ExportError, match="x: .* by .* per token, but at most 1e-06 is allowed"):
        export_ctranslate2(translator, tmp_path / "x", sentences, CTranslate2Options("int8"))
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_required_share_of_equal_tokens_is_a_limit(translator, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(
        CTranslate2Translator,
        "decode",
        lambda self, ids: (np.full((len(ids), 1, 20), 3), np.zeros((len(ids), 1))),
    )
    limits = {"min_agreement": 0.99, "max_score_loss": 1e9}
    with pytest.raises(ExportError, match=r"x: .*% of the tokens .* requires 99 %"):
        export_ctranslate2(
            translator, tmp_path / "x", sentences, **asked(CTranslate2Options, "int8", **limits)
        )
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_the_weights_may_lose_a_limited_amount_of_bleu(
    translator, sentences, tmp_path, monkeypatch
):
    random = np.random.default_rng(0)
    of_a_changed_model(monkeypatch, lambda table: table + 0.1 * random.normal(size=table.shape))
    options = {"references": translator(sentences), "max_score_loss": 1e9}
    with pytest.raises(ExportError, match="x: BLEU falls from 100.0 to .* the 1 that .max_loss"):
        export_ctranslate2(
            translator, tmp_path / "x", sentences, **asked(CTranslate2Options, "int8", **options)
        )
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_search_that_differs_only_with_a_beam_is_detected(
    translator, sentences, tmp_path, monkeypatch
):
    class Other(CTranslate2Translator):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            if self._search_options["beam_size"] > 1:
                self._search_options["length_penalty"] = -3

    monkeypatch.setattr(generated, "open_ctranslate2", Other)
    with pytest.raises(ExportError, match="x, searched with a beam: .* outputs differ"):
        export_ctranslate2(translator, tmp_path / "x", sentences)
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_an_older_export_is_replaced(translator, tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    for name in ("model.bin", "source_vocabulary.json"):
        (folder / name).write_bytes(b"an older one")
    export_ctranslate2(translator, folder, ["in 17 weeks"])
    assert CTranslate2Translator(folder).answer_batch(["in 17 weeks"])[0].text
    assert listing(tmp_path) == ["x", *(f"x/{name}" for name in FILES)]


def test_a_folder_that_is_not_an_export_is_left_alone(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "make_spec", None)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("1")
    (tmp_path / "file").write_text("1")
    before = listing(tmp_path)
    with pytest.raises(ExportError, match=r"thesis contains something other .*chapter\.txt"):
        export_ctranslate2(translator, tmp_path / "thesis", ["in 17 weeks"])
    with pytest.raises(ExportError, match="file is a file"):
        export_ctranslate2(translator, tmp_path / "file", ["in 17 weeks"])
    assert listing(tmp_path) == before


def test_ctrl_c_leaves_no_file(translator, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Agreement, "expected", stop)
    old = tmp_path / "x"
    old.mkdir()
    (old / "model.bin").write_bytes(b"an older one")
    for folder in (old, tmp_path / "new" / "y"):
        with pytest.raises(KeyboardInterrupt):
            export_ctranslate2(translator, folder, ["in 17 weeks"])
    assert listing(tmp_path) == ["x", "x/model.bin"]


@pytest.mark.slow
def test_an_export_that_cannot_be_moved_into_place_leaves_the_older_one(
    translator, tmp_path, monkeypatch
):
    rename, folder = export.place_folder.__globals__["os"].rename, tmp_path / "x"

    def fail(source, target):
        if pathlib.Path(target) == folder and pathlib.Path(source).suffix != ".replaced":
            raise PermissionError("no")
        rename(source, target)

    folder.mkdir()
    (folder / "model.bin").write_bytes(b"an older one")
    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(PermissionError):
        export_ctranslate2(translator, folder, ["in 17 weeks"])
    assert listing(tmp_path) == ["x", "x/model.bin"]


def test_a_full_disk_is_reported_in_one_line(translator, tmp_path, full_disk):
    with pytest.raises(OSError, match="File too large") as caught, full_disk(50_000):
        export_ctranslate2(translator, tmp_path / "x", ["in 17 weeks"])
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == []


def test_a_folder_that_is_not_an_export_is_reported(exported, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere was not written by .*: model\.bin is missing"):
        CTranslate2Translator(tmp_path / "nowhere")
    for name in FILES:
        content = (exported("none")[0] / name).read_bytes()
        (tmp_path / name).write_bytes(content[:1000] if name == "model.bin" else content)
    with pytest.raises(ValueError, match="cannot be read by CTranslate2: ") as caught:
        CTranslate2Translator(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("error:__array__ implementation")
def test_the_weights_are_read_without_a_warning(translator):
    """NumPy warns of an array of a Keras variable: an error with `python -W error`."""
    pieces = translator.source_tokenizer.pieces(range(translator.source_tokenizer.vocab_size))
    spec = make_spec(translator.model, pieces, pieces, 1, 29)
    table = translator.model.output_matrix.numpy()
    assert np.array_equal(spec.decoder.projection.weight.numpy(), table)


@pytest.mark.slow
def test_from_the_command_line(translator, sentences, tmp_path):
    run = Run(tmp_path / "run")
    run.path.mkdir()
    translator.model.save(run.model)
    run.tokenizer.write_bytes(translator.source_tokenizer.model)
    file = tmp_path / "sentences.txt"
    file.write_text("\n".join(sentences[:12]))
    arguments = ["export", "ctranslate2", run.path, tmp_path / "x", "--sentences", file, "--json"]
    done = CliRunner().invoke(cli, [*map(str, arguments), "--quantize", "int8"])
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["path"], report["quantize"]) == (str(tmp_path / "x"), "int8")
    assert json.loads(run.metrics.read_text()) == {
        "ctranslate2_int8_agreement": 100 * report["agreement"],
        "ctranslate2_int8_bytes": report["bytes"],
    }
    again = Translator.from_run(run.path)
    loaded = CTranslate2Translator(tmp_path / "x")
    assert loaded.max_length == again.max_length
    assert loaded.tokenizers.target.model == again.tokenizers.target.model


def translate_with(path, sentences, *options):
    lines = "".join(f"{sentence}\n" for sentence in sentences)
    arguments = ["translate", str(path), *options]
    return CliRunner().invoke(cli, arguments, input=lines.encode())


def test_the_command_line_translates_with_the_folder(exported, translator, sentences):
    path, _ = exported("none")
    expected = CTranslate2Translator(path).answer_batch(sentences[:20])
    expected = [output.text for output in expected]
    assert translate_with(path, sentences[:20]).stdout.splitlines() == expected
    with_beam = CTranslate2Translator(path, MEAN)
    expected = [output.text for output in with_beam.answer_batch(sentences[:20])]
    assert translate_with(path, sentences[:20], "--beam", "4").stdout.splitlines() == expected


@pytest.mark.parametrize("options", [["--length-penalty", "0"], slow(["--normalization", "none"])])
def test_a_length_penalty_of_zero_ranks_by_the_sum(exported, translator, sentences, options):
    """It used to be taken for a missing penalty, and scores were means."""
    path, _ = exported("none")
    done = translate_with(path, sentences[:9], "--beam", "4", "--n-best", "3", *options)
    loaded = CTranslate2Translator(path, SUM)
    expected = [
        f"{number}\t{output.score:.5f}\t{output.text}"
        for number, results in enumerate(loaded.n_best_batch(sentences[:9], 3), start=1)
        for output in results
    ]
    assert done.stdout.splitlines() == expected
    best, mean = (
        CTranslate2Translator(path, search).answer_batch(["in 3"]) for search in (SUM, MEAN)
    )
    assert best[0].score < mean[0].score


def test_more_hypotheses_than_the_beam_has_are_refused(exported):
    beam = Beam(2, normalization="none", extra_length=None)
    loaded = CTranslate2Translator(exported("none")[0], beam)
    with pytest.raises(ValueError, match=r"`n` must be between 1 and .* returns, 2: .* n=3\."):
        loaded.n_best_batch(["in 3"], 3)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (
            Beam(4),
            r'`normalization` of a beam in CTranslate2 must be "average" or "power" or "none": it '
            r"has no penalty like the paper's .*search=Beam",
        ),
        (
            Beam(4, normalization="none"),
            "`extra_length` of a beam in CTranslate2 must be None: .* no limit .* on the source",
        ),
        (
            Beam(4, 0, min_length=2, extra_length=None),
            r"`min_length` of a beam in CTranslate2 must be 1: .*'gnmt', min_length=2",
        ),
        (
            Beam(4, normalization="average", extra_length=None, stopping="score"),
            '`stopping` of a beam in CTranslate2 must be "count"',
        ),
    ],
)
def test_a_search_that_ctranslate2_does_not_have_is_refused(exported, search, message):
    with pytest.raises(ValueError, match=message):
        CTranslate2Translator(exported("none")[0], search)


def test_a_beam_of_the_folder_has_a_maximum_output_length(exported):
    beam = Beam(4, normalization="average", extra_length=None, max_length=3)
    tokens, _ = CTranslate2Translator(exported("none")[0], beam).decode([[9, 8, 7, 9, 3]])
    assert 0 < np.count_nonzero(tokens) <= 3


def test_a_folder_whose_limits_counted_prompts_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"max_length": 9, "greedy_max_length": 5}')
    with pytest.raises(ValueError, match=r"config\.json was exported by an earlier version"):
        read_metadata(path)


def test_a_damaged_configuration_of_the_folder_is_reported(exported, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(exported("none")[0], path)
    (path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"config\.json is damaged: it has no valid `max_len"):
        CTranslate2Translator(path)


def test_the_command_line_has_no_length_penalty_for_the_folder(exported):
    done = translate_with(exported("none")[0], ["in 3"], "--beam", "4", "--length-penalty", "0.6")
    assert done.exit_code == 2 and "CTranslate2 does not have this length penalty" in done.stderr
