"""Peers of `speech.py`, one file each.

The `make` of a peer gets the fields of a `Speech`, the folder that `speech_files` filled, the
number of threads and the peer's own options. It returns a `Transcriber`.
"""


class Transcriber:
    """A function from nothing to token ids, `[1, tokens]`: the transcript of the recording.

    Args:
        transcribe: The function, which computes the features from the samples in every call.
        rows: Function from its result to lists of token ids of the text; not timed.
    """

    def __init__(self, transcribe, rows):
        self._transcribe = transcribe
        self.facts = {"tokens": rows(transcribe())}

    def run(self, steps):
        """Transcribes the recording `steps` times."""
        for _ in range(steps):
            self._transcribe()
        return {}
