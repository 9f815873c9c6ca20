"""Signatures of a .tflite file that take several sentences."""

import collections
import functools
import json
import types

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from litert_files import untrained_translator

from keras_transformer import Translator
from keras_transformer.cli import main as command_line
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import searches
from keras_transformer.export.litert.check import require_rows_as_alone
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.plan import TOKENS, answer_cost, plan, search_cost
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.pipelines import TextGenerator
from keras_transformer.text.tokenizers import Tokenizers

SENTENCES = [f"{word} {number}" + " days" * (number % 3) for word in ("in", "for", "after")
             for number in range(11)][:32]  # fmt: skip


def signatures(batch_sizes, lengths):
    return [FixedSignature(f"{b}x{s}", b, s, 64) for s in lengths for b in batch_sizes]


def calls(lengths, batch_sizes, source_lengths, cost=search_cost):
    """Returns the calls of a plan, each of which must hold its sources."""
    planned = plan(lengths, signatures(batch_sizes, source_lengths), cost)
    numbers = [number for _, chosen in planned for number in chosen]
    assert sorted(numbers) == list(range(len(lengths)))
    for signature, chosen in planned:
        assert 1 <= len(chosen) <= signature.batch_size
        assert all(lengths[number] <= signature.source_length for number in chosen)
    return dict(collections.Counter(signature.name for signature, _ in planned))


def test_a_full_batch_is_one_call():
    lengths = [3 + number % 40 for number in range(32)]
    assert calls(lengths, (1, 32), (16, 32, 64)) == {"32x64": 1}
    assert calls(sorted(lengths) * 2, (1, 32), (16, 32, 64)) == {"32x64": 1, "32x32": 1}
    assert calls([5] * 31, (1, 32), (16, 32, 64)) == {"32x16": 1}


def test_few_sentences_are_not_padded_to_a_large_batch():
    assert calls([5] * 8, (1, 32), (16, 64)) == {"1x16": 8}
    assert calls([5] * 33, (1, 32), (16, 64)) == {"32x16": 1, "1x16": 1}
    assert calls([5] * 7, (1, 4, 32), (16,)) == {"4x16": 2}
    assert calls([5] * 2, (32,), (16,)) == {"32x16": 1}


def test_a_single_sentence_gets_the_shortest_signature_that_holds_it():
    assert calls([3, 16, 17, 64, 40], (1,), (16, 32, 64)) == {"1x16": 2, "1x32": 1, "1x64": 2}
    assert calls([], (1, 32), (16, 64)) == {}


def test_an_answer_in_one_pass_costs_its_tokens():
    """A search pads short sources to share a batch; an answer does not."""
    lengths, shapes = [64, 5, 5, 5], ((1, 4), (8, 64))
    assert calls(lengths, *shapes) == {"4x64": 1}
    assert calls(lengths, *shapes, answer_cost) == {"1x64": 1, "4x8": 1}
    assert calls([64, 60, 60, 5], *shapes, answer_cost) == {"1x64": 3, "1x8": 1}
    assert calls([64, 60, 60, 60], *shapes, answer_cost) == {"4x64": 1}, "one call costs less"


def least_cost(left, batch_sizes, sizes):
    """Returns the lowest cost of all divisions of sources, longest first, into calls."""
    if not left:
        return 0
    width = min(size for size in sizes if size >= left[0])
    return min(
        rows * width + TOKENS + least_cost(left[rows:], batch_sizes, sizes) for rows in batch_sizes
    )


def test_a_plan_costs_the_least_of_all_divisions():
    random = np.random.default_rng(1)
    shapes = (1, 3, 4), (8, 16, 32)
    for _ in range(20):
        lengths = sorted(random.integers(1, 33, 7).tolist(), reverse=True)
        planned = plan(lengths, signatures(*shapes), answer_cost)
        assert sum(answer_cost(signature) for signature, _ in planned) == least_cost(
            lengths, *shapes
        )


@pytest.fixture(scope="module")
def translator(tokenizer):
    return untrained_translator(tokenizer)


@pytest.fixture(scope="module")
def file(translator, tmp_path_factory):
    pytest.importorskip("ai_edge_litert")
    path = tmp_path_factory.mktemp("batches") / "x.tflite"
    export_litert(translator, path, SENTENCES, LiteRTOptions(lengths=[8, 12], batch_sizes=[1, 32]))
    return path


@pytest.mark.long
@pytest.mark.slow
def test_the_command_translates_a_file_of_32_lines_in_one_call(
    file, translator, tmp_path, monkeypatch
):
    ran = []
    run = LiteRTTranslator._run

    def record(self, signature, sources):
        ran.append((signature.name, len(sources)))
        return run(self, signature, sources)

    monkeypatch.setattr(LiteRTTranslator, "_run", record)
    assert len(SENTENCES) == 32
    lines = "".join(f"{sentence}\n" for sentence in SENTENCES)
    done = CliRunner().invoke(command_line.cli, ["translate", str(file)], input=lines)
    assert done.exit_code == 0, done.output
    assert [rows for _, rows in ran] == [32]
    expected = translator.answer_batch(SENTENCES)
    assert done.stdout.splitlines() == [" ".join(output.text.splitlines()) for output in expected]
    scores = [output.score for output in LiteRTTranslator(file).answer_batch(SENTENCES)]
    assert scores == pytest.approx([output.score for output in expected], abs=1e-4)


