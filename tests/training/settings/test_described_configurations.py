"""Settings that describe the configuration of a converted checkpoint have this configuration."""

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.mixers import CrossAttention
from keras_transformer.training.converted import settings_of
from keras_transformer.training.settings.toml import load_settings, save_settings


@pytest.mark.parametrize(
    "options",
    [
        {"decoder": {"attention_bias": ["query"]}},
        {"decoder": {"mixer": "ssru", "attention_bias": ["query", "key"]}},
        {"num_heads": 4, "cross_attention": CrossAttention(num_heads=8, dropout=0.1)},
        {"attention_bias": ["key"]},
        {"mixer": {"window": 3}},
        {"decoder": "ssru", "cross_attention": {"num_heads": 4}},
    ],
    ids=str,
)
def test_settings_describe_attention_in_every_form(options, tmp_path):
    config = TransformerConfig(vocab_size=50, **options)
    assert config != TransformerConfig(vocab_size=50)
    settings = settings_of(config, None)
    assert settings.config(vocab_size=50) == config
    save_settings(settings, tmp_path / "config.toml")
    assert load_settings(tmp_path / "config.toml").config(vocab_size=50) == config
