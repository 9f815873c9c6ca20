"""`predict --stream`: raw samples in, words out as soon as they are final."""

import numpy as np

from keras_transformer.tasks.incomplete import INCOMPLETE

WIDTH = 2  # bytes of a sample
# The first bytes of files, which raw samples do not begin with.
FILES = {b"RIFF": "WAV", b"fLaC": "FLAC", b"OggS": "Ogg", b"ID3\x03": "MP3", b"ID3\x04": "MP3"}
LONGEST = max(map(len, FILES))


def transcribe_stream(recognizer, source, target, warn) -> int:
    """Writes the words of speech while it arrives, and a line feed at the end.

    Ctrl-C ends the recording: the words until then are written, then the process ends.

    Args:
        recognizer: A `SpeechRecognizer`.
        source: Binary stream of samples: integers of 16 bits, little-endian, one channel, at the
            sample rate of the model.
        target: Binary stream, flushed after every group of words.
        warn: Function that is called with a line of text if there is too little sound for a
            transcript, the last sample is incomplete, or an output reaches its maximum length.

    Returns:
        Number of samples.

    Raises:
        ValueError: If the stream begins like a file, whose header would be taken for sound.
        KeyboardInterrupt: If the process was interrupted, when all words are written.
    """
    stream, count, rest, begun = recognizer.stream(), 0, b"", False
    beginning, interruption, rate = b"", None, recognizer.sample_rate
    read = getattr(source, "read1", source.read)  # what has arrived, not a whole block

    def write(words):
        nonlocal begun
        if words:
            text = "".join(words)
            target.write((text if begun else text.lstrip()).encode())
            target.flush()
            begun = True

    try:
        while block := read(WIDTH * rate):
            if len(beginning) < LONGEST:
                beginning += block[: LONGEST - len(beginning)]
                _check_raw(beginning, rate)
            block = rest + block
            whole = len(block) // WIDTH * WIDTH
            rest, count = block[whole:], count + whole // WIDTH
            write(stream.add(np.frombuffer(block[:whole], "<i2").astype(np.float32) / 32_768))
    except KeyboardInterrupt as error:
        interruption = error
    if rest:
        warn("the last sample has one byte instead of two and is ignored")
    if count < recognizer.codec.speech.hop_length:
        warn(f"stdin has {count} samples, too few for a transcript")
    write(stream.finish())
    if not stream.complete:
        warn(INCOMPLETE)
    target.write(b"\n")
    target.flush()
    if interruption is not None:
        raise interruption
    return count


def _check_raw(beginning, rate):
    """Raises a `ValueError` if a stream begins with the first bytes of a file."""
    for magic, kind in FILES.items():
        if beginning.startswith(magic):
            raise ValueError(
                f"stdin has a {kind} file, but --stream reads raw samples. Name the file after "
                f"MODEL, without --stream, or convert it: ffmpeg -i FILE -f s16le -ac 1 -ar {rate} "
                "-."
            )
