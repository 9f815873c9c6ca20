"""Shortlists and Marian's binary format, written a second time from its description."""

import struct

import numpy as np
import pytest

from keras_transformer.decoding import Shortlist


def small():
    """Five source tokens with lists of 0, 2, 0, 3 and 1 ids."""
    return Shortlist(3, 4, [0, 0, 2, 2, 5, 6], [5, 11, 4, 5, 9, 7])


def by_hand(first, best, lists, magic=0xF11A48D5013417F5, checksum=None):
    """Encodes a file by its description, number by number."""
    body = struct.pack("<4Q", first, best, len(lists) + 1, sum(map(len, lists)))
    place = 0
    for number in (0, *map(len, lists)):
        place += number
        body += struct.pack("<Q", place)
    for row in lists:
        body += struct.pack(f"<{len(row)}I", *row)
    h = 0
    for at in range(0, len(body) - 7, 8):
        (v,) = struct.unpack_from("<Q", body, at)
        h = (h ^ (v + 0x9E3779B9 + ((h << 6) % 2**64) + (h >> 2))) % 2**64
        # The sum overflows 64 bits before it is combined.
    return struct.pack("<2Q", magic, h if checksum is None else checksum) + body


@pytest.mark.parametrize("last", [[7], [7, 8]])  # an odd number of ids, and an even one
def test_the_bytes_follow_the_description(last):
    lists = [[], [5, 11], [], [4, 5, 9], last]
    ends = np.cumsum([0, *map(len, lists)])
    shortlist = Shortlist(3, 4, ends, np.concatenate(lists).astype(int))
    assert shortlist.to_bytes() == by_hand(3, 4, lists)
    assert shortlist.to_bytes()[:8].hex() == "f5173401d5481af1"  # the lowest byte first


def test_a_file_is_read_and_written_unchanged(tmp_path):
    content = by_hand(3, 4, [[], [11, 5], [], [4, 5, 9], [7]])  # one list is not sorted
    (tmp_path / "a.bin").write_bytes(content)
    shortlist = Shortlist.read(tmp_path / "a.bin")
    assert (shortlist.first, shortlist.best, shortlist.vocab_size) == (3, 4, 5)
    shortlist.write(tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "b.bin"]


def test_candidates():
    shortlist = small()
    assert shortlist.candidates([1, 4, 1]).tolist() == [0, 1, 2, 5, 7, 11]
    assert shortlist.candidates([[3], [2]], always=[10]).tolist() == [0, 1, 2, 4, 5, 9, 10]
    assert shortlist.candidates([3, 4], shared=True).tolist() == [0, 1, 2, 3, 4, 5, 7, 9]
    assert shortlist.candidates([]).tolist() == [0, 1, 2]


def test_the_most_frequent_pairs_are_kept():
    rng = np.random.default_rng(3)
    table = rng.integers(0, 6, (7, 11))  # source, target
    pairs = [(v, t, table[v, t]) for v, t in np.ndindex(*table.shape) if table[v, t]]
    rng.shuffle(pairs)
    shortlist = Shortlist.from_counts(pairs, 7, first=2, best=3)
    for v in range(7):
        row = sorted((-table[v, t], t) for t in range(2, 11) if table[v, t])[:3]
        found = shortlist.ids[shortlist.offsets[v] : shortlist.offsets[v + 1]]
        assert found.tolist() == sorted(t for _, t in row)
    nothing = Shortlist.from_counts([], 3)
    assert nothing.candidates([1]).tolist() == list(range(50))
    # Marian 1.12.42 reports "shortlist indices are out of bounds" unless all lists begin before the
    # end.
    assert nothing.offsets.tolist() == [0, 0, 0, 1] and nothing.ids.tolist() == [0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:40], "incomplete: it has only 40 bytes"),
        (lambda content: content[:-4], "6 offsets and 6 ids take 120 bytes, but it has 116"),
        (lambda content: content + b"\0", "but it has 121"),
        (lambda content: b"\0" + content[1:], "not a binary shortlist of Marian,"),
        (lambda content: content[:60] + b"\1" + content[61:], "damaged: its checksum is 0x"),
        (lambda content: content[:32] + b"\xff" * 8 + content[40:], "18446744073709551615 offsets"),
    ],
)
def test_a_damaged_file_is_reported_in_one_line(tmp_path, damage, message):
    path = tmp_path / "short.bin"
    path.write_bytes(damage(small().to_bytes()))
    with pytest.raises(ValueError, match=message) as error:
        Shortlist.read(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_offsets_beyond_the_file_are_refused():
    wrong = by_hand(1, 2, [[3], [4, 5]])
    numbers = list(struct.unpack("<9Q", wrong[: 9 * 8]))
    for place, value, message in ((7, 2**63, "a list ends after"), (7, 3, "longest list")):
        changed = [*numbers]
        changed[place] = value
        body = struct.pack("<7Q", *changed[2:]) + wrong[72:]
        h = 0
        for at in range(0, len(body) - 7, 8):
            (v,) = struct.unpack_from("<Q", body, at)
            h ^= (v + 0x9E3779B9 + (h << 6) + (h >> 2)) % 2**64
        with pytest.raises(ValueError, match=message):
            Shortlist.from_bytes(struct.pack("<2Q", numbers[0], h) + body)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 2, [0, 0], []), "`first` must be at least 0"),
        ((1, 2, [0, 3, 2], [1, 1]), "`offsets` must begin with 0"),
        ((1, 2, [1, 2], [1, 1]), "`offsets` must begin with 0"),
        ((1, 2, [0, 1], [1, 1]), "`offsets` must begin with 0"),
        ((1, 2, [0], []), "`offsets` must begin with 0"),
        ((1, 1, [0, 2], [1, 1]), "`best` must be at least the length"),
        ((1, 1, [0, 1], [-1]), "`ids` must not be negative"),
        ((1, 1, [0, 1], [0.5]), "`ids` must be a vector of integers"),
    ],
)
def test_wrong_arguments_are_reported(arguments, message):
    with pytest.raises(ValueError, match=message):
        Shortlist(*arguments)


def test_another_vocabulary_is_refused():
    small().check_sizes(5, 12)
    with pytest.raises(
        ValueError, match="ids below 11. Received: 5 source tokens, target ids below 12"
    ):
        small().check_sizes(5, 11)
    with pytest.raises(ValueError, match="6 source tokens"):
        small().check_sizes(6, 12)
