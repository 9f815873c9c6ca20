"""Files that we write for Marian, run by the engines themselves if they are installed."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from marian_models import IDS
from marian_reference import SaturatingMarian
from searching import by_greedy
from small_runs import CONFIG, write_small_corpus

from keras_transformer import Translator
from keras_transformer.decoding import Constraints, Shortlist
from keras_transformer.export import MarianOptions
from keras_transformer.export.marian.export import export_marian
from keras_transformer.pretrained.files.marian.binary import read_bin
from keras_transformer.pretrained.files.marian.settings import read_settings
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.shortlists import learn_shortlist
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

pytestmark = pytest.mark.slow
PROGRAM = pathlib.Path(__file__).parent / "programs" / "bergamot.mjs"
DECODER = """
import sys
from pymarian import Translator
model, source, target, *shortlist = sys.argv[1:]
options = {"beam_size": 1, "normalize": 0, "cpu_threads": 1, "quiet": True, "mini_batch": 1}
options["maxi_batch"] = 1
if shortlist:
    options["shortlist"] = shortlist
translator = Translator(models=model, vocabs=[source, target], **options)
print("\\n".join(translator.translate(sys.stdin.read().split("\\n"))))
"""
STUDENT = """
decoder = "ssru"
decoder_start = "zeros"
attention_bias = true
output_bias = true
position = { kind = "sinusoidal", layout = "halves", endpoint = true }
"""


@pytest.fixture(scope="module")
def pymarian(tmp_path_factory):
    """A function that takes a folder and lines and returns Marian's translations."""
    python = os.environ.get("KERAS_TRANSFORMER_PYMARIAN")
    if python is None:
        pytest.skip(
            "KERAS_TRANSFORMER_PYMARIAN must name a Python with pymarian (pip install pymarian), "
            "or be `install`, which downloads 600 MB"
        )
    if python == "install":
        folder = tmp_path_factory.mktemp("pymarian")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = folder / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", "pymarian"], check=True)

    def translate(folder, lines, name="model.npz", shortlist=()):
        command = [python, "-c", DECODER, folder / name, *[folder / "vocab.spm"] * 2, *shortlist]
        return output_of(command, lines)

    return translate


@pytest.fixture(scope="module")
def bergamot(tmp_path_factory):
    """A function that takes a folder and lines and returns the browser engine's translations."""
    package = os.environ.get("KERAS_TRANSFORMER_BERGAMOT")
    if package is None or shutil.which("node") is None:
        pytest.skip(
            "KERAS_TRANSFORMER_BERGAMOT must name the folder of @browsermt/bergamot-translator "
            "(npm install), and node must be there"
        )
    copy = tmp_path_factory.mktemp("bergamot") / "package"
    shutil.copytree(package, copy)
    (copy / "worker" / "package.json").write_text('{"type": "commonjs"}')

    def translate(folder, lines, shortlist=()):
        files = [folder / "model.intgemm.alphas.bin", folder / "vocab.spm", *shortlist]
        return output_of(["node", PROGRAM, copy, *files], lines)

    return translate


