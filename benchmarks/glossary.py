"""Terms of a glossary in the outputs of beams: terms found, BLEU and time, with and without it.

Each sentence has one term: the longest word of its reference. The glossary's source term is the
whole sentence, so that no sentence has the term of another one. References leak into the outputs
through the terms, so BLEU shows whether terms are placed well, not whether translations are better.
The texts must be tokenised like those of Multi30K, as BLEU compares their tokens as they are.

    python benchmarks/glossary.py RUN SOURCE REFERENCE
    python benchmarks/glossary.py RUN SOURCE REFERENCE --export model.onnx --export model.tflite

The second command compares exports that take words (`export --takes-words --beam N`) with the run,
searched with the beam of the export. For other exports it measures the time only.

Prints a table in Markdown. Times are processor time in batches of 64, without the tracing of the
graph; run it on one core (`taskset -c 0`).
"""

import pathlib
import re
import time

import click

import keras_transformer
from keras_transformer import Beam, Translator
from keras_transformer.text.lines import read_lines
from keras_transformer.text.quality import score
from keras_transformer.text.terms import contains

BATCH = 64
FILE = click.Path(path_type=pathlib.Path, exists=True, dir_okay=False)
TITLES = (
    *("beam", "terms found without glossary", "with", "BLEU without", "with"),
    *("ms per sentence without", "with"),
)
OF_EXPORTS = (
    *("export", "beam", "terms found", "outputs of the run"),
    *("ms per sentence of the run", "of the export", "without words"),
)


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(exists=True))
@click.argument("source", type=FILE)
@click.argument("reference", type=FILE)
@click.option("--sentences", type=click.IntRange(1), default=200, help="Number of sentences.")
@click.option("--export", "exports", type=click.Path(path_type=pathlib.Path, exists=True),
              multiple=True, help="Export to compare with the run; may be repeated.")
@click.option("--beam", "sizes", type=click.IntRange(1), multiple=True, default=(4, 5, 8, 10),
              help="Size of a beam; may be repeated.")
# fmt: on
def main(run, source, reference, sentences, exports, sizes):
    """Measure how a translation run follows a glossary."""
    sources, references = (read_lines(path)[:sentences] for path in (source, reference))
    glossary = {
        source: max(re.findall(r"[^\W\d_]+", reference), key=len)
        for source, reference in zip(sources, references, strict=True)
    }
    terms = [glossary[source] for source in sources]
    plain = Translator.from_run(run)
    with_terms = plain.with_settings(glossary=glossary)
    if exports:
        _print_exports(exports, with_terms, sources, terms)
        return
    print("|", " | ".join(TITLES), "|")
    print("|---:" * len(TITLES), "|", sep="")
    for size in sizes:
        columns = [
            _measure(translator, sources, references, terms, Beam(size))
            for translator in (plain, with_terms)
        ]
        cells = [cell for pair in zip(*columns, strict=True) for cell in pair]
        print("|", size, "|", " | ".join(cells), "|", flush=True)


def _print_exports(exports, with_terms, sources, terms):
    """Prints a table in Markdown: exports whose calls take the words of a `Translator`."""
    print(f"| {' | '.join(OF_EXPORTS)} |\n|---|{'---:|' * (len(OF_EXPORTS) - 1)}", flush=True)
    for path in exports:
        opened = keras_transformer.open(path)
        search = getattr(opened, "beam", None) or opened.search
        if opened.search not in (None, search):
            opened = opened.with_search(search)
        cells = [path.name, str(search.size)]
        _, plain = _timed(opened, sources)
        if "glossary" not in opened.settings:
            cells += [*["-"] * 4, _milliseconds(plain, sources)]
            print(f"| {' | '.join(cells)} |", flush=True)
            continue
        outputs, slow = _timed(with_terms, sources, search=search)
        worded = opened.with_settings(glossary=with_terms.wording.glossary)
        ours, fast = _timed(worded, sources)
        found = sum(map(contains, ours, terms)) / len(terms)
        same = sum(one == other for one, other in zip(outputs, ours, strict=True))
        cells += [f"{100 * found:.1f} %", f"{same} of {len(sources)}"]
        cells += [_milliseconds(seconds, sources) for seconds in (slow, fast, plain)]
        print(f"| {' | '.join(cells)} |", flush=True)


def _milliseconds(seconds, sources):
    return f"{1000 * seconds / len(sources):.0f}"


def _timed(translator, sources, **options):
    """Returns the outputs, and the processor time in seconds of the second call."""
    for _ in range(2):  # the first one traces the graph
        began = time.process_time()
        outputs = translator(sources, batch_size=BATCH, **options)
    return outputs, time.process_time() - began


def _measure(translator, sources, references, terms, search):
    """Returns the share of terms found, BLEU and milliseconds per sentence, as strings."""
    translator(sources[:BATCH], search=search, batch_size=BATCH)
    begin = time.process_time()
    outputs = translator(sources, search=search, batch_size=BATCH)
    milliseconds = 1000 * (time.process_time() - begin) / len(sources)
    found = sum(map(contains, outputs, terms)) / len(terms)
    bleu = score(outputs, references, tokenize="none")["bleu"]
    return f"{found:.1%}", f"{bleu:.1f}", f"{milliseconds:.0f}"


if __name__ == "__main__":
    main()
