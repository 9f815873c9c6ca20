"""Output of `translate` with each of its options, from a run with an untrained model."""

import dataclasses
import io
import types

import numpy as np
import pytest
import sentencepiece
from click.testing import CliRunner
from pipelines import speech_recognizer
from uncertain_models import talkative

from keras_transformer import Beam, Greedy, TransformerConfig, Translator
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Sample
from keras_transformer.models import LanguageModelConfig
from keras_transformer.opening.lines import AlignedLines, LineFormat, PassLines, TextLines
from keras_transformer.pipelines import Alignment, Translation
from keras_transformer.tasks.memory import beam_memory
from keras_transformer.tokenizers import SentencePieceTokenizer

LINES = ["in 3 days", "", "in 12 weeks", "days", "in 3 days"]


@pytest.fixture(scope="module")
def translator():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["in 3 days", "in 12 weeks", "in 4 Tagen"] * 5),
        model_writer=model, vocab_size=25, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        minloglevel=2, model_type="bpe",
    )  # fmt: skip
    return Translator(
        talkative(vocab_size=25), SentencePieceTokenizer(model.getvalue()), max_length=9
    )


@pytest.fixture
def translate(translator, tmp_path, monkeypatch):
    """A function that takes options and returns the output lines for `LINES`."""

    def from_run(path, max_length=None):
        return Translator(translator.model, translator.tokenizers, max_length or 9)

    monkeypatch.setattr("keras_transformer.tasks.open_run", from_run)
    (tmp_path / "config.toml").touch()

    def run(*options):
        arguments = ["translate", str(tmp_path), *map(str, options)]
        done = CliRunner().invoke(cli, arguments, input="\n".join(LINES) + "\n")
        assert done.exit_code == 0, done.stderr
        return done.stdout.splitlines()

    return run


def rows(lines):
    return [line.split("\t") for line in lines]


@pytest.mark.slow
def test_every_input_line_gets_one_output_line(translate, translator):
    assert len(set(translate())) > 2
    assert translate() == translator(LINES)
    assert translate("--batch-size", 2) == translator(LINES)


@pytest.mark.slow
def test_scores_come_before_the_text(translate, translator):
    expected = [best.score for (best,) in translator.n_best(LINES, 1, Sample(temperature=0))]
    lines = rows(translate("--scores"))
    assert [text for _, text in lines] == translator(LINES)
    np.testing.assert_allclose([float(score) for score, _ in lines], expected, atol=2e-5)


@pytest.mark.slow
def test_n_best_lists_have_the_number_of_their_line(translate, translator):
    expected = [
        [str(number), f"{result.score:.5f}", result.text]
        for number, results in enumerate(translator.n_best(LINES, 3), start=1)
        for result in results
    ]
    assert rows(translate("--n-best", 3)) == expected
    assert {row[0] for row in expected} == {"1", "2", "3", "4", "5"}


@pytest.mark.long
@pytest.mark.slow
def test_every_beam_option_reaches_the_beam(translate, translator):
    options = {"length_penalty": 0.0, "min_length": 3, "extra_length": 2}
    expected = translator(LINES, Beam(3, **options))
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    assert translate("--beam", 3, *words) == expected
    expected = translator(LINES, Beam(3, normalization="average"))
    assert translate("--beam", 3, "--normalization", "average") == expected


@pytest.mark.long
@pytest.mark.slow
def test_samples_equal_those_of_python_for_any_batch_size(translate, translator):
    options = {"temperature": 1.5, "top_k": 9, "top_p": 0.9, "seed": 3}
    expected = translator(LINES, Sample(**options))
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    assert translate("--sample", *words) == translate("--sample", "--batch-size", 1, *words)
    assert translate("--sample", *words) == expected
    assert translate("--sample", "--temperature", 0, "--seed", 8) == translate()


