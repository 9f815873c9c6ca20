"""`predict --stream`: raw samples in, words out as soon as they are final."""

import numpy as np

WIDTH = 2  # bytes of a sample


def transcribe_stream(recognizer, source, target, warn) -> int:
    """Writes the words of speech while it arrives, and a line feed at the end.

    Args:
        recognizer: A `SpeechRecognizer`.
        source: Binary stream of samples: integers of 16 bits, little-endian, one channel, at the
            sample rate of the model.
        target: Binary stream, flushed after every group of words.
        warn: Function that is called with a line of text if the last sample is incomplete.

    Returns:
        Number of samples.
    """
    stream, count, rest, begun = recognizer.stream(), 0, b"", False
    read = getattr(source, "read1", source.read)  # what has arrived, not a whole block

    def write(words):
        nonlocal begun
        if words:
            text = "".join(words)
            target.write((text if begun else text.lstrip()).encode())
            target.flush()
            begun = True

    while block := read(WIDTH * recognizer.sample_rate):
        block = rest + block
        whole = len(block) // WIDTH * WIDTH
        rest, count = block[whole:], count + whole // WIDTH
        write(stream.add(np.frombuffer(block[:whole], "<i2").astype(np.float32) / 32_768))
    if rest:
        warn("the last sample has one byte instead of two and is ignored")
    write(stream.finish())
    target.write(b"\n")
    target.flush()
    return count
