"""A converted checkpoint as a run: its contents, and nothing left behind if it fails."""

import dataclasses
import json
import operator
import re
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from marks import slow, slow_except
from opus_folders import CODES, SOURCE_TEXT, TARGET_TEXT, random_tokens, write_folder

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.convert import _no_license
from keras_transformer.cli.main import cli
from keras_transformer.cli.search_options import line_of
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding.generation import Generation
from keras_transformer.pipelines import Run
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training import converted
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.converted import write_converted
from keras_transformer.training.distillation.distill import distill
from keras_transformer.training.distillation.options import Distillation
from keras_transformer.training.loop.start import Start
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

KINDS = {
    "shared": {"codes": CODES},
    "separate": {"separate": True},
    "untied, with norms": {
        "tie_word_embeddings": False,
        "normalize_embedding": True,
        "architectures": ["BartForConditionalGeneration"],
    },
}


@pytest.mark.parametrize("kind", slow_except(KINDS, "untied, with norms"))
def test_a_run_contains_the_model_its_vocabulary_and_its_provenance(kind, tmp_path):
    settings, _ = write_folder(tmp_path / "hf", **KINDS[kind])
    checkpoint = read_checkpoint(tmp_path / "hf")
    run = write_converted(checkpoint, tmp_path / "new" / "run")
    translator = Translator.from_run(run.path)
    assert translator.model.config == checkpoint.model.config
    for ours, theirs in zip(translator.model.weights, checkpoint.model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert translator.tokenizers.files() == checkpoint.tokenizers.files()
    assert run.read_origin() == {"format": "opus-mt", "name": "hf", "license": None}
    assert run.read_generation() == checkpoint.generation and checkpoint.generation.rules.banned_ids
    assert run.read_metrics() == {"parameters": checkpoint.model.count_params()}
    assert sorted(path.name for path in tmp_path.joinpath("new").iterdir()) == ["run"]
    source = random_tokens(settings, [7])
    np.testing.assert_array_equal(
        translator.model.encode(source)[0], checkpoint.model.encode(source)[0]
    )


def test_the_rules_for_outputs_come_from_the_file_in_the_run(tmp_path):
    """The ids saved with the model do not matter; `search.json` replaces only the search."""
    write_folder(tmp_path / "hf")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert not run.search.exists() and run.read_search() == run.read_generation().search
    rules = Generation(
        Greedy(5), notes=("a note",), rules=OutputRules(banned_ids=(3, 7), suppressed_ids=(4,))
    )
    run.write_generation(rules)
    assert run.read_generation() == rules
    translator = Translator.from_run(run.path)
    config = translator.model.config
    assert (
        config.head.rules.banned_ids,
        config.head.rules.suppressed_ids,
        config.head.rules.forced_eos_id,
    ) == ((3, 7), (4,), None)
    assert run.read_model_config() == config and translator.search == Greedy(5)
    run.write_search(Beam(3))
    assert run.read_search() == Beam(3) and run.read_generation() == rules
    other = Run(tmp_path / "other")
    other.path.mkdir()
    other.inherit(run)
    assert (other.read_search(), other.read_generation()) == (Beam(3), rules)
    assert other.read_origin() == run.read_origin()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        slow(
            '{"rules": {"banned_ids": [99999]}}',
            "json does not fit the model: `banned_ids` must be ids of the",
        ),
        slow(
            '{"rules": {"suppressed_ids": 3}}',
            "json is damaged .*`suppressed_ids` must be a list of ids",
        ),
        slow(
            '{"search": {"search": "best"}}', "json is damaged .*`search` must be one of greedy, b"
        ),
        slow('{"rules": {"beams": 3}}', "json has options of another version, beams: train"),
        ("[3]", "json is damaged"),
    ],
)
def test_rules_that_do_not_fit_are_reported(content, message, tmp_path):
    write_folder(tmp_path / "hf")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    run.generation.write_text(content)
    with pytest.raises(ValueError, match=f"generation.{message}") as error:
        run.load_model()
    assert "\n" not in str(error.value) and run.read_model_config() is None