@pytest.mark.slow
def test_a_batch_with_swapped_rows_is_detected(translator, tmp_path, monkeypatch):
    """In a quantised file, without any other option."""
    pytest.importorskip("ai_edge_litert")
    find = searches._find

    def mixed_up(model, beam, stages, signature, *inputs, **numbers):
        found = find(model, beam, stages, signature, *inputs, **numbers)
        if signature.batch_size == 1:
            return found
        order = [*range(1, signature.batch_size), 0]
        rows = (None if value is None else tf.gather(value, order) for value in found)
        return found._make(rows)

    monkeypatch.setattr(searches, "_find", mixed_up)
    message = "x.tflite, greedy_8x12: the output for a sentence differs in a batch from"
    with pytest.raises(ExportError, match=message):
        export_litert(
            translator,
            tmp_path / "x.tflite",
            SENTENCES,
            LiteRTOptions("int8", lengths=[12], batch_sizes=[1, 8], min_agreement=0),
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change, refused", [(0.0, False), (1e-4, False), (0.2, True), (np.nan, True)]
)
def test_scores_in_a_batch_equal_those_of_single_sentences(tokenizer, change, refused):
    def decode(sources, signature=None):
        tokens = np.array([[[7, 8, 3, 0]]] * len(sources))
        scores = np.full((len(sources), 1), -2.0)
        scores[1:] += change
        return tokens, scores

    loaded = types.SimpleNamespace(
        tokenizers=Tokenizers.of(tokenizer),
        max_length=12,
        signatures=signatures((1, 4), (12,)),
        decode=decode,
        pipeline=Translator,
    )
    if not refused:
        return require_rows_as_alone(loaded, SENTENCES, "x.tflite")
    with pytest.raises(ExportError, match=r"x.tflite, 4x12: .*100.0 % .* scores differ by up to"):
        require_rows_as_alone(loaded, SENTENCES, "x.tflite")


def test_prompts_in_a_batch_have_one_length(tokenizer):
    """In int8, tokens of the one pass that reads prompts are rounded otherwise than later ones."""
    batches = []

    def decode(sources, signature=None):
        batches.append({len(row) for row in sources})
        return np.array([[[7, 8, 3, 0]]] * len(sources)), np.full((len(sources), 1), -2.0)

    loaded = types.SimpleNamespace(
        tokenizers=Tokenizers.of(tokenizer),
        max_length=12,
        signatures=signatures((1, 4), (12,)),
        decode=decode,
        pipeline=TextGenerator,
    )
    require_rows_as_alone(loaded, ["a", "a b c", "b", "c a b"], "x.tflite")
    assert batches and all(len(lengths) == 1 for lengths in batches)
    loaded.pipeline = Translator
    require_rows_as_alone(loaded, ["a", "a b c", "b", "c a b"], "x.tflite")
    assert any(len(lengths) > 1 for lengths in batches)


class Opened(Translator):
    def __init__(self, max_length):
        self.opened_with = max_length


def test_options_of_the_command_reach_the_export(tmp_path, monkeypatch):
    ran = []

    @functools.wraps(export_litert)
    def record(translator, path, sentences, options, **data):
        ran.append((translator, options))
        return {"agreement": 1.0, "bytes": 1}

    monkeypatch.setattr("keras_transformer.export.litert.export.export_litert", record)
    monkeypatch.setattr(
        "keras_transformer.tasks.open_run",
        lambda run, max_length=None: Opened(max_length),
    )
    (tmp_path / "in.txt").write_text("in 3 days\n")
    (tmp_path / "config.toml").write_text(
        '[data]\nsource = "cldr"\nsource_language = "en"\ntarget_language = "fr"\n'
    )

    def export(*options):
        arguments = ["export", "litert", tmp_path, tmp_path / "x.tflite"]
        arguments += ["--sentences", tmp_path / "in.txt", "--json", *options]
        done = CliRunner().invoke(command_line.cli, [str(argument) for argument in arguments])
        assert json.loads(done.stdout)["agreement"] == 1, done.output
        return ran.pop()

    opened, options = export()
    assert (opened.opened_with, options.lengths, options.batch_sizes) == (None, None, (1,))
    assert (options.source_language, options.target_language) == ("en", "fr")
    opened, options = export("--batch-sizes", "1,32", "--lengths", "16,32,40", "--max-length", 40)
    assert opened.opened_with == 40
    assert (options.lengths, options.batch_sizes) == ((16, 32, 40), (1, 32))
    (tmp_path / "config.toml").unlink()
    _, options = export()
    assert options.source_language is options.target_language is None
