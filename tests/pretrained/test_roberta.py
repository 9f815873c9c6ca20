"""RoBERTa's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
from marks import slow
from roberta_folders import (
    PIECES,
    SIZES,
    TAGGER,
    forward,
    ids_of,
    write_folder,
)

from keras_transformer import from_pretrained
from keras_transformer.pretrained.read import read_checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("prefix_space", [False, True])
def test_words_get_the_labels_of_the_checkpoint(prefix_space, tmp_path):
    """Each has that of its first token; a word has the space before it, but the first of a text."""
    settings, tensors = write_folder(tmp_path, **TAGGER)
    option = {"add_prefix_space": prefix_space}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(option))
    token_classifier, texts = (
        from_pretrained(tmp_path),
        ["A dog is running.", " film, not good", "cats", ""],
    )
    names, labels = [*settings["id2label"].values()], set()
    for text, found in zip(texts, token_classifier.answer(texts), strict=True):
        row, first = [0], []
        for place, word in enumerate(text.split()):
            first.append(len(row))
            row += ids_of((" " if place or prefix_space or text[0] == " " else "") + word)[1:-1]
        if not prefix_space:
            assert [*row, 2] == ids_of(text)
        logits = forward(tensors, settings, np.array([[*row, 2]]))[1][0]
        assert found.labels == tuple(names[logits[place].argmax()] for place in first)
        labels |= {*found.labels}
    assert len(labels) > 1


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="WordPiece"), "`model` must be of the type BPE"),
        (lambda c: c.update(normalizer={"type": "NFD"}), "`normalizer` must be of the type"),
        (lambda c: c.update(pre_tokenizer=None), "`pre_tokenizer` must be of the type ByteLevel"),
        (lambda c: c["pre_tokenizer"].update(use_regex=False), "`pre_tokenizer` must be of"),
        (lambda c: c["model"].update(byte_fallback=True), "`byte_fallback` must be false"),
        (lambda c: c["model"].update(end_of_word_suffix="</w>"), "`end_of_word_suffix` must be nu"),
        (lambda c: c["model"].update(vocab=[]), "`vocab` must be a dictionary from tokens to"),
        (lambda c: c["model"].update(merges={}), "`merges` must be a list of pairs"),
        (lambda c: c["model"].update(merges=["a"]), "`merges` must be a list of pairs"),
        (
            lambda c: c["model"]["merges"].append(c["model"]["merges"][0]),
            r"tokenizer\.json: `merges` must make each piece .* The file may be the published one",
        ),
        (lambda c: c["model"].update(merges=[["q", "q"]]), r"pairs of pieces .*\('q', 'q'\)\."),
        (lambda c: c["model"]["vocab"].pop("a"), r"`merges` must be pairs of pieces .*'a'"),
        (lambda c: c["model"]["vocab"].pop("</s>"), "the piece '</s>', which is `eos`"),
        (lambda c: c["model"]["vocab"].update({"x": 10**9}), "ids must be whole .*'x': 1000000000"),
        (lambda c: c["added_tokens"].append({"id": 1}), "`added_tokens` must have a `content`"),
        (lambda c: c["post_processor"].update(cls=["</s>", 2]), "`post_processor` must be one tha"),
    ],
)
def test_vocabularies_that_cannot_be_expressed_are_named(change, message, tmp_path):
    write_folder(tmp_path, lines=False)
    change_json(tmp_path / "tokenizer.json", change)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_tensors_and_files_that_do_not_fit_are_named(tmp_path):
    write_folder(tmp_path, more={"roberta.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"Unused: roberta\.strange\."):
        read_checkpoint(tmp_path)
    write_folder(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(ValueError, match=r"merges\.txt is missing"):
        read_checkpoint(tmp_path)
    assert SIZES["vocab_size"] == len(PIECES)


@pytest.mark.parametrize(
    ("option", "inside"),
    [
        slow(True, True),
        slow(True, False),
        slow(False, True),
        slow(False, False),
        slow(None, True),
        (None, False),
    ],
)
def test_the_options_decide_about_the_first_space(inside, option, tmp_path):
    """As in `transformers`: `tokenizer.json` has the option as well, and it is not used."""
    write_folder(tmp_path, lines=False)

    def change(content):
        content["pre_tokenizer"]["add_prefix_space"] = inside

    change_json(tmp_path / "tokenizer.json", change)
    if option is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": option}))
    encode = read_checkpoint(tmp_path).tokenizers.source.encode
    with_space = encode([" dog film"])[0].numpy().tolist()
    without = encode(["dog film"])[0].numpy().tolist()
    assert (with_space == without) == bool(option)


def test_added_words_with_rules_of_their_own_are_refused(tmp_path):
    write_folder(tmp_path, lines=False)
    rules = {"special": False, "lstrip": True}

    def change(content):
        content["added_tokens"].append({"id": 5, "content": "covid", **rules})

    change_json(tmp_path / "tokenizer.json", change)
    with pytest.raises(ValueError, match="`added_tokens` must be without .*'covid' with lstrip"):
        read_checkpoint(tmp_path)


def test_the_padding_id_must_be_that_of_the_vocabulary(tmp_path):
    write_folder(tmp_path)

    def change(content):
        content.update({"<pad>": 0, "<s>": 1})

    change_json(tmp_path / "vocab.json", change)
    with pytest.raises(ValueError, match="`pad_token_id` must be 0, the id of <pad>"):
        read_checkpoint(tmp_path)
