"""Text files: pairs in order, and every mistake reported with file and line."""

import gzip
import io
import os
from types import SimpleNamespace

import pytest

from keras_transformer.opening.stream import answer_stream
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import Translation
from keras_transformer.text.lines import read_lines, read_parallel
from keras_transformer.training.data.sources.both_directions import BothDirections
from keras_transformer.training.data.sources.memory import MemoryData
from keras_transformer.training.data.sources.text import TextData
from keras_transformer.training.data.store import Stores
from keras_transformer.training.inputs import take_survey
from keras_transformer.training.settings.sources import open_source


def write(folder, name, lines, end="\n"):
    path = folder / name
    content = lines if isinstance(lines, bytes) else end.join([*lines, ""]).encode("utf-8")
    path.write_bytes(content)
    return str(path)


def settings(folder, source=("a b", "c"), target=("A B", "C"), **changes):
    """Returns settings for the given training lines; the validation data is one good pair."""
    fields = {
        "source": "text",
        "train_source": write(folder, "train.en", source),
        "train_target": write(folder, "train.de", target),
        "validation_source": write(folder, "val.en", ["v"]),
        "validation_target": write(folder, "val.de", ["V"]),
        "test_source": None,
        "test_target": None,
    }
    return SimpleNamespace(**{**fields, **changes})


def strings(data, split="train"):
    return [(s.decode(), t.decode()) for s, t in data.rows(split).as_numpy_iterator()]


def refused(options, match):
    with pytest.raises(ValueError, match=match) as error:
        open_source(options)
    assert "\n" not in str(error.value)


def test_pairs_come_in_order_from_every_split(tmp_path):
    lines = [f"line {n} é" for n in range(1000)]
    options = settings(tmp_path, lines, [line.upper() for line in lines])
    options.test_source = write(tmp_path, "test.en", ["t", "u"])
    options.test_target = write(tmp_path, "test.de", ["T", "U"])
    data = open_source(options)
    assert data.splits == ("train", "validation", "test")
    assert strings(data) == [(line, line.upper()) for line in lines]
    assert strings(data, "validation") == [("v", "V")]
    assert strings(data, "test") == [("t", "T"), ("u", "U")]
    assert [data.count(split) for split in data.splits] == [1000, 1, 2]
    assert [data.left_out(split) for split in data.splits] == [0, 0, 0]


def test_a_missing_split_is_refused(tmp_path):
    data = open_source(settings(tmp_path))
    assert data.splits == ("train", "validation")
    for method in (data.rows, data.count):
        with pytest.raises(ValueError, match="`split` must be one of train, validation.*'test'"):
            method("test")


@pytest.mark.parametrize(
    "content",
    [
        b"one\r\ntwo\r\n",  # Windows
        b"one\ntwo",  # no line feed at the end
        b"\xef\xbb\xbfone\ntwo\n",  # byte order mark
        b"\xef\xbb\xbfone\r\ntwo",
    ],
)
def test_line_ends_and_byte_order_marks_are_not_text(tmp_path, content):
    data = open_source(settings(tmp_path, content, ["1", "2"]))
    assert strings(data) == [("one", "1"), ("two", "2")]


@pytest.mark.parametrize("tabs", [False, True])
def test_training_reads_lines_like_evaluate_and_predict(tmp_path, tabs):
    """Carriage returns before a line feed belong to the line end; elsewhere they are text."""
    sides = [b"a\rb\r\n\rc\r\r\nd\r", b"A\r\rB\nC\nD"]
    options = settings(tmp_path, *sides)
    if tabs:
        rows = zip(*(side.split(b"\n") for side in sides), strict=True)
        options = settings(tmp_path, train_source=None, train_target=None)
        options.train = write(tmp_path, "x.tsv", b"\n".join(map(b"\t".join, rows)))
        rows = [line.split("\t") for line in read_lines(options.train)]
    else:
        rows = zip(*read_parallel(options.train_source, options.train_target), strict=True)
    lines, asked = list(map(tuple, rows)), []

    class Echo(TextAnswering):
        def answer_batch(self, sentences):
            asked.extend(sentences)
            return [Translation(sentence, 0.0, False) for sentence in sentences]

    answer_stream(Echo(), io.BytesIO(sides[0]), io.BytesIO(), asked.append, batch_size=1)
    if not tabs:
        assert sorted(asked) == sorted(line for line, _ in lines) == ["\rc", "a\rb", "d"]
    assert strings(open_source(options)) == lines


def test_unicode_line_separators_do_not_end_a_line(tmp_path):
    lines = ["a\u2028b", "c\x85d\x0ce"]
    assert strings(open_source(settings(tmp_path, lines, ["1", "2"]))) == [
        (lines[0], "1"),
        (lines[1], "2"),
    ]