def test_line_numbers_seed_the_samples_instead_of_the_order(translator):
    search = Sample(temperature=2.0)
    forward = translator(LINES, search)
    numbers = list(range(len(LINES)))[::-1]
    backward = translator.n_best(LINES[::-1], 1, search, numbers=numbers)
    assert [best.text for (best,) in backward[::-1]] == forward
    with pytest.raises(ValueError, match=r"one number for each sentence.*1 numbers, 5 sentences"):
        translator.n_best(LINES, 1, search, numbers=[0])


@pytest.mark.slow
def test_the_maximum_length_limits_the_output(translate, translator):
    short = Translator(translator.model, translator.tokenizers, max_length=4)
    assert translate("--max-length", 4) == short(LINES) != translator(LINES)


@pytest.mark.slow
def test_alignments_come_after_the_text(translate, translator):
    lines = rows(translate("--alignments"))
    assert [text for text, _ in lines] == translator(LINES)
    for (text, pairs), alignment in zip(lines, translator.align(LINES), strict=True):
        assert alignment.translation.text == text or not text
        expected = [f"{one}-{other}" for one, other in alignment.words()] if text else []
        assert pairs.split() == expected


def test_alignments_of_words_add_up_the_weights_of_their_tokens():
    """The two tokens of a word together attend more to one word than either attends to another."""
    weights = np.array(
        [
            [0.4, 0.0, 0.3, 0.3, 0.0],  # ▁a
            [0.3, 0.0, 0.0, 0.1, 0.6],  # b: the end is not a word
            [0.0, 0.9, 0.1, 0.0, 0.0],  # ▁ is not a word
            [0.1, 0.6, 0.1, 0.1, 0.1],  # c
            [0.0, 0.0, 0.0, 0.0, 1.0],  # the end
        ],
        "float32",
    )
    source = ["▁x", "▁y", "▁z", "w", "</s>"]
    target = ["▁a", "b", "▁", "c", "</s>"]
    alignment = Alignment(source, target, weights, Translation("ab c", 0.0, False))
    # "ab": x 0.7, y 0, zw 0.7 and then by hand 0.3 + 0.3 + 0.1; "c": y.
    assert alignment.words()[1] == (1, 1)
    weights[0, 3] += 0.1
    assert alignment.words() == [(2, 0), (1, 1)]
    assert Alignment(["</s>"], target, weights[:, :1], None).words() == []


def test_a_tab_in_a_text_does_not_start_a_field():
    result = Translation("a\tb\nc", -1.0, False)
    assert LineFormat().lines(1, [result]) == ["a\tb c"]
    assert LineFormat(scores=True).lines(1, [result]) == ["-1.00000\ta b c"]
    assert LineFormat(numbers=True, scores=True).lines(7, None) == ["7\t0.00000\t"]


