"""Peers of `speech.py`, one file each.

The `make` of a peer gets the fields of a `Speech`, the folder that `speech_files` filled, the
number of threads and the peer's own options. It returns a `Transcriber`.
"""

from speech_task import PROMPT


class Transcriber:
    """A function from nothing to token ids, `[1, tokens]`: the transcript of the recording.

    Args:
        transcribe: The function, which computes the features from the samples in every call.
        rows: Function from its result to lists of token ids of the text; not timed.
    """

    def __init__(self, transcribe, rows):
        self._transcribe = transcribe
        self.metadata = {"tokens": rows(transcribe())}

    def run(self, steps):
        """Transcribes the recording `steps` times."""
        for _ in range(steps):
            self._transcribe()
        return {}


def inputs_of(speech, names):
    """Returns the inputs of our exports with these names: the recording, and the prompt's choices.

    Args:
        speech: A `Speech`.
        names: Names of the inputs of a signature; those of choices depend on the model.
    """
    import numpy as np

    samples = speech.samples()[None]
    language, task, _ = map(speech.id_of, PROMPT)
    numbers = {"lengths": samples.shape[1], "language": language, "task": task, "timestamps": 0}
    inputs = {name: np.array([number], np.int32) for name, number in numbers.items()}
    return {"samples": samples, **{name: inputs[name] for name in names if name != "samples"}}
