"""Stores: the same numbers as without a store, written once, completely or not at all."""

import os
import re
import threading
import time
import zlib

import numpy as np
import pytest
import tensorflow as tf
from corpora import OfNumbers, dataset, rows, text_pairs
from small_runs import At, run_quietly, write_small_corpus

from keras_transformer.fields import Frames, Images
from keras_transformer.lock import FolderLock
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.training.data import checksums, encoding, store_writer
from keras_transformer.training.data import store as module
from keras_transformer.training.data.checksums import DamagedStore, plain_damage
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.sources import text
from keras_transformer.training.data.store import Store, Stores
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary, strings


@pytest.fixture(scope="module")
def training():
    texts = strings(dataset(text_pairs()), (0, 1))
    vocabulary = learn_vocabulary(texts, VocabularySettings(size=60))
    return SourceToTargetTraining(SentencePieceTokenizer(vocabulary))


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 40 examples, so that the pairs have eleven chunks."""
    monkeypatch.setattr(encoding, "BATCH", 10)
    monkeypatch.setattr(encoding, "CHUNK", 4)


def take(folder, training, make=lambda: dataset(text_pairs()), **options):
    options = {"split": "train", "data": "the pairs", **options}
    shared = options.pop("shared", False)
    return Stores(folder, shared=shared).take(make, training, Limits(40), **options)


def unread():
    raise AssertionError("the texts are read again")


def content(store):
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


def test_chunks_only_change_the_checksum(tmp_path, training, small_chunks):
    store = take(tmp_path, training)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", 10**6)
        whole = take(tmp_path / "whole", training)
    ours, theirs = content(store), content(whole)
    for name in ours.keys() - {"manifest.json"}:
        assert ours[name] == theirs[name], name
    corpora = [Corpus(one, training) for one in (store, whole)]
    assert len({corpus.tokens for corpus in corpora}) == 1
    assert list(rows(corpora[0].batches(200))) == list(rows(corpora[1].batches(200)))


def test_a_store_is_written_once(tmp_path, training):
    first = take(tmp_path, training)
    again = take(tmp_path, training, unread)
    assert again.folder == first.folder and again.manifest == first.manifest
    assert [path.name for path in tmp_path.iterdir()] == [first.folder.name], "nothing else is left"


def test_chunks_encoded_before_a_kill_are_kept(
    tmp_path, training, small_chunks, monkeypatch, chunks=10
):
    expected = content(take(tmp_path / "whole", training))
    save, saved = store_writer._save, []

    def killed(path, chunk):
        if len(saved) == chunks:
            raise KeyboardInterrupt
        saved.append(path)
        save(path, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(store_writer, "_save", killed)
        with pytest.raises(KeyboardInterrupt):
            take(tmp_path / "killed", training)
    assert not list((tmp_path / "killed").glob("train-*")), "what is not whole has no name"
    with monkeypatch.context() as patch:
        patch.setattr(store_writer, "_save", lambda *each: saved.append(each) or save(*each))
        store = take(tmp_path / "killed", training)
    assert len(saved) == 11, "no chunk is encoded twice"
    assert content(store) == expected


def test_a_kill_while_files_are_joined_loses_no_encoded_chunk(tmp_path, training, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store_writer, "block_checksums", lambda path: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            take(tmp_path, training)
    monkeypatch.setattr(encoding.Encoder, "chunks", lambda *each, **options: 1 / 0)
    assert take(tmp_path, training).size == 400


def test_another_key_is_another_store(tmp_path, training):
    first = take(tmp_path, training, shared=True)
    other = take(tmp_path, training, data="other pairs", shared=True)
    cut = Stores(tmp_path, shared=True).take(
        lambda: dataset(text_pairs()),
        training,
        Limits(40, truncate_source=True),
        split="train",
        data=1,
    )
    assert len({first.folder, other.folder, cut.folder}) == len(list(tmp_path.iterdir())) == 3
    validation = take(tmp_path, training, split="validation", shared=True)
    third = take(tmp_path, training, data="third pairs")  # in the folder of a single run
    assert {path.name for path in tmp_path.iterdir()} == {validation.folder.name, third.folder.name}


def test_a_process_waits_while_another_one_writes(tmp_path, training, monkeypatch):
    monkeypatch.setattr(module, "WAIT", 0.02)
    folder = take(tmp_path / "a", training).folder
    part = tmp_path / "b" / f".{folder.name}.part"
    stores = []
    with FolderLock(part):
        thread = threading.Thread(target=lambda: stores.append(take(tmp_path / "b", training)))
        thread.start()
        time.sleep(0.2)
        assert thread.is_alive() and not stores
        folder.rename(tmp_path / "b" / folder.name)  # as if the other process had written it
    thread.join(30)
    assert stores[0].size == 400


def test_a_damaged_store_is_reported(tmp_path, training):
    store = take(tmp_path, training)
    file = store.folder / "source.values"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="source.values is damaged: it must have [0-9,]+ bytes"):
        take(tmp_path, training, unread)
    with pytest.raises(ValueError, match="is not a store: it has no manifest.json"):
        Store(tmp_path, training.fields)


FIRST, LAST = 0, 399  # rows of the pairs


def flip(path, place):
    """Flips one bit of a file in place: a thread that still reads it must not find it empty."""
    with path.open("r+b") as file:
        file.seek(place, os.SEEK_SET if place >= 0 else os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize("name", ["source.values", "source.offsets", "target.values"])
@pytest.mark.parametrize(("place", "row"), [(1, FIRST), (-1, LAST)])
def test_a_flipped_bit_is_detected_when_its_block_is_read(
    tmp_path, training, monkeypatch, name, place, row
):
    monkeypatch.setattr(checksums, "BLOCK", 64)
    folder = take(tmp_path, training).folder
    flip(folder / name, place)
    store = take(tmp_path, training, unread)
    widths = {"source": 40, "target": 40}
    store.gather([LAST - row], widths)  # a row at the other end of the files
    message = f"{re.escape(str(folder / name))} is damaged: the checksum of its block [0-9]+ is "
    message += f"wrong. Remove the folder {re.escape(str(folder))} to have it written again.$"
    with pytest.raises(DamagedStore, match=message):
        store.gather([row], widths)
    batches = tf.data.Dataset.from_tensors([row]).map(lambda rows: store.gather(rows, widths))
    with pytest.raises(DamagedStore, match=message), plain_damage():
        list(batches)


def test_a_flipped_bit_of_a_string_is_detected(tmp_path, training):
    store = take(tmp_path, training, texts=("source",))
    flip(store.folder / "source.text.values", 0)
    with pytest.raises(DamagedStore, match="source.text.values is damaged"):
        store.texts("source", [FIRST])


def test_other_errors_of_tensorflow_are_unchanged():
    with pytest.raises(tf.errors.AbortedError), plain_damage():
        raise tf.errors.AbortedError(None, None, "a worker is lost")


def test_blocks_are_read_once_and_only_if_needed(tmp_path, training, monkeypatch):
    monkeypatch.setattr(checksums, "BLOCK", 64)
    folder = take(tmp_path, training).folder
    compared = []
    crc32 = zlib.crc32
    monkeypatch.setattr(checksums.zlib, "crc32", lambda block: compared.append(1) or crc32(block))
    store = take(tmp_path, training, unread)
    assert not compared, "a store is opened without reading its files"
    store.gather([LAST], {"source": 40}, ["source"])
    values = store._verifiers["source", "values"].verified
    assert (
        values[-1]
        and not values[:-3].any()
        and not store._verifiers["source", "offsets"].verified[0]
    )
    assert ("target", "values") not in store._verifiers
    number = len(compared)
    store.gather([LAST, LAST], {"source": 40}, ["source"])
    assert len(compared) == number
    store.gather(range(400), {"source": 40}, ["source"])
    sizes = [(folder / f"source.{kind}").stat().st_size for kind in ("values", "offsets")]
    assert len(compared) == sum(-(-size // 64) for size in sizes) and values.all()


@pytest.mark.long
@pytest.mark.slow
def test_a_training_with_a_damaged_store_ends_with_one_line(tmp_path):
    write_small_corpus(tmp_path)
    settings = load_settings(tmp_path / "config.toml", ["training.updates=4"])

    def stop():
        raise KeyboardInterrupt

    run_quietly(settings, tmp_path / "run", callbacks=[At(2, stop)])
    (file,) = (tmp_path / "run" / "store").glob("train-*/source.values")
    flip(file, 0)
    with pytest.raises(DamagedStore, match="source.values is damaged: [^\n]* written again.$"):
        run_quietly(settings, tmp_path / "run")


def test_strings_are_stored_with_their_examples(tmp_path, training):
    store = take(tmp_path, training, texts=("source",))
    sources = store.texts("source", range(store.size))
    for number in (0, 17, store.size - 1):
        ids = store.gather([number], {"source": 40}, ["source"])["source"].numpy()[0]
        expected = training.tokenizers.source.encode([sources[number]]).to_list()[0]
        assert ids[ids != 0].tolist() == expected


def test_each_column_has_its_own_width():
    """Each side of a bucket is padded to its own longest row, not to the longer of both sides."""
    rng = np.random.default_rng(0)
    pairs = [("5 " * long, "6 " * rng.integers(1, 1 + long // 3)) for long in range(3, 60)]

    corpus = Corpus.from_rows(dataset(pairs), OfNumbers(), 100)
    shapes = {
        (inputs["source"].shape[1], labels.shape[1])
        for inputs, labels in corpus.batches(120, buckets=4)
    }
    assert len(shapes) <= 4 and all(target <= source / 3 for source, target in shapes)


class Clips:
    """A task with sequences of frames and pictures."""

    columns = ("frames", "picture")
    fields = {"frames": Frames(3), "picture": Images(2, 5, 1)}
    packed, encoded_together = False, None

    def identity(self):
        return {name: field.identity() for name, field in self.fields.items()}

    def encode(self, columns):
        frames = tf.io.decode_raw(columns["frames"], tf.float32)
        lengths = columns["picture"][:, 0, 0, 0]  # the number of real frames
        frames = tf.reshape(frames, [tf.shape(frames)[0], -1, 3])
        frames = tf.RaggedTensor.from_tensor(frames, tf.cast(lengths, tf.int64))
        encode = self.fields["picture"].encode
        return {"frames": frames, "picture": encode(columns["picture"])}

    def assemble(self, frames, picture):
        return frames, picture


def test_any_field_is_stored():
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(9, 7, 3)).astype("float32")
    pictures = rng.integers(0, 255, (9, 2, 5, 1)).astype("uint8")
    pictures[:, 0, 0, 0] = [2, 7, 1, 3, 3, 5, 6, 4, 2]
    strings = [clip.tobytes() for clip in frames]
    examples = tf.data.Dataset.from_tensor_slices((strings, pictures))
    corpus = Corpus.from_rows(examples, Clips(), 7)
    assert corpus.tokens == (33,) and corpus.size == 9
    seen = 0
    for clips, shown in corpus.batches(14, shuffle=True, seed=2, buckets=3):
        assert clips.dtype == tf.float32 and clips.shape[0] * clips.shape[1] <= 14
        for clip, picture in zip(clips.numpy(), shown.numpy(), strict=True):
            (number,) = np.flatnonzero((pictures == picture).all(axis=(1, 2, 3)))
            length = picture[0, 0, 0]
            np.testing.assert_array_equal(clip[:length], frames[number, :length])
            assert not clip[length:].any()
            seen += 1
    assert seen == 9


@pytest.mark.long
@pytest.mark.slow
def test_a_restart_reads_no_text_and_prints_the_same(tmp_path, monkeypatch):
    write_small_corpus(tmp_path)
    with open(tmp_path / "train.src", "a") as source, open(tmp_path / "train.tgt", "a") as target:
        source.write("1" * 30 + "\n")
        target.write("2\n")
    settings = load_settings(tmp_path / "config.toml", ["training.updates=4"])

    def stop():
        raise KeyboardInterrupt

    run_quietly(settings, tmp_path / "run", callbacks=[At(2, stop)])

    def unread(path):
        raise AssertionError(f"{path} is read again")

    monkeypatch.setattr(text, "binary_lines", unread)
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "40 examples, 1 longer ones left out;" in shown


@pytest.mark.long
@pytest.mark.slow
def test_runs_can_share_a_folder(tmp_path, monkeypatch):
    write_small_corpus(tmp_path)
    changes = ["training.updates=1", f'data.store="{tmp_path / "shared"}"']
    run_quietly(load_settings(tmp_path / "config.toml", changes), tmp_path / "a")
    kept = {path.name for path in (tmp_path / "shared").iterdir()}
    monkeypatch.setattr(encoding.Encoder, "chunks", lambda *each, **options: 1 / 0)
    settings = load_settings(tmp_path / "config.toml", [*changes, "training.seed=5"])
    run_quietly(settings, tmp_path / "b")
    assert {path.name for path in (tmp_path / "shared").iterdir()} == kept
    assert not (tmp_path / "a" / "store").exists()


def test_a_vocabulary_is_learned_from_rows_at_equal_distances():
    pairs = [(f"a{number}", f"b{number}") for number in range(2500)]
    taken = list(strings(dataset(pairs), (0, 1), total=2500, most=100))
    numbers = sorted(int(text[1:]) for text in taken if text.startswith(b"a"))
    assert len(taken) == 200 and set(np.diff(numbers)) == {25}
    assert taken == list(strings(dataset(pairs), (0, 1), total=2500, most=100))
    assert len(list(strings(dataset(pairs), (0,), total=2500, most=2500))) == 2500