def output_of(command, lines):
    done = subprocess.run(
        list(map(str, command)), input="\n".join(lines), capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.split("\n")[: len(lines)]
    assert len(found) == len(lines), done.stderr[-2000:]
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A student trained here for some seconds, and sentences it has not seen."""
    folder = tmp_path_factory.mktemp("trained")
    write_small_corpus(folder)
    config = CONFIG.replace("d_model = 16", "d_model = 64").replace("d_ff = 24", "d_ff = 64")
    config = config.replace("max_length = 20", f"max_length = 20{STUDENT}")
    config = config.replace("size = 15", "size = 32\nsplit_digits = false")
    config = config.replace("updates = 11", "updates = 300")
    config = config.replace("validate_every = 6", "validate_every = 300")
    (folder / "config.toml").write_text(config)
    train(load_settings(folder / "config.toml"), folder / "run")
    lines = [str(number * 7919 % 10**5) for number in range(1, 101)]
    return Translator.from_run(folder / "run"), lines


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    ours, lines = trained
    path = tmp_path_factory.mktemp("exported") / "marian"
    export_marian(ours, path, lines, MarianOptions("int8"))
    return path


def texts(ours, lines, longest=128, candidates=None):
    """Returns translations of at most three times the source's tokens, Marian's limit."""
    source, *_ = ours.encode(lines)
    lengths = tf.math.count_nonzero(
        source != ours.model.config.tokens.pad_id, axis=1, dtype=tf.int32
    )
    longest = min(longest, ours.max_length)
    rules = None if candidates is None else Constraints(banned=~candidates)
    tokens, _ = by_greedy(ours.model, source, 3 * lengths, longest, constraints=rules)
    return [text.decode() for text in ours.target_tokenizer.decode(tokens).numpy()]


def emulate(ours, path, lines, end, candidates=None):
    """Returns the emulator's translations of lines, up to twice as long as the source."""
    arrays, emulated = read_bin(path / "model.intgemm.alphas.bin"), []
    marian = SaturatingMarian(arrays, read_settings(arrays, path), end)
    for number, source in enumerate(ours.source_tokenizer.encode(lines).to_list()):
        allowed = None if candidates is None else candidates[number][: len(arrays["Wemb"].values)]
        tokens, _ = marian.greedy(source, 2 * len(source), allowed)
        emulated += [ours.target_tokenizer.decode([tokens]).numpy()[0].decode()]
    return emulated


def share(found, expected):
    same = [one == other for one, other in zip(found, expected, strict=True)]
    return sum(same) / len(same)


@pytest.mark.parametrize("name", ["model.npz", "model.bin"])
def test_marian_decodes_a_student_trained_here(pymarian, trained, exported, name):
    ours, lines = trained
    expected = texts(ours, lines)
    assert len(set(expected)) > 10
    assert share(pymarian(exported, lines, name), expected) == 1.0


def test_the_browsers_engine_decodes_it_as_the_emulator_does(bergamot, trained, exported):
    ours, lines = trained
    emulated = emulate(ours, exported, lines, IDS["end"])
    assert len(set(emulated)) > 10
    assert share(bergamot(exported, lines), emulated) >= 0.98


@pytest.fixture(scope="module")
def student(data_dir, tmp_path_factory):
    """The real student, converted and exported again, and its sentences."""
    folder = data_dir / "marian_student"
    checkpoint = read_checkpoint(folder / "model.npz", vocabularies=[folder / "vocab.spm"])
    ours = Translator(checkpoint.model, checkpoint.tokenizers)
    rows = (folder / "greedy.float32.tsv").read_text("utf-8").splitlines()
    lines = [row.split("\t")[0] for row in rows]
    path = tmp_path_factory.mktemp("student") / "marian"
    export_marian(ours, path, lines[:40], MarianOptions("int8"), calibration=lines)
    return folder, path, lines, ours


def test_marian_decodes_the_real_student_after_a_round_trip(pymarian, student):
    folder, path, lines, ours = student
    assert share(pymarian(path, lines), pymarian_of(folder, path, pymarian, lines)) == 1.0
    assert share(pymarian(path, lines, "model.bin"), texts(ours, lines)) == 1.0


def pymarian_of(folder, path, pymarian, lines):
    """Returns Marian's translations with its own file."""
    copy = path.parent / "theirs"
    copy.mkdir()
    for name in ("model.npz", "vocab.spm"):
        shutil.copyfile(folder / name, copy / name)
    return pymarian(copy, lines)


def test_the_browsers_engine_decodes_the_real_student_in_int8(bergamot, student):
    _, path, lines, ours = student
    assert share(bergamot(path, lines), emulate(ours, path, lines, 0)) >= 0.98


@pytest.fixture(scope="module")
def shortlisted(student, tmp_path_factory):
    """The real student with a shortlist learned here, and the candidates of lines."""
    _, _, lines, ours = student
    learned = learn_shortlist(ours, lines[:100], texts(ours, lines[:100]), first=20, best=10)
    restricted = ours.with_shortlist(learned)
    path = tmp_path_factory.mktemp("shortlisted") / "marian"
    export_marian(restricted, path, lines[:40], MarianOptions("int8"), calibration=lines)
    return path, lines, restricted, candidates(restricted, path / "lex.s2t.bin", lines)


def candidates(ours, file, lines):
    """Returns the tokens that the engines may emit for each line alone, boolean `[B, V]`.

    The candidates of the file, and more of the vocabulary's first tokens up to a multiple of 8.
    """
    shortlist, size = Shortlist.read(file), ours.model.config.output_size
    allowed = np.zeros((len(lines), size), bool)
    for row, source in zip(allowed, ours.source_tokenizer.encode(lines).to_list(), strict=True):
        row[shortlist.candidates(source, (), shared=True)] = True
        row[np.flatnonzero(~row)[: -row.sum() % 8]] = True
    return allowed


def test_marian_decodes_with_our_shortlist_as_we_do(pymarian, shortlisted):
    path, lines, ours, allowed = shortlisted
    expected, free = texts(ours, lines, candidates=allowed), texts(ours, lines)
    assert share(expected, free) < 0.9, "the shortlist forbids nothing"
    assert share(ours(lines), expected) > 0.9, "a few more candidates change little"
    for name in ("model.npz", "model.bin"):
        assert share(pymarian(path, lines, name, [path / "lex.s2t.bin"]), expected) == 1.0


def test_the_browsers_engine_decodes_with_our_shortlist(bergamot, shortlisted):
    path, lines, ours, allowed = shortlisted
    expected = emulate(ours, path, lines, 0, allowed)
    found = bergamot(path, lines, [path / "lex.s2t.bin"])
    assert share(found, expected) >= 0.96  # measured: 195 of 200
    assert share(found, bergamot(path, lines)) < 0.9, "the shortlist forbids nothing"
