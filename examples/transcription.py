# %% [markdown]
"""
# Transcribing recordings with Whisper

A published Whisper transcribes readings of a novel, in Python and from a file in int8.

Created 2026-11-30, last modified 2026-11-30. Accelerator: none.
"""

# %% [markdown] tags=["page"]
"""
Install the package from a checkout of the repository, get recordings with their transcripts
(Debian's copy of PocketSphinx's test data, 8 MB), and run the example, which downloads a checkpoint
(151 MB):

```sh
pip install -e ".[plot,hub,litert,speech]"
apt-get download pocketsphinx-testdata
dpkg-deb -x pocketsphinx-testdata_*.deb recordings
export RECORDINGS=recordings/usr/share/pocketsphinx/test/data/librivox
python examples/transcription.py
```

The page of this example shows the output of one run;
[the notebook](transcription.ipynb) has the same cells. If you have the checkpoint, set the
environment variable `CHECKPOINT` to its folder. For recordings of your own, set `RECORDINGS` to a
folder of WAV files with a file `transcription`: a line `the text (name)` for each `name.wav`.
"""

# %% [markdown]
"""
## Introduction

Whisper (Radford et al., 2023) is an encoder-decoder: the encoder reads the spectrogram of up to 30
seconds, and the decoder writes the text. We take the smallest,
[tiny.en](https://huggingface.co/openai/whisper-tiny.en): 4 + 4 layers of width 384 (MIT). Nothing
is trained here. We measure its errors, look at its attention, and export it with its
decoding loop to one `.tflite` file in int8.
"""

# %% [markdown]
"""
## Setup
"""

# %%
import os
import pathlib
import re
import tempfile
import time
import wave

import keras_transformer
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.tasks.speech_recognition.metrics import word_error_rate
from keras_transformer.tasks.speech_recognition.plots import speech_attention_figure

# %matplotlib inline
CHECKPOINT = os.environ.get("CHECKPOINT", "openai/whisper-tiny.en")
RECORDINGS = os.environ.get("RECORDINGS")
if not RECORDINGS:
    raise SystemExit(
        "Set RECORDINGS to a folder with recordings and their transcripts, for example with "
        "`apt-get download pocketsphinx-testdata`."
    )

# %% [markdown]
"""
## Data

Five sentences of Jane Austen's "Sense and Sensibility", read by a volunteer of LibriVox. The
recordings are in the public domain.
"""

# %%
lines = pathlib.Path(RECORDINGS, "transcription").read_text(encoding="utf-8").splitlines()
transcripts = {}
for line in lines:
    text, name = re.fullmatch(r"(?:<s> )?(.*?)\s*(?:</s> )?\((.+)\)", line.strip()).groups()
    transcripts[str(pathlib.Path(RECORDINGS, f"{name}.wav"))] = text
paths, references = [*transcripts], [*transcripts.values()]


def length(path):
    """Returns the length of a recording in seconds."""
    with wave.open(path) as recording:
        return recording.getnframes() / recording.getframerate()


sound = sum(map(length, paths))
print(f"{len(paths)} recordings, {sound:.1f} s of sound")

# %% [markdown]
"""
## Model

`from_pretrained` returns a `SpeechRecognizer`: the model with its features and its tokenizer.
"""

# %%
recognizer = keras_transformer.from_pretrained(CHECKPOINT)
print(f"{recognizer.model.count_params()} parameters")
texts = [transcript.text for transcript in recognizer.transcribe(paths)]
for text in texts:
    print(text.strip())

# %% [markdown]
"""
## Evaluation

The word error rate counts words that are missing, added or different. The transcripts of the data
have no punctuation and no abbreviations, so we remove the former and write out the latter.
"""


# %%
def normalized(text):
    """Returns a text as the transcripts of the data are written."""
    text = re.sub(r"\bMr\.", "Mister", text).lower().replace("-", " ")
    return " ".join(re.findall(r"[a-z']+", text))


def errors(texts):
    """Returns the word error rate of transcripts."""
    return word_error_rate([normalized(text) for text in texts], references)


print(f"Checkpoint, word error rate: {errors(texts):.3f}")
for text, reference in zip(map(normalized, texts), references, strict=True):
    if text != reference:
        print(f"heard: {text}\nread:  {reference}")

# %% [markdown]
"""
Each row of the figure is a word of the transcript. It shows to which parts of the recording the
decoder attended when it generated this word.
"""

# %%
# Picture: The spectrogram of a recording, and below it the attention of each word to the sound.
# The attention moves from the beginning of the recording to its end.
speech_attention_figure(recognizer.attention(paths[1])["sound"])

# %% [markdown]
"""
## Export

The file takes the samples of a recording and returns the ids of tokens; its archive contains the
vocabulary. `export_litert` keeps it only if it transcribes the samples like the model in memory.
"""

# %%
file = pathlib.Path(tempfile.mkdtemp()) / "whisper.tflite"
report = export_litert(recognizer, file, paths[:2], LiteRTOptions(quantize="int8"))
print(f"{report['bytes'] / 1e6:.1f} MB; graphs: {', '.join(report['signatures'])}")

# %% [markdown]
"""
`open` opens the file. The same class answers as for the model in memory, so that both can be
compared. The file answers on one thread.
"""

# %%
exported = keras_transformer.open(file, num_threads=1)
exported.answer(paths[:1])  # packs the weights
start = time.process_time()
answers = [answer.text for answer in exported.answer(paths)]
seconds = (time.process_time() - start) / sound
print(f"{seconds:.2f} s of processor time for a second of sound")
print(f"{sum(map(str.__eq__, answers, texts))} of {len(texts)} transcripts are identical")
print(f"File in int8, word error rate: {errors(answers):.3f}")

# %% [markdown]
"""
## Conclusion

Without any training, the word error rate is 0.042: "old-sposed" in place of "ill-disposed", and an
"a" that one of the transcripts has twice. The file in int8 has 45.4 MB, less than a third of the
checkpoint's 151 MB, and gives the same transcripts. On one thread it takes less than a tenth of the
time that the recordings last. The page in `examples/browser` transcribes your voice with such a
file.
"""

# %% [markdown]
"""
## Read next

- [Speech recognition](../speech.md): long recordings, timestamps, subtitles, languages, and the
  page that transcribes in a browser.
- [Pretrained models](../pretrained.md): other checkpoints of Whisper.
- [Plots](../plots.md): attention of each layer and head.
"""
