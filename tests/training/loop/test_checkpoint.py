"""A checkpoint restores what was saved, or is reported as damaged and skipped."""

import errno
import os

import keras
import numpy as np
import pytest

from keras_transformer import files as atomic
from keras_transformer.training.loop.checkpoint import Checkpoints, read_state


@pytest.fixture
def variables():
    return make_variables(1)


def make_variables(seed):
    rng = np.random.default_rng(seed)
    return [
        keras.Variable(rng.normal(size=(3, 5)).astype("float32"), name="kernel"),
        keras.Variable(rng.normal(size=(3, 5)).astype("float32"), name="kernel"),
        keras.Variable(rng.integers(0, 9, 2), dtype="uint32", trainable=False, name="seed"),
        keras.Variable(2**40 + seed, dtype="int64", trainable=False, name="count"),
    ]


def same(variables, others):
    return all(
        one.dtype == two.dtype and np.array_equal(one.numpy(), two.numpy())
        for one, two in zip(variables, others, strict=True)
    )


def test_values_and_state_are_restored_bit_for_bit(tmp_path, variables):
    state = {"update": 7, "epoch": 1, "seconds": 0.1 + 0.2}
    path = Checkpoints(tmp_path / "new").save(7, variables, state)
    assert path.name == "update-00000007.npz"
    others = make_variables(2)
    assert not same(variables, others)
    assert Checkpoints(tmp_path / "new").restore(others) == state
    assert same(variables, others)


def test_nothing_to_restore(tmp_path, variables):
    assert Checkpoints(tmp_path / "none").restore(variables) is None
    assert same(variables, make_variables(1))


def test_only_the_newest_are_kept_and_the_newest_is_restored(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for update in (8, 9, 10, 99_999_999, 100_000_001):
        checkpoints.save(update, variables, {"update": update})
    assert [path.name for path in checkpoints.paths()] == [
        "update-99999999.npz",
        "update-100000001.npz",
    ]
    assert checkpoints.restore(variables) == {"update": 100_000_001}


@pytest.mark.slow
def test_no_flipped_bit_changes_a_value_unnoticed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    good, newer, loaded = make_variables(1), make_variables(2), make_variables(3)
    checkpoints.save(1, good, {"update": 1})
    path = checkpoints.save(2, newer, {"update": 2})
    content = path.read_bytes()
    noticed = 0
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        damaged = []
        state = checkpoints.restore(loaded, lambda path, reason, seen=damaged: seen.append(path))
        # Some bytes of a ZIP archive, such as the time in its headers, have no effect.
        assert same(loaded, good if damaged else newer), place
        assert state == {"update": 1 if damaged else 2}
        noticed += damaged == [path]
    assert noticed > len(content) / 3 * 0.7


@pytest.mark.parametrize("length", [0, 10, 500, -1])
def test_a_truncated_file_is_detected(tmp_path, variables, length):
    checkpoints = Checkpoints(tmp_path)
    path = checkpoints.save(1, variables, {})
    path.write_bytes(path.read_bytes()[:length])
    damaged = []
    assert checkpoints.restore(variables, lambda *what: damaged.append(what)) is None
    assert len(damaged) == 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "its end is missing"),
        (lambda content: b"hello", "its end is missing"),
        (lambda content: b"XX" + content[2:], "its arrays cannot be read"),
        (None, "its arrays cannot be read"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_never_called_pickled(tmp_path, variables, damage, reason):
    """NumPy takes it for Python objects and suggests loading them anyway."""
    checkpoints = Checkpoints(tmp_path)
    path = checkpoints.save(1, variables, {})
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    else:
        np.savez(path, state="{}", objects=np.array([{}], dtype=object))
    reasons = []
    assert checkpoints.restore(variables, lambda path, reason: reasons.append(reason)) is None
    assert reasons == [reason]
    with pytest.raises(ValueError, match=f"npz is damaged or missing \\({reason}\\).$"):
        checkpoints.load(path, variables)


def test_the_state_is_read_without_the_variables(tmp_path, variables):
    path = Checkpoints(tmp_path).save(1, variables, {"update": 1, "best": None})
    assert read_state(path) == {"update": 1, "best": None}
    path.write_bytes(b"half")
    with pytest.raises(ValueError, match="^its end is missing$"):
        read_state(path)
    with pytest.raises(ValueError, match="^it is missing$"):
        read_state(tmp_path / "none.npz")
    np.savez(path, other=np.ones(3))
    with pytest.raises(ValueError, match="^it has no 'state'$"):
        read_state(path)


def test_a_full_disk_leaves_the_previous_checkpoint_usable(tmp_path, variables, monkeypatch):
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(1, variables, {"update": 1})

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    message = "update-00000002.npz cannot be written: No space left .* is .*update-00000001.npz.$"
    with pytest.raises(OSError, match=message):
        checkpoints.save(2, make_variables(2), {"update": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["update-00000001.npz"]
    assert checkpoints.restore(make_variables(3)) == {"update": 1}


def test_the_first_checkpoint_on_a_full_disk_has_no_predecessor(tmp_path, variables, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="There is no checkpoint to resume from yet.$"):
        Checkpoints(tmp_path).save(2, variables, {})


def test_a_file_size_limit_leaves_the_previous_checkpoint(tmp_path):
    """The operating system's own error, in the middle of the file."""
    resource = pytest.importorskip("resource")
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, make_variables(1), {"update": 1})
    large = keras.Variable(np.ones(50_000, "float32"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="update-00000002.npz cannot be written: File too large"):
            checkpoints.save(2, [large], {"update": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["update-00000001.npz"]


def test_the_best_checkpoint_stays_however_old_it_is(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for update, best in ((1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 6)):
        checkpoints.save(update, variables, {"update": update}, best=best)
        if update == 5:
            assert checkpoints.paths() == [checkpoints.path(number) for number in (2, 4, 5)]
    assert checkpoints.paths() == [checkpoints.path(number) for number in (5, 6)]


def test_a_damaged_later_checkpoint_does_not_replace_an_intact_one(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(4, variables, {"update": 4})
    checkpoints.path(8).write_bytes(b"half")
    checkpoints.save(6, variables, {"update": 6})
    assert checkpoints.restore(variables) == {"update": 6}
    assert checkpoints.last_good() == f"The last good checkpoint is {checkpoints.path(6)}"


def test_a_given_checkpoint_is_loaded_or_reported_as_damaged(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path)
    for update in (1, 2):
        checkpoints.save(update, make_variables(update), {"update": update})
    assert checkpoints.load(checkpoints.path(1), variables) == {"update": 1}
    assert same(variables, make_variables(1))
    checkpoints.path(1).write_bytes(b"half")
    for update in (1, 3):
        with pytest.raises(ValueError, match=f"{update}.npz is damaged or missing"):
            checkpoints.load(checkpoints.path(update), variables)


def test_drafts_of_a_killed_process_are_never_read(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, variables, {"update": 1})
    (tmp_path / ".update-00000002.4711.npz").write_bytes(b"half")
    assert checkpoints.restore(variables) == {"update": 1}


def test_another_models_checkpoint_is_refused(tmp_path, variables):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, variables, {})
    with pytest.raises(ValueError, match="update-00000001.npz belongs to another model: 4 .*, 3 "):
        checkpoints.restore(variables[:3])
    with pytest.raises(ValueError, match="belongs to another model: shapes differ"):
        checkpoints.restore(variables[::-1])
