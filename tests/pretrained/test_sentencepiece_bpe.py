"""BPE vocabularies of SentencePiece with tokens of bytes, against SentencePiece itself."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from llama_folders import SIZES, forward
from sentencepiece_bpe_folders import (
    LINES,
    PREFIXES,
    TEMPLATE,
    TEXTS,
    ids_of,
    model,
    pieces,
    tokenizer_json,
    write_folder,
)

from keras_transformer import Greedy, from_pretrained
from keras_transformer.export import SavedModelOptions, export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks import open_run
from keras_transformer.training.converted import write_converted

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
LONGEST = SIZES["max_position_embeddings"]
# The names of special tokens in a text are text here, so they are not compared with `tokenizers`.
PLAIN = [text for text in TEXTS if "<s>" not in text]


def read(folder):
    return read_checkpoint(folder).tokenizers.source


def edited(folder, **changes):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(changes))
    return folder


@pytest.mark.parametrize("kind", ["model", *PREFIXES])
def test_ids_and_texts(kind, tmp_path):
    write_folder(tmp_path, kind)
    tokenizer = read(tmp_path)
    expected = ids_of(TEXTS, "prepend" if kind == "model" else kind)
    assert tokenizer.tokenize(TEXTS).to_list() == expected
    assert tokenizer.encode(TEXTS).to_list() == [[*row, 2] for row in expected]
    texts = [text.decode() for text in tokenizer.decode(tokenizer.encode(TEXTS)).numpy()]
    whole = [text.replace("▁", " ") for text in TEXTS]
    if kind in ("first", "always"):  # which cannot tell a text from one with a space in front
        whole = [text.removeprefix(" ") for text in whole]
    assert texts == whole
    assert tokenizer.pieces(range(len(pieces()))) == [piece for piece, _ in pieces()]
    assert (tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)
    assert tokenizer.pad_id == len(pieces()) == tokenizer.vocab_size - 1


def test_tokens_that_no_merge_makes_are_decoded_and_in_no_text(tmp_path):
    """Pairs of tokens of the text are among them, and tokens that such pairs would form."""
    tokens = ["☃▁", "☃▁ca", "☃x", "☃x☃x", "▁☃", "a☃", "a☃☃", "☃☃", "☃☃☃", "毛泽东", "</h1>", "bx"]
    size, plain = (
        len(pieces()),
        ["☃", "☃☃", "☃☃☃☃", "☃ ca", "☃x☃x☃", "a☃☃☃ca", "毛泽东</h1>☃x", "bxbbxx"],
    )
    write_folder(tmp_path, vocab_size=size + len(tokens))
    (tmp_path / "tokenizer.json").write_text(json.dumps(with_unmade(*tokens)))
    tokenizer, texts = read(tmp_path), [*TEXTS, *plain]
    assert tokenizer.tokenize(texts).to_list() == ids_of(texts)
    ids = tf.range(size, size + len(tokens))
    assert tokenizer.pieces(ids.numpy()) == tokens
    decoded = tokenizer.decode(ids[:, None]).numpy().tolist()
    assert [text.decode() for text in decoded] == [
        token.replace("▁", " ").removeprefix(" ") for token in tokens
    ]


@pytest.mark.parametrize("kind", ["model", "prepend"])
def test_invalid_utf8_and_long_texts(kind, tmp_path):
    write_folder(tmp_path, kind)
    texts = [b"a \xff\xfe b", b"\xe2\x98", b"\xf0\x9f film", b"x" * 5000, b" " * 999, b"\0"]
    assert read(tmp_path).tokenize(texts).to_list() == ids_of(texts)


def test_options_of_the_file_may_leave_out_the_space_in_front(tmp_path):
    for kind in ("model", "prepend", "first"):
        write_folder(tmp_path / kind, kind)
        edited(tmp_path / kind, add_prefix_space=False)
        assert read(tmp_path / kind).tokenize(TEXTS).to_list() == ids_of(TEXTS, "never")
        edited(tmp_path / kind, add_prefix_space=None, legacy=False, add_bos_token=True)
        expected = ids_of(TEXTS, "first" if kind == "first" else "prepend")
        assert read(tmp_path / kind).tokenize(TEXTS).to_list() == expected


def test_a_model_that_normalises_texts_keeps_its_own_rules(tmp_path):
    """Its prefix comes after the normalisation, which may leave nothing of a text."""
    write_folder(tmp_path, "model")
    rules = {"normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": True}
    content = model(**rules)
    (tmp_path / "tokenizer.model").write_bytes(content)
    tokenizer, texts = read(tmp_path), [*TEXTS, "\u200b", " \u200b ", "ﬁlm  ①"]
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    assert tokenizer.tokenize(texts).to_list() == processor.encode(texts)


def test_tokens_that_are_added_are_not_text(tmp_path):
    """Neither of a file of the model, whose vocabulary is smaller, nor of a tokenizer.json."""
    size = len(pieces())
    for kind in ("model", "prepend"):
        write_folder(tmp_path / kind, kind, vocab_size=size + 3, pad_token_id=size)
        names = {size: "[PAD]", size + 1: "<|im_end|>"}
        decoder = {str(n): {"content": name, "special": True} for n, name in names.items()}
        tokenizer = read(edited(tmp_path / kind, added_tokens_decoder=decoder))
        assert tokenizer.vocab_size == size + 3 and tokenizer.pad_id == size
        assert tokenizer.pieces([size + 1, size + 2]) == ["<|im_end|>", f"<unused {size + 2}>"]
        text = "a<|im_end|>[PAD]b"
        (row,) = tokenizer.tokenize([text]).to_list()
        assert [row] == ids_of([text]) and max(row) < size
        ids = tf.constant([[*row, size + 1, size + 2, *row]])
        assert tokenizer.decode(ids).numpy() == [(text + " " + text).encode()]


def test_an_end_token_after_prompts_is_not_carried_over(tmp_path):
    write_folder(tmp_path, "model")
    edited(tmp_path, add_bos_token=True, add_eos_token=True)
    (note,) = read_checkpoint(tmp_path).notes
    assert note.startswith("`add_eos_token` is not carried over")


@pytest.mark.parametrize(
    ("kind", "options", "starts"),
    [
        ("prepend", {}, True),
        ("prepend", {"add_bos_token": False}, False),
        ("prepend", {"add_bos_token": None}, True),
        ("prepend", {"add_bos_token": True, "bos_token": None}, False),
        ("model", {}, True),
        ("model", {"add_bos_token": False}, False),
        ("model", {"add_bos_token": True, "bos_token": "<s>"}, True),
    ],
)
def test_the_files_decide_about_a_token_at_the_beginning(kind, options, starts, tmp_path):
    write_folder(tmp_path, kind)
    config = read_checkpoint(edited(tmp_path, **options)).model.config
    assert config.decoder.hides_start is not starts


@pytest.mark.parametrize("pad", [0, 1, 2, None])
def test_the_unknown_token_does_not_pad(pad, tmp_path):
    """Nor do those that begin or end a text."""
    write_folder(tmp_path, pad_token_id=pad)
    assert read(tmp_path).pad_id == len(pieces())


def test_a_smaller_vocabulary_encodes_its_texts_as_before(tmp_path):
    write_folder(tmp_path, "first")
    tokenizer, texts = read(tmp_path), [*LINES[:3], " a", "☃"]
    ids = sorted(tokenizer.needed(tokenizer.used(texts)))
    smaller = tokenizer.restricted(ids)
    assert 256 < smaller.vocab_size < tokenizer.vocab_size
    numbers = [[ids[number] for number in row] for row in smaller.tokenize(texts).to_list()]
    assert numbers == tokenizer.tokenize(texts).to_list()
    assert smaller.tokenize(["日"]).to_list()[0]  # bytes remain
    again = type(smaller).from_files(smaller.files())
    assert again.encode(texts).to_list() == smaller.encode(texts).to_list()


def test_a_byte_that_never_occurs_needs_no_token(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(without("<0xFF>")))
    tokenizer = read(tmp_path)
    assert tokenizer.tokenize(TEXTS).to_list() == ids_of(TEXTS, "prepend")
    assert tokenizer.vocab_size == len(pieces()) + 1  # padding
    encoded = tokenizer.encode(TEXTS)
    again = type(tokenizer).from_files(tokenizer.files())
    assert again.decode(encoded).numpy().tolist() == tokenizer.decode(encoded).numpy().tolist()
    assert not {*again.needed({5})} - {*range(tokenizer.vocab_size)}


def of(**changes):
    return json.loads(json.dumps(tokenizer_json(**changes)))


def of_model(**changes):
    content = of()
    content["model"] |= changes
    return content


def without(piece):
    content = of()
    del content["model"]["vocab"][piece]
    return content


def split(**changes):
    return of(prefix="first", pre_tokenizer={**PREFIXES["first"]["pre_tokenizer"], **changes})


def with_unmade(*tokens, merges=()):
    """The content with tokens at the end of the vocabulary that its own merges do not make."""
    model = of()["model"]
    more = {token: len(model["vocab"]) + number for number, token in enumerate(tokens)}
    vocab, pairs = {**model["vocab"], **more}, [*model["merges"], *merges]
    return of(model={**model, "vocab": vocab, "merges": pairs})


PREPENDED = PREFIXES["prepend"]["normalizer"]["normalizers"]
RULE = "`normalizer` must be one that writes ▁ for a space"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (of(normalizer=None), RULE),
        (of(normalizer=PREPENDED[0]), RULE),
        (of(normalizer={"type": "Sequence", "normalizers": PREPENDED[::-1]}), RULE),
        (of(normalizer={"type": "Sequence", "normalizers": 3}), RULE),
        (of(normalizer={**PREPENDED[1], "content": "_"}), RULE),
        (of(pre_tokenizer={"type": "Whitespace"}), RULE),
        (split(split=True), RULE),
        (split(replacement="_"), RULE),
        (split(prepend_scheme="last"), RULE),
        (split(prepend_scheme=["first"]), RULE),
        (of_model(unk_token="<x>"), "`unk_token` must be a token of the vocabulary"),
        (of_model(unk_token=3), "`unk_token` must be a token of the vocabulary"),
        (of_model(ignore_merges=True), "`ignore_merges` must be false"),
        (of_model(dropout=0.1), "`dropout` must be null"),
        (of_model(merges=3), "`merges` must be a list of pairs"),
        (of_model(merges=[["a", "☃"]]), "`merges` must be pairs of pieces"),
        (
            with_unmade("x☃", "x☃a", merges=[["x☃", "a"]]),
            r"must also make the .*\('x☃', 'a'\), one",
        ),
        (without("<0x41>"), "must have the token of each byte.*1 are missing.*'<0x41>'"),
        (of(added_tokens=[{"id": 2, "content": "<x>"}]), "every token must have a different id"),
        (of(added_tokens=[{"id": 2, "content": "</s>", "special": False}]), "must be special tok"),
        (of(post_processor={**TEMPLATE, "single": []}), "`post_processor` must be one that puts"),
    ],
)
def test_vocabularies_that_cannot_be_expressed_are_named(content, message, tmp_path):
    write_folder(tmp_path, vocab_size=len(pieces()) + 2)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    assert "\n" not in str(error.value) and str(error.value).count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: b"x" * 99, r"tokenizer\.model: `model` must be the bytes of a SentencePiece m"),
        (lambda: b"", r"tokenizer\.model: `model` must be the bytes of a SentencePiece model"),
        (
            lambda: model(model_type="unigram", vocab_size=290),
            r"tokenizer\.model must be a BPE model. Received: unigram",
        ),
        (lambda: model(vocab_size=346), r"ids must be whole numbers from 0 to below 345"),
    ],
    ids=["damaged", "empty", "unigram", "larger"],
)
def test_files_that_do_not_fit_are_named(content, message, tmp_path):
    write_folder(tmp_path, "model")
    (tmp_path / "tokenizer.model").write_bytes(content())
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    assert "\n" not in str(error.value)


def test_special_tokens_must_not_be_text(tmp_path):
    names = [piece for piece, _ in pieces()]
    byte, character = names.index("<0x41>"), names.index("a")
    for kind in ("model", "prepend"):
        for number in (byte, 270, character):  # 270 is made by a merge
            write_folder(tmp_path / kind, kind, pad_token_id=number)
            message = f"results of merges are. Received: '{names[number]}'"
            with pytest.raises(ValueError, match=message):
                read(tmp_path / kind)
    write_folder(tmp_path / "added")
    content = of()
    content["added_tokens"].append({"id": character, "content": "a", "special": True})
    (tmp_path / "added" / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="bytes and results of merges are. Received: 'a'"):
        read(tmp_path / "added")


@pytest.mark.long
@pytest.mark.slow
def test_texts_go_on_as_in_numpy_in_a_run_as_well(tmp_path, kind="first"):
    settings, tensors = write_folder(tmp_path / "hf", kind)
    generator = from_pretrained(tmp_path / "hf")
    texts = ["A dog is", "", "the film"]
    expected = []
    for row in ids_of(texts, "prepend" if kind == "model" else kind):
        whole = [1, *row]
        while len(whole) <= LONGEST and whole[-1] != 2:
            logits = forward(tensors, settings, np.array([whole]))[1]
            whole.append(int(logits[0, -1].argmax()))
        expected.append(whole[1:])
    tokens = tf.ragged.constant(expected).to_tensor(generator.model.config.tokens.pad_id)
    decoded = [text.decode() for text in generator.source_tokenizer.decode(tokens).numpy()]
    assert generator(texts, search=Greedy()) == decoded
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert open_run(run.path)(texts, search=Greedy()) == decoded


@pytest.mark.slow
@pytest.mark.parametrize("kind", PREFIXES)
def test_ids_and_texts_are_those_of_hugging_face(kind, tmp_path):
    if subprocess.run([PYTHON, "-c", "import tokenizers"], capture_output=True).returncode:
        pytest.skip(
            "tokenizers is missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python that has it"
        )
    write_folder(tmp_path, kind)
    (tmp_path / "texts.json").write_text(json.dumps(PLAIN))
    code = (
        "import json, sys, tokenizers; tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1]); "
        "rows = tokenizer.encode_batch(json.load(open(sys.argv[2]))); "
        "texts = tokenizer.decode_batch([row.ids for row in rows]); "
        "print(json.dumps([[row.ids for row in rows], texts]))"
    )
    files = tmp_path / "tokenizer.json", tmp_path / "texts.json"
    done = subprocess.run([PYTHON, "-c", code, *files], capture_output=True, text=True, check=True)
    rows, texts = json.loads(done.stdout)
    tokenizer = read(tmp_path)
    assert [[1, *row] for row in tokenizer.tokenize(PLAIN).to_list()] == rows
    decoded = tokenizer.decode(tokenizer.encode(PLAIN)).numpy()
    assert [text.decode() for text in decoded] == texts


@pytest.mark.long
@pytest.mark.slow
def test_exports(tmp_path):
    """They are kept only if they answer as the model in memory does."""
    write_folder(tmp_path / "hf", "first")
    generator, texts = from_pretrained(tmp_path / "hf"), ["A dog is", " the film", ""]
    report = export_saved_model(
        generator, tmp_path / "saved", texts, SavedModelOptions(search=Greedy())
    )
    assert report["agreement"] == 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        (name,) = signature.inputs
        feed = {signature.inputs[name].name: [text.encode() for text in texts]}
        found = session.run({k: v.name for k, v in signature.outputs.items()}, feed)
    answers = [text.decode() for text in found[generator.output].ravel()]
    assert answers == generator(texts, search=Greedy())
    assert export_litert(generator, tmp_path / "m.tflite", texts)["agreement"] == 1
