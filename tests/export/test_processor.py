import re

from keras_transformer.export import processor
from keras_transformer.export.processor import describe_processor

INTEL = """processor\t: 0
model name\t: Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz
flags\t\t: fpu sse4_2 avx2 fma

processor\t: 1
model name\t: another
flags\t\t: avx512f
"""


def described(tmp_path, text):
    (tmp_path / "cpuinfo").write_text(text)
    return describe_processor(tmp_path / "cpuinfo")


def test_its_name_and_its_instructions_for_products(tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "AVX2")
    assert described(tmp_path, INTEL) == {
        "name": "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz",
        "instructions": ["avx2"],
        "limited_by": {"CT2_FORCE_CPU_ISA": "AVX2"},
    }
    fast = INTEL.replace("avx2 fma", "avx2 avx512f avx512_vnni avx512_bf16 fma")
    expected = ["avx2", "avx512f", "avx512_vnni", "avx512_bf16"]
    assert described(tmp_path, fast)["instructions"] == expected
    arm = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\n"
    assert described(tmp_path, arm)["instructions"] == ["asimddp", "i8mm"]


def test_systems_without_a_description(tmp_path, monkeypatch):
    """macOS and Windows have no such file."""
    monkeypatch.setattr(processor.platform, "processor", lambda: "")
    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    described = describe_processor(tmp_path / "nowhere")
    assert (described["name"], described["instructions"]) == ("arm64", [])


def test_this_processor_has_a_name():
    assert re.search(r"\w", describe_processor()["name"])
