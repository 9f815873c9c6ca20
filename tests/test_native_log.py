"""The filter for what C++ libraries write on stderr."""

import os
import threading

import pytest

from keras_transformer.native_log import filtered_log


def shouts(log):
    """Returns the lines in capital letters."""
    return b"".join(line for line in log.splitlines(keepends=True) if line.isupper())


def test_a_part_of_the_log_is_shown(capfd):
    with filtered_log(shouts):
        os.write(2, b"a report\nA WARNING\n")
        assert capfd.readouterr().err == ""
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "A WARNING\nlater\n"


def test_after_an_error_all_is_shown(capfd):
    with pytest.raises(KeyError), filtered_log(shouts):
        os.write(2, b"a report\n")
        raise KeyError
    assert capfd.readouterr().err == "a report\n"


def test_filters_can_be_nested(capfd):
    with filtered_log(shouts):
        os.write(2, b"ONE\n")
        with filtered_log(bytes):
            os.write(2, b"two\nTHREE\n")
        os.write(2, b"FOUR\n")
    assert capfd.readouterr().err == "ONE\nTHREE\nFOUR\n"


def test_threads_keep_stderr(capfd):
    def work():
        for _ in range(20):
            with filtered_log(shouts):
                os.write(2, b"a report\n")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"end\n")
    assert capfd.readouterr().err.endswith("end\n")


def test_a_process_without_stderr_is_not_filtered(monkeypatch):
    def closed(descriptor):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "dup", closed)
    with filtered_log(shouts):
        pass
