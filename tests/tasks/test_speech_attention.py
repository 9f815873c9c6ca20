"""Attention to recordings: the rows of the cross-attention that belong to each word."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import speech_recognizer, tokenizer
from tasks.test_speech_recognizer import RECORDINGS

from keras_transformer.plots.attention_page import attention_page
from keras_transformer.tasks.speech_recognition.attention import words_of_tokens
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.plots import speech_attention_figure
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import ByteBPETokenizer

RATE, HOP, STRIDE = 1000, 8, 2  # of the recogniser
SAMPLES = RECORDINGS[3]  # 250: the last frame and the last position are not complete


def transcribing(monkeypatch, pieces, **options):
    """Returns a recogniser whose search finds the tokens of pieces, and these tokens."""
    pipeline = speech_recognizer(**options)
    known = tokenizer().pieces(range(30))
    tokens = [*options.get("prompt_ids", ()), *map(known.index, pieces)]
    found = {"tokens": tf.constant([tokens + [0, 0]])}
    monkeypatch.setattr(type(pipeline), "predict", lambda *_, **__: found)
    return pipeline, tokens


@pytest.mark.parametrize(
    "options", [{}, {"pad_to_max_seconds": True, "prompt_ids": (7, 9)}], ids=["masked", "padded"]
)
def test_a_word_has_the_mean_weights_of_its_tokens(options, monkeypatch):
    pieces = ["▁a", "▁", "bi", "g", "▁cat", "▁", "o", "</s>"]
    members = [[0], [1, 2, 3], [4], [5, 6]]
    pipeline, tokens = transcribing(monkeypatch, pieces, **options)
    attention = pipeline.attention(SAMPLES)["sound"]
    assert attention.words == ["a", "big", "cat", "o"]
    padded = np.pad(SAMPLES, (0, 400 - len(SAMPLES) if options else 0))
    frames = LogMel(RATE, 20, HOP, 6)(padded[None])
    target = np.array([[2, *tokens[:-1]]])  # a position predicts the next token
    weights = pipeline.model.attention_weights({"source": frames, "target": target})
    weights = np.array(weights["decoder/block_0/cross_attention"])  # [1, H, T, S]
    count, begin = len(SAMPLES) // HOP, len(tokens) - len(pieces)
    expected = np.zeros((1, 2, 4, -(-count // STRIDE)))
    for word, places in enumerate(members):
        for place in places:
            row = weights[:, :, begin + place, : expected.shape[-1]]
            expected[:, :, word] += row / len(places)
    np.testing.assert_allclose(attention.weights, expected, atol=1e-5)
    np.testing.assert_allclose(attention.mean(), expected.mean(axis=(0, 1)), atol=1e-5)
    sums = attention.weights.sum(axis=-1)
    assert sums.max() < 1 + 1e-5 and (sums.min() < 1 - 1e-3) == bool(options), "silence after it"
    np.testing.assert_allclose(attention.frames, frames[0, :count], atol=1e-5)
    assert attention.frames.shape == (31, 6) and not attention.truncated
    assert (attention.frame_seconds, attention.position_seconds) == (0.008, 0.016)


def test_a_long_recording_is_cut(monkeypatch):
    pipeline, _ = transcribing(monkeypatch, ["▁a", "▁cat", "</s>"])
    long = np.tile(SAMPLES, 2)
    attention, expected = (pipeline.attention(x)["sound"] for x in (long, long[:400]))
    assert attention.truncated and not expected.truncated and len(attention.frames) == 400 // HOP
    np.testing.assert_allclose(attention.weights, expected.weights, atol=1e-6)


def test_a_recording_without_words_is_refused(monkeypatch):
    pipeline, _ = transcribing(monkeypatch, ["</s>"])
    with pytest.raises(ValueError, match="the transcript must have words, .* an empty transcript"):
        pipeline.attention(SAMPLES)
    with pytest.raises(ValueError, match="Models of an ensemble have no attention weights in comm"):
        pipeline.with_model([pipeline.model] * 2).attention(SAMPLES)
    with pytest.raises(ValueError, match="the recording: must have at least 8 samples"):
        pipeline.attention(SAMPLES[:7])


def test_the_spectrogram_and_the_weights_share_the_axis_of_time(monkeypatch):
    pytest.importorskip("matplotlib")
    pipeline, _ = transcribing(monkeypatch, ["▁a", "▁", "bi", "g", "▁cat", "</s>"], num_layers=2)
    attention = pipeline.attention(SAMPLES)["sound"]
    sound, words, _ = speech_attention_figure(attention).axes
    assert sound.get_xlim() == words.get_xlim() == (0, 31 * 0.008)
    np.testing.assert_array_equal(sound.images[0].get_array(), attention.frames.T)
    assert sound.images[0].get_extent()[:2] == [0, 31 * 0.008]
    np.testing.assert_array_equal(words.images[0].get_array(), attention.mean())
    assert words.images[0].get_extent() == pytest.approx([0, 16 * 0.016, 2.5, -0.5])
    assert [label.get_text() for label in words.get_yticklabels()] == ["a", "big", "cat"]
    marks = zip(sound.get_yticks(), sound.get_yticklabels(), strict=True)
    for place, label in marks:  # between the filters of lower and of higher frequencies
        lower, higher = np.split(attention.frequencies, [int(np.ceil(place))])
        assert lower.max() <= float(label.get_text()) <= higher.min()
    axes = speech_attention_figure(attention, layers=True).axes
    layers, heads = attention.weights.shape[:2]
    assert (layers, heads) == (2, 2) and len(axes) == (layers + 1) * heads + 1
    for number, (layer, head) in enumerate(np.ndindex(layers, heads), start=heads):
        shown = axes[number].images[0]
        np.testing.assert_array_equal(shown.get_array(), attention.weights[layer, head])
        assert shown.get_clim() == (0, attention.weights.max()), "one scale for all"
    with pytest.raises(ValueError, match="`attentions` must be .* tokens.*Received: kind='sound'"):
        attention_page({"sound": attention})


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<|0.00|>"]


@pytest.mark.parametrize(
    ("text", "words", "members"),
    [
        (" a  cat", ["a", "cat"], [[0, 1], [2, 3, 4, 5, 6]]),
        ("a cat<|0.00|> runs", ["a", "cat", "runs"], [[0], [1, 2, 3, 4], [6, 7, 8, 9, 10]]),
        ("猫は2 x", ["猫", "は", "2", "x"], [[0, 1, 2], [3, 4, 5], [6], [7, 8]]),
        ("é<|0.00|> a", ["é", "a"], [[0, 1], [3, 4]]),
        (" ", [], []),
        ("", [], []),
    ],
)
def test_words_of_bytes(text, words, members):
    """Every byte is a token; a timestamp has no text."""
    tokenizer = ByteBPETokenizer([*SPECIAL, *CHARACTERS], [], no_text=["<|0.00|>"])
    before, time, after = text.partition("<|0.00|>")
    ids = [[len(SPECIAL) + byte for byte in part.encode()] for part in (before, after)]
    tokens = [*ids[0], *([SPECIAL.index(time)] if time else []), *ids[1], tokenizer.eos_id]
    assert words_of_tokens(tokenizer, tokens) == (words, members)


def test_filters_have_the_frequencies_of_slaneys_scale():
    """40 filters up to 4,000 Hz: the first 15 mel are linear, 200 Hz for 3."""
    frequencies = LogMel(8000, 256, 80, 40).frequencies()
    assert frequencies.shape == (40,) and (np.diff(frequencies) > 0).all()
    mels = 15 + 27 * np.log(4) / np.log(6.4)  # of 4,000 Hz
    np.testing.assert_allclose(frequencies[:5], np.arange(1, 6) * mels / 41 * 200 / 3)
    np.testing.assert_allclose(frequencies[-1], 1000 * 6.4 ** ((40 * mels / 41 - 15) / 27))
