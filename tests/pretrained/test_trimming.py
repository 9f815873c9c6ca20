"""Checkpoints with fewer tokens: texts, logits and rules are those of the whole checkpoint."""

import json
import re

import bert_folders
import gpt2_folders
import marian_models
import masked_heads
import numpy as np
import opus_folders
import pytest
import roberta_folders
import seq2seq_folders
import t5_folders
import unigram_folders
import vit_folders
from click.testing import CliRunner
from marks import long, slow_except

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.pretrained.trimming import trim
from keras_transformer.tasks import open_run
from keras_transformer.text.tokenizers import SentencePieceTokenizer
from keras_transformer.training.converted import write_converted


def write_marian(folder):
    """Writes a model with two vocabularies of different sizes."""
    folder.mkdir()
    options = marian_models.settings(
        dim_vocabs=[31, 37], tied_embeddings_all=False, tied_embeddings=True
    )
    write_npz(folder / "model.npz", marian_models.arrays(options))
    for name, size in (("source", 31), ("target", 37)):
        (folder / f"{name}.spm").write_bytes(marian_models.vocabulary(size))


FOLDERS = {
    "opus-mt": lambda folder: opus_folders.write_folder(folder, codes=opus_folders.CODES, extra=3),
    "opus-mt, unknown": opus_folders.with_unknown_pieces,
    "bert": bert_folders.write_folder,
    "bert, masks": lambda folder: masked_heads.write_folder(folder, "bert", tied=False),
    **{
        f"{name}, masks": lambda folder, name=name, tied=tied: masked_heads.write_folder(
            folder, name, tied
        )
        for name, tied in (
            ("albert", True),
            ("mpnet", False),
            ("modernbert", False),
            ("deberta", False),
            ("deberta, newer", True),
        )
    },
    "marian": write_marian,
    "t5": t5_folders.write_folder,
    "t5, untied": lambda folder: t5_folders.write_folder(folder, **t5_folders.UNTIED),
    "m2m100": lambda folder: seq2seq_folders.write_folder(folder, "m2m100", forced_bos_token_id=70),
    **{
        name: lambda folder, name=name: seq2seq_folders.write_folder(folder, name)
        for name in ("nllb_legacy", "bart", "pegasus")
    },
    # An untrained model may emit padding, unless that is forbidden.
    "mbart50": lambda folder: seq2seq_folders.write_folder(
        folder, "mbart50", bad_words_ids=[[1]], renormalize_logits=True
    ),
    "opus-mt, separate": lambda folder: opus_folders.write_folder(
        folder, separate=True, bad_words_ids=[[3], [5], [29]], renormalize_logits=False
    ),
    "gpt2": gpt2_folders.write_folder,
    "roberta": roberta_folders.write_folder,
    "xlm-roberta": unigram_folders.write_folder,
    "camembert": lambda folder: unigram_folders.write_folder(folder, "camembert"),
}
LINES = ["a dog runs", "the bad cat", "", " der Hund", "a  ж dog is goodness"]
OTHERS = ["A dog is running over the hill.", "Zwei Hunde, neun Katzen!", "漢 ж € 12", "goodness"]


