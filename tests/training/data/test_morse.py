"""Generated Morse code: a decoder of this test reads it, and noise is as loud as stated."""

import dataclasses
import itertools
import types
import zlib

import numpy as np
import pytest

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.demos.morse import draw_texts
from keras_transformer.training.demos.morse_code import CODES, draw_text, units
from keras_transformer.training.demos.morse_sound import (
    Conditions,
    draw_conditions,
    transmission,
)
from keras_transformer.training.demos.settings import MorseDemoData
from keras_transformer.training.settings.sources import open_source

RATE = 8000
# The dichotomic tree of Morse code: the left child of a letter adds a dot, the right one a dash.
TREE = "?ETIANMSURWDKGOHVF?L?PJBXCYZQ"


def settings(**changes):
    return MorseDemoData(source="morse_demo", examples=100, **changes)


def code_of(letter):
    """The way through the tree: from its root, node n has the children 2n+1 and 2n+2."""
    node, signs = TREE.rindex(letter), ""
    while node:
        signs = "-."[node % 2] + signs
        node = (node - 1) // 2
    return signs


def test_codes_are_those_of_the_standard():
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert {letter: CODES[letter] for letter in letters} == {a: code_of(a) for a in letters}
    for digit in range(10):
        signs = (
            "." * digit + "-" * (5 - digit)
            if 0 < digit < 6
            else "-" * (digit - 5) + "." * (10 - digit)
        )
        assert CODES[str(digit)] == (signs if digit else "-----")
    assert len(set(CODES.values())) == len(CODES)
    assert units("PARIS") == 43 and units("PARIS PARIS") == 93


