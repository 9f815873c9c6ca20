"""Long recordings of a random Whisper by timestamps, against loops over NumPy's Whisper."""

import numpy as np
import pytest
import whisper_folders
from test_whisper import allowed_tokens
from test_whisper_choices import RATE, prompt_of, recordings, write_varied
from whisper_folders import GENERATION, IDS, START, TIMES

from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.attention import words_of_tokens
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel

END, PREVIOUS, FIRST = IDS["<|endoftext|>"], IDS["<|startofprev|>"], IDS[TIMES[0]]
WINDOW, STRIDE = 14, 2  # frames
PROMPT = prompt_of("de", "transcribe", True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    settings, tensors = write_varied(folder)
    read = read_checkpoint(folder, source_language="de")
    return SpeechRecognizer.of_checkpoint(read), settings, tensors


def greedy(settings, tensors, frames, context):
    """The most probable tokens after the prompt, which the text before may precede."""
    start = [PREVIOUS, *context, IDS[START]] if context else [IDS[START]]
    generation, output = {**GENERATION, "return_timestamps": True}, [*PROMPT]
    while len(start) + len(output) < settings["max_target_positions"]:
        target = np.array([[*start, *output]])
        logits = whisper_folders.forward(tensors, settings, frames[None], target)[1][0, -1]
        allowed = sorted(allowed_tokens(output, PROMPT, generation, logits))
        output.append(allowed[int(np.argmax(logits[allowed]))])
        if output[-1] == END:
            break
    return [token for token in output[len(PROMPT) :] if token != END]


def segments(settings, tensors, frames, has_context):
    """The segments of a recording as `(begin, end, tokens)`, window by window."""
    place, found, context = 0, [], []
    while place < len(frames):
        window = frames[place : place + WINDOW]
        padded = np.pad(window, [(0, WINDOW - len(window)), (0, 0)])
        most = settings["max_target_positions"] // 2 - 1
        tokens = greedy(settings, tensors, padded, context[-most:] if has_context else [])
        times = [token >= FIRST for token in tokens]
        ends = [n + 1 for n in range(len(tokens) - 1) if times[n] and times[n + 1]]
        ends_alone = len(tokens) > 1 and times[-1] and not times[-2]
        step = len(window)
        if not ends:
            last = [t for t in tokens if t >= FIRST][-1:]
            end = STRIDE * (last[0] - FIRST) if last and last[0] != FIRST else len(window)
            end = min(end, len(window))
            found.append((place, place + end, tokens))
            context = context + tokens
        else:
            for begin, end in zip([0, *ends], [*ends, len(tokens)], strict=True):
                part = tokens[begin:end]
                if end == len(tokens) and not ends_alone and begin:
                    break  # cut by the window
                span = [place + min(STRIDE * (part[n] - FIRST), len(window)) for n in (0, -1)]
                found.append((*span, part))
                context = context + part
            if not ends_alone:
                step = min(step, STRIDE * (tokens[ends[-1] - 1] - FIRST))
        place += max(step, STRIDE)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("windows", ["timestamps", "context"])
def test_segments_are_those_of_a_loop_over_windows(windows, checkpoint):
    recognizer, settings, tensors = checkpoint
    sounds = [*recordings(6000, 2000, 4100)]
    timed = recognizer.with_settings(windows=windows, no_speech_threshold=1.0, timestamps=True)
    for sound, result in zip(sounds, timed.transcribe(sounds), strict=True):
        if len(sound) <= WINDOW * 160:
            assert not result.windows
            continue
        frames = LogMel(num_filters=settings["num_mel_bins"])(sound[None])[0].numpy()
        expected = segments(settings, tensors, frames, windows == "context")
        ids = [[*part, END] for _, _, part in expected]
        width = max(map(len, ids))
        padded = np.array([row + [END] * (width - len(row)) for row in ids], np.int32)
        texts = [t.decode() for t in recognizer.tokenizers.target.decode(padded).numpy()]
        spans = [
            (round(begin / 100, 2), round(end / 100, 2), text.strip())
            for (begin, end, _), text in zip(expected, texts, strict=True)
            if begin < end or text.strip()
        ]
        assert [(one.start, one.end, one.text) for one in result.segments] == spans
        assert len(result.windows) > 1 and result.windows[0].start == 0
        ends = [window.end for window in result.windows]
        assert [window.start for window in result.windows[1:]] == ends[:-1]
        (plain,) = timed.with_settings(timestamps=False).transcribe([sound])
        assert (plain.text, plain.segments) == (result.text, ())


@pytest.mark.slow
def test_silent_windows_have_no_text(checkpoint):
    recognizer, *_ = checkpoint
    (sound,) = recordings(6000)
    strict = {"no_speech_threshold": 0.0, "log_probability_threshold": 0.0}
    (silent,) = recognizer.with_settings(**strict, timestamps=True).transcribe([sound])
    assert silent.text == "" and silent.segments == ()
    starts = [round(window.start * 100) for window in silent.windows]
    assert starts == [*range(0, 37, WINDOW)]
    strict["words"] = True
    for result in recognizer.with_settings(**strict).transcribe([*recordings(6000, 2000)]):
        assert result.text == "" and result.words == ()


@pytest.mark.slow
def test_attempts_do_not_depend_on_the_batch(checkpoint):
    recognizer, *_ = checkpoint
    sounds = [*recordings(6000, 2240)]
    least = min(result.compression_ratio for result in recognizer.transcribe(sounds))
    poor = {"compression_ratio_threshold": 0.9 * least, "no_speech_threshold": 1.0}
    again = recognizer.with_settings(temperatures=(2.0,), **poor)
    together = again.transcribe(sounds)
    assert 2.0 in {result.temperature for result in together}, "or the test could not fail"
    for sound, result in zip(sounds, together, strict=True):
        (alone,) = again.transcribe([sound])
        assert (alone.text, alone.temperature) == (result.text, result.temperature)


@pytest.mark.slow
def test_words_have_times_in_their_windows(checkpoint):
    """Words of one window and of several are those of the text, in order, within the recording."""
    recognizer, *_ = checkpoint
    timed = recognizer.with_settings(words=True, no_speech_threshold=1.0)
    sounds = [*recordings(6000, 2000)]
    for sound, result in zip(sounds, timed.transcribe(sounds), strict=True):
        assert "".join(word.text for word in result.words) == "".join(result.text.split())
        times = [time for word in result.words for time in (word.start, word.end)]
        assert times == sorted(times) and times[-1] <= len(sound) / RATE
    with pytest.raises(ValueError, match="`words` have no times in windows that overlap. Received"):
        timed.with_settings(windows="overlap")


@pytest.mark.slow
def test_words_have_the_mean_probability_of_their_tokens(checkpoint):
    """Teacher forcing of the whole text in NumPy; tokens of text are those before the end."""
    recognizer, settings, tensors = checkpoint
    (sound,) = recordings(2000)
    timed = recognizer.with_settings(words=True, no_speech_threshold=1.0)
    (result,) = timed.transcribe([sound])
    text = timed.codec.words_in([*result.tokens[len(PROMPT) :]])
    prompt = [IDS[START], *prompt_of("de", "transcribe", False)]
    frames = LogMel(num_filters=settings["num_mel_bins"])(np.pad(sound, (0, 240))[None]).numpy()
    target = np.array([[*prompt, *text]])
    logits = whisper_folders.forward(tensors, settings, frames, target)[1][0, :, :END]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    own = [shares[len(prompt) - 1 + place, token] for place, token in enumerate(text)]
    words, members = words_of_tokens(timed.codec.tokenizer, text)
    assert [word.text for word in result.words] == words and max(map(len, members)) > 1
    expected = [np.mean([own[place] for place in places]) for places in members]
    found = [word.probability for word in result.words]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("windows", ["timestamps", "context", "overlap"])
def test_a_gate_moves_all_times(windows, checkpoint):
    """A recording with pauses is read like its speech, cut by hand, with moved times."""
    recognizer, *_ = checkpoint
    parts, step = [part[: len(part) // 320 * 320] for part in recordings(3200, 1700, 2600)], 320
    pauses = [np.zeros(step * count, np.float32) for count in (9, 31, 4)]
    whole = np.concatenate([x for pair in zip(pauses, parts, strict=True) for x in pair])
    ends = np.cumsum([len(x) for pair in zip(pauses, parts, strict=True) for x in pair]).tolist()
    intervals = [*zip(ends[::2], ends[1::2], strict=True)]
    plain = recognizer.with_settings(
        windows=windows, timestamps=True, words=windows != "overlap", no_speech_threshold=1.0
    )
    gated = plain.with_settings(voice_activity=lambda samples, rate: intervals)
    (expected,) = plain.transcribe([np.concatenate(parts)])
    (result,) = gated.transcribe([whole])
    assert result.text == expected.text and expected.text
    places = np.concatenate([np.arange(*pair) for pair in intervals])

    def moved(one):
        first, last = round(one.start * RATE), round(one.end * RATE)
        start = places[min(first, len(places) - 1)]
        return round(start / RATE, 2), round((places[last - 1] + 1) / RATE, 2), one.text

    segments = [moved(one) for one in expected.segments if one.start < one.end]
    assert [(x.start, x.end, x.text) for x in result.segments if x.start < x.end] == segments
    spans = [moved(window)[:2] for window in expected.windows]
    assert [(window.start, window.end) for window in result.windows] == spans
    assert [(w.text, w.probability) for w in result.words] == [
        (w.text, w.probability) for w in expected.words
    ]
    times = [time for word in result.words for time in (word.start, word.end)]
    assert times == sorted(times)
    for word in result.words:
        assert any(a / RATE <= word.start <= word.end <= b / RATE for a, b in intervals)
