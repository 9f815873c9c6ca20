"""Agreement of transcripts: scores of paths add up positions, those of outputs tokens."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
from pipelines import speech_recognizer
from tasks.test_speech_recognizer import recording

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import BestPath
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.export import ExportError
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.limits import Limits
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.codec import SpeechCodec
from keras_transformer.tasks.speech_recognition.silence import Silence
from keras_transformer.tasks.speech_recognition.transcript import Transcript

SAMPLES, POSITIONS = 12_000, 750  # of a recording of 12 seconds, with 8 samples for a frame
NEVER = [2, 3]  # tokens of the beginning and the end, which are no labels of CTC


def judged(pipeline, expected, **changes):
    """The report on an export whose only transcript differs from the expected one."""
    exported = dataclasses.replace(expected, **changes)
    return AnswerAgreement(pipeline.codec, ["a.wav"], [expected]).judge([exported], "a.tflite")


@pytest.fixture(scope="module")
def long():
    """A recognizer, its transcript of a long recording, and the labels' log-probabilities."""
    pipeline = speech_recognizer(max_seconds=SAMPLES / 1000).with_search(BestPath())
    samples = recording(SAMPLES)
    (expected,) = pipeline.transcribe([samples])
    frames = LogMel(**pipeline.model.config.input.features)(samples[None])
    log_probs, padding_mask = EncoderDecoder(pipeline.model).label_log_probs(frames)
    assert padding_mask.numpy().sum() == POSITIONS
    return pipeline, expected, np.delete(log_probs.numpy()[0].astype("float64"), NEVER, axis=1)


def test_rounding_at_every_position_is_no_difference(long):
    pipeline, expected, log_probs = long
    assert expected.score == pytest.approx(log_probs.max(axis=1).sum(), abs=1e-2)
    rounded = expected.score + 2e-6 * POSITIONS
    report = judged(pipeline, expected, log_probability=rounded)
    assert report["score_difference"] == pytest.approx(2e-6, rel=0.1)
    of_a_token = (rounded - expected.score) / expected.length
    assert of_a_token > pipeline.codec.tolerance, "divided by the tokens, it would be refused"


def test_another_path_is_refused(long):
    pipeline, expected, log_probs = long
    second = np.sort(log_probs, axis=1)[:, -2]
    path = log_probs.max(axis=1)
    path[::10] = second[::10]
    with pytest.raises(ExportError, match=r"a score differs from that of the model in memory by"):
        judged(pipeline, expected, transcript="other", log_probability=float(path.sum()))
    with pytest.raises(ExportError, match="a score differs"):  # padding counted as positions
        judged(pipeline, expected, log_probability=float(path.sum() + 10 * path[-1]))
    with pytest.raises(ExportError, match=r"a score differs .* by nan"):
        judged(pipeline, expected, log_probability=float("nan"))


def test_a_score_that_is_no_number_is_refused_wherever_it_is(long):
    pipeline, expected, _ = long
    agreement = AnswerAgreement(pipeline.codec, ["a.wav", "b.wav"], [expected] * 2)
    wrong = dataclasses.replace(expected, log_probability=float("nan"))
    for results in ([wrong, expected], [expected, wrong]):
        with pytest.raises(ExportError, match=r"a score differs .* by nan"):
            agreement.judge(results, "a.tflite")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"no_speech": 0.0008}, "a no_speech differs from that of the model in memory by 0.78"),
        ({"no_speech": None}, "a no_speech differs from that of the model in memory by nan"),
        ({"mean_log_probability": -1.1}, "a mean_log_probability differs .* by 0.1"),
    ],
)
def test_the_numbers_of_silence_agree(changes, message):
    expected = Transcript("a b", -3.0, 3, no_speech=0.777, mean_log_probability=-1.0)
    agreement = AnswerAgreement(SpeechCodec, ["a.wav"], [expected])
    tied = dataclasses.replace(expected, transcript="", mean_log_probability=-7.0)
    assert agreement.judge([tied], "a.tflite")["agreement"] == 0  # at a threshold
    with pytest.raises(ExportError, match=message):
        agreement.judge([dataclasses.replace(expected, **changes)], "a.tflite")
    quantised = AnswerAgreement(SpeechCodec, ["a.wav"], [expected], Limits("int8"))
    report = quantised.judge([dataclasses.replace(expected, no_speech=0.7)], "a.tflite")
    assert report["no_speech_difference"] == pytest.approx(0.077)


@pytest.mark.parametrize("pad_to_max_seconds", [False, True])
def test_short_recordings_have_the_positions_of_their_frames(pad_to_max_seconds):
    pipeline = speech_recognizer(pad_to_max_seconds=pad_to_max_seconds).with_search(BestPath())
    for length, positions in ((8, 1), (23, 1), (24, 2), (133, 8), (400, 25)):
        (result,) = pipeline.transcribe([recording(length)])
        error = 1e-3 * (25 if pad_to_max_seconds else positions)
        assert result.gap(dataclasses.replace(result, log_probability=result.score - error)) == (
            pytest.approx(1e-3, rel=0.01)
        )


