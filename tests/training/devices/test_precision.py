import pytest

from keras_transformer.training.devices.strategy import dtype_policy


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_an_explicit_policy_is_kept(policy):
    assert dtype_policy(policy) == policy


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse avx2 avx512f avx512_bf16 amx_tile", "mixed_bfloat16"),
        ("fp asimd i8mm bf16", "mixed_bfloat16"),
        ("fpu sse avx2 avx512f", "float32"),
    ],
)
def test_auto_is_bfloat16_if_the_processor_multiplies_it(tmp_path, monkeypatch, flags, expected):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"model name\t: Some CPU\nflags\t\t: {flags}\n")
    assert dtype_policy("auto", cpuinfo) == expected


def test_auto_is_float32_if_nothing_is_known(tmp_path):
    assert dtype_policy("auto", tmp_path / "missing") == "float32"


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        ("AVX2", "float32"),
        ("AVX512_CORE_VNNI", "float32"),
        ("AVX512_CORE_BF16", "mixed_bfloat16"),
        ("AVX512_CORE_AMX", "mixed_bfloat16"),
        ("DEFAULT", "mixed_bfloat16"),
    ],
)
def test_auto_respects_the_setting_of_onednn(tmp_path, monkeypatch, most, expected):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", most)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags\t\t: avx2 avx512f avx512_bf16\n")
    assert dtype_policy("auto", cpuinfo) == expected
