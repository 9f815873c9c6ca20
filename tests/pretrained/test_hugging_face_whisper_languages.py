"""Every language of Whisper against Hugging Face's `generate`, in the run and in its exports.

The model has random weights. Recording number k is in language number k for the model, and is also
transcribed and translated as if it were in another one.
"""

import functools
import json
import re

import numpy as np
import pytest
import tensorflow as tf
from test_hugging_face import run_python
from test_hugging_face_whisper import CONFIG, FEATURES, KINDS, SCRIPT, check
from whisper_folders import MERGES, TASKS, generation_of, pieces_of

from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

pytestmark = pytest.mark.slow
# Of `transformers`, which compares them with its own list.
CODES = re.findall(
    r"\w+",
    """
    en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur
    hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si
    km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha
    ba jw su yue
    """,
)
OTHERS = CODES[::-1]  # no recording is in its own language, since their number is even
PIECES = pieces_of(CODES)
LENGTH = 11  # maximum length of an output
LANGUAGES = {"other": OTHERS, "detected": "auto"}


def named(kind):
    """Choices by the name of a search: other languages or detection, task, and timestamps."""
    for name, language in LANGUAGES.items():
        for task in TASKS:
            for times in (False, True):
                chosen = {"language": language, "task": task, "timestamps": times}
                yield f"{kind}_{name}_{task}{'_times' * times}", chosen


def searches():
    """Arguments of `generate` by the name of a search."""
    for kind, options in KINDS.items():
        for search, chosen in named(kind):
            language = {} if chosen["language"] == "auto" else {"language": chosen["language"]}
            task, times = chosen["task"], chosen["timestamps"]
            yield search, {**options, **language, "task": task, "return_timestamps": times}


CASE = {
    "every_language": True,
    "seed": 0,
    "searches": dict(searches()),
    "config": {
        **CONFIG, "vocab_size": len(PIECES), "num_mel_bins": 80, "max_target_positions": LENGTH,
    },
    "features": {**FEATURES, "feature_size": 80},
    "generation": {**generation_of(PIECES, CODES), "max_length": LENGTH},
    "pieces": PIECES,
    "merges": MERGES,
    "seconds": np.random.default_rng(0).uniform(0.2, 1.0, len(CODES)).round(2).tolist(),
}  # fmt: skip


@functools.cache
def expected():
    """The folder of the checkpoint, and the results of `generate`."""
    place = run_python(SCRIPT, {"every": CASE})
    if place is None:
        pytest.skip("torch and transformers are missing: see test_hugging_face.py")
    return place / "every", np.load(place / "every.npz")


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def pipeline(kind):
    """A recognizer that detects languages, with the search of a kind."""
    folder, _ = expected()
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **KINDS[kind]}))
    return SpeechRecognizer.of_checkpoint(read_checkpoint(folder))


@pytest.fixture(scope="module")
def rows():
    _, arrays = expected()
    return [row[:count] for row, count in zip(arrays["samples"], arrays["lengths"], strict=True)]


def test_the_comparison_covers_every_language():
    _, arrays = expected()
    ids = [PIECES.index(f"<|{code}|>") for code in CODES]
    for kind in KINDS:
        for search, chosen in named(kind):
            first = ids if chosen["language"] == "auto" else ids[::-1]
            assert arrays[search][:, 1].tolist() == first, search
        for task in TASKS:  # the outputs after the prompt also depend on the language
            own, other = (arrays[f"{kind}_{name}_{task}"][:, 4:] for name in LANGUAGES)
            assert (own != other).any(axis=1).mean() > 0.5


def inputs_of(pipeline, rows, chosen):
    return pipeline.codec.tensors(rows, pipeline.codec.choices.rows(len(rows), **chosen))[0]


def check_all(run, pipeline, rows, kind):
    """Compares the tokens and scores of a function of inputs with those of every search."""
    for search, chosen in named(kind):
        outputs = run(**inputs_of(pipeline, rows, chosen))
        tokens, scores = np.asarray(outputs["tokens"]), np.asarray(outputs["score"])
        check(tokens, scores, expected()[1], search, pipeline.model.config.tokens.pad_id)


def test_the_run(pipeline, rows, kind):
    check_all(tf.function(pipeline.predict, autograph=False), pipeline, rows, kind)


def test_a_saved_model(pipeline, rows, kind, tmp_path):
    files = [encode_wav(row, 16_000) for row in rows]
    export_saved_model(pipeline, tmp_path / "m", files[:3])
    signatures = tf.saved_model.load(str(tmp_path / "m" / "1")).signatures
    check_all(signatures["samples"], pipeline, rows, kind)
    # By their names, from the contents of files of 16 bits.
    task, times = tf.fill([len(rows)], "translate"), tf.fill([len(rows)], False)
    answers = signatures["options"](
        recordings=tf.constant(files), language=tf.constant(OTHERS), task=task, timestamps=times
    )
    assert [code.decode() for code in answers["language"].numpy()] == OTHERS
    transcripts = pipeline.transcribe(files, language=OTHERS, task="translate")
    texts = [text.decode("utf-8", "replace") for text in answers["transcript"].numpy()]
    assert texts == [transcript.text for transcript in transcripts]


def test_a_tflite_file(pipeline, rows, kind, tmp_path):
    """The number of the language is an input; a batch has one recording."""
    pytest.importorskip("ai_edge_litert")
    files = [encode_wav(row, 16_000) for row in rows[:3]]
    export_litert(pipeline, tmp_path / "m.tflite", files)
    loaded = LiteRTSinglePass(tmp_path / "m.tflite")
    check_all(loaded.run, pipeline, rows, kind)
