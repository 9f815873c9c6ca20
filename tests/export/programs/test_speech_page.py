"""`speech.html` of `examples/browser` in a browser: files and the microphone."""

import json

import numpy as np
import pipelines
import pytest
from browsers import not_in, open_blank
from documents import blocks

import keras_transformer
from keras_transformer.export import export_litert, export_onnx
from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import ByteBPETokenizer

pytest.importorskip("ai_edge_litert")

slow = pytest.mark.slow  # the export takes seconds
RATE, LONGEST = 8000, 0.5  # Chromium converts sound to 3,000 samples a second or more


def sounds():
    """Recordings in 16 bits, the first as long as the limit."""
    rng = np.random.default_rng(0)
    for length in (4000, 2500, 1203):
        times = np.arange(length) / RATE
        tone = np.sin(2 * np.pi * rng.uniform(300, 3000) * times) + 0.2 * rng.normal(size=length)
        yield np.rint(9000 * tone).astype(np.int16)


SOUNDS = [*sounds()]


def wav(samples, rate=RATE):
    return encode_wav(np.asarray(samples, "float64") / 32768, rate)


def tokenizer():
    """A byte-level vocabulary; four of its tokens are decoded to nothing."""
    silent = [f"<|{number}|>" for number in range(4)]
    special = ["<s>", "<pad>", "</s>", "<unk>", *silent]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    pieces = [*special, *CHARACTERS, *map("".join, merges)]
    return ByteBPETokenizer(pieces, merges, no_text=silent)


@pytest.fixture(scope="module")
def recognizer():
    """A recogniser whose outputs begin with a prompt, and have tokens that are no text."""
    vocabulary = tokenizer()
    config = SpeechTransformerConfig(
        vocab_size=vocabulary.vocab_size, sample_rate=RATE, window_length=160, hop_length=80,
        num_mel_filters=8, max_seconds=LONGEST, prompt_ids=(5, 60), pad_id=1, bos_id=0, eos_id=2,
        **{**pipelines.SIZES, "num_layers": 1},
    )  # fmt: skip
    model = pipelines.with_larger_weights(SpeechTransformer(config))
    # Letters, spaces and tokens without text, of which none is followed by itself all the time.
    chosen = [*range(4, 8), *(8 + byte for byte in b" abcdefghijklmnopqrstuvwxyz")]
    table = model.get_layer("target_embedding").table
    table.assign(table * np.isin(np.arange(vocabulary.vocab_size), chosen)[:, None])
    gamma = model.decoder.blocks[-1].feed_forward_norm.gamma
    gamma.assign(np.random.default_rng(2).choice([-1.0, 1.0], gamma.shape))
    return SpeechRecognizer(model, vocabulary)


@pytest.fixture(scope="module")
def file(recognizer, site):
    path = site / "speech.tflite"
    export_litert(recognizer, path, [wav(sound) for sound in SOUNDS])
    return path


@pytest.fixture(scope="module")
def onnx_file(recognizer, site):
    pytest.importorskip("onnxruntime")
    path = site / "speech.onnx"
    export_onnx(recognizer, path, [wav(sound) for sound in SOUNDS])
    return path


@pytest.fixture
def page(browser, file):
    assert browser.open("?model=speech.tflite", "speech.html") == "Ready."
    return browser


def transcribe(page, content, name="a.wav"):
    """Chooses a file on the page and returns the transcript and the status line."""
    code = f"""(() => {{
        const bytes = Uint8Array.from({json.dumps([*content])}), files = new DataTransfer();
        files.items.add(new File([bytes], {json.dumps(name)}));
        const field = document.getElementById("file");
        document.getElementById("status").textContent = "";
        field.files = files.files;
        field.dispatchEvent(new Event("change"));
    }})()"""
    page.evaluate(code)
    status = page.wait_for("/ ms$/.test(status) || failed")
    return page.evaluate("document.getElementById('transcript').textContent"), status


@slow
@pytest.mark.parametrize("name", ["file", "onnx_file"])
def test_files_have_the_transcripts_of_the_run(browser, name, request, recognizer):
    file, page = request.getfixturevalue(name), browser
    assert page.open(f"?model={file.name}", "speech.html") == "Ready."
    expected = recognizer.transcribe([wav(sound) for sound in SOUNDS])
    texts = [result.text for result in expected]
    assert len({*texts}) > 1 and all(texts), "or the test could not fail"
    results = keras_transformer.open(file).answer_batch([wav(sound) for sound in SOUNDS])
    assert [result.text for result in results] == texts
    assert [result.complete for result in results] == [result.complete for result in expected]
    for sound, result in zip(SOUNDS, expected, strict=True):
        shown, status = transcribe(page, wav(sound))
        assert shown == result.text and status.endswith(" ms")
        note = page.evaluate("document.getElementById('incomplete').checkVisibility()")
        assert note is not result.complete
    metadata = page.evaluate("document.getElementById('metadata').textContent")
    assert metadata.endswith("float32 · up to 0.5 s")


@slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"RIFF and no sound", "The browser cannot read this file as sound."),
        (wav(np.tile(SOUNDS[0], 2)),
         "The recording lasts 1 s, and the model reads at most 0.5 s: cut it into parts."),
        (wav(SOUNDS[0][:79]), "The recording is too short: 79 samples."),
    ],
)  # fmt: skip
def test_recordings_that_the_model_cannot_read_are_reported_in_one_line(page, content, message):
    assert transcribe(page, content) == ("", message)
    assert transcribe(page, wav(SOUNDS[0]))[1].endswith(" ms"), "and the next one is read"


def stereo(left, right, rate=RATE):
    """A WAV file of two channels in 16 bits."""
    content = bytearray(encode_wav(np.stack([left, right], 1).ravel() / 32768, rate))
    content[22] = 2  # channels
    content[28:34] = (4 * rate).to_bytes(4, "little") + (4).to_bytes(2, "little")
    return bytes(content)


def decoded(browser, site, content):
    """Returns the samples that the page makes of a file."""
    open_blank(browser, site)
    code = f"""import("./sound.js").then(({{ decodeSound }}) =>
        decodeSound(Uint8Array.from({json.dumps([*content])}).buffer, {RATE})).then(Array.from)"""
    return np.array(browser.evaluate(code))


def test_sound_is_mixed_to_one_channel(browser, site):
    one, other = SOUNDS[1].astype(int), SOUNDS[0][:2500].astype(int)
    # Chromium divides positive samples by 32,767.
    found = decoded(browser, site, wav(one))
    np.testing.assert_allclose(found, one / 32768, rtol=2**-15 + 1e-6, atol=0)
    np.testing.assert_array_equal(found[one < 0], (one / 32768)[one < 0])
    mean = (one + other) / 2 / 32768
    np.testing.assert_allclose(decoded(browser, site, stereo(one, other)), mean, atol=2**-15)


@not_in("webkit", "WebKitGTK's conversion delays a sound by an eighth of a sample")
def test_sound_is_converted_to_the_rate(browser, site):
    # A tone that both rates can represent; the browser's filter is not exact at the ends.
    tone, times = lambda t: 0.5 * np.sin(2 * np.pi * 440 * t), np.arange(16_000)
    found = decoded(browser, site, wav(tone(times / 32_000) * 32768, 32_000))
    assert len(found) == 4000
    np.testing.assert_allclose(found[200:-200], tone(times[200:3800] / RATE), atol=2e-3)


@slow
@not_in("webkit", "WebKitGTK's browser has no imitation of a microphone")
def test_the_microphone_is_transcribed_until_the_model_has_enough(page, recognizer):
    """The microphone is an imitation, which beeps; the samples are what the model gets."""
    page.evaluate("""{
        const send = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (message) {
            if (message.samples) window.samples = Array.from(message.samples);
            send.call(this, message);
        };
        document.getElementById("status").textContent = "";
        document.getElementById("record").click();
    }""")
    status = page.wait_for("/ ms$/.test(status) || failed")
    assert status.endswith(" ms"), status
    samples = np.array(page.evaluate("window.samples"), "float32")
    assert 0.2 * RATE < len(samples) <= LONGEST * RATE and np.isfinite(samples).all()
    shown = page.evaluate("document.getElementById('transcript').textContent")
    assert shown == recognizer([samples])[0]
    assert page.evaluate("document.getElementById('record').textContent") == "Record"


@slow
def test_a_model_for_another_task_is_refused(browser, site, export):
    (site / "text.tflite").write_bytes(export("none")[0].read_bytes())
    status = browser.open("?model=text.tflite", "speech.html")
    assert status == "This page cannot use a model for translation."


@slow
def test_the_page_for_sentences_names_the_page_for_speech(browser, file):
    status = browser.open("?model=speech.tflite", "index.html")
    assert status == "This page cannot use a model for speech_recognition: open speech.html."


@slow
def test_the_program_of_the_readme_transcribes(page, site, recognizer):
    *_, program = blocks("examples/browser/README.md", "js")
    (site / "speech.wav").write_bytes(wav(SOUNDS[1]))
    (site / "readme.js").write_text(f"{program.code}export {{ text, score }};", "utf-8")
    open_blank(page, site)
    code = "import('./readme.js').then(({ text, score }) => [text, score])"
    text, score = page.evaluate(code)
    (expected,) = recognizer.transcribe([wav(SOUNDS[1])])
    assert text == expected.text and score == pytest.approx(expected.score, abs=1e-3)