def test_pairs_with_an_empty_side_are_dropped_and_counted(tmp_path):
    source = ["a", "", "c", "  ", "e", "\u3000"]
    target = ["A", "B", "", "\t", "E", "F"]
    data = open_source(settings(tmp_path, source, target))
    assert strings(data) == [("a", "A"), ("e", "E")]
    assert data.count("train") == 2
    assert [data.left_out(split) for split in data.splits] == [4, 0]


def test_empty_is_what_pairs_leaves_out(tmp_path):
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace() and chr(code) != "\n"]
    spaces.remove("\r")  # part of a line end
    source = [*spaces, "\u200b", "\x00", "x"]  # the last three are not white space
    data = open_source(settings(tmp_path, source, ["y"] * len(source)))
    assert data.left_out("train") == len(spaces)
    assert [source for source, _ in strings(data)] == ["\u200b", "\x00", "x"]


def test_different_numbers_of_lines_are_refused(tmp_path):
    refused(
        settings(tmp_path, ["a", "b", "c"], ["A", "B"]),
        "train.en and .*train.de must have the same number of lines.*Received: 3 and 2 lines",
    )
    options = settings(tmp_path)
    options.validation_target = write(tmp_path, "val.de", ["V", ""])
    refused(options, r"val.en and .*val.de must have .*Received: 1 and 2 lines")


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_line_that_is_not_utf8_is_reported(tmp_path, side):
    options = settings(tmp_path)
    setattr(options, f"train_{side}", write(tmp_path, "latin1.txt", b"fine\nGr\xf6\xdfe\n"))
    refused(options, r"latin1.txt, line 2: must be UTF-8. Received: byte 0xf6 at position 3 of")
    setattr(options, f"train_{side}", write(tmp_path, "utf16.txt", "a\nb\n".encode("utf-16")))
    refused(options, "utf16.txt, line 1: must be UTF-8. Received: byte 0xff at position 1 of")


def test_an_unreadable_file_is_reported(tmp_path):
    refused(
        settings(tmp_path, train_source=str(tmp_path / "nowhere.en")),
        "nowhere.en: cannot be read: No such file",
    )
    refused(settings(tmp_path, train_target=str(tmp_path)), "cannot be read: Is a directory")


def test_files_without_a_pair_are_refused(tmp_path):
    refused(
        settings(tmp_path, b"", b""), "must contain at least one line without .*Received: 0 lines"
    )
    refused(
        settings(tmp_path, ["", "b"], ["A", ""]),
        "at least one line without .*Received: 2 lines",
    )


def test_a_wrong_kind_of_source_is_refused():
    refused(SimpleNamespace(source="csv"), "`source` must be one of cldr, text, tfds, .*'csv'")


def test_real_files_are_read_completely(data_dir):
    folder = data_dir / "multi30k"
    data = open_source(
        SimpleNamespace(
            source="text",
            train_source=folder / "val.en",
            train_target=folder / "val.de",
            validation_source=folder / "test_2016_flickr.en",
            validation_target=folder / "test_2016_flickr.de",
        )
    )
    assert (data.count("train"), data.count("validation")) == (1014, 1000)
    english = (folder / "val.en").read_text(encoding="utf-8").splitlines()
    german = (folder / "val.de").read_text(encoding="utf-8").splitlines()
    assert strings(data) == list(zip(english, german, strict=True))


# Several corpora, gzip, tabs


