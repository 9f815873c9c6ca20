"""A program in place of eSpeak NG, which takes the same arguments and hums."""

import numpy as np

from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.training.demos.settings import VOICES

# Writes its input and its arguments beside itself, and speaks 4,410 samples at 22,050 per second.
FAKE = r"""#!/bin/sh
PATH=/usr/bin:/bin
here=$(dirname "$0")
case "$*" in
    --version) echo "eSpeak NG text-to-speech: 1.51  Data at: /usr/lib/espeak-ng-data"; exit ;;
    "--stdin -v nobody "*)
        printf 'Error: The specified voice does not exist.\nmore\n' >&2
        exit 1 ;;
    "--stdin -v "*" -s "*" -p "*" -b 1 -w "*) ;;
    *) echo "Received: $*" >&2; exit 2 ;;
esac
printf '%s\t%s\t%s\t%s\n' "$(cat)" "$3" "$5" "$7" >> "$here/log"
cp "$here/$3.wav" "${11}"
"""


def write(folder):
    """Writes the program and its voices into a folder, and returns its path.

    `en-gb` sounds like the first voice, as if the program ignored the difference.
    """
    path = folder / "espeak-ng"
    path.write_text(FAKE)
    path.chmod(0o755)
    voices = *VOICES, "en+f5", "en-gb"
    for voice, pitch in zip(voices, (1, 2, 3, 4, 5, 6, 1), strict=True):
        hum = 0.5 * np.sin(np.arange(4410) * (0.02 + 0.01 * pitch))
        path.with_name(f"{voice}.wav").write_bytes(encode_wav(hum, 22_050))
    return path
