"""Checkpoints of repositories on a hub, which is a small server here."""

import hashlib
import http.server
import json
import socket
import threading
import time
import types
import urllib.parse

import bert_folders
import numpy as np
import pytest
import pytorch_files
import safetensors.numpy
from click.testing import CliRunner

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.pipelines import Run
from keras_transformer.pretrained import hub
from keras_transformer.pretrained.read import read_checkpoint

pytest.importorskip("huggingface_hub")

NAME, COMMIT, OLD = "some-owner/tiny-bert", "c" * 40, "b" * 40
WEIGHTS, PYTORCH = "model.safetensors", "pytorch_model.bin"


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the hub's interface that a download uses."""

    protocol_version = "HTTP/1.1"
    revisions = {"main": COMMIT, "v1": OLD, COMMIT: COMMIT, OLD: OLD}

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if parts[:2] == ["api", "models"] and "/".join(parts[2:4]) == NAME:
            return self.describe(*parts[4:6])
        if "/".join(parts[:2]) == NAME and parts[2] == "resolve":
            return self.send_file(parts[3], "/".join(parts[4:]))
        return self.send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def describe(self, what="revision", revision="main"):
        commit = self.revisions.get(revision)
        if commit is None:
            return self.send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        files = self.server.files
        if what == "tree":
            content = [
                {"type": "file", "path": name, "size": len(body), "oid": tag(body)}
                for name, body in files.items()
            ]
        else:
            content = {"id": NAME, "sha": commit, "siblings": [{"rfilename": x} for x in files]}
        return self.send(200, json.dumps(content).encode(), {})

    def send_file(self, revision, name):
        body = self.server.files.get(name)
        commit = self.revisions.get(revision)
        if body is None or commit is None:
            return self.send(404, b"", {"X-Error-Code": "EntryNotFound"})
        headers = {"ETag": f'"{tag(body)}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        begin, status = 0, 200
        if asked := self.headers.get("Range"):
            begin, status = int(asked.removeprefix("bytes=").split("-")[0]), 206
            headers["Content-Range"] = f"bytes {begin}-{len(body) - 1}/{len(body)}"
        if self.command == "GET":
            self.server.sent.append((name, begin))
        broken = self.server.broken > 0 and name == WEIGHTS and self.command == "GET"
        self.server.broken -= broken
        if broken:
            self.wait_for_others()
        return self.send(status, body[begin:], headers, broken)

    def wait_for_others(self):
        """Waits until the two other files of a download, which come at once, are in the cache."""
        for _ in range(3000):
            if len([*self.server.cache.glob("models--*/snapshots/*/*")]) >= 2:
                return
            threading.Event().wait(0.01)  # tests replace time.sleep

    def send(self, status, body, headers, broken=False):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[: len(body) // 2 * (self.server.broken == 0)] if broken else body)
        if broken:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments):
        pass


def tag(body):
    return hashlib.sha1(body).hexdigest()


def pytorch_file(folder, content):
    """Returns a file of PyTorch with the tensors of a file in the format safetensors."""
    pytorch_files.save(folder / PYTORCH, safetensors.numpy.load(content))
    return (folder / PYTORCH).read_bytes()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The hub with one repository, and a cache of its own."""
    bert_folders.write_folder(tmp_path / "original")
    files = {path.name: path.read_bytes() for path in (tmp_path / "original").iterdir()}
    files["modeling_evil.py"] = b"raise SystemExit('executed')"
    files[PYTORCH] = pytorch_file(tmp_path, files[WEIGHTS])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.sent, server.broken = files, [], 0
    server.cache = tmp_path / "cache"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    from huggingface_hub import constants

    endpoint = f"http://127.0.0.1:{server.server_port}"
    files_of = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files_of)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)  # bytes, the unit of resuming
    monkeypatch.chdir(tmp_path)
    yield types.SimpleNamespace(state=server, original=tmp_path / "original", endpoint=endpoint)
    server.shutdown()
    server.server_close()


def weights(model):
    return [np.array(weight) for weight in model.weights]


def test_a_repository_is_the_same_as_its_folder(server):
    expected = read_checkpoint(server.original)
    found = read_checkpoint(NAME)
    for ours, theirs in zip(weights(found.model), weights(expected.model), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    origin = {**expected.origin, "name": NAME, "repository": NAME, "revision": COMMIT}
    assert found.origin == origin
    fetched = {name for name, _ in server.state.sent}
    assert WEIGHTS in fetched and not fetched & {"modeling_evil.py", PYTORCH}
    server.state.sent.clear()
    read_checkpoint(NAME)
    assert server.state.sent == []  # from the cache


def test_an_interrupted_file_is_continued(server, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between attempts of the library
    server.state.broken = 1
    read_checkpoint(NAME)
    begins = [begin for name, begin in server.state.sent if name == WEIGHTS]
    assert len(begins) == 2 and begins[0] == 0 < begins[1]


def test_complete_files_are_kept_after_a_failure(server, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.state.broken = 100
    with pytest.raises(ValueError, match=rf"^{NAME} could not be downloaded, .* kept") as error:
        read_checkpoint(NAME)
    assert "\n" not in str(error.value)
    server.state.broken = 0
    server.state.sent.clear()
    read_checkpoint(NAME)
    assert {name for name, _ in server.state.sent} == {WEIGHTS}


def test_a_revision_is_chosen_and_recorded(server):
    assert read_checkpoint(NAME, revision="v1").origin["revision"] == OLD
    with pytest.raises(ValueError, match=rf"^{NAME} has no revision 'v2': name a branch, a tag or"):
        read_checkpoint(NAME, revision="v2")
    with pytest.raises(ValueError, match="`revision` has no effect on files"):
        read_checkpoint(server.original, revision="v1")
    with pytest.raises(ValueError, match="There is no such folder"):
        read_checkpoint(server.original / "none", revision="v1")


def test_what_is_not_there_is_named_in_one_line(server):
    with pytest.raises(ValueError, match=r"^nobody/nothing is neither a folder nor a repository"):
        read_checkpoint("nobody/nothing")
    del server.state.files[WEIGHTS], server.state.files[PYTORCH]
    message = rf"^{NAME} must contain weights in {WEIGHTS} or {PYTORCH}\. It contains neither\.$"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(NAME)


def test_weights_of_pytorch_are_downloaded_if_there_are_no_others(server):
    expected = weights(read_checkpoint(server.original).model)
    del server.state.files[WEIGHTS]
    others = {"onnx/pytorch_model.bin", "pytorch_model.fp16.bin", "pytorch_model_old.bin"}
    server.state.files |= dict.fromkeys(others, b"not read")
    server.state.sent.clear()
    found = read_checkpoint(NAME, revision="v1")
    for ours, theirs in zip(weights(found.model), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    fetched = {name for name, _ in server.state.sent}
    assert PYTORCH in fetched and not {"modeling_evil.py", *others} & fetched
    server.state.sent.clear()
    read_checkpoint(NAME, revision="v1")
    assert server.state.sent == []  # from the cache


@pytest.mark.parametrize("name", ["model-00001-of-00001.bin", "pytorch_model-00001-of-00001.bin"])
def test_the_files_of_an_index_of_pytorch_are_downloaded(server, name):
    expected = weights(read_checkpoint(server.original).model)
    tensors = safetensors.numpy.load(server.state.files.pop(WEIGHTS))
    server.state.files[name] = server.state.files.pop(PYTORCH)
    places = {**dict.fromkeys(tensors, name), "a": "../secret.bin", "b": "*.bin"}
    server.state.files |= {"secret.bin": b"", f"{PYTORCH}.index.json": index(places)}
    server.state.sent.clear()
    with pytest.raises(ValueError, match=r"must name files in its own folder"):
        read_checkpoint(NAME)
    fetched = {file for file, _ in server.state.sent}
    assert name in fetched and "secret.bin" not in fetched
    server.state.files[f"{PYTORCH}.index.json"] = index(dict.fromkeys(tensors, name))
    found = read_checkpoint(NAME, revision="v1")
    for ours, theirs in zip(weights(found.model), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def index(places):
    return json.dumps({"weight_map": places}).encode()


def test_an_index_of_safetensors_is_enough(server):
    server.state.files[f"{WEIGHTS}.index.json"] = index({"a": "model-1.safetensors"})
    del server.state.files[WEIGHTS]
    assert not (hub.find_checkpoint(NAME).path / PYTORCH).exists()


def test_the_layers_of_a_sentence_encoder_come_along(server):
    """A linear layer with weights of PyTorch, beside an encoder in the format safetensors."""
    for name in ("config.json", PYTORCH, "secret.bin"):
        server.state.files[f"2_Dense/{name}"] = b"{}"
        server.state.files[f"dense/{name}"] = b"{}"
    server.state.files["3_Dense/config.json"] = b"{}"
    server.state.files["3_Dense/model.safetensors"] = b""
    server.state.files[f"3_Dense/{PYTORCH}"] = b"twice"
    folder = hub.find_checkpoint(NAME).path
    assert (folder / "2_Dense" / PYTORCH).exists() and (folder / "dense" / PYTORCH).exists()
    assert not (folder / PYTORCH).exists() and not (folder / "3_Dense" / PYTORCH).exists()
    assert not (folder / "2_Dense" / "secret.bin").exists()


@pytest.mark.slow
def test_the_command_converts_a_repository(server):
    done = CliRunner().invoke(cli, ["convert", "hf", NAME, "runs/bert"])
    assert done.exit_code == 0, done.output
    run = Run("runs/bert")
    assert run.read_origin()["revision"] == COMMIT and run.load_model() is not None
    texts = bert_folders.TEXTS
    assert from_pretrained(NAME)(texts) == from_pretrained(server.original)(texts)


def test_without_the_library_a_name_is_no_repository(server, monkeypatch):
    monkeypatch.setattr(hub, "LIBRARY", "no_such_library")
    with pytest.raises(ValueError, match="`hf download .* downloads it"):
        read_checkpoint(NAME)
    with pytest.raises(ValueError, match="`revision` needs the package"):
        read_checkpoint(NAME, revision="v1")