@pytest.mark.slow
def test_files_replace_streams(translate, translator, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n")
    files = "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"
    assert translate(*files) == []
    assert (tmp_path / "out.txt").read_text().splitlines() == translator(LINES)


def test_an_output_file_is_complete_or_unchanged(translate, translator, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("in 3 days\n")
    (tmp_path / "out.txt").write_text("older\n")
    files = "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"

    def fail(*arguments):
        raise ValueError("no luck")

    monkeypatch.setattr(Translator, "n_best_batch", fail)
    with pytest.raises(AssertionError, match="Error: no luck"):
        translate(*files)
    assert (tmp_path / "out.txt").read_text() == "older\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "in.txt", "out.txt"]


@pytest.mark.parametrize(("together", "counts"), [(None, [3, 5]), (2, [2, 4, 5]), (9, [3, 5])])
def test_progress_moves_with_each_batch_of_recordings(together, counts):
    """A batch of Whisper's windows is full with fewer recordings than `batch_size`."""
    codec = types.SimpleNamespace(size=len, together=together)
    model = types.SimpleNamespace(codec=codec, answer_batch=lambda batch: [*batch])
    seen = []
    answers = PassLines(model)(range(5), ["a", "b", "c", "d", "e"], 3, seen.append)
    assert seen == counts and answers == [["a"], ["b"], ["c"], ["d"], ["e"]]
    padded, own = (speech_recognizer(pad_to_max_seconds=pad).codec for pad in (True, False))
    assert (padded.together, own.together) == (4, None)


@pytest.mark.parametrize(
    "lines",
    [TextLines(None), AlignedLines(None), TextLines(None, 2)],
    ids=["best", "aligned", "several"],
)
def test_lines_pass_progress_on(lines):
    """The counts come from the function that makes the batches."""

    class Pipeline:
        search = Greedy()

        def n_best(self, texts, n, search, batch_size, numbers, progress):
            progress(len(texts))
            return [[text] for text in texts]

        def answer(self, texts, batch_size, numbers, progress):
            progress(len(texts))
            return texts

        def align(self, texts, batch_size, progress):
            progress(len(texts))
            return texts

    seen, made = [], dataclasses.replace(lines, answering=Pipeline())
    assert made([1, 2], ["a", "b"], 2, seen.append) == [["a"], ["b"]]
    assert seen == [2]


def test_a_beam_that_does_not_fit_in_memory_is_an_error_with_its_size(translator, monkeypatch):
    """A single sentence may fit although a batch does not."""
    monkeypatch.setattr("keras_transformer.tasks.memory.available_memory", lambda: 1e5)
    monkeypatch.setattr("keras_transformer.tasks.generator.SMALL", 0)
    message = r"A beam of 20 for 5 sentences at a time needs about .* GB .*batch_size=5"
    with pytest.raises(ValueError, match=message):
        translator(LINES, Beam(20))
    assert len(translator(["in 3 days"], Beam(2))) == 1


def test_a_language_model_stores_no_source():
    fields = {"num_layers": 2, "vocab_size": 100}
    translating, writing = (
        beam_memory(config(**fields), 5, 4, 100)
        for config in (TransformerConfig, LanguageModelConfig)
    )
    heads = 2 * 2 * 8 * 64 * 100 * 5  # keys and values of the sources
    assert translating - writing == 4 * heads


@pytest.mark.parametrize("config", [TransformerConfig, LanguageModelConfig])
def test_the_memory_of_grouped_heads_is_that_of_their_keys_and_values(config):
    """A cache holds the 2 heads of keys and values, not the 8 heads of queries."""
    fields = {"num_layers": 3, "vocab_size": 100, "num_heads": 8, "d_model": 512}
    every, grouped = (
        beam_memory(config(**fields, num_key_value_heads=heads), 5, 4, 100) for heads in (None, 2)
    )
    copies = 2 * 4 + (config is TransformerConfig)  # two for each hypothesis; one of the source
    assert every - grouped == 4 * 3 * copies * 5 * 100 * (8 - 2) * 2 * 64


def test_the_memory_of_a_recurrent_decoder_depends_on_its_sources_only():
    configs = [TransformerConfig(num_layers=2, decoder=name) for name in ("self_attention", "ssru")]
    attending, recurrent = (
        [beam_memory(config, 5, size, length) for size, length in ((20, 100), (40, 100), (20, 200))]
        for config in configs
    )
    assert recurrent[0] < 0.4 * attending[0]
    assert recurrent[1] < 2 * recurrent[0] and attending[1] > 2 * attending[0]
    # Keys and values of the sources, with room for 100 more positions.
    heads = 2 * 2 * 8 * 64 * 100 * 5
    weights = 3 * 8 * 100 * 100  # attention weights over the sources
    assert recurrent[2] - recurrent[0] == 4 * (heads + weights)


def test_a_beam_wider_than_the_vocabulary_is_refused(translator):
    with pytest.raises(ValueError, match="at most the vocabulary's number of tokens, 25.*size=26"):
        translator(LINES, Beam(26))
