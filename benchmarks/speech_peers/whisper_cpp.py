"""whisper.cpp, through pywhispercpp."""

import _pywhispercpp
import pywhispercpp.model
from speech_files import path_of
from speech_task import Speech

from speech_peers import Transcriber


def make(order):
    """Loads the file that `speech_files` wrote."""
    speech = Speech(**order["speech"])
    path = path_of(order["folder"], "whisper-cpp", order["quantize"])
    # Greedy search; no threshold makes it transcribe a second time.
    model = pywhispercpp.model.Model(
        str(path), n_threads=order["cores"], redirect_whispercpp_logs_to=None,
        context_params={"use_gpu": False, "flash_attn": True},
        language="en", greedy={"best_of": 1}, temperature=0.0, temperature_inc=0.0,
        no_timestamps=True, single_segment=True, no_context=True, suppress_blank=False,
        max_tokens=speech.tokens - 1,  # and the last one print_progress=False,
    )  # fmt: skip
    samples = speech.samples()

    def transcribe():
        model.transcribe(samples)

    def rows(_):
        context, number = model._ctx, _pywhispercpp.whisper_full_n_segments(model._ctx)
        return [
            [
                _pywhispercpp.whisper_full_get_token_id(context, segment, place)
                for segment in range(number)
                for place in range(_pywhispercpp.whisper_full_n_tokens(context, segment))
            ]
        ]

    return Transcriber(transcribe, rows)
