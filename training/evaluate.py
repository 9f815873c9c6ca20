"""Translating test sentences with a run and scoring the translations (section 6.1)."""

import functools
import time

from keras_transformer.decoding import Greedy
from keras_transformer.run import Run
from keras_transformer.tasks.translator import Translator
from keras_transformer.text.lines import read_parallel
from keras_transformer.text.quality import score
from keras_transformer.training.settings.toml import load_settings


def evaluate(translator, sources, references, *, lowercase=False, tokenize="13a"):
    """Translates sentences and scores the translations.

    Args:
        translator: Function from a list of strings to a list of strings, such as a `Translator`.
        sources: List of strings.
        references: List of strings.
        lowercase: See `score`.
        tokenize: See `score`.

    Returns:
        The dictionary of `score`, and `seconds`, the time the translation took.
    """
    begin = time.perf_counter()
    hypotheses = translator(sources)
    seconds = time.perf_counter() - begin
    scores = score(hypotheses, references, lowercase=lowercase, tokenize=tokenize)
    return {**scores, "seconds": round(seconds, 3)}


def evaluate_files(run, source, reference, *, lowercase=False, tokenize="13a", search=Greedy()):
    """Evaluates a run on two text files, one sentence per line.

    Args:
        run: Folder of the run.
        source: File of sentences.
        reference: File of their translations.
        lowercase: See `score`.
        tokenize: See `score`.
        search: A `Greedy`, `Beam` or `Sample`.

    Returns:
        The dictionary of `evaluate`, and `search`, the name of the search.

    Raises:
        ValueError: If a file is not UTF-8, or they differ in their number of lines.
    """
    sources, references = read_parallel(source, reference)
    translator = functools.partial(Translator.from_run(run), search=search)
    results = evaluate(translator, sources, references, lowercase=lowercase, tokenize=tokenize)
    return {**results, "search": str(search)}


def evaluate_split(run, split="test", *, lowercase=False, tokenize="13a", search=Greedy()):
    """Evaluates a run on a split of its own data; the test split's figures stay in the run.

    Args:
        run: Folder of the run.
        split: `"train"`, `"validation"` or `"test"`.
        lowercase: See `score`.
        tokenize: See `score`.
        search: A `Greedy`, `Beam` or `Sample`.

    Returns:
        The dictionary of `evaluate`, and `search`, the name of the search. For the test split
        `metrics.json` of the run also has it.
    """
    from keras_transformer.training.data.corpus import parallel_data

    folder = Run(run)
    folder.require_finished()
    data = parallel_data(load_settings(folder.config).data)
    data.check_split(split)
    translator = functools.partial(Translator.from_run(run), search=search)
    sources, references = read_pairs(data, split)
    results = evaluate(translator, sources, references, lowercase=lowercase, tokenize=tokenize)
    results["search"] = str(search)
    if split == "test":
        figures = {("test_seconds" if k == "seconds" else k): v for k, v in results.items()}
        folder.update_metrics(**figures)
    return results


def read_pairs(data, split, limit=None):
    """Returns the sources and the references of a split of a `ParallelData` as lists of strings."""
    pairs = data.pairs(split)
    pairs = pairs if limit is None else pairs.take(limit)
    both = [(source.decode(), target.decode()) for source, target in pairs.as_numpy_iterator()]
    sources, references = zip(*both, strict=True) if both else ((), ())
    return list(sources), list(references)
