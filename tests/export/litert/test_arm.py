"""A file on emulated ARM processors: the decoding loop gives the same results as here."""

import itertools
import json
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest
from arm import Arm, UnavailableError, prepare
from exporting import asked
from marks import long

from keras_transformer import Beam
from keras_transformer.export import LiteRTOptions, export_litert

pytest.importorskip("ai_edge_litert")
pytestmark = pytest.mark.slow

# The program of a phone: runs every signature of the files on every source.
PROGRAM = """
import json, platform, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
answers, kernels = {}, OpResolverType[sys.argv[1]]
for path in sys.argv[3:]:
    interpreter = Interpreter(path, experimental_op_resolver_type=kernels)
    for name in interpreter.get_signature_list():
        run = interpreter.get_signature_runner(name)
        inputs = run.get_input_details()
        rows = answers[f"{path} {name}"] = []
        for ids in json.loads(sys.argv[2]):
            source = np.zeros(inputs["source"]["shape"], np.int32)
            source[0, : len(ids)] = ids
            settings = {"max_length": np.array([20], np.int32),
                        "length_penalty": np.array([1.0], np.float32)}
            settings = {key: value for key, value in settings.items() if key in inputs}
            outputs = run(source=source, **settings)
            rows.append([outputs["tokens"].tolist(), outputs["score"].ravel().tolist()])
print(json.dumps([platform.machine(), answers]))
"""
# LiteRT has different kernels for processors with NEON only, as in the first 64-bit phones
# (cortex-a53), with int8 dot products, as in phones since 2018 (cortex-a76), and with int8 matrix
# products, as in today's phones and servers (neoverse-v1).
BOUNDS = {"none": 1e-5, "int8": 2e-4, "int4": 2e-4}


@pytest.fixture(scope="module")
def arm():
    """The emulator. Without it the tests are skipped, or fail if `.ci/run` has prepared it."""
    try:
        return Arm(prepare())
    except UnavailableError as error:
        reason = f"ARM is not tested: {error}"
    if os.environ.get("KERAS_TRANSFORMER_REQUIRE_ARM"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def files(arm, translator, sentences, tmp_path_factory):
    """A file in float32, one in int8 and one in int4, each with greedy search and a beam."""
    folder, paths = tmp_path_factory.mktemp("arm"), {}
    for quantize in BOUNDS:
        paths[quantize] = folder / f"{quantize}.tflite"
        options = {"lengths": [20], "search": Beam(4), "n_best": 2}
        export_litert(
            translator, paths[quantize], sentences, **asked(LiteRTOptions, quantize, **options)
        )
    return paths


@pytest.fixture(scope="module")
def arguments(files, translator, sentences):
    """The ids of every other phrase, and the files."""
    rows = translator.source_tokenizer.encode(sentences[::2]).to_list()
    return [json.dumps([ids for ids in rows if 1 < len(ids) <= 20]), *map(str, files.values())]


@pytest.fixture(scope="module")
def local_outputs(arguments):
    """The outputs on this processor."""
    command = [sys.executable, "-c", PROGRAM, "AUTO", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)[1]


@pytest.mark.parametrize("processor", [long("cortex-a53"), long("cortex-a76"), "neoverse-v1"])
def test_arm_gives_the_same_tokens_and_scores(arm, files, arguments, local_outputs, processor):
    machine, there = json.loads(arm.python(processor, PROGRAM, "AUTO", *arguments))
    assert machine == "aarch64"
    for quantize, path in files.items():
        for name in ("greedy_1x20", "beam4_1x20"):
            ours, theirs = (answers[f"{path} {name}"] for answers in (local_outputs, there))
            assert [tokens for tokens, _ in theirs] == [tokens for tokens, _ in ours]
            np.testing.assert_allclose(
                np.array([scores for _, scores in theirs]),
                np.array([scores for _, scores in ours]),
                rtol=0, atol=BOUNDS[quantize], err_msg=f"{quantize}, {name}",
            )  # fmt: skip


@pytest.mark.parametrize("processor", [long("cortex-a53"), "cortex-a76"])
def test_int4_gives_the_same_tokens_without_xnnpack(
    arm, files, arguments, local_outputs, processor
):
    """LiteRT's own kernels for int4, which round inputs to other steps, have two forms on ARM."""
    kernels, path = "BUILTIN_WITHOUT_DEFAULT_DELEGATES", files["int4"]
    _, there = json.loads(arm.python(processor, PROGRAM, kernels, arguments[0], str(path)))
    for name in ("greedy_1x20", "beam4_1x20"):
        ours, theirs = (answers[f"{path} {name}"] for answers in (local_outputs, there))
        assert [tokens[0] for tokens, _ in theirs] == [tokens[0] for tokens, _ in ours]
        differences = [abs(one[1][0] - two[1][0]) for one, two in zip(ours, theirs, strict=True)]
        assert 0 < max(differences) < 0.05


def test_the_comparison_distinguishes_the_quantisations(files, local_outputs):
    """The phrases have different translations, and the scores of any two files differ."""
    outputs = [local_outputs[f"{path} greedy_1x20"] for path in files.values()]
    for ours, theirs in itertools.combinations(outputs, 2):
        assert len(ours) > 15 and len({str(tokens) for tokens, _ in ours}) > 12
        differences = [abs(one[1][0] - two[1][0]) for one, two in zip(ours, theirs, strict=True)]
        assert np.median(differences) > 2 * max(BOUNDS.values())


@pytest.mark.parametrize("sent", [b"<html>Sign in</html>", lzma.compress(b"Package: qemu-user")])
def test_a_mirror_that_sends_something_else_is_reported(sent, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("arm._download", lambda url: sent)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(UnavailableError, match="the emulator cannot be installed"):
        prepare()
    assert not any((tmp_path / "keras_transformer").iterdir())
