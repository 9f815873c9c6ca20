"""A converted Whisper checkpoint is fine-tuned on recordings, with CTC, and exported."""

import numpy as np
import pytest
import tensorflow as tf
import whisper_folders
from small_runs import run_quietly

from keras_transformer.export import export_saved_model
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.training.converted import write_converted
from keras_transformer.training.settings.toml import load_settings

CONFIG = """
task = { kind = "speech_recognition" }

[model]
start_from = "whisper"

[data]
source = "speech_files"
train = "train.tsv"
validation = "validation.tsv"
max_length = 8
batch_frames = 200

[schedule]
warmup_steps = 1
peak = 0.01

[training]
updates = 30
ctc_weight = 0.3
validate_every = 10
validate_sentences = 0
checkpoint_every = 10
"""
TEXTS = ("a cat", "a dog", "dog")


def write_recordings(folder):
    """Each text has a pitch of its own; the recordings are as long as the checkpoint allows."""
    random = np.random.default_rng(0)
    for split in ("train", "validation"):
        lines = []
        for number in range(9):
            text = TEXTS[number % len(TEXTS)]
            tone = np.sin(np.arange(2000) * (0.1 + 0.3 * (number % len(TEXTS))))
            sound = (0.4 * tone + 0.05 * random.normal(size=2000)).astype("float32")
            (folder / f"{split}{number}.wav").write_bytes(encode_wav(sound, 16_000))
            lines.append(f"{split}{number}.wav\t{text}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))


@pytest.mark.long
@pytest.mark.slow
def test_a_converted_checkpoint_is_fine_tuned_and_exported(tmp_path):
    whisper_folders.write_folder(tmp_path / "hf")
    checkpoint = read_checkpoint(tmp_path / "hf")
    write_converted(checkpoint, tmp_path / "whisper")
    write_recordings(tmp_path)
    (tmp_path / "config.toml").write_text(CONFIG)

    def loss(*overrides):
        settings = load_settings(tmp_path / "config.toml", list(overrides))
        figures, _ = run_quietly(settings, tmp_path / f"run{len(overrides)}")
        return figures["validation"]["loss"]

    # The rate of one update is too small for a change.
    before = loss("training.updates=1", "schedule.peak=1e-9")
    assert loss() < 0.5 * before
    tuned = SpeechRecognizer.from_run(tmp_path / "run0")
    assert tuned.model.config == checkpoint.model.config
    files = [(tmp_path / f"validation{number}.wav").read_bytes() for number in range(3)]
    assert export_saved_model(tuned, tmp_path / "m", files)["agreement"] == 1
    answers = tf.saved_model.load(str(tmp_path / "m" / "1")).signatures["serving_default"]
    transcripts = answers(recordings=tf.constant(files))["transcript"].numpy()
    expected = [transcript.text for transcript in tuned.transcribe(files)]
    assert [text.decode() for text in transcripts] == expected