def test_it_has_no_data_of_its_own_and_can_be_fine_tuned(tmp_path):
    write_folder(tmp_path / "hf")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"was converted .* the path of a recording or an image; `ex"
    ):
        open_source(load_settings(run.config).data)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a dog\nthe cat\n")
    files = {f"{split}_{side}": name for split in ("train", "validation")
             for side, name in (("source", "a.txt"), ("target", "b.txt"))}  # fmt: skip
    data = "\n".join(f'{key} = "{value}"' for key, value in files.items())
    config = tmp_path / "tune.toml"
    config.write_text(
        '[model]\nstart_from = "run"\ndropout = 0.3\n'
        f'[data]\nsource = "text"\nmax_length = 20\n{data}\n'
    )
    settings = load_settings(config)
    start = Start(settings)
    fields = converted.settings_of(start.model.config, start.tokenizers).model
    assert settings.model.model_copy(update={"start_from": None, "dropout": 0.1}) == fields


def test_a_run_that_could_not_be_written_leaves_no_file(tmp_path, monkeypatch):
    write_folder(tmp_path / "hf")
    checkpoint = read_checkpoint(tmp_path / "hf")

    def fail(settings, path):
        raise OSError("the disk is full")

    monkeypatch.setattr(converted, "save_settings", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_converted(checkpoint, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_an_existing_run_is_not_replaced(tmp_path):
    write_folder(tmp_path / "hf")
    checkpoint = read_checkpoint(tmp_path / "hf")
    with pytest.raises(ValueError, match=r"hf must not exist yet, or be an empty folder\."):
        write_converted(checkpoint, tmp_path / "hf")
    (tmp_path / "empty").mkdir()
    assert write_converted(checkpoint, tmp_path / "empty").model.is_file()


def test_a_damaged_provenance_is_reported(tmp_path):
    run = Run(tmp_path)
    assert run.read_origin() == {}
    run.write_origin({"license": "MIT"})
    assert json.loads(run.origin.read_text()) == run.read_origin() == {"license": "MIT"}
    run.origin.write_text("{")
    with pytest.raises(ValueError, match=r"origin\.json is damaged"):
        run.read_origin()


@pytest.mark.long
@pytest.mark.slow
def test_a_greedy_checkpoint_keeps_its_limit(tmp_path):
    write_folder(tmp_path / "hf", num_beams=1, max_length=8)
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    translator = Translator.from_run(run.path)
    assert translator.search == translator.greedy == Greedy(max_length=7)
    assert translator.search_for(2) == Beam(4, max_length=7)
    assert line_of(translator.search) == " --greedy --max-output 7"
    bias = translator.model.output_bias.numpy()
    bias[translator.model.config.tokens.eos_id] = -100  # so that outputs do not end
    translator.model.output_bias.assign(bias)
    source = translator.encode(["a dog", "the cat sat on a mat"])[0]
    config = translator.model.config
    tokens = translator.search(translator.model, source).tokens.numpy()[:, 0]
    assert (tokens[:, 6] == config.head.rules.forced_eos_id).all() and (
        tokens[:, 7:] == config.tokens.pad_id
    ).all()
    whole = Greedy()(translator.model, source).tokens.numpy()[:, 0]
    np.testing.assert_array_equal(tokens[:, :6], whole[:, :6])
    assert (whole[:, 7:] != config.tokens.pad_id).any()
    (alignment,) = translator.align(["a dog"])
    assert len(alignment.target) <= 7


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            "ctranslate2",
            "CTranslate2 can express the activations .*This model has relu6",
        ),
        ("litert --tokenizer", "--tokenizer needs a vocabulary whose ids are SentencePiece's own"),
        ("marian", "Marian cannot express hf, a Marian model in Hugging Face's format: "),
    ],
)
def test_an_unsupported_export_format_is_refused_before_weights_are_read(form, message, tmp_path):
    write_folder(tmp_path / "hf", activation_function="relu6")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    with zipfile.ZipFile(run.model) as archive:
        config = archive.read("config.json")
    with zipfile.ZipFile(run.model, "w") as archive:  # all other members are removed
        archive.writestr("config.json", config)
    (tmp_path / "lines").write_text("a dog\n")
    command = ["export", *form.split(), str(run.path), str(tmp_path / "out.tflite")]
    done = CliRunner().invoke(cli, [*command, "--sentences", str(tmp_path / "lines")])
    assert done.exit_code and re.search(message, done.output), done.output
    assert not (tmp_path / "out.tflite").exists()


