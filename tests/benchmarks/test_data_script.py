"""`benchmarks/data.py`: checksums of the real data, and downloads from a local server."""

import dataclasses
import functools
import gzip
import hashlib
import http.server
import struct
import threading

import pytest
from click.testing import CliRunner

RIVER = (
    b"date,precipitation_mm,temperature_c,potential_evapotranspiration_mm,discharge_mm\n"
    b"1999-01-01,0.2,-3.9,0.1,0.642296\n"
    b"1999-01-02,4.0,-3.3,0.1,\n"
)


def text(characters):
    return struct.pack(">ii", 9, len(characters)) + characters.encode()


def vector(values, names):
    """Encodes a named list of R; one of the names refers to a symbol defined earlier."""
    attributes = struct.pack(">i", TAGGED) + NAMES + struct.pack(">ii", 16, len(names))
    attributes += b"".join(map(text, names))
    attributes += struct.pack(">i", TAGGED) + struct.pack(">i", 1) + text("row.names")
    attributes += struct.pack(">iiii", 13, 2, -(2**31), -2) + struct.pack(">i", 254)
    return struct.pack(">ii", 19 | 1 << 9, len(values)) + b"".join(values) + attributes


def reals(numbers):
    return struct.pack(f">ii{len(numbers)}d", 14, len(numbers), *numbers)


def integers(numbers):
    return struct.pack(f">ii{len(numbers)}i", 13, len(numbers), *numbers)


TAGGED = 2 | 1 << 10  # a pair-list entry with a tag
NAMES = struct.pack(">i", 255 | 1 << 8)  # the first symbol of the file


def rda(dates, columns):
    """Encodes an R data file of version 2 with a text `names` and a data frame `BasinObs`."""
    frame = vector(
        [
            vector([integers(values) for values in dates.values()], list(dates)),
            *(reals(values) for values in columns.values()),
        ],
        ["DatesR", *columns],
    )
    objects = struct.pack(">ii", TAGGED, 1) + text("names") + struct.pack(">ii", 16, 1) + text("x")
    objects += struct.pack(">ii", TAGGED, 1) + text("BasinObs") + frame + struct.pack(">i", 254)
    return gzip.compress(b"RDX2\nX\n" + struct.pack(">iii", 2, 0x30402, 0x20300) + objects)


DATES = {"mday": [1, 2], "mon": [0, 0], "year": [99, 99]}
BASIN = {
    "P": [0.2, 4.0],
    "T": [-3.9, -3.3],
    "E": [0.1, 0.1],
    "Qls": [16970.0, 16957.0],
    "Qmm": [0.64229612, float("nan")],
}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Serves three small files in place of the real ones; returns the address and the folder."""
    import data

    contents = {
        "multi30k/train.en": (gzip.compress(b"A dog.\n"), b"A dog.\n"),
        "sst2/dev.tsv": (b"a gem\t1\n", b"a gem\t1\n"),
        "runoff/durance_embrun_daily.csv": (rda(DATES, BASIN), RIVER),
    }
    root, files = tmp_path / "server", []
    for file in data.FILES:
        if file.path in contents:
            sent, content = contents[file.path]
            path = root / file.source
            path.parent.mkdir(parents=True)
            path.write_bytes(sent)
            digest = hashlib.sha256(content).hexdigest()
            files.append(dataclasses.replace(file, sha256=digest))
    monkeypatch.setattr(data, "FILES", tuple(files))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", root
        server.shutdown()
        thread.join()


def invoke(*arguments):
    import data

    return CliRunner().invoke(data.main, [str(argument) for argument in arguments])


def test_a_download_is_complete_and_verified(served, tmp_path):
    host, _ = served
    folder = tmp_path / "data"
    assert invoke("verify", "--folder", folder).exit_code == 1
    done = invoke("download", "--folder", folder, "--host", host)
    assert done.exit_code == 0, done.output
    assert done.output.count("downloaded") == 3
    assert (folder / "multi30k" / "train.en").read_bytes() == b"A dog.\n"
    assert (folder / "runoff" / "durance_embrun_daily.csv").read_bytes() == RIVER
    checked = invoke("verify", "--folder", folder)
    assert checked.exit_code == 0 and checked.output.count("good") == 3
    again = invoke("download", "--folder", folder, "--host", "http://127.0.0.1:9")
    assert again.exit_code == 0 and again.output.count("there") == 3, "nothing is downloaded twice"


@pytest.mark.parametrize("damage", ["other", "cut", "missing"])
def test_a_wrong_response_is_not_written(served, tmp_path, damage):
    host, root = served
    (path,) = root.rglob("train.en.gz")
    if damage == "missing":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes(gzip.compress(b"A cat.\n") if damage == "other" else whole[:-9])
    folder = tmp_path / "data"
    done = invoke("download", "--folder", folder, "--host", host, "--only", "multi30k")
    assert done.exit_code == 1
    expected = {
        "other": "does not have the expected content",
        "cut": "train.en.gz: Compressed file ended",
        "missing": "404",
    }
    assert expected[damage] in done.output
    assert not list(folder.rglob("*.*"))


def test_a_modified_file_is_reported_and_kept(served, tmp_path):
    host, _ = served
    mine = tmp_path / "sst2" / "dev.tsv"
    mine.parent.mkdir()
    mine.write_bytes(b"mine\t0\n")
    checked = invoke("verify", "--folder", tmp_path)
    assert checked.exit_code == 1 and "different sst2/dev.tsv" in checked.output
    done = invoke("download", "--folder", tmp_path, "--host", host)
    assert done.exit_code == 1 and "Move it away" in done.output
    assert mine.read_bytes() == b"mine\t0\n"


def test_a_file_that_is_not_r_data_is_refused():
    from rda import read_rda

    assert read_rda(rda(DATES, BASIN))["names"] == ["x"]
    with pytest.raises(ValueError, match="not a data file of R"):
        read_rda(b"RDX3\nX\n")


def test_the_real_files_have_their_checksums(data_dir):
    for name in ("multi30k", "sst2", "runoff"):
        assert (data_dir / name).is_dir()
    done = invoke("verify", "--folder", data_dir.root)
    assert done.exit_code == 0, done.output
    assert done.output.count("good") == 16
