"""Models converted from Marian's own files, in CTranslate2."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from opus_releases import TEXTS, release, table_of

from keras_transformer import Beam, Greedy, Translator
from keras_transformer.cli.main import cli
from keras_transformer.export import export_ctranslate2
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.installation import install_hint
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.training.converted import write_converted

pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))
pytestmark = pytest.mark.slow

LONGEST = 24
SENTENCES = [text for text in TEXTS if text] + ["nine dogs", "a cat", "seven hills", "the mat ran"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A release whose unknown token is often the most probable one."""
    folder = tmp_path_factory.mktemp("opus")
    checkpoint = read_checkpoint(release(folder, table_of("source", "target")).path)
    bias = checkpoint.model.output_bias
    values = bias.numpy()
    values[1] += 5
    bias.assign(values)
    return write_converted(checkpoint, folder / "run").path


def test_greedy_search_is_that_of_the_run(run, tmp_path):
    translator = Translator.from_run(run, max_length=LONGEST)
    assert translator.model.config.head.starts_with_zeros
    report = export_ctranslate2(translator, tmp_path / "m", SENTENCES)
    assert report["agreement"] == 1 and report["score_difference"] < 1e-5
    assert report["beam_sentences"] == 0
    metadata = json.loads((tmp_path / "m" / "config.json").read_text())
    assert metadata["suppressed_ids"] == [1] and metadata["max_length_ratio"] == 3
    answers = open_ctranslate2(tmp_path / "m").answer_batch(SENTENCES)
    expected = translator.answer(SENTENCES)
    assert [best.text for best in answers] == [best.text for best in expected]
    scores = [[best.score for best in rows] for rows in (answers, expected)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    assert len({best.text for best in answers}) > 5
    # Without the rule, the outputs would differ.
    config = translator.model.config
    source = translator.source_tokenizer.encode(SENTENCES).to_tensor(config.tokens.pad_id).numpy()
    logits = translator.model({"source": source, "target": np.full((len(SENTENCES), 1), 71)})
    assert (np.argmax(logits, -1) == 1).any()


def test_a_beam_is_refused(run, tmp_path):
    """CTranslate2 would rank it by probabilities without the unknown token's."""
    translator = Translator.from_run(run, max_length=LONGEST)
    export_ctranslate2(translator, tmp_path / "m", SENTENCES[:2])
    message = r"must be greedy for .* `suppressed_ids`, with which .* For a beam, export the run to"
    with pytest.raises(ValueError, match=message):
        open_ctranslate2(tmp_path / "m", Beam(4, normalization="average", extra_length=None))
    command = ["translate", str(tmp_path / "m")]
    done = CliRunner().invoke(cli, [*command, "--beam", "4"], input="a dog\n")
    assert done.exit_code and "must be greedy for" in done.output
    done = CliRunner().invoke(cli, command, input="a dog\n")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == translator(["a dog"], search=Greedy())


@pytest.mark.long
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_without_the_rule_a_beam_is_that_of_the_run(run, tmp_path, penalty):
    translator = Translator.from_run(run, max_length=LONGEST)
    config = dataclasses.replace(translator.model.config, suppressed_ids=())
    model = type(translator.model)(config)
    model.set_weights(translator.model.get_weights())
    translator = translator.with_model(model)
    export_ctranslate2(translator, tmp_path / "m", SENTENCES)
    kind = "average" if penalty else "none"
    beam = Beam(4, length_penalty=penalty, normalization=kind, extra_length=None)
    answers = open_ctranslate2(tmp_path / "m", beam).answer_batch(SENTENCES)
    assert [x.text for x in answers] == [x.text for x in translator.answer(SENTENCES, search=beam)]
