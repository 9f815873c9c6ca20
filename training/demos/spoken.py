"""The phrases of the demo, spoken by the program eSpeak NG. Nothing is downloaded."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import babel

from keras_transformer.files import draft_of, remove_stale_drafts
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav, read_wav
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.generated import held_out
from keras_transformer.training.data.sources.phrases import PhraseBook
from keras_transformer.training.tasks.speech_recognition.files import SpeechFiles, find_recordings
from keras_transformer.training.tasks.speech_recognition.speed_copies import at_speeds

PROGRAM = "espeak-ng"
UNSEEN = "unseen_voice"  # name of the table of the voice that is not in the splits
VERSION = 1  # changes whenever the same settings give other recordings
PROBE = "The quick brown fox jumps over the lazy dog."
SECONDS = 60  # for one phrase; eSpeak NG takes some milliseconds
SETTINGS = (
    *("examples", "seed", "sample_rate", "voices", "unseen_voice", "words_per_minute", "pitch"),
)


@dataclasses.dataclass(frozen=True)
class Utterance:
    """A phrase and how it is spoken; see `man espeak-ng`.

    Args:
        text: The phrase.
        voice: Name of a voice, with a variant after `+`.
        words_per_minute: Speed.
        pitch: Pitch, from 0 to 99.
    """

    text: str
    voice: str
    words_per_minute: int
    pitch: int


def draw_utterances(settings) -> dict[str, list[Utterance]]:
    """Draws phrases, and for each of them a voice, a speed and a pitch.

    Returns:
        Dictionary of the utterances of `train`, `validation` and `test`, which share no phrase and
        have the same voices, and of `unseen_voice`: those of `test`, all by a voice that none of
        the others has.
    """
    book = PhraseBook(babel.Locale.parse("en"), babel.Locale.parse("de"))
    splits = held_out(list(book.phrases(settings.examples, settings.seed)), settings.seed + 1)
    dice, drawn = Dice(settings.seed + 2), {}

    def whole(low, high):
        return low + dice.below(high - low + 1)

    for split, texts in splits.items():
        drawn[split] = [
            Utterance(
                " ".join(text.split()),
                dice.pick(settings.voices),
                whole(*settings.words_per_minute),
                whole(*settings.pitch),
            )
            for text in texts
        ]
    unseen = [dataclasses.replace(one, voice=settings.unseen_voice) for one in drawn["test"]]
    return {**drawn, UNSEEN: unseen}


def open_spoken_demo(settings) -> Source:
    """Opens the recordings that a `[data]` section describes, and makes them if needed.

    They are stored in a folder of `data_dir`, with a table for each split and one for the voice
    that is not in the splits.

    Raises:
        ValueError: If eSpeak NG is missing, it refuses a voice or two voices sound the same, or the
            folder cannot be written. One line.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise ValueError(
            f'`data.source = "spoken_demo"` needs the program {PROGRAM}, which is not installed. '
            f"On Debian and Ubuntu: sudo apt-get install {PROGRAM}"
        )
    own = {name: getattr(settings, name) for name in SETTINGS}
    own |= {"version": VERSION, "babel": babel.__version__, PROGRAM: _version_of(program)}
    name = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]
    folder = _root(settings) / "spoken_demo" / name
    if not folder.is_dir():
        _check_voices(program, [*settings.voices, settings.unseen_voice])
        try:
            _make(folder, program, draw_utterances(settings), settings.sample_rate)
        except OSError as error:
            raise ValueError(
                "`data_dir` must be a folder that can be written. Received: "
                f"{folder.parent}: {error.strerror or error}."
            ) from error
    files = {
        split: find_recordings(folder / f"{split}.tsv") for split in ("train", "validation", "test")
    }
    data = SpeechFiles(files, f"the demo's phrases, spoken by {PROGRAM}", settings.sample_rate)
    return at_speeds(data, settings)


def _root(settings):
    """Returns the folder of all generated data."""
    default = os.environ.get("TFDS_DATA_DIR", "~/tensorflow_datasets")
    return pathlib.Path(settings.data_dir or default).expanduser()


def _version_of(program):
    text = _run([program, "--version"], "").decode("utf-8", "replace")
    number = re.search(r"\d+(\.\d+)+", text)
    return number[0] if number else text.strip()


def _check_voices(program, voices):
    """Raises a `ValueError` if two voices sound the same: unknown variants are no error for it."""
    heard = {}
    for voice in voices:
        sound = _spoken(program, Utterance(PROBE, voice, 160, 50), 16_000).tobytes()
        if sound in heard:
            raise ValueError(
                f"`voices` and `unseen_voice` must sound different. {PROGRAM} speaks {voice!r} "
                f"like {heard[sound]!r}; it ignores a variant that it does not know or that does "
                "not fit."
            )
        heard[sound] = voice


def _make(folder, program, splits, sample_rate):
    """Writes the recordings and tables of all splits, completely or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts(folder.parent)
    draft = draft_of(folder)
    try:
        for split, utterances in splits.items():
            (draft / split).mkdir(parents=True)
            names = [f"{split}/{number:06}.wav" for number in range(len(utterances))]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                made = [
                    pool.submit(_speak, program, utterance, draft / name, sample_rate)
                    for name, utterance in zip(names, utterances, strict=True)
                ]
                try:
                    for one in made:
                        one.result()
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            lines = [
                f"{name}\t{utterance.text}\n"
                for name, utterance in zip(names, utterances, strict=True)
            ]
            (draft / f"{split}.tsv").write_text("".join(lines), "utf-8")
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _speak(program, utterance, path, sample_rate):
    """Writes an utterance as a WAV file at the sample rate."""
    path.write_bytes(encode_wav(_spoken(program, utterance, sample_rate), sample_rate))


def _spoken(program, utterance, sample_rate):
    """Returns the samples of an utterance, `[N]`, float32."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "speech.wav"
        options = {
            "-v": utterance.voice,
            "-s": utterance.words_per_minute,
            "-p": utterance.pitch,
            "-b": 1,  # the text is UTF-8
            "-w": raw,
        }
        command = [program, "--stdin"]  # a text that begins with a minus sign is not an option
        for option, value in options.items():
            command += [option, str(value)]
        _run(command, utterance.text, f"voice {utterance.voice!r}")
        return read_wav(raw, sample_rate, f"{PROGRAM}, {utterance.text!r}")


def _run(command, text, name="") -> bytes:
    """Returns what a command prints, whose input is `text`."""
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"{PROGRAM} does not answer within {SECONDS} seconds.") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise ValueError(
            f"{PROGRAM} failed with exit status {done.returncode}{', ' * bool(name)}{name}: "
            f"{reason or 'without a message'}"
        )
    return done.stdout
