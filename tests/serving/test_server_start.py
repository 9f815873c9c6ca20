"""The start of the command: its key, its name, its warnings, and what it refuses."""

import os
import socket

import click.testing
import pytest
from servers import Shouting

from keras_transformer.cli.serve import KEY, serve

LOCAL = ["--port", "0", "--source-language", "en", "--target-language", "xx"]
OPEN = [*LOCAL, "--host", "0.0.0.0"]


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Returns the function that starts the command, without its loop.

    The function returns what the command has printed, and the `Service`, or `None` after an error.
    """
    monkeypatch.delenv(KEY, raising=False)
    services = []
    monkeypatch.setattr("keras_transformer.opening.forms.open", lambda path: Shouting())
    monkeypatch.setattr(
        "keras_transformer.serving.server.serve",
        lambda service, bound, log, started: (services.append(service), started(), bound.close()),
    )

    def run(*options, path="demo.tflite", key=None):
        if key is not None:
            monkeypatch.setenv(KEY, key)
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix:
            file.touch()
        else:
            (file / "config.toml").parent.mkdir()
            (file / "config.toml").touch()
        result = click.testing.CliRunner().invoke(serve, [str(file), *options])
        output = f"{result.output}{result.exception or ''}"
        return output, services.pop() if services else None

    return run


@pytest.mark.parametrize("key", ["secret", "secret\n", " secret\r\n"])
def test_a_key_of_the_environment_has_no_space_around_it(key, start):
    assert start(*LOCAL, key=key)[1].key == "secret"


@pytest.mark.parametrize("key", ["", "\n", "  "])
def test_a_blank_key_is_an_error_and_not_a_server_without_a_key(key, start):
    output, service = start(*LOCAL, key=key)
    assert service is None and f"the environment variable {KEY} is blank: " in output


def test_a_blank_variable_has_no_effect_beside_a_file(start, tmp_path):
    (tmp_path / "key").write_text("other\n")
    assert start(*LOCAL, "--api-key-file", str(tmp_path / "key"), key="")[1].key == "other"
    (tmp_path / "key").write_text(" \n")
    output, service = start(*LOCAL, "--api-key-file", str(tmp_path / "key"))
    assert service is None and f"{tmp_path / 'key'} is blank: " in output


@pytest.mark.parametrize("content", ["schlüssel".encode(), b"one\ntwo\n", b"a\xff", b"a\tb"])
def test_a_key_that_no_header_can_have_is_an_error(content, start, tmp_path):
    (tmp_path / "key").write_bytes(content)
    words = "must be one line of printable ASCII characters, so that a header can have it."
    output, service = start(*LOCAL, "--api-key-file", str(tmp_path / "key"))
    assert service is None and f"the API key of {tmp_path / 'key'} {words}" in output
    output, service = start(*LOCAL, key=os.fsdecode(content))
    assert service is None and f"the API key of the environment variable {KEY} {words}" in output


def test_a_server_for_other_machines_says_whether_requests_need_a_key(start):
    words = "0.0.0.0 is open to other machines, and requests need "
    assert f"Warning: {words}no API key\n" in start(*OPEN)[0]
    assert f"\n{words}the API key of the environment variable {KEY}\n" in start(*OPEN, key="a")[0]
    assert "open to other" not in start(*LOCAL, key="a")[0]


@pytest.mark.parametrize(
    "path, name",
    [
        ("demo.tflite", "demo"),
        ("runs/demo", "demo"),
        ("translator/1", "translator"),
        ("translator/20240101", "translator"),
        ("2.tflite", "2"),
        ("v2", "v2"),
    ],
)
def test_the_name_of_a_model_is_that_of_its_file_or_folder_and_never_a_version(path, name, start):
    assert start(*LOCAL, path=path)[1].name == name
    assert start(*LOCAL, "--name", "other", path=f"again/{path}")[1].name == "other"


@pytest.mark.parametrize("name", ["", " ", "a/b"])
def test_a_name_that_no_path_can_have_is_refused(name, start):
    output, service = start(*LOCAL, "--name", name)
    assert service is None and "--name must not be blank, and must not have a /." in output


def test_languages_without_names_are_a_warning_at_the_start(start):
    words = "Warning: /translate refuses all requests: the languages of the model have no names"
    assert words in start("--port", "0")[0] and words in start(*LOCAL[:4])[0]
    assert words not in start(*LOCAL)[0]


def test_a_model_that_does_not_exist_is_named_before_a_port_that_is_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = ["--port", str(taken.getsockname()[1])]
        missing = click.testing.CliRunner().invoke(serve, [str(tmp_path / "none"), *options])
        assert "does not exist" in str(missing.exception)


def test_a_request_of_all_inputs_fits_into_the_queue(start):
    output, service = start(*LOCAL, "--max-inputs", "3", "--max-queue", "2")
    words = "--max-queue must be at least --max-inputs. Received: --max-queue 2 --max-inputs 3."
    assert service is None and words in output
    for options, limits in {
        (): (128, 2048),
        ("--max-queue", "2"): (2, 2),
        ("--max-inputs", "3000"): (3000, 3000),
        ("--max-inputs", "3", "--max-queue", "3"): (3, 3),
        ("--max-inputs", "200", "--max-queue", "300"): (200, 300),
    }.items():
        chosen = start(*LOCAL, *options)[1].options
        assert (chosen.input_limit, chosen.queue_limit) == limits
