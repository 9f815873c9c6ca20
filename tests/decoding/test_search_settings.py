"""Settings of the searches: declared once, for their fields and for the options of the commands."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from predictors import LONGEST, Recurrent
from uncertain_models import sources

from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.cli.search_options import OPTIONS, line_of
from keras_transformer.decoding import Sample, SearchOptions
from keras_transformer.search_settings import NORMALIZATIONS, FieldSetting, settings_of

KINDS = {"beam": Beam, "greedy": Greedy, "sample": Sample}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_search_has_a_setting_and_an_option(kind):
    fields = [field.name for field in dataclasses.fields(KINDS[kind])]
    assert list(settings_of(KINDS[kind])) == fields
    assert sorted(kinds[kind] for kinds in OPTIONS.values() if kind in kinds) == sorted(fields)
    options = {name for command in ("predict", "translate") for name in params(command)}
    assert set(OPTIONS) <= options


def params(command):
    return [param.name for param in cli.commands[command].params]


def test_the_help_of_an_option_is_the_help_of_its_field():
    text = " ".join(CliRunner().invoke(cli, ["translate", "--help"]).output.split())
    for kind, search in KINDS.items():
        for setting in settings_of(search).values():
            help = " ".join(setting.help.split())
            assert help[1:].replace("- ", "-") in text.replace("- ", "-"), (kind, help)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_search_in_a_graph_divides_by_its_length_penalty(normalization):
    search = Beam(length_penalty=1.3, normalization=normalization)
    lengths = np.array([1, 2, 7, 40], "float32")
    in_graph = NORMALIZATIONS[normalization](tf.constant(lengths), tf.constant(1.3))
    expected = [search.penalty(int(length)) for length in lengths]
    np.testing.assert_allclose(tf.zeros(4) + in_graph, expected, rtol=1e-6)


def test_an_extra_length_bounds_nothing_where_a_predictor_reports_no_lengths():
    predictor = Recurrent()
    assert predictor.lengths(sources()) is None
    free, bounded = (
        Beam(3, extra_length=extra)(predictor, sources(), SearchOptions(cache_length=LONGEST))
        for extra in (None, 0)
    )
    np.testing.assert_array_equal(free.tokens, bounded.tokens)
    np.testing.assert_array_equal(free.scores, bounded.scores)


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        (FieldSetting("", least=2), 1, "an integer of at least 2"),
        (FieldSetting("", least=2), True, "an integer of at least 2"),
        (FieldSetting("", kind=float, least=0), float("inf"), "at least 0 and finite"),
        (FieldSetting("", kind=float, least=0, most=1), 1.5, "between 0 and 1"),
        (FieldSetting("", least=0, is_optional=True), -1, "an integer of at least 0, or None"),
        (FieldSetting("", least=1), tf.constant(3), "an integer of at least 1"),
        (FieldSetting("", least=0, shape=()), np.float32(-1), "an integer of at least 0"),
    ],
)
def test_a_setting_states_its_rule(setting, value, rule):
    with pytest.raises(ValueError, match=rf"^`x` must be {rule}\. Received: x="):
        setting.check("x", value)


def test_the_options_of_a_search_recreate_it():
    assert line_of(Greedy()) == "" and line_of(Greedy(5)) == " --greedy --max-output 5"
    assert line_of(Beam()) == " --beam 4"
    search = Beam(3, 0.8, "power", 2, None, 9, "narrow")
    assert line_of(search) == (
        " --beam 3 --length-penalty 0.8 --normalization power --min-length 2 --extra-length none"
        " --max-output 9 --stopping narrow"
    )
    assert line_of(Beam(2, 0.8, "none")) == " --beam 2 --normalization none"