def lines_of(folder, lines=LINES, name="lines.txt"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def whole_of(name, tmp_path):
    FOLDERS[name](tmp_path / "hf")
    return read_checkpoint(tmp_path / "hf/model.npz" if name == "marian" else tmp_path / "hf")


@pytest.mark.parametrize("name", slow_except(FOLDERS, "camembert", mark=long))
def test_texts_logits_and_rules_are_those_of_the_checkpoint(name, tmp_path):
    whole = whole_of(name, tmp_path)
    smaller, kept = trim(whole, [lines_of(tmp_path)])
    for before, after, ids in zip(whole.tokenizers, smaller.tokenizers, kept, strict=True):
        check_tokenizer(before, after, ids)
        # Their small vocabulary does not have all letters within words.
        if not name.startswith(("bert", "mpnet")):
            check_other_texts(before, after)
    assert smaller.tokenizers.shared == whole.tokenizers.shared
    check_rules(whole.model.config, smaller.model.config, kept)
    assert smaller.generation is None or smaller.generation.search == whole.generation.search
    if smaller.generation is not None:
        assert smaller.generation.configure(smaller.model.config) == smaller.model.config
    check_model(whole.model, smaller.model, kept)


def check_tokenizer(before, after, kept):
    assert after.vocab_size == len(kept) < before.vocab_size
    assert after.pieces(range(len(kept))) == before.pieces(kept)
    if before.mask_id is not None:
        assert kept[after.mask_id] == before.mask_id and after.mask == before.mask
    rows = zip(LINES, before.encode(LINES).to_list(), after.encode(LINES).to_list(), strict=True)
    for line, old, new in rows:
        assert old == [kept[number] for number in new], line
    if before.languages:
        for code, number in before.languages.ids.items():
            assert kept[after.languages.ids[code]] == number
        assert after.languages.source == before.languages.source


def check_other_texts(before, after):
    """They have no new unknown tokens, and those without any are decoded as before."""
    old, new = (
        [row.count(side.unk_id) for row in side.encode(OTHERS).to_list()]
        for side in (before, after)
    )
    assert all(b <= a for a, b in zip(old, new, strict=True))
    texts = [text for text, count in zip(OTHERS, old, strict=True) if not count]
    decoded = [side.decode(side.encode(texts)).numpy().tolist() for side in (before, after)]
    assert decoded[0] == decoded[1]


def check_rules(before, after, kept):
    for side in (0, 1):  # the special tokens of both sides are equal
        for name in ("pad_id", "bos_id", "eos_id"):
            assert kept[side][getattr(after.tokens, name)] == getattr(before.tokens, name)
    for name in ("forced_bos_id", "forced_eos_id"):
        old, new = (config.to_flat().get(name) for config in (before, after))
        assert old == (None if new is None else kept[1][new])
    for name in ("banned_ids", "suppressed_ids"):
        old, new = (config.to_flat().get(name, ()) for config in (before, after))
        assert {*old} & {*kept[1]} == {kept[1][number] for number in new}


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def check_model(before, after, kept):
    """All tokens that remain are read, and their probabilities compared."""
    rng, rows = np.random.default_rng(0), []
    for ids in kept:
        count = len(ids)
        order = rng.permutation(count)
        rows.append(np.resize(order[order != after.config.tokens.pad_id], [-(-count // 9), 9]))
    source, target = (np.resize(row, [max(map(len, rows)), 9]).astype("int32") for row in rows)
    if after.config.to_flat().get("language_codes", "none") != "none":
        source[:, :2] = [[number for number, _ in zip(range(2), kept[0], strict=False)]]
    theirs = [np.array(ids)[row] for ids, row in zip(kept, (source, target), strict=True)]
    if hasattr(before, "encode"):
        states = [m.encode(x)[0].numpy() for m, x in ((before, theirs[0]), (after, source))]
        np.testing.assert_allclose(states[1], states[0], rtol=0, atol=1e-6)
        inputs = {"source": theirs[0], "target": theirs[1]}, {"source": source, "target": target}
    else:
        inputs = theirs[0], source
    old, new = (
        model(x, training=False).numpy() for model, x in zip((before, after), inputs, strict=True)
    )
    if old.shape != new.shape:  # of tokens
        old = old[..., kept[1]]
    old, new = log_softmax(old), log_softmax(new)
    possible = old > -500  # the padding of GPT-2 and Marian is not
    np.testing.assert_array_equal(new > -500, possible)
    np.testing.assert_allclose(new[possible], old[possible], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_command_writes_a_run_and_its_provenance(tmp_path):
    roberta_folders.write_folder(tmp_path / "hf")
    files = [lines_of(tmp_path, LINES[:1], "one.txt"), lines_of(tmp_path, LINES[1:], "two.txt")]
    command = ["convert", "hf", str(tmp_path / "hf"), str(tmp_path / "run")]
    for file in files:
        command += ["--keep-tokens-of", str(file)]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    whole, pipeline = from_pretrained(tmp_path / "hf"), open_run(tmp_path / "run")
    counts = [one.tokenizers.source.vocab_size for one in (pipeline, whole)]
    sizes = [one.model.count_params() * 4 / 1e6 for one in (pipeline, whole)]
    assert counts[0] < counts[1]
    sentence = f"{counts[0]} of {counts[1]} tokens"
    assert f"{sentence}, {sizes[0]:.1f} of {sizes[1]:.1f} MB in float32." in done.output
    origin = json.loads((tmp_path / "run/origin.json").read_text())
    assert origin["vocabulary"] == f"{sentence}, those that one.txt, two.txt use"
    for ours, theirs in zip(pipeline.classify(LINES), whole.classify(LINES), strict=True):
        np.testing.assert_allclose(ours.probabilities, theirs.probabilities, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "'.*lines.txt' does not exist"),
        (b"", "lines.txt must have lines of text"),
        (b"\n \n\t\n", "lines.txt must have lines of text"),
        (b"a dog\n\xff\n", "lines.txt, line 2: not UTF-8"),
    ],
)
def test_files_that_name_no_tokens_are_refused(content, message, tmp_path):
    bert_folders.write_folder(tmp_path / "hf")
    if content is not None:
        (tmp_path / "lines.txt").write_bytes(content)
    keep = ["--keep-tokens-of", str(tmp_path / "lines.txt")]
    command = ["convert", "hf", str(tmp_path / "hf"), str(tmp_path / "run"), *keep]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code and not (tmp_path / "run").exists()
    assert re.search(message, done.output.strip().splitlines()[-1]), done.output


def test_lines_without_tokens_are_refused(tmp_path):
    """The normaliser of BERT drops control characters."""
    bert_folders.write_folder(tmp_path / "hf")
    file = lines_of(tmp_path, ["\u200d\u0007"])
    with pytest.raises(ValueError, match=r"lines\.txt must have lines of text"):
        trim(read_checkpoint(tmp_path / "hf"), [file])


def test_a_model_without_a_vocabulary_is_refused(tmp_path):
    vit_folders.write_folder(tmp_path / "hf")
    with pytest.raises(
        ValueError,
        match="image_classification has no vocabulary to trim: leave out --keep-tokens-of",
    ):
        trim(read_checkpoint(tmp_path / "hf"), [lines_of(tmp_path)])


def test_a_line_that_would_be_segmented_in_another_way_is_named(tmp_path, monkeypatch):
    t5_folders.write_folder(tmp_path / "hf")
    needed = SentencePieceTokenizer.needed
    monkeypatch.setattr(SentencePieceTokenizer, "needed", lambda self, used: needed(self, {*()}))
    file = lines_of(tmp_path, ["", "", "a dog runs"])
    with pytest.raises(ValueError, match=r"lines\.txt, line 3: the smaller vocabulary would"):
        trim(read_checkpoint(tmp_path / "hf"), [file])


def test_languages_without_a_default_are_no_obstacle(tmp_path):
    seq2seq_folders.write_folder(tmp_path / "hf", "m2m100")
    (tmp_path / "hf/tokenizer_config.json").write_text("{}")
    smaller, _ = trim(read_checkpoint(tmp_path / "hf"), [lines_of(tmp_path)])
    assert smaller.tokenizers.languages.target is None
    assert smaller.tokenizers.with_languages("en", "de").source.encode(LINES).nrows() == len(LINES)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["opus-mt", "mbart50", "roberta", "bert", "gpt2"])
def test_exports_answer_as_the_run(name, tmp_path):
    smaller, _ = trim(whole_of(name, tmp_path), [lines_of(tmp_path)])
    pipeline = open_run(write_converted(smaller, tmp_path / "run").path)
    texts = [*LINES, OTHERS[0]]
    assert export_saved_model(pipeline, tmp_path / "saved", texts)["agreement"] == 1
    assert export_litert(pipeline, tmp_path / "m.tflite", texts)["agreement"] == 1
