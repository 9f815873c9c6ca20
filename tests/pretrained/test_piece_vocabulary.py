"""Vocabularies of SentencePiece in `tokenizer.json`, and ids of tokens in several files."""

import json
import random

import pytest
import seq2seq_folders as folders
import t5_folders
import tokenizer_json
from marks import slow

from keras_transformer.pretrained.files.folder import CheckpointFolder
from keras_transformer.pretrained.multilingual import fairseq_vocabulary
from keras_transformer.pretrained.piece_vocabulary import read_pieces
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.text.sentencepiece_model import processor_of

SPM = "sentencepiece.bpe.model"
TEXTS = ["a dog runs", "", "  über  zwei\t Hügel ж ", "ﬁ ½ Ａ", "'s dogs'", "▁a", "<pad></s>x"]
WORDS = "abcdefghilmnoprstuü  .,▁ж½"
CODES = folders.NLLB_CODES


def hostile():
    rng = random.Random(1)
    return [*TEXTS, *("".join(rng.choices(WORDS, k=rng.randrange(20))) for _ in range(300))]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_tokenizer_json_segments_as_its_sentencepiece_model_does(tmp_path, kind):
    model = folders.spm(kind)
    content = tokenizer_json.of_model(model, folders.FAIRSEQ, 3, end=2)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    ours, theirs = (
        processor_of(read_pieces(CheckpointFolder(tmp_path), SPM).model), processor_of(model)
    )  # fmt: skip
    for text in hostile():
        expected = [theirs.id_to_piece(number) for number in theirs.encode(text)]
        assert [ours.id_to_piece(number) for number in ours.encode(text)] == expected, text


def write_json(folder, model, front, skip, added, end=1):
    content = tokenizer_json.of_model(model, front, skip, added, end)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return content


def write_t5(folder):
    """Writes a T5 with both files; returns the names of the model's own file and of the other."""
    t5_folders.write_folder(folder)
    first = processor_of(t5_folders.spm()).vocab_size()
    sentinels = [(f"<extra_id_{99 - number}>", first + number) for number in range(100)]
    write_json(folder, t5_folders.spm(), ["<pad>", "</s>", "<unk>"], 3, sentinels)
    return "spiece.model"


def write_pegasus(folder):
    folders.write_folder(folder, "pegasus")
    front = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 103))]
    write_json(folder, t5_folders.spm(), [*front, "<unk>"], 3, ())
    return "spiece.model"


def write_nllb(folder):
    folders.write_folder(folder, "nllb")
    added = [(code, 61 + number) for number, code in enumerate(CODES)]
    write_json(folder, folders.spm("bpe"), folders.FAIRSEQ, 3, [*added, ("<mask>", 65)], end=2)
    return SPM


@pytest.mark.parametrize("write", [write_t5, slow(write_pegasus), slow(write_nllb)])
def test_a_folder_without_the_model_has_the_same_ids(tmp_path, write):
    name = write(tmp_path)
    expected = read_checkpoint(tmp_path).tokenizers
    (tmp_path / name).unlink()
    found = read_checkpoint(tmp_path).tokenizers
    rows = expected.source.encode(hostile())
    assert found.source.encode(hostile()).to_list() == rows.to_list()
    assert (
        found.target.decode(rows).numpy().tolist() == expected.target.decode(rows).numpy().tolist()
    )
    languages = getattr(found.source, "languages", None)
    assert languages == getattr(expected.source, "languages", None)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=f"{name} is missing, and so is tokenizer.json"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("write", [write_t5, write_pegasus, write_nllb])
def test_files_that_disagree_are_refused(tmp_path, write):
    name = write(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary[-1], vocabulary[-2] = vocabulary[-2:]
    else:
        first, second = [*vocabulary][-2:]
        vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"{name} and tokenizer.json must have the same ids"):
        read_checkpoint(tmp_path)


