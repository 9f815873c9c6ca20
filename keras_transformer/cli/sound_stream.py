"""`predict --stream`: raw samples in, words out as soon as they are final."""

import numpy as np

WIDTH = 2  # bytes of a sample


def transcribe_stream(recognizer, source, target, warn) -> int:
    """Writes the words of speech while it arrives, separated by spaces, and a line feed at the end.

    Args:
        recognizer: A `SpeechRecognizer`.
        source: Binary stream of samples: integers of 16 bits, little-endian, one channel, at the
            sample rate of the model.
        target: Binary stream, flushed after every group of words.
        warn: Function that is called with a line of text if the last sample is incomplete.

    Returns:
        Number of samples.
    """
    stream, count, rest, separator = recognizer.stream(), 0, b"", b""
    read = getattr(source, "read1", source.read)  # what has arrived, not a whole block

    def write(words):
        nonlocal separator
        if words:
            target.write(separator + " ".join(words).encode())
            target.flush()
            separator = b" "

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