def decode(samples, dot):
    """Reads noiseless Morse code from the loudness of every millisecond."""
    loud = np.abs(samples[: len(samples) // 8 * 8].reshape(-1, 8)).max(axis=1) > 0
    runs = [(down, len(list(run)) / 1000 / dot) for down, run in itertools.groupby(loud)]
    letters, text = {signs: letter for letter, signs in CODES.items()}, ""
    signs = ""
    for down, length in runs[1:]:
        if down:
            signs += "." if length < 2 else "-"
        elif length > 2:
            text += letters[signs] + " " * (length > 5)
            signs = ""
    return text.strip()


@pytest.mark.parametrize("speed", [10, 30])
def test_a_decoder_reads_the_text(speed):
    conditions = Conditions(speed, snr=200, silence=(0.2, 1.0), pitch=743)
    dice = Dice(5)
    for text in [draw_text(dice) for _ in range(10)] + ["".join(CODES), "A B"]:
        sound = transmission(text, conditions, RATE, 3)
        assert sound.dtype == np.int16 and abs(sound.max() - 0.5 * 32767) < 50
        assert decode(sound, 1.2 / speed) == text
        assert abs(len(sound) / RATE - 1.2 - units(text) * 1.2 / speed) < 0.01


def power_near(samples, hertz, width=60):
    spectrum = np.abs(np.fft.rfft(samples)) ** 2
    frequencies = np.fft.rfftfreq(len(samples), 1 / RATE)
    near = np.abs(frequencies - hertz) < width
    return spectrum[near].sum(), spectrum[~near].sum() * len(near) / (~near).sum()


@pytest.mark.parametrize("fading", [0.0, 0.8])
@pytest.mark.parametrize("snr", [-5, 10])
def test_signal_and_noise_have_the_stated_ratio(snr, fading):
    """Measured in the spectrum: the tone's frequency, and the noise beside it."""
    conditions = Conditions(20, pitch=600, snr=snr, fading=fading, fading_rate=0.5)
    text = "T T T T T T T T T T"
    sound = transmission(text, conditions, RATE, 8).astype(np.float64)
    clean = transmission(text, dataclasses.replace(conditions, snr=200), RATE, 8)
    near, noise = power_near(sound, 600)
    tone = near - noise * 120 / 4000  # noise is at the tone's frequency as well
    measured = 10 * np.log10(tone / noise / (np.count_nonzero(clean) / len(clean)))
    assert abs(measured - snr) < 0.6


def test_fading_weakens_the_tone_and_jitter_changes_its_rhythm():
    plain = Conditions(20, snr=200)
    text = "0" * 12

    def swing(conditions):
        sound = np.abs(transmission(text, conditions, RATE, 2).astype(np.float64))
        blocks = sound[: len(sound) // 1600 * 1600].reshape(-1, 1600).max(axis=1)[3:-4]
        return blocks.min() / blocks.max()

    assert swing(plain) > 0.95
    faded = swing(dataclasses.replace(plain, fading=0.7))
    assert 0.28 < faded < 0.5
    lengths = {
        jitter: len(transmission(text, dataclasses.replace(plain, jitter=jitter), RATE, 2))
        for jitter in (0.0, 0.2)
    }
    assert lengths[0.0] != lengths[0.2]


def test_noise_is_white_and_nearly_normal():
    silent = Conditions(30, snr=-30, silence=(4.0, 4.0), level=0.9)
    noise = transmission("E", silent, RATE, 4)[: 4 * RATE].astype(np.float64)
    noise /= noise.std()
    assert abs(noise.mean()) < 0.02 and abs((noise**4).mean() - 2.85) < 0.15  # 3 - 1.2 / 8
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    parts = [part.mean() for part in np.array_split(spectrum, 8)]
    assert max(parts) / min(parts) < 1.1


def test_conditions_are_within_the_ranges_of_the_settings():
    own = settings(words_per_minute=[12.0, 25.0], pitch=[500.0, 510.0], snr=[3.0, 4.0], fading=0.2)
    texts = draw_texts(own)
    assert len(set(texts)) == 100 and all(set(text) <= {*CODES, " "} for text in texts)
    drawn = [draw_conditions(Dice(seed), text, own) for seed, text in enumerate(texts)]
    for conditions, text in zip(drawn, texts, strict=True):
        assert 12 <= conditions.words_per_minute <= 25 and 500 <= conditions.pitch <= 510
        assert 3 <= conditions.snr <= 4 and 0 <= conditions.fading <= 0.2
        assert units(text) * 1.2 / conditions.words_per_minute <= 10.0001
    assert len({conditions.pitch for conditions in drawn}) == 100


def test_splits_differ_and_test_has_its_own_noise():
    source = open_source(settings(max_seconds=3.0))
    assert source.metadata() == {"sample_rate": 8000}
    rows = {split: list(source.rows(split).take(4)) for split in source.splits}
    texts = [text.numpy() for split in rows.values() for _, text in split]
    assert len(set(texts)) == len(texts) == 12
    assert [source.count(split) for split in source.splits] == [80, 10, 10]
    (audio, text), *_ = source.rows("train").batch(3)
    assert audio.dtype == "float32" and audio.shape[0] == 3 == len(text)
    np.testing.assert_array_equal(audio[1], rows["train"][1][0])
    assert 0.1 < np.abs(audio[1]).max() < 1
    again = open_source(settings(max_seconds=3.0))
    assert again.identity("train") == source.identity("train") != source.identity("test")
    assert open_source(settings(seed=2)).identity("train") != source.identity("train")


def test_the_samples_are_the_same_on_every_machine():
    """A checksum of whole numbers, from a machine with AVX-512 and NumPy 2.4."""
    own = settings(max_seconds=3.0)
    text = draw_texts(own)[0]
    sound = transmission(text, draw_conditions(Dice(1), text, own), RATE, 1)
    assert zlib.crc32(sound.astype("<i2").tobytes()) == 2489280317


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pitch": [900.0, 400.0]}, "`pitch` must be a smaller and a larger number of Hz"),
        ({"words_per_minute": [1.0, 40.0]}, "`words_per_minute` must be .* from 5 to 60"),
        ({"snr": [0.0, 99.0]}, "`snr` must be .* of dB from -30 to 60. Received: snr=.0.0, 99.0"),
    ],
)
def test_wrong_ranges_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        settings(**changes)


def test_settings_that_leave_too_few_texts_are_refused():
    few = types.SimpleNamespace(seed=1, examples=100, max_seconds=2, words_per_minute=[5, 5])
    with pytest.raises(ValueError, match="max_seconds` must leave enough texts for 100 rec.*=2"):
        draw_texts(few)
