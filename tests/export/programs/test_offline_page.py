"""The page of `examples/browser` without a server, with the service worker `offline.js`."""

import shutil

import pytest
from browsers import close, copy_page, served

pytest.importorskip("ai_edge_litert")

REGISTER = """navigator.serviceWorker.register("offline.js")
    .then(() => navigator.serviceWorker.ready).then(() => true)"""


@pytest.fixture
def file(request, export):
    """A file of the small model, in the format that a test is for."""
    return export("none")[0] if request.param == ".tflite" else request.getfixturevalue("onnx_file")


@pytest.mark.parametrize(
    "file", [".tflite", pytest.param(".onnx", marks=pytest.mark.slow)], indirect=True
)
def test_the_second_visit_is_enough_to_work_without_a_server(file, tmp_path):
    (tmp_path / "site").mkdir()
    site = copy_page(tmp_path / "site")
    shutil.copy(file, site / f"model{file.suffix}")
    query = f"?model=model{file.suffix}"
    with served(site, tmp_path / "profile") as browser:
        assert browser.open(query) == "Ready." and browser.evaluate(REGISTER)
        assert browser.open(query) == "Ready."
        first = browser.translate("in 17 weeks")
        close(browser.server)
        assert browser.open(query) == "Ready."
        assert browser.translate("in 17 weeks") == first and first["text"] == "in 17 Wochen"
        missing = "fetch('style.css?new').then(({ ok }) => ok, ({ name }) => name)"
        assert browser.evaluate(missing) == "TypeError", "it was never stored"
