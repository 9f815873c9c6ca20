"""Size, time and quality of runs for translation in several number formats: a table and a plot.

    python benchmarks/pareto.py RUN... --folder FOLDER --beam 5 --length-penalty 1 --tokenize none

Each run is exported by `keras-transformer export litert` in each number format. Each file then
translates a split of its run's data. Its signatures take one sentence, unless `--export` says
otherwise. Time is the processor time of one thread on one core, tokenization included. The files
run in turn, a few sentences each, so that all are measured under the same conditions. A file is on
the front if every smaller file, or every faster one, is worse.

With `--page N`, the page of `examples/browser` translates the first N sentences with each file, in
headless Chromium. Its time is the shortest of three wall-clock times. This needs Node,
Chromium, and `npm install` in that folder.
"""

import contextlib
import json
import os
import pathlib
import shlex
import time

import click
from command import describe_machine, names, versions
from decoding_files import LENIENT, run_command
from measurements import BenchmarkError
from student_parts.browser import Page, missing
from workers import processors

QUANTIZATIONS = ("none", "float16", "int8", "int4")
TITLES = {"none": "float32"}
MARKERS = {"none": "o", "float16": "D", "int8": "s", "int4": "^"}
CHECKED = 32  # sentences with which an export is checked; its quality is measured here
CHUNK = 16  # sentences that a file translates in a row
PAGE_TURNS = 3  # times that the page translates the sentences
PACKAGES = ("tensorflow", "keras", "ai-edge-litert", "sacrebleu")


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.argument("runs", nargs=-1, required=True,
                type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False))
@click.option("--folder", required=True, type=click.Path(path_type=pathlib.Path, file_okay=False),
              help="Folder for the files, `results.json`, `table.md` and `pareto.svg`.")
@click.option("--quantize", callback=names(QUANTIZATIONS), default="none,int8,int4",
              help="Number formats to compare.")
@click.option("--split", type=click.Choice(["validation", "test"]), default="validation",
              help="Split to translate.")
@click.option("--sentences", type=click.IntRange(1), help="Maximum number of sentences.")
@click.option("--beam", type=click.IntRange(1), default=1,
              help="Number of hypotheses; 1 is greedy search.")
@click.option("--length-penalty", type=float, default=1.0, help="Length penalty of the beam.")
@click.option("--tokenize", default="13a", help="Tokenizer of sacreBLEU.")
@click.option("--export", "more", callback=lambda context, parameter, value: shlex.split(value),
              default="--lengths 64 --max-length 64", help="More options of `export litert`.")
@click.option("--page", type=click.IntRange(0), default=0,
              help="Number of sentences that the web page translates.")
