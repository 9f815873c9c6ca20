"""The table of a training run grows row by row and survives interruptions."""

import csv
import errno
import os
import types

import pytest

from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.history import History, columns_of

COLUMNS = columns_of(TASKS["translation"])


@pytest.fixture
def history(tmp_path):
    history = History(tmp_path / "run" / "history.csv", COLUMNS)
    history.restore(0)
    return history


def table(history):
    with open(history.path, newline="") as file:
        return list(csv.DictReader(file))


def fill(history, updates):
    for update in updates:
        history.add(update, {"train/loss": 1 / 3 + update, "train/speed": 9})
        if update % 2 == 0:
            history.add(update, {"validation/bleu": 10 * update})


def test_a_row_contains_the_metrics_of_an_update(history):
    fill(history, [1, 2, 5])
    assert [row["update"] for row in table(history)] == ["1", "2"]  # row 5 may still get more
    history.flush()
    history.flush()
    rows = table(history)
    assert list(rows[0]) == ["update", *COLUMNS]
    assert [row["update"] for row in rows] == ["1", "2", "5"]
    assert [float(row["train/loss"]) for row in rows] == [1 / 3 + update for update in (1, 2, 5)]
    assert [row["validation/bleu"] for row in rows] == ["", "20.0", ""]
    assert history.curve("validation/bleu") == ([2], [20.0])


def test_rows_after_the_checkpoint_are_dropped(history):
    fill(history, range(1, 8))
    again = History(history.path, COLUMNS)
    again.restore(4)
    assert [row["update"] for row in table(again)] == ["1", "2", "3", "4"]
    assert again.rows == history.rows[:4]
    fill(again, range(5, 9))
    again.flush()
    assert [row["update"] for row in table(again)] == [str(update) for update in range(1, 9)]


def test_every_length_after_a_power_cut_is_read(history, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda file: None)  # it would take half of the time
    fill(history, range(1, 3))
    history.flush()
    content = history.path.read_bytes()
    for length in range(len(content) + 1):
        history.path.write_bytes(content[:length])
        again = History(history.path, COLUMNS)
        again.restore(99)
        complete = max(content[:length].count(b"\n") - 1, 0)
        assert again.rows == history.rows[:complete]
        assert len(table(again)) == complete


@pytest.mark.parametrize("line", ["5,x,,,,,,,", "5,1.0", "4,1.0,,,,,,,", "\x00\x00", ""])
def test_rows_after_a_damaged_row_are_dropped(history, line):
    fill(history, range(1, 5))
    history.flush()
    good = "6,1.0" + "," * (len(COLUMNS) - 1)
    with open(history.path, "a") as file:
        file.write(f"{line}\n{good}\n")
    again = History(history.path, COLUMNS)
    again.restore(99)
    assert again.rows == history.rows
    assert len(table(again)) == 4


def test_another_table_is_replaced(history):
    history.path.write_text("step,loss\n1,2\n")
    history.restore(9)
    assert table(history) == []


def test_a_table_with_some_of_the_columns_is_read(history):
    history.path.write_text("update,train/loss,validation/bleu\n1,2.5,\n4,1.5,30.0\n")
    rows = [{"update": 1, "train/loss": 2.5}, {"update": 4, "train/loss": 1.5}]
    rows[1]["validation/bleu"] = 30.0
    assert History.read(history.path, COLUMNS).rows == rows
    history.restore(9)
    assert history.rows == rows and list(table(history)[0]) == ["update", *COLUMNS]


def test_metrics_that_need_another_option_have_no_column():
    task = TASKS["speech_recognition"]
    with_ctc, without = (types.SimpleNamespace(ctc_weight=weight) for weight in (0.3, 0.0))
    assert columns_of(task, with_ctc) == columns_of(task)
    missing = {*columns_of(task)} - {*columns_of(task, without)}
    assert missing == {"validation/ctc_wer", "validation/ctc_cer"}


def test_updates_must_increase(history):
    fill(history, [1, 3])
    with pytest.raises(ValueError, match="`update` must increase.* Received: update=2 after 3."):
        history.add(2, {})
    history.flush()
    with pytest.raises(ValueError, match="`update` must increase.* Received: update=3 after 3."):
        history.add(3, {})


def test_a_full_disk_is_reported_in_one_line(history, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fill(history, [1])
    monkeypatch.setattr("builtins.open", full)
    with pytest.raises(OSError, match="history.csv cannot be written: No space left on device.$"):
        history.flush()
