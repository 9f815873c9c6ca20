"""The filter for what C++ libraries write on stderr."""

import os
import tempfile
import threading

import pytest

from keras_transformer.native_code import filtered_log


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


def fails(*arguments):
    raise OSError(9, "Bad file descriptor")


@pytest.mark.parametrize(("module", "function"), [(os, "dup"), (tempfile, "TemporaryFile")])
def test_without_stderr_or_a_place_for_files_nothing_is_filtered(
    module, function, monkeypatch, capfd
):
    """As in a container whose file systems are read-only."""
    with monkeypatch.context() as patch:
        patch.setattr(module, function, fails)
        with filtered_log(shouts):
            os.write(2, b"a report\n")
        with pytest.raises(KeyError) as error, filtered_log(shouts):
            raise KeyError
    assert error.value.__context__ is None
    assert capfd.readouterr().err == "a report\n"