def test_windows_of_a_longer_recording_add_up():
    pipeline = speech_recognizer().with_search(BestPath())
    (whole,) = pipeline.transcribe([recording(900)])
    assert whole.terms == 25 + 25 + 25  # windows of 400 samples that begin at 0, 267 and 500


def test_scores_of_other_searches_add_up_tokens_over_the_length_penalty():
    terms = {
        Greedy(): 13,
        BestPath(): 50,
        Beam(2, length_penalty=1.0): 13 / 3,  # (5 + 13) / 6
        Beam(2, normalization="average"): 1,
        Beam(2, normalization="none"): 13,
    }
    for search, expected in terms.items():
        assert float(search.terms(tf.constant(13.0), tf.constant(50))) == pytest.approx(expected)
    (result,) = speech_recognizer().transcribe([recording(400)])
    assert result.terms == result.length


@pytest.mark.parametrize("tokens", [6, 60])
def test_the_limit_of_a_quantised_file_is_per_token(tokens):
    ours = [Transcript("a b c", -0.05 * tokens, tokens), Transcript("", -0.05, 1)]

    def judge(error):
        theirs = [
            dataclasses.replace(one, log_probability=one.score - error * one.length) for one in ours
        ]
        agreement = AnswerAgreement(SpeechCodec, ["a.wav", "b.wav"], ours, Limits("int8"))
        return agreement.judge(theirs, "a.tflite")["score_error"]

    assert judge(0.09) == pytest.approx(0.09)
    with pytest.raises(ExportError, match=r"off by 0.11 nats per token .*\(`--max-score-loss`\)"):
        judge(0.11)


def test_a_confident_transcript_that_the_model_in_memory_does_not_expect_is_refused():
    pipeline = speech_recognizer()
    samples = recording(300)
    (expected,) = pipeline.transcribe([samples])
    repeated = Transcript("ab" * 9, expected.score, 20)
    loss = np.subtract(*pipeline.log_probabilities(samples, [expected, repeated]))
    agreement = AnswerAgreement(
        pipeline.codec, [samples] * 2, [expected] * 2, Limits("int8", max_score_loss=loss / 4),
        pipeline.log_probabilities,
    )  # fmt: skip
    with pytest.raises(ExportError, match="less probable than its own by .* nats per token"):
        agreement.judge([repeated, expected], "a.tflite")
    report = dataclasses.replace(agreement, limits=Limits("int8", max_score_loss=loss)).judge(
        [repeated, expected], "a.tflite"
    )
    assert report["score_loss"] == pytest.approx(loss / 2) and report["agreement"] == 0.5


def test_the_probability_of_a_transcript_is_that_of_its_tokens():
    pipeline = speech_recognizer()
    samples, config = recording(300), pipeline.model.config
    results = [Transcript("ab", -1.0, 3), Transcript("bca", -1.0, 4)]
    found = pipeline.log_probabilities(samples, results)
    frames = LogMel(**config.input.features)(samples[None])
    for result, number in zip(results, found, strict=True):
        (tokens,) = pipeline.target_tokenizer.encode([result.transcript]).to_list()
        before = tf.constant([[config.tokens.bos_id, *tokens[:-1]]])
        logits = pipeline.model({"source": frames, "target": before}).numpy()[0].astype("float64")
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        assert number == pytest.approx(logits[range(len(tokens)), tokens].mean(), abs=1e-5)
    assert pipeline.with_search(BestPath()).log_probabilities(samples, results) is None


def test_a_transcript_that_became_silent_is_no_loss():
    """A rounded number beyond a threshold removes a text that the model in memory keeps."""
    pipeline = speech_recognizer.__wrapped__()  # not a cached one: its codec is replaced
    (expected,) = pipeline.transcribe([recording(300)])
    ours = dataclasses.replace(expected, no_speech=0.59, mean_log_probability=-1.5)
    theirs = dataclasses.replace(ours, transcript="", no_speech=0.61)
    silence = types.SimpleNamespace(codec=types.SimpleNamespace(silence=Silence()))
    ended = dataclasses.replace(ours, transcript="")  # not by the thresholds
    for results, silent in (([ours], [False]), ([theirs, ended, ours], [True, False, False])):
        assert [SpeechRecognizer._is_silent(silence, one) for one in results] == silent
    assert not SpeechRecognizer._is_silent(pipeline, theirs)  # a model without the numbers

    pipeline.codec = SpeechCodec.of(
        pipeline.codec.speech, pipeline.codec.tokenizers, pipeline.max_length, silence=Silence()
    )
    agreement = AnswerAgreement(
        pipeline.codec, ["a.wav"], [ours], Limits("int8"), pipeline.log_probabilities
    )
    for both in ([ours, theirs], [theirs, ours]):
        assert pipeline.log_probabilities("a.wav", both) is None
        report = dataclasses.replace(agreement, expected=both[:1]).judge(both[1:], "a.tflite")
        assert "score_loss" not in report and report["agreement"] == 0
        assert len(report["differences"]) == 1