def test_without_weights_the_configuration_of_a_run_can_be_read(tmp_path):
    write_folder(tmp_path / "hf")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert run.read_model_config() == run.load_model().config
    run.model.write_bytes(b"PK")
    assert run.read_model_config() is None
    run.model.unlink()
    assert run.read_model_config() is None


@pytest.mark.long
@pytest.mark.slow
def test_fine_tuning_lowers_the_loss_and_keeps_the_settings_of_the_checkpoint(tmp_path):
    write_folder(tmp_path / "hf", codes=CODES)
    (tmp_path / "hf" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    for name, lines in (("a.txt", SOURCE_TEXT), ("b.txt", TARGET_TEXT)):
        (tmp_path / name).write_text("\n".join(line[:12] for line in lines * 20) + "\n")
    config = tmp_path / "tune.toml"
    config.write_text(
        '[model]\nstart_from = "run"\ndropout = 0.0\n'
        '[data]\nsource = "text"\nmax_length = 20\nbatch_tokens = 100\n'
        'train_source = "a.txt"\ntrain_target = "b.txt"\n'
        'validation_source = "a.txt"\nvalidation_target = "b.txt"\n'
        '[schedule]\nkind = "linear"\nwarmup_steps = 5\npeak = 0.01\n'
        "[training]\nupdates = 60\nvalidate_every = 30\ncheckpoint_every = 30\n"
        "label_smoothing = 0.0\nvalidate_sentences = 0\n"
    )
    before = Translator.from_run(run.path)
    lines = [line[:12] for line in SOURCE_TEXT], [line[:12] for line in TARGET_TEXT]
    loss = -sum(result.score for result in before.score(*lines))
    train(load_settings(config), tmp_path / "tuned")
    tuned = Translator.from_run(tmp_path / "tuned")
    assert -sum(result.score for result in tuned.score(*lines)) < loss / 2
    expected = dataclasses.replace(before.model.config, dropout=0.0)
    size = expected.head.target_vocab_size
    head = dataclasses.replace(tuned.model.config.head, target_vocab_size=size)
    assert dataclasses.replace(tuned.model.config, head=head) == expected
    assert tuned.tokenizers.files() == before.tokenizers.files()
    assert Run(tmp_path / "tuned").read_origin() == run.read_origin() != {}
    assert Run(tmp_path / "tuned").read_generation() == run.read_generation() is not None
    assert tuned.search == before.search
    assert Run(average_checkpoints(tmp_path / "tuned", 2)).read_origin() == run.read_origin()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_a_student_of_it_inherits_its_tokens_its_rules_and_its_licence(kind, tmp_path):
    write_folder(tmp_path / "hf", **KINDS[kind])
    (tmp_path / "hf" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    teacher = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "teacher")
    for name, lines in (("a.txt", SOURCE_TEXT), ("b.txt", TARGET_TEXT)):
        (tmp_path / name).write_text("\n".join(line[:12] for line in lines) + "\n")
    config = tmp_path / "student.toml"
    config.write_text(
        '[model]\ndecoder = "ssru"\ndecoder_start = "zeros"\nnum_layers = 1\nd_model = 16\n'
        f'd_ff = 24\ntie = "{"all" if kind == "shared" else "target"}"\n'
        '[data]\nsource = "text"\ntrain_source = "a.txt"\ntrain_target = "b.txt"\n'
        'validation_source = "a.txt"\nvalidation_target = "b.txt"\n'
        "[schedule]\nwarmup_steps = 1\n[training]\nupdates = 1\nvalidate_sentences = 0\n"
    )
    distillation = Distillation(Beam(2, normalization="power", stopping="score"))
    distill(load_settings(config), tmp_path / "run", [teacher.path], distillation)
    run, before = Run(tmp_path / "run"), Translator.from_run(teacher.path)
    student = Translator.from_run(run.path)
    assert student.tokenizers.files() == before.tokenizers.files()
    for name in ("pad_id", "bos_id", "eos_id"):
        pair = (getattr(one.model.config.tokens, name) for one in (student, before))
        assert operator.eq(*pair), name
    assert student.model.config.head.rules == before.model.config.head.rules
    assert student.search == Greedy() != before.search
    sources = run.distillation.joinpath("train.source").read_text().splitlines()
    targets = run.distillation.joinpath("train.target").read_text().splitlines()
    assert before(sources, search=distillation.search) == targets and sources
    origin = {"format": "distilled", "name": "student of hf", "license": "cc-by-4.0"}
    assert run.read_origin() == Run(average_checkpoints(run.path, 1)).read_origin() == origin


def test_a_checkpoint_without_a_named_licence_may_have_a_file_of_it():
    assert _no_license("LICENSE") == (
        "the checkpoint names no licence, but has the file LICENSE: name it with --license."
    )


@pytest.mark.long
@pytest.mark.slow
def test_the_command_makes_a_run_and_prints_its_search(tmp_path, capfd):
    write_folder(tmp_path / "hf", num_beams=3, length_penalty=0.8, repetition_penalty=2.0)
    command = ["convert", "hf", str(tmp_path / "hf"), str(tmp_path / "run")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    printed = done.output
    assert "`repetition_penalty` = 2.0 is not carried over." in printed
    assert "the checkpoint names no licence; name it with --license." in printed
    line = printed.split(f"translate {tmp_path / 'run'} ")[1].strip()
    assert line == (
        "--beam 3 --length-penalty 0.8 --normalization power --extra-length none "
        "--max-output 19 --stopping score"
    )
    options = line.split()
    (tmp_path / "in.txt").write_text("a dog\n")
    done = CliRunner().invoke(
        cli, ["translate", str(tmp_path / "run"), *options, "--input", str(tmp_path / "in.txt")]
    )
    assert done.exit_code == 0, done.output
    (tmp_path / "in.txt").write_text("a dog\nthe cat sat\n")
    translate = ["translate", str(tmp_path / "run"), "--input", str(tmp_path / "in.txt")]
    translator = Translator.from_run(tmp_path / "run")
    for extra, search in {(): Greedy(19), ("--max-output", "3"): Greedy(3)}.items():
        done = CliRunner().invoke(cli, [*translate, "--greedy", *extra])
        assert done.exit_code == 0, done.output
        expected = translator(["a dog", "the cat sat"], search=search)
        assert done.stdout.splitlines() == expected
    done = CliRunner().invoke(cli, [*translate, "--max-output", "3"])
    assert (
        done.exit_code == 2
        and "--max-output needs --beam, --greedy, --ctc or --sample." in done.output
    )
    again = CliRunner().invoke(cli, command)
    assert again.exit_code == 1 and "run must not exist yet" in again.output
    nothing = CliRunner().invoke(cli, [*command[:2], str(tmp_path), str(tmp_path / "new")])
    assert (
        nothing.exit_code == 1
        and "has no config.json. A checkpoint is a folder in Hugging Face" in nothing.output
    )
    assert not (tmp_path / "new").exists()
