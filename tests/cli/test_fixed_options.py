"""Options that an export cannot follow: the message says what it holds and what would help."""

import types

import click
import pytest
from pipelines import speech_recognizer

from keras_transformer import Beam, Translator
from keras_transformer.cli.fixed_options import refuse_fixed
from keras_transformer.cli.opened import check_silence
from keras_transformer.cli.predict import predict
from keras_transformer.export.formats import FORMATS
from keras_transformer.pipelines import (
    QuestionAnswerer,
    SpeechRecognizer,
    TextClassificationPipeline,
    TokenClassificationPipeline,
)
from keras_transformer.tasks.speech_recognition.silence import Silence

BEAM = Beam(4, length_penalty=0.6)
WORDS = (
    ("--glossary", __file__),
    ("--prefixes", __file__),
    ("--banned", __file__),
    ("--prefix", "a"),
)


def refusal(*words, **of_export):
    """Returns the message of `refuse_fixed` for the options of a `predict`."""
    context = predict.make_context("predict", ["x", *words])
    with context, pytest.raises(click.UsageError) as caught:
        refuse_fixed(path="x", **of_export)
    return caught.value.message


@pytest.mark.parametrize(
    ("words", "kind", "written", "message"),
    [
        (
            ("--stopping", "score"), Translator, BEAM,
            "--stopping has no effect on x: the export was written with beam 4, gnmt 0.6. Export "
            "the run again with --stopping.",
        ),
        (
            ("--max-output", "5"), Translator, None,
            "--max-output has no effect on x: the export was written with its own search. Export "
            "the run again with --max-output.",
        ),
        (
            ("--greedy",), None, None,
            "--greedy has no effect on x: the export was written with its own search. Export the "
            "run again with --greedy.",
        ),
        (
            ("--no-answer",), QuestionAnswerer, None,
            "--no-answer has no effect on x: an export has its run's settings. Open the run.",
        ),
        (
            ("--spans",), TokenClassificationPipeline, None,
            "--spans has no effect on x: an export has its run's settings. Open the run.",
        ),
        (
            ("--no-speech-threshold", "0.5"), SpeechRecognizer, None,
            "--no-speech-threshold has no effect on x: an export has its run's settings. Open the",
        ),
        (
            ("--temperatures", "0.2"), SpeechRecognizer, None,
            "--temperatures has no effect on x: it holds one search, and has one attempt. Open",
        ),
        (
            ("--words",), SpeechRecognizer, None,
            "--words has no effect on x: times of words need the attention weights, which it does "
            "not return. Open the run.",
        ),
        *(
            (
                words, Translator, None,
                f"{words[0]} needs an export that takes words: x. Export the run again with "
                "--takes-words.",
            )
            for words in WORDS
        ),
        (
            ("--token-scores",), Translator, None,
            "--token-scores needs an export that returns them: x. Export the run again with "
            "--token-scores.",
        ),
        (("--timestamps",), SpeechRecognizer, None, "--timestamps has no effect on x: an export"),
        (("--spans",), SpeechRecognizer, None, "--spans has no effect on x, a model for speech_r"),
        (
            ("--spans",), TextClassificationPipeline, None,
            "--spans has no effect on x, a model for classification."
        ),
        (
            ("--beam", "2"), TextClassificationPipeline, None,
            "--beam has no effect on x, a model for classificat"
        ),
        (("--ctc",), SpeechRecognizer, None, "--ctc has no effect on x: the export was written wi"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["saved-model", "litert", "onnx"])
def test_the_message_says_what_the_export_holds(command, words, kind, written, message):
    received = refusal(*words, taken=("n_best",), command=command, kind=kind, written=written)
    assert received.startswith(message)


@pytest.mark.parametrize("command", ["saved-model", "litert"])
def test_an_option_that_no_such_export_has_needs_the_run(command):
    received = refusal(
        "--sample", taken=("n_best",), command=command, kind=Translator, written=BEAM
    )
    assert received.startswith("--sample has no effect on x: the export has no such option. Open")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--max-length", "9"),
            "the export was written with its own maximum length. Export the run again with "
            "--max-length.",
        ),
        (
            ("--min-length", "3"),
            "a folder for CTranslate2 has no such option. Open the run.",
        ),
        (("--alignments",), "a folder for CTranslate2 has no such option. Open the run."),
        *((words, "an export has its run's settings. Open the run.") for words in WORDS),
        (("--spans",), "an export has its run's settings. Open the run."),
    ],
)
def test_a_folder_for_ctranslate2_holds_an_option_or_lacks_it(words, message):
    taken = FORMATS["ctranslate2"].opened_with
    received = refusal(*words, taken=taken, command="ctranslate2", kind=None)
    assert received == f"{words[0]} has no effect on x: {message}"


def test_options_that_the_export_takes_are_not_refused():
    with predict.make_context("predict", ["x", "--n-best", "2"]):
        refuse_fixed(("n_best",), "x", "litert", Translator)


@pytest.mark.parametrize("option", ["--no-speech-threshold", "--compression-ratio-threshold"])
def test_a_model_of_speech_without_a_probability_of_silence_has_no_thresholds(option):
    """Neither the run nor an export: one does not refer to the other."""
    message = (
        f"{option} has no effect on x, whose model does not compute the probability of silence, "
        "as Whisper does."
    )
    plain = speech_recognizer()
    known = types.SimpleNamespace(silence=Silence())
    with predict.make_context("predict", ["x", option, "0.5"]):
        with pytest.raises(click.UsageError) as caught:
            check_silence(plain.codec, "x")
        assert caught.value.message == message
        for codec in (known, types.SimpleNamespace(), None):
            check_silence(codec, "x")
