"""Rules for outputs: declared once, held by heads, stored by runs, and refused where unknown."""

import dataclasses
import json
import pathlib
import re

import pytest

import keras_transformer
from keras_transformer import TransformerConfig
from keras_transformer.config import OldConfigurationError
from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import Vocabulary
from keras_transformer.decoding.generation import Generation
from keras_transformer.models import LanguageModelConfig, SpeechTransformerConfig
from keras_transformer.search_settings import KINDS
from keras_transformer.tasks.run import Run

SIZES = {"vocab_size": 20, "num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 8}
# Settings of several searches, each declared by a function.
SHARED = ("max_length", "max_length_ratio", "repetition_penalty")
ROOT = pathlib.Path(keras_transformer.__file__).parents[1]


def test_the_rules_of_a_configuration_reach_the_predictor_whole():
    config = TransformerConfig(**SIZES, banned_ids=[5], end_ids=[6, 7], max_length_ratio=2.0)
    rules = OutputRules(banned_ids=(5,), end_ids=(6, 7), max_length_ratio=2.0)
    assert config.head.rules == rules == Vocabulary.of(config).rules
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert dataclasses.replace(config, banned_ids=()).head.rules.end_ids == (6, 7)


def test_a_head_takes_the_rules_that_it_accepts_and_refuses_others():
    rules = OutputRules(banned_ids=(5,), end_ids=(6,), prompt_ids=(7,), start_id=4)
    configured = [
        Generation(rules=rules).configure(kind(**SIZES))
        for kind in (LanguageModelConfig, TransformerConfig, SpeechTransformerConfig)
    ]
    assert [config.head.rules for config in configured] == [
        OutputRules(end_ids=(6,)),
        OutputRules(end_ids=(6,), banned_ids=(5,)),
        OutputRules(end_ids=(6,), banned_ids=(5,), prompt_ids=(7,)),
    ]
    assert {config.tokens.bos_id for config in configured} == {4}
    with pytest.raises(ValueError, match=r"^A `\w+` has the rules end_ids\. Received: OutputRules"):
        dataclasses.replace(LanguageModelConfig(**SIZES).head, rules=rules)


def test_a_file_with_rules_of_an_earlier_version_is_refused(tmp_path):
    run = Run(tmp_path)
    run.write_generation(Generation(rules=OutputRules(banned_ids=(3,))))
    assert run.read_generation().rules.banned_ids == (3,)
    run.generation.write_text(json.dumps({"search": None, "banned_ids": [3]}))
    message = "is from an earlier version, without `rules`: train the model again, or convert"
    with pytest.raises(ValueError, match=rf"^{re.escape(str(run.generation))} {message}"):
        run.read_generation()
    fields = TransformerConfig(**SIZES, max_length_ratio=2.0).to_dict()
    rules = fields["head"]["rules"]
    rules["length_factor"] = rules.pop("max_length_ratio")  # its name until then
    assert TransformerConfig.from_dict(fields).head.rules.max_length_ratio == 2.0
    del fields["head"]["rules"]
    with pytest.raises(OldConfigurationError, match="earlier version, without rules for outputs"):
        TransformerConfig.from_dict(fields)


def test_every_rule_and_every_setting_of_a_search_is_declared_once():
    """A declaration is a field of a dataclass with a help text."""
    kinds = (OutputRules, *KINDS.values())
    rules, *searches = ({field.name for field in dataclasses.fields(kind)} for kind in kinds)
    searches = set().union(*searches) - {*SHARED}
    assert len(rules) > 15 and len(searches) > 8
    texts = [path.read_text() for path in ROOT.joinpath("keras_transformer").rglob("*.py")]
    for names, function in ((rules, "option"), (searches, "setting")):
        line = re.compile(rf"^    (\w+): .+ = {function}\(", re.MULTILINE)
        declared = [name for text in texts for name in line.findall(text)]
        assert {name: declared.count(name) for name in names} == dict.fromkeys(names, 1)


def test_nothing_asks_a_configuration_which_options_it_has():
    folders = ("keras_transformer", "training", "export")
    paths = [path for folder in folders for path in ROOT.joinpath(folder).rglob("*.py")]
    assert len(paths) > 400
    asking = [path for path in paths if re.search(r"hasattr\([\w.]*config\b", path.read_text())]
    assert not asking, asking
