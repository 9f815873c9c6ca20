"""Long recordings with pauses: words that Whisper invents, with and without a detector of speech.

    python benchmarks/voice_activity.py --recordings FOLDER --run RUN \\
        --ctranslate2 FOLDER --peers-python PYTHON

Ten recorded sentences are joined by pauses of 20 to 60 seconds: silence, noise, hum or a chord.
Each library transcribes the whole with greedy search. The table has the error rate of the words,
the number of inserted ones, and the processor time, of which tracing and loading are no part. Each
library runs in its own process, pinned to one processor.

FOLDER of the recordings is `usr/share/pocketsphinx/test/data` of Debian's package
`pocketsphinx-testdata`. RUN is a converted checkpoint of Whisper, and FOLDER of CTranslate2 has the
same one for faster-whisper, which PYTHON has installed.
"""

import json
import pathlib
import sys
import tempfile

import click
import jiwer
import numpy as np
from command import RESULTS, describe_machine, names
from measurements import BenchmarkError
from voice_activity_sound import PAUSES, RATE, recording, sentences, words_of
from workers import Worker

FOLDER = click.Path(path_type=pathlib.Path, file_okay=False, exists=True)
HEADER = ("pauses", "library", "detector", "WER", "inserted words", "seconds")


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--recordings", type=FOLDER, required=True, help="PocketSphinx's test data.")
@click.option("--run", "own", type=FOLDER, required=True, help="Run of a checkpoint of Whisper.")
@click.option("--ctranslate2", "theirs", type=FOLDER, help="The checkpoint for faster-whisper.")
@click.option("--peers-python", envvar="KERAS_TRANSFORMER_PEERS_PYTHON",
              help="Python in which faster-whisper is installed.")
@click.option("--pauses", callback=names(PAUSES), default=",".join(PAUSES), show_default=True,
              help="What is between the sentences; a recording for each.")
@click.option("--repeats", type=click.IntRange(1), default=1, show_default=True,
              help="Number of transcriptions, of which the fastest counts.")
@RESULTS
# fmt: on
def main(recordings, own, theirs, peers_python, pauses, repeats, output):
    """Compare transcripts of recordings with long pauses, with and without a detector."""
    if theirs is not None and peers_python is None:
        raise click.UsageError("--ctranslate2 needs --peers-python.")
    models = {"ours": own} | ({} if theirs is None else {"faster-whisper": theirs})
    pythons = {"ours": sys.executable, "faster-whisper": peers_python}
    spoken, results = sentences(recordings), []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind in pauses:
                samples, words = recording(kind, spoken)
                path = pathlib.Path(folder, f"{kind}.npy")
                np.save(path, samples)
                for library, model in models.items():
                    for gate in (False, True):
                        order = {
                            "library": library, "model": str(model.resolve()), "gate": gate,
                            "samples": str(path),
                        }  # fmt: skip
                        how = order, 1, pythons[library]
                        with Worker(library, "speech_peers.long_recordings", *how) as worker:
                            runs = [worker.run(1) for _ in range(repeats)]
                        result = {"pauses": kind, "library": library, "gate": gate}
                        result |= {"sound_seconds": len(samples) / RATE}
                        results.append(result | judged(runs, words))
                        print(json.dumps(results[-1]), flush=True)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    report = {"machine": describe_machine(1), "voice_activity": results}
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print("\n".join(["", *table(results)]))


def table(results):
    """Yields the lines of a table in Markdown."""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for one in results:
        gate, numbers = "yes" if one["gate"] else "no", f"{one['wer']:.3f} | {one['inserted']}"
        yield (
            f"| {one['pauses']}, {one['sound_seconds']:.0f} s | {one['library']} | {gate} | "
            f"{numbers} | {one['seconds']:.1f} |"
        )


def judged(runs, words):
    """Returns the error rate, the number of inserted words and the seconds of the fastest run."""
    text = runs[0]["text"]
    found = jiwer.process_words(words_of(words), words_of(text))
    seconds = min(run["processor_seconds"] for run in runs)
    return {"wer": found.wer, "inserted": found.insertions, "seconds": seconds, "text": text}


if __name__ == "__main__":
    main()
