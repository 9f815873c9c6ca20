"""A run may take its vocabulary from another run or from files."""

import io
import shutil
import types

import pytest
import rich.console
import sentencepiece
from corpora import WORDS
from small_runs import run_quietly, write_small_corpus

from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import Beam
from keras_transformer.decoding.generation import Generation
from keras_transformer.tasks.run import Run
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers, WordPieceTokenizer
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.training.distillation.student import student_settings
from keras_transformer.training.factory import model_config
from keras_transformer.training.inputs import take_tokenizers
from keras_transformer.training.settings.taken_vocabulary import describe
from keras_transformer.training.settings.toml import SettingsError, load_settings, save_settings
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.vocabulary import learn_vocabulary

MODEL = """
[model]
num_layers = 1
d_model = 8
d_ff = 12
num_heads = 2
max_length = 20
tie = "{tie}"
"""
DATA = """
[data]
source = "text"
train_source = "train.src"
train_target = "train.tgt"
validation_source = "validation.src"
validation_target = "validation.tgt"
max_length = 14
batch_tokens = 60
"""
VOCABULARY = {"size": 28, "model_type": "unigram", "split_digits": False}
COVERAGE = 0.9995  # stored by SentencePiece as a float32


def learned(texts, **changes):
    return learn_vocabulary(texts * 20, VocabularySettings(**{**VOCABULARY, **changes}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with runs `first` (one vocabulary) and `pair` (two), and a file of other ids."""
    folder = tmp_path_factory.mktemp("vocabularies")
    write_small_corpus(folder)
    one, two = learned(WORDS, character_coverage=COVERAGE), learned([x[::-1] for x in WORDS])
    for name, models in (("first", (one,)), ("pair", (one, two))):
        run = Run(folder / name)
        run.path.mkdir()
        sides = [SentencePieceTokenizer(model) for model in models]
        run.write_tokenizers(Tokenizers.of(sides if len(sides) == 2 else sides[0]))
        (folder / "own.toml").write_text(
            MODEL.format(tie="target")
            + DATA
            + '[vocabulary]\nsize = 28\nmodel_type = "unigram"\nsplit_digits = false\n'
            + f"character_coverage = {COVERAGE}\nshared = {str(name == 'first').lower()}\n"
        )
        save_settings(load_settings(folder / "own.toml"), run.config)
    (folder / "one.model").write_bytes(one)
    (folder / "two.model").write_bytes(two)
    special = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS * 20), model_writer=special, vocab_size=28,
        unk_id=0, bos_id=1, eos_id=2, pad_id=3, minloglevel=2,
    )  # fmt: skip
    (folder / "special.model").write_bytes(special.getvalue())
    (folder / "text.model").write_bytes(b"no model")
    return folder


def taking(folder, places, more="", tie="target"):
    path = folder / "taking.toml"
    path.write_text(f"{MODEL.format(tie=tie)}{DATA}[vocabulary]\nfrom = {places}\n{more}\n")
    return load_settings(path)


def taken(settings, path):
    path.mkdir()
    console = rich.console.Console(file=io.StringIO(), width=300)
    tokenizers = take_tokenizers(Run(path), settings, None, console)
    return tokenizers, console.file.getvalue()


@pytest.mark.parametrize(
    "places", ['"first"', '"one.model"', '["one.model"]', '"first/tokenizer.model"']
)
def test_a_vocabulary_is_copied_unchanged(folder, tmp_path, places):
    settings = taking(folder, places)
    assert settings.vocabulary.description() == {
        "shared": True, **VOCABULARY, "character_coverage": COVERAGE,
    }  # fmt: skip
    tokenizers, shown = taken(settings, tmp_path / "run")
    assert Run(tmp_path / "run").tokenizer.read_bytes() == (folder / "one.model").read_bytes()
    assert tokenizers.shared and tokenizers.source.vocab_size == 28
    assert shown == f"Using the vocabulary of {settings.vocabulary.places[0]}: 28 tokens.\n"


@pytest.mark.parametrize("places", ['"pair"', '["one.model", "two.model"]'])
def test_two_vocabularies_are_copied_unchanged(folder, tmp_path, places):
    settings = taking(folder, places)
    assert settings.vocabulary.shared is False
    tokenizers, _ = taken(settings, tmp_path / "run")
    files = [folder / "one.model", folder / "two.model"]
    assert [side.model for side in tokenizers] == [file.read_bytes() for file in files]
    assert [file.name for file in Run(tmp_path / "run").vocabulary()] == [
        "source.model",
        "target.model",
    ]


def test_the_settings_of_a_run_do_not_need_the_source_of_its_vocabulary(folder, tmp_path):
    copy = shutil.copytree(folder / "first", tmp_path / "copy")
    settings = taking(folder, f'"{copy}"')
    save_settings(settings, tmp_path / "config.toml")
    shutil.rmtree(copy)
    assert load_settings(tmp_path / "config.toml") == settings
    with pytest.raises(
        SettingsError, match="`vocabulary.from` cannot be used: .*copy is neither a"
    ):
        taking(folder, f'"{copy}"')


def test_special_ids_of_the_model_come_from_the_file(folder, tmp_path):
    settings = taking(folder, '"special.model"')
    tokenizers, _ = taken(settings, tmp_path / "run")
    config = model_config(settings, tokenizers)
    assert (
        config.tokens.bos_id,
        config.tokens.eos_id,
        config.tokens.pad_id,
        config.tokens.vocab_size,
    ) == (1, 2, 3, 28)


@pytest.mark.parametrize("run", [True, False])
def test_a_table_of_ids_next_to_a_file_is_copied_as_well(folder, tmp_path, run):
    """As in the run of a converted checkpoint, whose ids are not those of SentencePiece."""
    plain = SentencePieceTokenizer((folder / "one.model").read_bytes())
    ids = list(range(plain.vocab_size + 1, 1, -1))
    table = PieceTable(
        ids=ids, size=plain.vocab_size + 2, pad_id=0, unk_id=ids[plain.unk_id], bos_id=0,
        eos_id=ids[plain.eos_id], names={0: "<pad>", 1: ">>de<<"},
    )  # fmt: skip
    other = Run(tmp_path / "other")
    other.path.mkdir()
    other.write_tokenizers(Tokenizers.of(SentencePieceTokenizer(plain.model, table)))
    other.write_generation(
        Generation(Beam(3), notes=("a note",), rules=OutputRules(banned_ids=(1,)))
    )
    settings = taking(folder, f'"{other.path if run else other.tokenizer}"')
    tokenizers, _ = taken(settings, tmp_path / "run")
    assert tokenizers.source.table == table and settings.vocabulary.size == 30
    config = model_config(settings, tokenizers)
    assert (config.tokens.pad_id, config.tokens.eos_id, config.tokens.vocab_size) == (
        0,
        table.eos_id,
        30,
    )
    assert config.tokens.eos_id != plain.eos_id
    assert Run(tmp_path / "run").configure(config).head.rules.banned_ids == (1,)
    assert Run(tmp_path / "run").read_generation() == Generation(rules=OutputRules(banned_ids=(1,)))


CASES = {
    "size": (
        '"first"', "size = 29", {},
        r"taking.toml: the vocabulary that `vocabulary.from` names is a different one: "
        r"vocabulary.size is 29 here and 28 there. Remove these keys.$",
    ),
    "several": (
        '"one.model"', "character_coverage = 1.0\nsplit_digits = true", {},
        "vocabulary.character_coverage is 1.0 here and 0.9995 there, vocabulary.split_digits is "
        "True here and False there. Remove",
    ),
    "kind": ('"one.model"', 'model_type = "bpe"', {}, "model_type is 'bpe' here and 'unigram' th"),
    "shared": ('"pair"', "shared = true", {}, "vocabulary.shared is True here and False there"),
    "missing": ('"nothing"', "", {}, "cannot be used: .*nothing is neither a run nor a file."),
    "no vocabulary": ('"."', "", {}, "cannot be used: .* is not a finished run: tokenizer.mod"),
    "no model": ('"text.model"', "", {}, "used: .*text.model: `model` must be the bytes of a S"),
    "special pieces": (
        '["one.model", "special.model"]', "", {},
        "cannot be used: `tokenizer` must be a pair with the same `pad_id`. Received: 0 and 3.",
    ),
    "three": ('["a", "b", "c"]', "", {}, "vocabulary.from must be a run, a file, or two files, "),
    "tied": ('"pair"', "", {"tie": "all"}, "`vocabulary.from` with two vocabularies needs `mo"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_vocabulary_that_does_not_fit_is_reported_in_one_line(folder, case):
    places, more, options, message = CASES[case]
    with pytest.raises(SettingsError, match=message) as error:
        taking(folder, places, more, **options)
    assert "\n" not in str(error.value)


def test_a_vocabulary_comes_with_weights_or_separately(folder):
    path = folder / "tuning.toml"
    path.write_text(f'[model]\nstart_from = "first"\n{DATA}[vocabulary]\nfrom = "first"\n')
    message = "`vocabulary.from` and `model.start_from` cannot be combined: the weights of a run c"
    with pytest.raises(SettingsError, match=message):
        load_settings(path)


def test_two_vocabularies_need_two_sides(folder):
    path = folder / "one.toml"
    path.write_text(
        '[task]\nkind = "language_modelling"\n[data]\nsource = "text"\ntrain = "train.src"\n'
        'validation = "validation.src"\n[vocabulary]\nfrom = "pair"\n'
    )
    message = "`vocabulary.from` with two vocabularies needs a source and a target: language_model"
    with pytest.raises(SettingsError, match=message):
        load_settings(path)


def test_a_changed_file_is_refused(folder, tmp_path):
    file = shutil.copy(folder / "one.model", tmp_path / "copy.model")
    settings = taking(folder, f'"{file}"')
    shutil.copy(folder / "two.model", file)
    message = "is a different one: vocabulary.character_coverage is 0.9995 here and 1.0 there. R"
    with pytest.raises(ValueError, match=message):
        taken(settings, tmp_path / "run")


def test_a_student_with_its_teachers_vocabulary_takes_no_other(folder):
    teacher = types.SimpleNamespace(
        run=Run(folder / "first"), settings=load_settings(folder / "own.toml")
    )
    settings = taking(folder, '"one.model"')
    section = settings.used()["data"]
    with pytest.raises(
        SettingsError, match="remove `vocabulary.from`, or give the student a vocabulary of its own"
    ):
        student_settings(settings, section, teacher)
    assert student_settings(settings, section, None) == settings


@pytest.mark.long
@pytest.mark.slow
def test_a_run_with_a_copied_vocabulary_is_trained_and_resumed_alone(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    settings = taking(copy, '"special.model"', "[training]\nupdates = 2\nvalidate_sentences = 3")
    figures, shown = run_quietly(settings, tmp_path / "run")
    assert figures["updates"] == 2 and "Using the vocabulary of " in shown
    assert "Learning a vocabulary" not in shown
    (copy / "special.model").unlink()
    longer = load_settings(Run(tmp_path / "run").config, ["training.updates=3"])
    figures, shown = run_quietly(longer, tmp_path / "run")
    assert figures["updates"] == 3 and "Taking" not in shown


def test_a_vocabulary_in_addition_to_weights_is_refused(tmp_path):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]
    Run(tmp_path).write_tokenizers(Tokenizers.of(WordPieceTokenizer(special)))
    message = "must name a vocabulary of SentencePiece. Received: .*, a vocabulary of WordPiece, wh"
    with pytest.raises(ValueError, match=message):
        describe([str(tmp_path)], load_settings)
