"""MADLAD-400: the code of the target language is text in front of the source."""

import dataclasses
import json

import madlad_folders
import numpy as np
import opus_folders
import pytest
import sentencepiece
import t5_in_numpy
import tensorflow as tf
from madlad_folders import CODES, write_folder

from keras_transformer import from_pretrained
from keras_transformer.export.source_ids import check_source_ids
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.pretrained.trimming import trim
from keras_transformer.tasks.token_rows import checked_ids
from keras_transformer.text.tokenizers import SentencePieceTokenizer

LINES = ["a dog runs", "", "the cat ж", "  two  dogs, nine cats "]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("madlad")
    write_folder(path, max_length=8)
    return path


@pytest.fixture(scope="module")
def translator(folder):
    return from_pretrained(folder)


def ids_of(text):
    """Returns the ids of a text by SentencePiece, and its end."""
    return [*madlad_folders.processor().encode(text), 2]


def test_logits_and_states(folder):
    settings, tensors = write_folder(folder, max_length=8)
    model = read_checkpoint(folder).model
    source = opus_folders.random_tokens(settings, (13, 6, 1))
    target = opus_folders.random_tokens(settings, (7, 3, 5), 1, start=0)
    states, logits = t5_in_numpy.forward(tensors, settings, source, target)
    found = model.encode(source)[0].numpy()[source != 1]
    np.testing.assert_allclose(found, states[source != 1], rtol=0, atol=1e-5)
    found = model({"source": source, "target": target}, training=False)
    np.testing.assert_allclose(found, logits, rtol=0, atol=1e-4)
    assert model.config.head.rules.language_codes == "none"  # the model reads them as any text


@pytest.mark.parametrize("text", [*LINES, "<2xyz> a dog", "a <2de> b"])
def test_the_default_language_is_written_in_front_of_a_text(text, translator):
    source, target = translator.tokenizers.with_languages(target="fr")
    written = f"<2fr> {text}" if text else "<2fr>"
    assert source.encode([text]).to_list() == [ids_of(written)]
    assert source.sample([text], 0.0, 1)[0][:2] == ids_of("<2fr>")[:2]
    assert source.sample([f"<2de> {text}"], 9.0, 1)[0][:2] == ids_of("<2de>")[:2]
    assert target.encode([text]).to_list() == [ids_of(text)]  # without a language


def test_a_text_may_begin_with_a_code_of_its_own(translator):
    tokenizer = translator.tokenizers.with_languages(target="fr").source
    for text in ("<2de> a dog", "<2de>a dog", "<2nan_Latn_TW> a <2de> b", "<2de>"):
        assert tokenizer.encode([text]).to_list() == [ids_of(text)]
        assert translator.source_tokenizer.encode([text]).to_list() == [ids_of(text)]
    assert tokenizer.encode([" <2de> a", "<2de> \n"]).to_list() == [
        ids_of("<2de> a"),
        ids_of("<2de>"),
    ]


def test_one_batch_has_texts_into_several_languages(translator):
    by_code = {code: translator.with_languages(target=code)(LINES) for code in ("de", "fr")}
    assert by_code["de"] != by_code["fr"] and by_code["de"][1] == ""
    written = [f"<2{code}> {line}" for line in LINES for code in by_code]
    expected = [texts[number] for number in range(len(LINES)) for texts in by_code.values()]
    assert translator(written) == expected
    german = translator.with_languages(target="de")  # the code of a text takes precedence
    assert german(written) == expected


@pytest.mark.slow
def test_scores_and_alignments_know_the_languages(translator):
    german = translator.with_languages(target="de")
    theirs = ["the cat", "a", "dogs", "two"]
    ours = translator.with_languages(target="fr").score(LINES, theirs)
    assert german.score([f"<2fr> {line}" for line in LINES], theirs) == ours
    (alignment,) = translator.with_languages(target="fr").align(["a dog"])
    assert alignment.source[:2] == ["▁", "<2fr>"]
    assert alignment.words()
    assert all(source in (0, 1) for source, _ in alignment.words())


def test_wrong_languages_are_refused(translator):
    with pytest.raises(ValueError, match=r"`target_language` must be chosen, .* begin with one, s"):
        translator(["a dog"])
    with pytest.raises(ValueError, match=r"`target_language` must be one of the 5 .* as de, .*deu"):
        translator.with_languages(target="deu")
    with pytest.raises(ValueError, match=r"<2ger> at the .* must name one of the 5 languages of"):
        translator(["<2de> a", "<2ger> a dog"])
    with pytest.raises(ValueError, match=r"`source_language` must be None: the model reads the la"):
        translator.with_languages("en", "de")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`target_language` must be chosen"):
        translator.source_tokenizer.encode(["<2de> a", "a dog"])
    assert translator.count_truncated(["a dog"]) == 0


def test_ids_begin_with_a_language(translator):
    tokenizer = translator.with_languages(target="de").source_tokenizer
    right, wrong = ids_of("<2de> a ж"), ids_of("a ж")  # the last id starts outputs as well
    assert 0 in right
    check_source_ids([right], tokenizer)
    checked_ids(tf.constant([right]), tokenizer, 20)
    with pytest.raises(ValueError, match=r"does not begin with 2 tokens, of which the last is"):
        check_source_ids([wrong], tokenizer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"begin each row with 2 tokens, of"):
        checked_ids(tf.constant([wrong]), tokenizer, 20)
    _, of_ids = translator.with_languages(target="de").signatures()
    valid, _ = of_ids.screen(tf.constant([right, wrong[:1] * len(right)]))
    assert valid.numpy().tolist() == [True, False]


def test_the_tokenizer_is_stored(translator):
    tokenizer = translator.with_languages(target="de").source_tokenizer
    files = json.loads(json.dumps({k: v.hex() for k, v in tokenizer.files().items()}))
    again = SentencePieceTokenizer.from_files({k: bytes.fromhex(v) for k, v in files.items()})
    assert again.languages == tokenizer.languages
    assert again.encode(["a"]).to_list() == [ids_of("<2de> a")]
    with pytest.raises(ValueError, match=r"`languages` must be pieces of SentencePiece, because"):
        dataclasses.replace(tokenizer.table, ids=[-1] * len(tokenizer.table.ids))


def test_a_smaller_vocabulary_keeps_the_languages(folder, tmp_path):
    (tmp_path / "lines.txt").write_text("a dog\nthe cat\n")
    trimmed = trim(read_checkpoint(folder, target_language="de"), [tmp_path / "lines.txt"])
    tokenizer = trimmed.checkpoint.tokenizers.source
    assert [*tokenizer.languages.ids] == [*CODES]
    assert tokenizer.vocab_size < madlad_folders.processor().vocab_size()
    assert tokenizer.pieces(tokenizer.encode(["a dog"]).to_list()[0])[:2] == ["▁", "<2de>"]


def test_codes_that_are_not_tokens_of_texts_are_reported(folder, tmp_path):
    write_folder(tmp_path)
    proto = sentencepiece.sentencepiece_model_pb2.ModelProto.FromString(madlad_folders.spm())
    proto.pieces[5].type = proto.pieces[5].UNUSED
    (tmp_path / "spiece.model").write_bytes(proto.SerializeToString())
    with pytest.raises(ValueError, match=r"codes of languages must be tokens .* '<2de>', whose"):
        read_checkpoint(tmp_path)