def nllb(folder, decoder=None, listed=CODES):
    size = folders.write_fairseq_vocabulary(folder, listed, "bpe")
    if decoder is not None:
        entries = {n: {"content": name, "special": name != "xyz_Latn"} for n, name in decoder}
        (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": entries}))
    return fairseq_vocabulary(CheckpointFolder(folder), size + 5)


ADDED = [*((61 + number, code) for number, code in enumerate(CODES)), (65, "<mask>")]


def test_an_added_language_has_the_id_that_the_file_gives_it(tmp_path):
    # The list has it in alphabetical order, and counting would give another id to every language.
    listed = ["aaa_Latn", *CODES, "xyz_Latn"]
    found = nllb(tmp_path, [*ADDED, (66, "xyz_Latn"), (67, "aaa_Latn")], listed)
    expected = {code: number for number, code in ADDED[:-1]}
    assert found.languages == {**expected, "xyz_Latn": 66, "aaa_Latn": 67}
    assert found.ids["<mask>"] == 65


def test_languages_without_ids_are_counted_only_if_no_file_has_any(tmp_path):
    assert nllb(tmp_path / "a").languages == {code: number for number, code in ADDED[:-1]}
    with pytest.raises(ValueError, match=r"special_tokens_map.json lists the language 'xyz_Latn'"):
        nllb(tmp_path / "b", ADDED, [*CODES, "xyz_Latn"])


def test_two_files_that_give_a_language_two_ids_are_both_named(tmp_path):
    folders.write_fairseq_vocabulary(tmp_path, CODES, "bpe")
    added = [(code, number) for number, code in ADDED]
    write_json(tmp_path, folders.spm("bpe"), folders.FAIRSEQ, 3, added, end=2)
    swapped = [(62, CODES[0]), (61, CODES[1])]
    message = r"added_tokens_decoder` must give 'ace_Arab' the id that it has in .*, 61. Rec.* 62"
    with pytest.raises(ValueError, match=message):
        nllb(tmp_path, swapped)


def test_other_added_tokens_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be languages or special tokens. .*'xyz_Latn'"):
        folders.write_m2m_vocabulary(
            tmp_path, added_tokens_decoder={"160": {"content": "xyz_Latn", "special": False}}
        )
        folders.write_model(tmp_path, "m2m_100", 163)
        read_checkpoint(tmp_path)


def test_m2m100_reads_added_languages(tmp_path):
    size = folders.write_m2m_vocabulary(tmp_path)
    entries = {str(size - 1): {"content": "__tlh__", "special": True}}
    folders.write_m2m_vocabulary(tmp_path, added_tokens_decoder=entries)
    folders.write_model(tmp_path, "m2m_100", size)
    languages = read_checkpoint(tmp_path, source_language="tlh").tokenizers.source.languages
    assert languages.ids["tlh"] == size - 1
    (tmp_path / "added_tokens.json").unlink(missing_ok=True)
    entries = {str(size - 1): {"content": "__de__", "special": True}}
    folders.write_m2m_vocabulary(tmp_path, added_tokens_decoder=entries)
    with pytest.raises(ValueError, match=r"must give '__de__' the id that it has in .*vocab.json"):
        read_checkpoint(tmp_path)


def test_a_tokenizer_json_of_another_kind_is_refused(tmp_path):
    content = tokenizer_json.of_model(folders.spm("bpe"), folders.FAIRSEQ, 3, end=2)
    for changes, message in [
        ({"model": {**content["model"], "fuse_unk": False}}, "`fuse_unk` must be true"),
        ({"model": {"type": "WordPiece"}}, "`model` must be of the type Unigram"),
        ({"pre_tokenizer": None}, "`pre_tokenizer` must be one that puts ▁"),
    ]:
        (tmp_path / "tokenizer.json").write_text(json.dumps({**content, **changes}))
        with pytest.raises(ValueError, match=message):
            read_pieces(CheckpointFolder(tmp_path), SPM)
    names = {name: n for name, n in content["model"]["vocab"].items() if name != "</s>"}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({**content, "model": {**content["model"], "vocab": names}})
    )
    with pytest.raises(ValueError, match=r"tokenizer.json: the token '</s>' is missing"):
        read_pieces(CheckpointFolder(tmp_path), SPM)