# fmt: on
def main(runs, folder, quantize, split, sentences, beam, length_penalty, tokenize, more, page):
    """Compare RUNS, folders of runs for translation with the same data."""
    from keras_transformer import Beam, Greedy

    try:
        if page and beam > 1 and "--beam-only" not in more:
            raise BenchmarkError(
                "The page searches greedily unless a file has only a beam: add --beam-only to "
                "--export, or use --page without --beam."
            )
        if page and missing():
            raise BenchmarkError(f"--page needs {missing()}.")
        labels = labels_of(runs)
        source, reference = read_split(runs, split, sentences)
        folder.mkdir(parents=True, exist_ok=True)
        some = folder / "sentences.txt"
        some.write_text("".join(f"{line}\n" for line in source[:CHECKED]), "utf-8")
        search, chosen = Greedy(), ["--greedy"]
        if beam > 1:
            search = Beam(beam, length_penalty=length_penalty)
            chosen = ["--beam", f"{beam}", "--length-penalty", f"{length_penalty}"]
        files = {}
        for run, label in labels.items():
            for kind in quantize:
                files[label, kind] = path = folder / f"{label}-{kind}.tflite"
                print(f"exporting {path.name}", flush=True)
                format = [] if kind == "none" else ["--quantize", kind, *LENIENT]
                place = [str(run), str(path), "--sentences", str(some)]
                run_command(["export", "litert", *place, *format, *chosen, *more])
        pages = {key: in_page(path, source[:page]) for key, path in files.items() if page}
        rows = measure(files, search, source, reference, tokenize)
        for row in rows:
            texts = row.pop("texts")
            if answers := pages.get((row["run"], row["quantize"])):
                row |= compared(*answers, texts[:page])
    except (BenchmarkError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    report = {
        "machine": describe_machine(1), "versions": versions(PACKAGES), "split": split,
        "sentences": len(source), "search": chosen, "export": more, "rows": rows,
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    (folder / "table.md").write_text(table(rows) + "\n", "utf-8")
    print(table(rows))
    draw(rows, folder / "pareto.svg")


def labels_of(runs):
    """Returns a dictionary from the folders of runs to their names, which must differ."""
    labels = {run: run.resolve().name for run in runs}
    if len(set(labels.values())) < len(runs):
        raise BenchmarkError(
            "The folders of the runs must have different names, which label the results. "
            f"Received: {', '.join(map(str, runs))}."
        )
    return labels


def read_split(runs, split, limit):
    """Returns the sources and references of a split, which must be the same for all runs."""
    from keras_transformer.training.evaluate import read_columns, task_of
    from keras_transformer.training.settings.sources import open_source
    from keras_transformer.training.settings.toml import load_settings

    task, columns = task_of(runs[0]), []
    if task.name != "translation":
        raise BenchmarkError(f"{runs[0]} is a run for {task.name}, not for translation.")
    for run in runs:
        data = open_source(load_settings(run / "config.toml").data, task.columns)
        data.check_split(split)
        columns.append(read_columns(data, task_of(run), split, limit))
        if columns[-1] != columns[0]:
            raise BenchmarkError(f"{runs[0]} and {run} have different data in the split {split}.")
    return columns[0]


def measure(files, search, source, reference, tokenize):
    """Returns a row of results for each file, with its translations as `texts`.

    Args:
        files: Dictionary from pairs of a run's name and a number format to paths.
        search: `Greedy` or `Beam`.
        source, reference: Lists of sentences.
        tokenize: Tokenizer of sacreBLEU.
    """
    from keras_transformer.export.litert.runtime import LiteRTTranslator
    from keras_transformer.text.quality import score

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processors(1))
    translators = {key: LiteRTTranslator(path, search, 1) for key, path in files.items()}
    texts, seconds = {key: [] for key in files}, dict.fromkeys(files, 0.0)
    for translator in translators.values():
        translator.answer_batch(source[:1])  # the first call is slower
    ring = list(translators)
    for start in range(0, len(source), CHUNK):
        some = source[start : start + CHUNK]
        for key in ring:
            begin = time.process_time()
            outputs = translators[key].answer_batch(some)
            seconds[key] += time.process_time() - begin
            texts[key] += [output.text for output in outputs]
        ring = [*ring[1:], ring[0]]
    rows = []
    for (run, kind), path in files.items():
        quality = score(texts[run, kind], reference, tokenize=tokenize)
        first = texts[run, next(other for name, other in files if name == run)]
        same = [ours == theirs for ours, theirs in zip(texts[run, kind], first, strict=True)]
        rows.append({
            "run": run, "quantize": kind, "bytes": path.stat().st_size,
            "milliseconds": 1e3 * seconds[run, kind] / len(source), "bleu": quality["bleu"],
            "chrf": quality["chrf"], "same": sum(same) / len(same), "texts": texts[run, kind],
        })  # fmt: skip
    return rows


def in_page(path, source):
    """Returns the translations of the page with a file, and the seconds that it takes.

    Args:
        path: Path of the file.
        source: List of sentences.
    """
    order, seconds = {"engine": "litert", "files": [str(path)], "folder": str(path.parent)}, []
    try:
        with contextlib.closing(Page(order, source)) as page:
            for _ in range(PAGE_TURNS):
                begin = time.perf_counter()
                page.run(1)
                seconds.append(time.perf_counter() - begin)
            return page.answers, min(seconds)
    except RuntimeError as error:
        raise BenchmarkError(f"{path.name}: {error}") from error


def compared(answers, seconds, expected):
    """Returns the results of the page, whose translations are compared with those in Python."""
    same = [ours == theirs for ours, theirs in zip(answers, expected, strict=True)]
    return {"page_milliseconds": 1e3 * seconds / len(same), "page_same": sum(same) / len(same)}


def front(rows, cost, gain="bleu"):
    """Returns the rows that are better than all cheaper ones, the cheapest first.

    Args:
        rows: Dictionaries.
        cost: Key of what should be small.
        gain: Key of what should be large.
    """
    chosen = []
    for row in sorted(rows, key=lambda row: (row[cost], -row[gain])):
        if not chosen or row[gain] > chosen[-1][gain]:
            chosen.append(row)
    return chosen


def table(rows):
    """Returns a Markdown table; sizes and times on the front are bold."""
    fronts = {cost: front(rows, cost) for cost in ("bytes", "milliseconds")}
    titles = ["run", "weights", "MB", "ms a sentence", "BLEU", "chrF", "equal sentences"]
    in_pages = any("page_same" in row for row in rows)
    titles += ["ms in Chromium", "equal in Chromium"] if in_pages else []
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        marks = ["**" * (row in chosen) for chosen in fronts.values()]
        cells = f"{row['bytes'] / 1e6:.2f}", f"{row['milliseconds']:.2f}"
        lines.append([
            row["run"], TITLES.get(row["quantize"], row["quantize"]),
            *(f"{mark}{cell}{mark}" for mark, cell in zip(marks, cells, strict=True)),
            f"{row['bleu']:.2f}", f"{row['chrf']:.2f}", f"{row['same']:.1%}",
        ])  # fmt: skip
        if in_pages:
            lines[-1] += [f"{row['page_milliseconds']:.1f}", f"{row['page_same']:.1%}"]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(rows, path):
    """Draws BLEU by size and by time, with the fronts as lines, and writes the figure.

    Args:
        rows: Result of `measure`.
        path: Path of the figure, which ends in `.svg`, `.png` or `.pdf`.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    from keras_transformer.plots.figure import FAINT, line_style, new_figure, save_figure, styled

    @styled
    def figure():
        drawn = new_figure(7, 3)
        axes = drawn.subplots(1, 2, sharey=True)
        runs = list(dict.fromkeys(row["run"] for row in rows))
        panels = {"bytes": (1e6, "MB"), "milliseconds": (1, "ms of a sentence on one core")}
        for ax, (cost, (unit, title)) in zip(axes, panels.items(), strict=True):
            ends = [(row[cost] / unit, row["bleu"]) for row in front(rows, cost)]
            ax.plot(*zip(*ends, strict=True), color=FAINT, linewidth=0.8, zorder=1)
            for row in rows:
                color = line_style(runs.index(row["run"]))["color"]
                marker = MARKERS[row["quantize"]]
                ax.scatter(row[cost] / unit, row["bleu"], 28, color=color, marker=marker)
            ax.set(xscale="log", xlabel=title)
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_locator(NullLocator())
            ax.grid(visible=True)
            ax.set_axisbelow(True)
        axes[0].set_ylabel("BLEU")
        for number, run in enumerate(runs):
            axes[1].scatter([], [], 28, color=line_style(number)["color"], label=run)
        for kind in dict.fromkeys(row["quantize"] for row in rows):
            label = TITLES.get(kind, kind)
            axes[1].scatter([], [], 28, color=FAINT, marker=MARKERS[kind], label=label)
        drawn.legend(loc="outside right center")
        return drawn

    save_figure(figure(), path)


if __name__ == "__main__":
    main()
