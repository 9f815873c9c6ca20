"""Tables of options that a run inherits from the one that it starts from."""

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.config.parts import PARTS
from keras_transformer.training.loop.start import _sizes
from keras_transformer.training.settings.toml import SettingsError, load_settings

DATA = '[data]\nsource = "cldr"\n'


@pytest.fixture
def inherited(tmp_path):
    """A function from the [model] of a run and that of another, which starts from it, to both."""

    def load(theirs, ours):
        run = tmp_path / "first"
        run.mkdir()
        (run / "config.toml").write_text(f"{DATA}[model]\n{theirs}\n")
        (run / "model.keras").touch()
        config = tmp_path / "second.toml"
        config.write_text(f'{DATA}[model]\nstart_from = "first"\n{ours}\n')
        return load_settings(run / "config.toml").config(), load_settings(config).config()

    return load


@pytest.mark.parametrize(
    ("theirs", "ours", "whole"),
    [
        ("mixer = { num_heads = 2, window = 3 }", "mixer = { window = 5 }",
         "mixer = { num_heads = 2, window = 5 }"),
        ("mixer = { num_heads = 2, dropout = 0.1 }", "attention_dropout = 0.2",
         "mixer = { num_heads = 2, dropout = 0.2 }"),
        ("num_heads = 2\nattention_dropout = 0.1", "mixer = { dropout = 0.2 }",
         "num_heads = 2\nattention_dropout = 0.2"),
        ("mixer = { num_heads = 2, dropout = 0.1 }", "attention_dropout = 0.2\n"
         "mixer = { window = 3 }", "mixer = { num_heads = 2, dropout = 0.2, window = 3 }"),
        ("mixer = { num_heads = 2, dropout = 0.1 }", 'mixer = { kind = "self_attention", '
         "dropout = 0.2 }", "mixer = { num_heads = 2, dropout = 0.2 }"),
        ("mixer = { window = 3 }", 'mixer = "self_attention"', ""),
        ("cross_attention = { num_heads = 2 }", "cross_attention = { dropout = 0.1 }",
         "cross_attention = { num_heads = 2, dropout = 0.1 }"),
        ('position = { kind = "rotary", base = 500.0 }', 'position = { kind = "alibi" }',
         'position = { kind = "alibi" }'),
        ('position = { kind = "rotary", base = 500.0 }', 'position = "rotary"',
         'position = "rotary"'),
        ('position = "rotary"', 'position = { kind = "rotary", base = 500.0 }',
         'position = { kind = "rotary", base = 500.0 }'),
        ('normalization = "rms"', "normalization = { epsilon = 1e-3 }",
         'normalization = { kind = "rms", epsilon = 1e-3 }'),
        ('decoder = "ssru"\nnum_heads = 2', "decoder = { dropout = 0.2 }",
         'num_heads = 2\ndecoder = { mixer = "ssru", dropout = 0.2 }'),
        ("decoder = { mixer = { num_heads = 2, window = 3 }, d_ff = 5 }",
         "decoder = { mixer = { window = 5 } }",
         "decoder = { mixer = { num_heads = 2, window = 5 }, d_ff = 5 }"),
        ("decoder = { d_ff = 5, num_heads = 2 }", 'decoder = "self_attention"', ""),
    ],
)  # fmt: skip
def test_an_option_in_a_table_changes_only_that_option(inherited, theirs, ours, whole, tmp_path):
    before, config = inherited(theirs, ours)
    (tmp_path / "whole.toml").write_text(f"{DATA}[model]\n{whole}\n")
    assert config == load_settings(tmp_path / "whole.toml").config() != before


def test_dropout_of_attention_may_differ_in_every_form():
    def compared(ours, theirs):
        own = {"num_heads": 2, "cross_attention": {"num_heads": 4}}
        configs = [TransformerConfig(**{**own, **options}) for options in (ours, theirs)]
        return _sizes(*configs, PARTS)

    table = {"cross_attention": {"num_heads": 4, "dropout": 0.3}}
    same = {"cross_attention": {"dropout": 0.3, "num_heads": 2}}
    none = {"cross_attention": None}
    for ours, theirs in (({"attention_dropout": 0.2}, {}), (table, {}), (same, none), (none, same),
                         ({"mixer": {"dropout": 0.1}}, {})):  # fmt: skip
        here, there = compared(ours, theirs)
        assert here == there and "num_heads" in here
    here, there = compared({}, {"cross_attention": {"num_heads": 8}})
    assert {key for key in here if here[key] != there[key]} == {"decoder.cross_attention"}
    here, there = compared({}, none)
    assert {key for key in here if here[key] != there[key]} == {"decoder.cross_attention"}
    here, there = compared({"num_heads": 8, **none}, none)
    assert {key for key in here if here[key] != there[key]} == {"num_heads"}


def test_a_wrong_kind_in_a_table_is_reported(inherited):
    with pytest.raises(SettingsError, match=r"second.toml: \[model\] `mixer` must be one of "):
        inherited("num_heads = 2", "mixer = { kind = [1] }")