def zipped(folder, name, lines):
    return write(folder, name, gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def test_several_corpora_come_one_after_the_other(tmp_path):
    options = settings(tmp_path, ["a", "", "c"], ["A", "B", "C"])
    options.train_source = [options.train_source, write(tmp_path, "more.en", ["d", "e"])]
    options.train_target = [options.train_target, zipped(tmp_path, "more.de.gz", ["D", "E"])]
    data = open_source(options)
    assert strings(data) == [("a", "A"), ("c", "C"), ("d", "D"), ("e", "E")]
    assert (data.count("train"), data.left_out("train")) == (4, 1)
    assert data.weights("train") is None and data.weights("validation") is None


def test_a_weight_applies_to_every_pair_of_its_corpus(tmp_path):
    options = settings(tmp_path, ["a", "", "c"], ["A", "B", "C"], train_weights=[1.0, 0.25])
    options.train_source = [options.train_source, write(tmp_path, "more.en", ["d", "e", "f"])]
    options.train_target = [options.train_target, write(tmp_path, "more.de", ["D", "E", "F"])]
    data = open_source(options)
    assert data.weights("train").tolist() == [1.0, 1.0, 0.25, 0.25, 0.25]
    assert data.weights("validation") is None


@pytest.mark.slow
@pytest.mark.parametrize("mark", [b"line", b"\xef\xbb\xbfline"])
def test_gzip_with_several_members_is_read_completely(tmp_path, mark):
    """As written by `bgzip`, `pigz` and `cat a.gz b.gz`."""
    lines = [f"line {n} é" for n in range(3000)]
    members = [gzip.compress(f"{line[4:]}\nline".encode()) for line in lines]
    content = gzip.compress(mark) + b"".join([*members[:-1], gzip.compress(" 2999 é\n".encode())])
    options = settings(tmp_path, target=[line.upper() for line in lines])
    options.train_source = write(tmp_path, "train.en.gz", content + gzip.compress(b""))
    assert strings(open_source(options)) == [(line, line.upper()) for line in lines]


def test_text_after_an_empty_gzip_member_is_read(tmp_path):
    """TensorFlow's own reader would silently stop there."""
    first, empty, last = (gzip.compress(text) for text in (b"a\n", b"", b"c\n"))
    options = settings(tmp_path, target=["A", "C"])
    options.train_source = write(tmp_path, "x.gz", first + empty + last)
    assert strings(open_source(options)) == [("a", "A"), ("c", "C")]


def test_one_file_with_tab_separated_columns(tmp_path):
    both = ["a b\tA B", "\t", "c\t ", '"d\t"D', "e\tE"]
    options = settings(tmp_path, train_source=None, train_target=None)
    for name in ("pairs.tsv", "pairs.tsv.gz", "marked.tsv"):
        end = "\r\n" if name == "marked.tsv" else "\n"
        text = ("\ufeff" if name == "marked.tsv" else "") + "".join(line + end for line in both)
        content = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
        options.train = write(tmp_path, name, content)
        data = open_source(options)
        assert strings(data) == [("a b", "A B"), ('"d', '"D'), ("e", "E")], name
        assert (data.count("train"), data.left_out("train")) == (3, 2)


def test_columns_can_be_chosen(tmp_path):
    path = write(tmp_path, "scored.tsv", ["0.5\tA\ta\tx", "0.1\tB\tb", "0\t\tc\t\t"])
    options = settings(tmp_path, train_source=None, train_target=None, train=path)
    options.tsv_columns = [3, 2]
    assert strings(open_source(options)) == [("a", "A"), ("b", "B")]
    options.tsv_columns = [4, 2]
    refused(options, r"scored.tsv, line 2: must have at least 4 columns, .* Received: 3\.")
    options.tsv_columns = None
    refused(options, r"scored.tsv, line 1: must have 1 tab, or `tsv_columns` .*: 4 columns\.")


def test_a_line_without_a_tab_is_reported(tmp_path):
    path = write(tmp_path, "pairs.tsv", ["a\tA", "b B"])
    options = settings(tmp_path, train_source=None, train_target=None, train=path)
    refused(options, r"pairs.tsv, line 2: must have a tab between source and target")


def test_a_damaged_gzip_file_is_reported(tmp_path):
    whole = gzip.compress("".join(f"{n}\n" for n in range(9000)).encode())
    options = settings(tmp_path)
    options.train_source = write(tmp_path, "short.gz", whole[: len(whole) // 2])
    refused(options, r"short\.gz, line \d{3,}: the gzip file is damaged or ends too early\.")
    options.train_source = write(tmp_path, "wrong.gz", b"plain text\n")
    refused(options, r"wrong\.gz, line 1: not gzip, or damaged \(.*\)\.")
    swapped = bytearray(whole)
    swapped[len(whole) // 2] ^= 255
    options.train_source = write(tmp_path, "swapped.gz", bytes(swapped))
    refused(options, r"swapped\.gz, line \d+: (not gzip, or damaged|the gzip file is damaged)")


def test_a_pipe_is_refused_because_training_reads_its_text_several_times(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = settings(tmp_path, train_source=str(pipe))
    refused(options, "pipe must be a regular file, because it is read more")


def test_training_states_how_many_examples_without_a_label_are_left_out(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("spade\tgarden\nrake\t\nwhisk\tkitchen\n")
    task = TASKS["classification"]
    data = TextData({"train": [path]}, task.columns)
    (first, *_) = take_survey(Stores(tmp_path / "store"), task, data, {}).sentences
    assert (
        first == "Left out of the train split: 1 of 3 examples, in which the text or the label is "
        "empty."
    )


def test_training_states_how_many_pairs_with_an_empty_side_are_left_out(tmp_path):
    options = settings(tmp_path, ["a", "", "c", "d"], ["A", "B", "C", " "])
    task, stores = TASKS["translation"], Stores(tmp_path / "store")
    expected = (
        "Left out of the train split: 2 of 4 examples, in which the source or the target is empty.",
    )
    for _ in range(2):  # the second time from the store
        assert take_survey(stores, task, open_source(options), {}).sentences == expected
    both = BothDirections(open_source(options))
    assert both.left_out("train") == 4 and both.left_out("validation") == 0
    with pytest.raises(ValueError, match="`split` must be one of train, the splits"):
        MemoryData({"train": [("a", "A")], "validation": []}, "pairs").left_out("test")
