"""faster-whisper: its features, and CTranslate2, which it calls with the same arguments."""

import faster_whisper
from speech_files import path_of
from speech_task import PROMPT, SAMPLE_RATE, SECONDS, START, Speech
from whisper_checkpoint import HOP

from speech_peers import Transcriber


def make(order):
    """Loads the folder that CTranslate2's converter wrote."""
    speech = Speech(**order["speech"])
    model = faster_whisper.WhisperModel(
        str(path_of(order["folder"], "ctranslate2", order["quantize"])),
        device="cpu", compute_type=order["compute_type"], cpu_threads=order["cores"],
        local_files_only=True,
    )  # fmt: skip
    samples, frames = speech.samples(), SAMPLE_RATE * SECONDS // HOP
    prompt = [speech.id_of(piece) for piece in (START, *PROMPT)]
    # CTranslate2 emits at most half of this maximum.
    options = {
        "beam_size": 1, "max_length": 2 * speech.tokens, "suppress_blank": False,
        "suppress_tokens": [],
    }  # fmt: skip

    def transcribe():
        features = model.feature_extractor(samples)[:, :frames]
        return model.model.generate(model.encode(features), [prompt], **options)

    def rows(results):
        return [result.sequences_ids[0] for result in results]

    return Transcriber(transcribe, rows)
