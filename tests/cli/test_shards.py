"""Shards: the concatenated outputs of all shards equal the output for all lines."""

import io

import pytest
from click.testing import CliRunner
from pipelines import LINES, simulator, translator, write_run

from keras_transformer.cli.main import cli
from keras_transformer.decoding import Sample
from keras_transformer.opening.lines import LineFormat, TextLines
from keras_transformer.opening.stream import answer_stream
from keras_transformer.pipelines import Run
from keras_transformer.shards import Shard
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import Translation

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("total", [0, 1, 5, 13])
def test_shards_cover_all_items_in_equal_ranges(count, total):
    shards = [Shard(index, count) for index in range(count)]
    ranges = [range(*shard.bounds(total)) for shard in shards]
    assert [number for numbers in ranges for number in numbers] == list(range(total))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    owners = [[shard.owns(number) for shard in shards] for number in range(total)]
    assert all(sum(row) == 1 for row in owners)


@pytest.mark.parametrize("text", ["0/4", "3/4", "0/1"])
def test_a_shard_is_printed_as_it_is_parsed(text):
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize("text", ["4/4", "1", "-1/4", "1/0", "a/b", "0/4/5", "1.0/2"])
def test_an_invalid_shard_is_refused(text):
    with pytest.raises(ValueError, match=r"a shard must be I/N.* Received: "):
        Shard.parse(text)
    done = CliRunner().invoke(cli, ["translate", "x", "--shard", text])
    assert done.exit_code == 2 and "'--shard': a shard must be I/N" in done.stderr


def test_a_shard_needs_an_input_file():
    done = CliRunner().invoke(cli, ["translate", "x", "--shard", "0/2"])
    assert done.exit_code == 2 and "--shard needs --input: the lines of a" in done.stderr


class Upper(TextAnswering):
    def answer_batch(self, sentences):
        return [Translation(text.upper(), -1.0, False) for text in sentences]


def answered(search, data, **options):
    target, warnings = io.BytesIO(), []
    answer_stream(search, io.BytesIO(data), target, warnings.append, **options)
    return target.getvalue(), warnings


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("window", [1, 3, 100])
def test_the_outputs_of_all_shards_in_order_equal_the_output_for_all_lines(count, window):
    lines = [MARK + b"one", b"", MARK + b"three", b"\xff", b"a rather long line", b"xy", b"z"]
    data, options = b"\n".join(lines), {"window": window, "form": LineFormat(numbers=True)}
    whole, warnings = answered(Upper(), data, **options)
    bounds = [Shard(index, count).bounds(len(lines)) for index in range(count)]
    parts = [answered(Upper(), data, bounds=part, **options) for part in bounds]
    assert b"".join(output for output, _ in parts) == whole
    assert [warning for _, said in parts for warning in said] == warnings


@pytest.mark.slow
def test_a_sample_depends_on_its_line_number_in_the_whole_file():
    data = "".join(f"{line}\n" for line in LINES).encode()
    search = TextLines(translator().with_search(Sample(2.0, seed=5)))
    whole, _ = answered(search, data)
    bounds = [Shard(index, 3).bounds(len(LINES)) for index in range(3)]
    assert b"".join(answered(search, data, bounds=part)[0] for part in bounds) == whole


@pytest.mark.long
@pytest.mark.slow
def test_output_files_of_the_command_can_be_concatenated(tmp_path):
    run = Run(tmp_path / "run")
    run.path.mkdir()
    run.config.write_text('[data]\nsource = "none"\n')
    run.write_tokenizers(translator().tokenizers)
    translator().model.save(run.model)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))

    def call(*options):
        words = ["translate", run.path, "--input", tmp_path / "in.txt", *options]
        done = CliRunner().invoke(cli, list(map(str, words)))
        assert done.exit_code == 0, done.output
        return done.stdout

    whole = call("--beam", 2)
    assert "".join(call("--beam", 2, "--shard", f"{index}/3") for index in range(3)) == whole


def test_a_series_cannot_be_split_into_shards(tmp_path):
    write_run(simulator(), tmp_path / "run")
    (tmp_path / "in.csv").write_text("rain\n1\n")
    words = ["predict", tmp_path / "run", "--input", tmp_path / "in.csv", "--shard", "0/2"]
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code == 2 and "its lines are one series" in done.stderr
    assert "--shard has no effect on" in done.stderr
