"""`translate` with options of documents: it agrees with Python, and refuses what has no effect."""

import re

import pytest
from click.testing import CliRunner
from pipelines import answerer, translator, write_run

from keras_transformer.cli.main import cli
from keras_transformer.pipelines import Documents

TAG = re.compile("<[^>]*>")
PAGE = "<h1>a cat</h1>\r\n<p id='x'>The <b>big dog</b>!  A &amp; <i>cat</i> runs.</p>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(translator(), tmp_path_factory.mktemp("runs") / "run")


def translate(model, *options, data):
    data = data if isinstance(data, bytes) else data.encode()
    return CliRunner().invoke(cli, ["translate", str(model), *options], input=data)


def written(*arguments, **options):
    done = translate(*arguments, **options)
    assert done.exit_code == 0, done.stderr
    return done.stdout_bytes.decode()


def alone(sentence):
    return translator()(sentence)


def test_sentences_are_translated_alone_and_what_is_between_them_is_copied(run):
    text = "A cat runs!  The big dog.\r\n\r\n\ta dog \n12\nno end"
    expected = (
        f"{alone('A cat runs!')}  {alone('The big dog.')}\r\n\r\n\t{alone('a dog')} \n12\n"
        f"{alone('no end')}"
    )
    assert written(run, "--split-sentences", data=text) == expected
    assert written(run, "--split-sentences", data="") == ""


def test_a_page_is_that_of_python_with_every_tag_once(run):
    page = written(run, "--format", "html", "--greedy", data=PAGE)
    assert page == Documents(translator(), "html")(PAGE)
    assert sorted(TAG.findall(page)) == sorted(TAG.findall(PAGE))


@pytest.mark.slow
def test_the_language_decides_where_sentences_end(run):
    parts = ["a dog bzw.", "A cat"]
    text = " ".join(parts)
    assert alone(text) != " ".join(map(alone, parts))
    assert written(run, "--sentence-language", "de", data=text) == alone(text)
    assert written(run, "--split-sentences", data=text) == " ".join(map(alone, parts))


@pytest.mark.slow
def test_passages_that_match_are_copied(run):
    text = "a big dog and 12 cats"
    assert "big" not in alone(text).split() and "12" not in alone(text)
    words = written(run, "--keep", "big", "--keep", "numbers", data=text).split()
    assert words.count("big") == words.count("12") == 1


@pytest.mark.slow
def test_a_beam_places_tags_by_order_with_a_warning(run):
    done = translate(run, "--format", "html", "--beam", "2", data=PAGE)
    assert sorted(TAG.findall(done.stdout_bytes.decode())) == sorted(TAG.findall(PAGE))
    assert "sentences are placed by the order of the words" in done.stderr


@pytest.mark.parametrize(
    "option", ["--scores", "--alignments", "--stream", "--strict", "--n-best=2", "--shard=1/2"]
)
def test_options_of_lines_are_refused(run, option):
    done = translate(run, "--format", "html", option, data=PAGE)
    name = option.partition("=")[0]
    message = f"Error: {name} has no effect with --format, which reads a document."
    assert done.exit_code == 2 and done.stderr.splitlines()[-1] == message


BAD = {
    "bytes": (["--split-sentences"], b"a\nb\xff", "must be UTF-8. Received: byte 0xff in line 2."),
    "xml": (["--format", "xml"], b"<a><b></a>", "must be well-formed XML. Received: mismatched"),
    "keep": (["--keep", "("], b"a", "must contain regular expressions or 'numbers'. Received: '('"),
    "format": (["--format", "pdf"], b"a", "'pdf' is not one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_documents_and_values_are_one_line(run, name):
    options, data, message = BAD[name]
    done = translate(run, *options, data=data)
    assert done.exit_code in (1, 2) and not done.stdout_bytes
    assert message in done.stderr.splitlines()[-1]


def test_a_model_that_does_not_translate_is_refused(tmp_path):
    done = translate(write_run(answerer(), tmp_path / "run"), "--format", "text", data="a\tb")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("Error: --format needs a model for translation")
